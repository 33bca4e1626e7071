/* SPDX-License-Identifier: Apache-2.0 */
/* Where rings are in memory. In the file one follows the other, with room for as many as there may be; of address
 * space, which a program may have little of or lock, a session takes some for the first few. When these have owners
 * it takes as much again, and so on: chunks. */
#ifndef WEFT_RING_CHUNKS_H
#define WEFT_RING_CHUNKS_H

#include "base/atomic.h"
#include "base/own.h"
#include "record/ring/layout.h"

#define RING_CHUNKS 24
#define CHUNK_FIRST_BYTES (5u << 20) /* at most, unless it is one ring */

struct rings_map {
	uint32_t
		/* the first chunk has 1 << shift rings; each other as many as all before it, but no more than there
		 * may be */
		shift;
	uint64_t rings_at, stride; /* in the file */
	struct rings_chunk {
		char *at; /* NULL: not mapped yet; set once, atomically */
		uint64_t bytes;
	} chunks[RING_CHUNKS];
};

static inline uint32_t chunk_of(const struct rings_map *map, uint32_t ring)
{
	uint32_t above = ring >> load_relaxed(&map->shift);

	return above ? 32 - (uint32_t)__builtin_clz(above) : 0;
}

static inline uint32_t chunk_first(const struct rings_map *map, uint32_t chunk)
{
	return chunk ? 1u << (load_relaxed(&map->shift) + chunk - 1) : 0;
}

/* A ring that was made. */
static inline struct ring_page *ring_page_at(const struct rings_map *map, uint32_t ring)
{
	uint32_t chunk = chunk_of(map, ring);
	char *at = load_acquire(&map->chunks[chunk].at);

	return (struct ring_page *)(void *)(at + load_relaxed(&map->stride) * (ring - chunk_first(map, chunk)));
}

/* CALLER. Chunks for `max_rings` rings, none of them mapped; `whole`: there is but one. */
void weft__chunks_init(struct rings_map *map, uint64_t rings_at, uint64_t stride, uint32_t max_rings, int whole);
/* HOT. Maps the chunk of a ring if that is not done. 0: it cannot be. Without a file the memory is private; `file`
 * may be closed, if the chunk before is mapped. */
int weft__chunk_map(struct rings_map *map, const struct weft__own_file *file, uint32_t ring);
/* HOT. The number of a ring, or UINT32_MAX: the address is in none of the chunks. */
uint32_t weft__chunk_ring(const struct rings_map *map, const void *ring);

#endif
