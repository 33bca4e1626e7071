/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 64
#define LINE_BYTES 64

static int grow(struct weft__uv_map *map)
{
	struct weft__uv_map more = {.room = map->room ? 2 * map->room : ROOM_FIRST, .n = map->n};
	size_t i;

	more.at = aligned_alloc(LINE_BYTES, more.room * sizeof(*more.at));
	if (!more.at)
		return -1;
	memset(more.at, 0, more.room * sizeof(*more.at));
	for (i = 0; i < map->room; i++)
		if (map->at[i].key)
			more.at[weft__uv_map_find(&more, map->at[i].key)] = map->at[i];
	free(map->at);
	*map = more;
	return 0;
}

struct weft__uv_entry *weft__uv_map_add(struct weft__uv_map *map, uint64_t key)
{
	struct weft__uv_entry *entry = map->room ? &map->at[weft__uv_map_find(map, key)] : NULL;

	if (entry && entry->key)
		return entry;
	if (4 * (map->n + 1) > 3 * map->room) {
		if (grow(map) < 0)
			return NULL;
		entry = &map->at[weft__uv_map_find(map, key)];
	}
	*entry = (struct weft__uv_entry){.key = key};
	map->n++;
	return entry;
}

/* Entries behind the one that goes move up, where their home allows it: so none is ever marked as deleted. */
void weft__uv_map_del(struct weft__uv_map *map, const struct weft__uv_entry *entry)
{
	size_t hole = (size_t)(entry - map->at), i, mask = map->room - 1;

	for (i = (hole + 1) & mask; map->at[i].key; i = (i + 1) & mask)
		if (((i - weft__uv_map_home(map, map->at[i].key)) & mask) >= ((i - hole) & mask)) {
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
