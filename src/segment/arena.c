/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/arena.h"

#include <string.h>

#include "base/alloc.h"

#define CHUNK_BYTES ((size_t)64 << 10)

struct weft__arena_chunk {
	struct weft__arena_chunk *older;
	uint64_t bytes[];
};

static uint8_t *chunk_add(struct weft__arena *arena, size_t bytes)
{
	struct weft__arena_chunk *chunk;

	if (bytes > SIZE_MAX - sizeof(*chunk))
		return NULL;
	chunk = weft__alloc(sizeof(*chunk) + bytes);
	if (!chunk)
		return NULL;
	chunk->older = arena->chunks;
	arena->chunks = chunk;
	return (uint8_t *)chunk->bytes;
}

void *weft__arena_take(struct weft__arena *arena, size_t bytes)
{
	uint8_t *at;

	if (bytes > arena->left || !arena->next) {
		if (bytes > CHUNK_BYTES / 8) /* one of its own: the rest of the present one is still good */
			return chunk_add(arena, bytes);
		at = chunk_add(arena, CHUNK_BYTES);
		if (!at)
			return NULL;
		arena->next = at;
		arena->left = CHUNK_BYTES;
	}
	at = arena->next;
	arena->next += bytes;
	arena->left -= bytes;
	return at;
}

void weft__arena_fini(struct weft__arena *arena)
{
	while (arena->chunks) {
		struct weft__arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->older;
		weft__free(chunk);
	}
	memset(arena, 0, sizeof(*arena));
}
