/* SPDX-License-Identifier: Apache-2.0 */
/* Byte strings, each kept once, numbered from 0 on in the order in which they came: texts, stacks, sets of labels.
 * Context: CALLER. */
#ifndef WEFT_PACKAGE_KEYS_H
#define WEFT_PACKAGE_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct weft__key {
	size_t first;
	uint32_t n;
};

struct weft__keys {
	uint8_t *bytes;
	size_t n_bytes, cap_bytes;
	struct weft__key *at;
	size_t n, cap;
	struct weft__map by_hash; /* a hash, or the next free number behind it, to a key */
};

/* Both answer 0 or -ENOMEM. {0} is ready for use. */
int weft__keys_add(struct weft__keys *keys, const void *bytes, size_t n, uint32_t *ret);
/* A text is kept with its zero byte. NULL is "". */
int weft__keys_text(struct weft__keys *keys, const char *text, uint32_t *ret);
/* WEFT__MAP_NONE: it is not there. */
uint32_t weft__keys_find(const struct weft__keys *keys, const void *bytes, size_t n);
/* Forgets all keys; the memory stays. */
void weft__keys_clear(struct weft__keys *keys);
void weft__keys_fini(struct weft__keys *keys);

/* Good until the next key is added. */
static inline const void *weft__keys_at(const struct weft__keys *keys, uint32_t number, size_t *n)
{
	if (n)
		*n = keys->at[number].n;
	return keys->bytes + keys->at[number].first;
}

#endif
