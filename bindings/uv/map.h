/* SPDX-License-Identifier: Apache-2.0 */
/* From addresses of handles and requests to their callbacks. Open addressing, by value: an entry is valid until the map
 * is changed. Not locked: a map belongs to a thread, or its user has a lock. */
#ifndef WEFT_UV_MAP_H
#define WEFT_UV_MAP_H

#include <stddef.h>
#include <stdint.h>

struct weft__uv_entry {
	uint64_t key;     /* an address, with a number in its lowest bits; 0: free */
	void (*cb)(void); /* of libuv's type for that handle or request */
	uint64_t task;
	uint64_t due_ms; /* of timers */
	void *work;      /* of uv_queue_work */
	uint32_t location;
	uint32_t recording; /* in which the spawn was recorded */
};

struct weft__uv_map {
	struct weft__uv_entry *at;
	size_t room, n; /* room is a power of two, or 0 */
};

/* The entry with that key, or NULL. */
struct weft__uv_entry *weft__uv_map_get(const struct weft__uv_map *map, uint64_t key);

/* The same, made when there is none: all zero but for the key. NULL: out of memory. */
struct weft__uv_entry *weft__uv_map_add(struct weft__uv_map *map, uint64_t key);

/* `entry` is of this map. */
void weft__uv_map_del(struct weft__uv_map *map, const struct weft__uv_entry *entry);
void weft__uv_map_fini(struct weft__uv_map *map);

#endif
