/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/defcache.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "segment/format.h"
#include "segment/hash.h"

/* What a record is about: facts have a key, the others an id. 0: it stands for itself, like a loss. */
static uint64_t about(uint64_t tag, const uint8_t *body, size_t n)
{
	struct weft__in in = weft__in(body, n);
	uint64_t length = in_varint(&in);
	const uint8_t *key = tag == DEF_FACT ? in_bytes(&in, length) : NULL;
	uint8_t id[16] = {0};

	if (in.bad || tag == DEF_LOSS || tag == DEF_CLOCK || tag == DEF_SYMBOL)
		return 0;
	put_u64(id, tag);
	put_u64(id + 8, key ? 0 : length);
	return weft__hash2(id, sizeof(id), key ? key : id, key ? length : 0) | 1;
}

/* 1, 0 or -errno. */
static int is_news(struct weft__defcache *r, uint64_t tag, const uint8_t *body, size_t n)
{
	uint64_t what = about(tag, body, n), last = weft__hash(body, n), *grown;
	uint32_t at = what ? weft__map_get(&r->about, what) : WEFT__MAP_NONE;

	if (!what)
		return 1;
	if (at != WEFT__MAP_NONE) {
		if (r->last[at] == last)
			return 0;
		r->last[at] = last;
		return 1;
	}
	grown = weft__grow(r->last, &r->cap, r->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->last = grown;
	if (weft__map_put(&r->about, what, (uint32_t)r->n))
		return -ENOMEM;
	r->last[r->n++] = last;
	return 1;
}

static int expand(struct weft__defcache *r, const uint8_t **payload, size_t *n)
{
	int err = r->decoder ? 0 : weft__decoder_open(&r->decoder);

	if (!err)
		err = weft__decoder_expand(r->decoder, *payload, *n, DEFS_MAX, &r->expanded);
	*payload = r->expanded.bytes;
	*n = r->expanded.n;
	return err;
}

int weft__defcache_news(struct weft__defcache *r, const uint8_t *payload, size_t n, uint32_t flags)
{
	struct weft__in in;
	int err = flags & BLOCK_FLAG_ZSTD ? expand(r, &payload, &n) : 0;

	weft__defs_clear(&r->news);
	in = weft__in(payload, n);
	while (!err && in_left(&in)) {
		const uint8_t *record = in.p;
		uint64_t tag = in_varint(&in);
		uint64_t length = in_varint(&in);
		const uint8_t *body = in_bytes(&in, length);
		int news;

		if (!body || in.bad)
			return -WEFT_E_DAMAGED;
		news = is_news(r, tag, body, length);
		if (news < 0)
			err = news;
		else if (news)
			weft__defs_raw(&r->news, record, (size_t)(in.p - record), 1);
	}
	return err ? err : weft__defs_oom(&r->news) ? -ENOMEM : 0;
}

void weft__defcache_forget(struct weft__defcache *r)
{
	weft__map_fini(&r->about);
	weft__free(r->last);
	r->last = NULL;
	r->n = r->cap = 0;
}

void weft__defcache_fini(struct weft__defcache *r)
{
	weft__defcache_forget(r);
	weft__decoder_close(r->decoder);
	r->decoder = NULL;
	weft__buf_free(&r->expanded);
	weft__defs_fini(&r->news);
}
