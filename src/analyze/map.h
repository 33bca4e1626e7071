/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit numbers to 32-bit ones, usually indices of an array. Open addressing with a seed of its own, because
 * keys come from files that anyone may have made. Context: CALLER. */
#ifndef WEFT_ANALYZE_MAP_H
#define WEFT_ANALYZE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__MAP_NONE UINT32_MAX

struct weft__map_slot {
	uint64_t key;
	uint32_t value; /* WEFT__MAP_NONE: empty */
};

struct weft__map {
	struct weft__map_slot *slots;
	size_t mask;
	size_t n;
	uint64_t seed;
};

/* A zeroed map is an empty one. `value` must not be WEFT__MAP_NONE. Put replaces. Returns 0 or -ENOMEM. */
int weft__map_put(struct weft__map *map, uint64_t key, uint32_t value);

/* The value of `key`, or WEFT__MAP_NONE. */
uint32_t weft__map_get(const struct weft__map *map, uint64_t key);

void weft__map_del(struct weft__map *map, uint64_t key);
void weft__map_fini(struct weft__map *map);

#endif
