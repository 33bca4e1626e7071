/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed together: everything that one part of a program keeps. Arrays may grow, and blocks may be given
 * back earlier. A zeroed arena is an empty one. All answer NULL when out of memory. COLLECTOR and CALLER. */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct weft__arena_block;

struct weft__arena {
	struct weft__arena_block *blocks; /* the newest first */
	uint8_t *next;                    /* room for small things in a block that they share */
	size_t left;
};

/* `bytes` that stay where they are until weft__arena_fini, and cannot be given back. A multiple of 8 for things that
 * need to be aligned; then only such may be taken from this arena. */
void *weft__arena_take(struct weft__arena *arena, size_t bytes);

/* Blocks of their own. New ones are zero. */
void *weft__arena_new(struct weft__arena *arena, size_t n, size_t elem_bytes);
/* As weft__grow. */
void *weft__arena_grow(struct weft__arena *arena, void *array, size_t *cap, size_t n, size_t elem_bytes);
/* Gives one back, or all but its first `bytes`. NULL is allowed. */
void weft__arena_del(struct weft__arena *arena, void *block);
void *weft__arena_cut(struct weft__arena *arena, void *block, size_t bytes);

void weft__arena_fini(struct weft__arena *arena);

#endif
