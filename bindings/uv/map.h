/* SPDX-License-Identifier: Apache-2.0 */
/* From addresses of handles and requests to their callbacks. Open addressing, by value: an entry is valid until the map
 * is changed. Not locked: a map belongs to a thread, or its user has a lock. */
#ifndef WEFT_UV_MAP_H
#define WEFT_UV_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Two in a line of the cache. What a callback costs is mostly the line with its entry: the kernel's work for a request
 * leaves little in the caches. */
struct weft__uv_entry {
	uint64_t key;     /* an address, with a number in its lowest bits; 0: free */
	void (*cb)(void); /* of libuv's type for that handle or request */
	union {
		uint64_t task;   /* of requests; that of a handle is in its key */
		uint64_t due_ms; /* of timers */
		void *work;      /* of uv_queue_work */
	};
	uint32_t location;
	uint32_t recording : 31; /* in which the spawn was recorded */
	uint32_t is_request : 1; /* `task` is in use */
};
_Static_assert(sizeof(struct weft__uv_entry) == 32, "two in a line of the cache");

struct weft__uv_map {
	struct weft__uv_entry *at;
	size_t room, n; /* room is a power of two, or 0 */
};

static inline size_t weft__uv_map_home(const struct weft__uv_map *map, uint64_t key)
{
	return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (map->room - 1);
}

/* Where the key is, or the free entry where it would be. */
static inline size_t weft__uv_map_find(const struct weft__uv_map *map, uint64_t key)
{
	size_t i = weft__uv_map_home(map, key);

	while (map->at[i].key && map->at[i].key != key)
		i = (i + 1) & (map->room - 1);
	return i;
}

/* The entry with that key, or NULL. */
static inline struct weft__uv_entry *weft__uv_map_get(const struct weft__uv_map *map, uint64_t key)
{
	struct weft__uv_entry *entry = map->room ? &map->at[weft__uv_map_find(map, key)] : NULL;

	return entry && entry->key ? entry : NULL;
}

/* The same, made when there is none: all zero but for the key. NULL: out of memory. */
struct weft__uv_entry *weft__uv_map_add(struct weft__uv_map *map, uint64_t key);

/* `entry` is of this map. */
void weft__uv_map_del(struct weft__uv_map *map, const struct weft__uv_entry *entry);
void weft__uv_map_fini(struct weft__uv_map *map);

#endif
