/* SPDX-License-Identifier: Apache-2.0 */
#include "package/keys.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "segment/hash.h"

/* Keys with the same hash have numbers one behind the other: `*hash` becomes the one of this key, or the free one. */
static uint32_t find_key(const struct weft__keys *keys, uint64_t *hash, const void *bytes, size_t n)
{
	for (;; ++*hash) {
		uint32_t at = weft__map_get(&keys->by_hash, *hash);

		if (at == WEFT__MAP_NONE ||
		    (keys->at[at].n == n && (n == 0 || !memcmp(keys->bytes + keys->at[at].first, bytes, n))))
			return at;
	}
}

uint32_t weft__keys_find(const struct weft__keys *keys, const void *bytes, size_t n)
{
	uint64_t hash = weft__hash(bytes, n);

	return find_key(keys, &hash, bytes, n);
}

static int make_room(struct weft__keys *keys, size_t n)
{
	size_t cap = keys->cap_bytes ? keys->cap_bytes : 1024;
	uint8_t *moved;

	if (keys->bytes && keys->cap_bytes - keys->n_bytes >= n)
		return 0;
	while (cap - keys->n_bytes < n) {
		if (cap > SIZE_MAX / 2)
			return -ENOMEM;
		cap *= 2;
	}
	moved = weft__realloc(keys->bytes, cap);
	if (!moved)
		return -ENOMEM;
	keys->bytes = moved;
	keys->cap_bytes = cap;
	return 0;
}

int weft__keys_add(struct weft__keys *keys, const void *bytes, size_t n, uint32_t *ret)
{
	uint64_t hash = weft__hash(bytes, n);
	uint32_t at = find_key(keys, &hash, bytes, n);
	struct weft__key *grown;

	if (at != WEFT__MAP_NONE) {
		*ret = at;
		return 0;
	}
	if (n > UINT32_MAX || keys->n >= UINT32_MAX - 1)
		return -ENOMEM;
	grown = weft__grow(keys->at, &keys->cap, keys->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	keys->at = grown;
	if (make_room(keys, n) < 0 || weft__map_put(&keys->by_hash, hash, (uint32_t)keys->n) < 0)
		return -ENOMEM;
	if (n)
		memcpy(keys->bytes + keys->n_bytes, bytes, n);
	grown[keys->n] = (struct weft__key){keys->n_bytes, (uint32_t)n};
	keys->n_bytes += n;
	*ret = (uint32_t)keys->n++;
	return 0;
}

int weft__keys_text(struct weft__keys *keys, const char *text, uint32_t *ret)
{
	if (!text)
		text = "";
	return weft__keys_add(keys, text, strlen(text) + 1, ret);
}

void weft__keys_clear(struct weft__keys *keys)
{
	weft__map_fini(&keys->by_hash);
	keys->n_bytes = keys->n = 0;
}

void weft__keys_fini(struct weft__keys *keys)
{
	weft__free(keys->bytes);
	weft__free(keys->at);
	weft__map_fini(&keys->by_hash);
	memset(keys, 0, sizeof(*keys));
}
