/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <stdlib.h>

#define ROOM_FIRST 64

static size_t home(const struct weft__uv_map *map, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->room - 1);
}

/* Where the key is, or the free entry where it would be. */
static size_t find(const struct weft__uv_map *map, uint64_t key)
{
	size_t i = home(map, key);

	while (map->at[i].key && map->at[i].key != key)
		i = (i + 1) & (map->room - 1);
	return i;
}

struct weft__uv_entry *weft__uv_map_get(const struct weft__uv_map *map, uint64_t key)
{
	struct weft__uv_entry *entry = map->room ? &map->at[find(map, key)] : NULL;

	return entry && entry->key ? entry : NULL;
}

static int grow(struct weft__uv_map *map)
{
	struct weft__uv_map more = {.room = map->room ? 2 * map->room : ROOM_FIRST, .n = map->n};
	size_t i;

	more.at = calloc(more.room, sizeof(*more.at));
	if (!more.at)
		return -1;
	for (i = 0; i < map->room; i++)
		if (map->at[i].key)
			more.at[find(&more, map->at[i].key)] = map->at[i];
	free(map->at);
	*map = more;
	return 0;
}

struct weft__uv_entry *weft__uv_map_add(struct weft__uv_map *map, uint64_t key)
{
	struct weft__uv_entry *entry = weft__uv_map_get(map, key);

	if (entry)
		return entry;
	if (4 * (map->n + 1) > 3 * map->room && grow(map) < 0)
		return NULL;
	entry = &map->at[find(map, key)];
	*entry = (struct weft__uv_entry){.key = key};
	map->n++;
	return entry;
}

/* Entries behind the one that goes move up, where their home allows it: so none is ever marked as deleted. */
void weft__uv_map_del(struct weft__uv_map *map, const struct weft__uv_entry *entry)
{
	size_t hole = (size_t)(entry - map->at), i, mask = map->room - 1;

	for (i = (hole + 1) & mask; map->at[i].key; i = (i + 1) & mask)
		if (((i - home(map, map->at[i].key)) & mask) >= ((i - hole) & mask)) {
			map->at[hole] = map->at[i];
			hole = i;
		}
	map->at[hole].key = 0;
	map->n--;
}

void weft__uv_map_fini(struct weft__uv_map *map)
{
	free(map->at);
	*map = (struct weft__uv_map){0};
}
