/* SPDX-License-Identifier: Apache-2.0 */
/* Constant pools: where each value is. They are a chain, each with the way back to the one before. */
#include <errno.h>

#include "base/error.h"
#include "jfr/jfr.h"

static int read_pool(struct weft__jfr *jfr, struct weft__in *in)
{
	const struct weft__jfr_class *class = weft__jfr_class(jfr, weft__jfr_varint(in));
	uint64_t n = weft__jfr_varint(in), key;

	if (!class) {
		in_fail(in);
		return 0;
	}
	for (; n && !in->bad; n--) {
		key = weft__jfr_varint(in);
		if (class->pool && !in->bad &&
		    weft__map_put(&jfr->pools[class->pool - 1], key, (uint32_t)(in->p - jfr->chunk)) < 0)
			return -ENOMEM;
		weft__jfr_skip(jfr, class->number, in, 0);
	}
	return 0;
}

/* One link of the chain, of at most `most` bytes. `*back` is how far before it the next one is; 0: it is the last. */
static int read_pools(struct weft__jfr *jfr, uint64_t at, uint64_t most, uint64_t *back, bool *bad)
{
	struct weft__in in = weft__in(jfr->chunk + at, (size_t)most);
	uint64_t n;
	int r = 0;

	weft__jfr_varint(&in); /* size */
	*bad = weft__jfr_varint(&in) != 1;
	weft__jfr_varint(&in); /* time */
	weft__jfr_varint(&in); /* duration */
	*back = 0 - weft__jfr_varint(&in);
	in_u8(&in); /* flush */
	n = weft__jfr_varint(&in);
	for (; n && !in.bad && !r && !*bad; n--)
		r = read_pool(jfr, &in);
	*bad |= in.bad;
	return r;
}

int weft__jfr_pools(struct weft__jfr *jfr, struct weft_error *err)
{
	uint64_t at = jfr->pools_at, most = jfr->chunk_bytes - at, back = 0;
	bool bad = false;
	int r = 0;

	while (at && !r && !bad) {
		r = read_pools(jfr, at, most, &back, &bad);
		if (back == 0)
			break;
		bad |= back > at;
		at -= bad ? 0 : back;
		most = back; /* up to where the one behind it begins */
	}
	if (r)
		return weft__fail(err, r, "out of memory");
	return bad ? weft__fail(err, -WEFT_E_FORMAT, "the constant pools of the chunk are damaged") : 0;
}
