/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"

#define SHARED_BYTES ((size_t)64 << 10)
#define GROW_FROM 8

struct weft__arena_block {
	struct weft__arena_block *older, *newer;
	uint64_t bytes[];
};

static struct weft__arena_block *block_of(void *bytes)
{
	return (struct weft__arena_block *)(void *)((char *)bytes - offsetof(struct weft__arena_block, bytes));
}

/* Those beside a block that is new, or has moved, know where it is. */
static void *link_block(struct weft__arena *arena, struct weft__arena_block *block)
{
	if (block->older)
		block->older->newer = block;
	if (block->newer)
		block->newer->older = block;
	else
		arena->blocks = block;
	return block->bytes;
}

static void *resize(struct weft__arena *arena, void *bytes, size_t n_bytes)
{
	struct weft__arena_block *block = bytes ? block_of(bytes) : NULL, *moved;

	if (n_bytes > SIZE_MAX - sizeof(*block))
		return NULL;
	moved = weft__realloc(block, sizeof(*block) + n_bytes);
	if (!moved)
		return NULL;
	if (!block) {
		moved->older = arena->blocks;
		moved->newer = NULL;
	}
	return link_block(arena, moved);
}

void *weft__arena_take(struct weft__arena *arena, size_t bytes)
{
	uint8_t *at;

	if (bytes > arena->left || !arena->next) {
		if (bytes > SHARED_BYTES / 8) /* the rest of the shared block is still good */
			return resize(arena, NULL, bytes);
		at = resize(arena, NULL, SHARED_BYTES);
		if (!at)
			return NULL;
		arena->next = at;
		arena->left = SHARED_BYTES;
	}
	at = arena->next;
	arena->next += bytes;
	arena->left -= bytes;
	return at;
}

void *weft__arena_new(struct weft__arena *arena, size_t n, size_t elem_bytes)
{
	struct weft__arena_block *block;

	if (elem_bytes && n > (SIZE_MAX - sizeof(*block)) / elem_bytes)
		return NULL;
	block = weft__calloc(1, sizeof(*block) + n * elem_bytes);
	if (!block)
		return NULL;
	block->older = arena->blocks;
	return link_block(arena, block);
}

void *weft__arena_grow(struct weft__arena *arena, void *array, size_t *cap, size_t n, size_t elem_bytes)
{
	size_t want = *cap ? *cap * 2 : GROW_FROM;
	void *moved;

	if (n < *cap)
		return array;
	if (want > SIZE_MAX / elem_bytes)
		return NULL;
	moved = resize(arena, array, want * elem_bytes);
	if (moved)
		*cap = want;
	return moved;
}

void weft__arena_del(struct weft__arena *arena, void *bytes)
{
	struct weft__arena_block *block;

	if (!bytes)
		return;
	block = block_of(bytes);
	if (block->older)
		block->older->newer = block->newer;
	if (block->newer)
		block->newer->older = block->older;
	else
		arena->blocks = block->older;
	weft__free(block);
}

void *weft__arena_cut(struct weft__arena *arena, void *bytes, size_t n_bytes)
{
	void *moved = bytes ? resize(arena, bytes, n_bytes) : NULL;

	return moved ? moved : bytes;
}

void weft__arena_fini(struct weft__arena *arena)
{
	while (arena->blocks) {
		struct weft__arena_block *block = arena->blocks;

		arena->blocks = block->older;
		weft__free(block);
	}
	memset(arena, 0, sizeof(*arena));
}
