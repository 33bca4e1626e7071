/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit numbers to 32-bit ones, usually indices of an array. Open addressing with a seed of its own,
 * because keys come from files that anyone may have made. Context: CALLER. */
#ifndef WEFT_BASE_MAP_H
#define WEFT_BASE_MAP_H

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

/* Looks once: the value that `key` has, or `value`, which it has from then on. `*ret` is that. Returns 0 or -ENOMEM. */
int weft__map_claim(struct weft__map *map, uint64_t key, uint32_t value, uint32_t *ret);

/* Both halves of a product with what nobody outside knows. */
static inline size_t weft__map_home(const struct weft__map *map, uint64_t key)
{
#ifdef __wasm__ /* has no such product; two of 64 bits do */
	uint64_t half = (key ^ map->seed) * (map->seed << 1 | 1);

	half = (half ^ half >> 32) * (map->seed << 1 | 1);
	return (size_t)(half ^ half >> 32) & map->mask;
#else
	unsigned __int128 x = (unsigned __int128)(key ^ map->seed) * (map->seed << 1 | 1);

	return (size_t)((uint64_t)(x >> 64) ^ (uint64_t)x) & map->mask;
#endif
}

/* The value of `key`, or WEFT__MAP_NONE. */
static inline uint32_t weft__map_get(const struct weft__map *map, uint64_t key)
{
	size_t at;

	if (!map->slots)
		return WEFT__MAP_NONE;
	at = weft__map_home(map, key);
	while (map->slots[at].key != key && map->slots[at].value != WEFT__MAP_NONE)
		at = (at + 1) & map->mask;
	return map->slots[at].value;
}

/* In front of a map: what was asked for last. Zeroed, it knows nothing. */
#define WEFT__NEAR 64u
struct weft__near {
	struct {
		uint32_t key;
		uint32_t value; /* + 1; 0: none */
	} at[WEFT__NEAR];
};

static inline uint32_t weft__near_get(const struct weft__near *near, uint32_t key)
{
	return near->at[key % WEFT__NEAR].key == key ? near->at[key % WEFT__NEAR].value - 1 : WEFT__MAP_NONE;
}

static inline void weft__near_put(struct weft__near *near, uint32_t key, uint32_t value)
{
	near->at[key % WEFT__NEAR].key = key;
	near->at[key % WEFT__NEAR].value = value + 1;
}

static inline void weft__near_del(struct weft__near *near, uint32_t key)
{
	if (near->at[key % WEFT__NEAR].key == key)
		near->at[key % WEFT__NEAR].value = 0;
}

void weft__map_del(struct weft__map *map, uint64_t key);
void weft__map_fini(struct weft__map *map);

#endif
