/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"

static size_t map_find(const struct weft__map *map, uint64_t key)
{
	size_t at = weft__map_home(map, key);

	while (map->slots[at].value != WEFT__MAP_NONE && map->slots[at].key != key)
		at = (at + 1) & map->mask;
	return at;
}

static int map_grow(struct weft__map *map)
{
	size_t slots = map->slots ? (map->mask + 1) * 2 : 64, i;
	struct weft__map bigger = {.mask = slots - 1, .n = map->n, .seed = map->seed};

	if (!map->slots && getrandom(&bigger.seed, sizeof(bigger.seed), GRND_NONBLOCK) < 0)
		bigger.seed = (uint64_t)(uintptr_t)map * UINT64_C(0x9e3779b97f4a7c15);
	if (slots > SIZE_MAX / 2 / sizeof(*bigger.slots))
		return -ENOMEM;
	bigger.slots = weft__alloc(slots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < slots; i++)
		bigger.slots[i].value = WEFT__MAP_NONE;
	for (i = 0; map->slots && i <= map->mask; i++)
		if (map->slots[i].value != WEFT__MAP_NONE)
			bigger.slots[map_find(&bigger, map->slots[i].key)] = map->slots[i];
	weft__free(map->slots);
	*map = bigger;
	return 0;
}

int weft__map_claim(struct weft__map *map, uint64_t key, uint32_t value, uint32_t *ret)
{
	size_t at;

	if (!map->slots || map->n + map->n / 2 >= map->mask) {
		int rc = map_grow(map);

		if (rc < 0)
			return rc;
	}
	at = map_find(map, key);
	if (map->slots[at].value == WEFT__MAP_NONE) {
		map->n++;
		map->slots[at] = (struct weft__map_slot){key, value};
	}
	*ret = map->slots[at].value;
	return 0;
}

int weft__map_put(struct weft__map *map, uint64_t key, uint32_t value)
{
	size_t at;

	if (!map->slots || map->n + map->n / 2 >= map->mask) {
		int rc = map_grow(map);

		if (rc < 0)
			return rc;
	}
	at = map_find(map, key);
	if (map->slots[at].value == WEFT__MAP_NONE)
		map->n++;
	map->slots[at].key = key;
	map->slots[at].value = value;
	return 0;
}

/* Closes the hole by moving back what was pushed past it, so that lookups never need tombstones. */
void weft__map_del(struct weft__map *map, uint64_t key)
{
	size_t hole, at;

	if (!map->slots)
		return;
	hole = map_find(map, key);
	if (map->slots[hole].value == WEFT__MAP_NONE)
		return;
	for (at = (hole + 1) & map->mask; map->slots[at].value != WEFT__MAP_NONE; at = (at + 1) & map->mask) {
		size_t want = weft__map_home(map, map->slots[at].key);

		if (((at - want) & map->mask) >= ((at - hole) & map->mask)) {
			map->slots[hole] = map->slots[at];
			hole = at;
		}
	}
	map->slots[hole].value = WEFT__MAP_NONE;
	map->n--;
}

void weft__map_fini(struct weft__map *map)
{
	weft__free(map->slots);
	memset(map, 0, sizeof(*map));
}
