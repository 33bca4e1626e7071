/* SPDX-License-Identifier: Apache-2.0 */
/* Many small things that are freed together: what the tables of a segment point to. COLLECTOR and CALLER. */
#ifndef WEFT_SEGMENT_ARENA_H
#define WEFT_SEGMENT_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct weft__arena_chunk;

struct weft__arena {
	struct weft__arena_chunk *chunks; /* the newest first */
	uint8_t *next;
	size_t left;
};

/* `bytes` that stay where they are until weft__arena_fini, or NULL. A multiple of 8 for things that need to be
 * aligned; then only such may be taken from this arena. */
void *weft__arena_take(struct weft__arena *arena, size_t bytes);
void weft__arena_fini(struct weft__arena *arena);

#endif
