/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to numbers: a set of keys, each with the number it was given. CALLER. */
#ifndef WEFT_BASE_INTERN_H
#define WEFT_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct weft__intern_entry {
	uint8_t *key;
	uint32_t n;
	uint32_t id;
};

struct weft__intern {
	struct weft__intern_entry *entries;
	size_t n, cap;
	struct weft__map by_hash; /* a hash, or the next free number behind it, to an entry */
};

/* The number of the key, or 0. */
uint32_t weft__intern_get(const struct weft__intern *set, const void *key, size_t n);
/* Adds a key that is not there. 0 or -ENOMEM. `id` is not 0. */
int weft__intern_add(struct weft__intern *set, const void *key, size_t n, uint32_t id);
void weft__intern_fini(struct weft__intern *set);

#endif
