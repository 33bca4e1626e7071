/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ring/chunks.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void weft__chunks_init(struct rings_map *map, uint64_t rings_at, uint64_t stride, uint32_t max_rings, int whole)
{
	uint32_t chunk;

	memset(map, 0, sizeof(*map));
	map->rings_at = rings_at;
	map->stride = stride;
	while (!whole && (1u << map->shift) < max_rings && stride << (map->shift + 1) <= CHUNK_FIRST_BYTES)
		map->shift++;
	if (whole)
		map->shift = 31;
	for (chunk = 0; chunk < RING_CHUNKS && map->shift + chunk <= 32 && chunk_first(map, chunk) < max_rings;
	     chunk++) {
		uint32_t n = chunk ? chunk_first(map, chunk) : 1u << map->shift;
		uint32_t left = max_rings - chunk_first(map, chunk);

		map->chunks[chunk].bytes = stride * (n < left ? n : left);
	}
}

/* Another view of the file that the chunk before is of, from its last page on: the program may have closed the file,
 * or this thread never had it. */
static char *map_on(const struct rings_chunk *before, uint64_t bytes)
{
	char *last = load_acquire(&before->at);
	long at =
		last ? syscall(SYS_mremap, last + before->bytes - RING_PAGE, 0, RING_PAGE + bytes, MREMAP_MAYMOVE) : -1;

	if (at == -1)
		return NULL;
	syscall(SYS_munmap, at, RING_PAGE);
	return (char *)at + RING_PAGE;
}

static char *map_chunk(const struct rings_map *map, const struct weft__own_file *file, uint32_t chunk)
{
	uint64_t bytes = map->chunks[chunk].bytes, offset = map->rings_at + map->stride * chunk_first(map, chunk);
	int flags = file->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	long at;

	if (file->fd >= 0 && !weft__own_is(&file->own, file->fd))
		return chunk ? map_on(&map->chunks[chunk - 1], bytes) : NULL;
	at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, file->fd, file->fd < 0 ? 0 : offset);
	return at == -1 ? NULL : (char *)at;
}

int weft__chunk_map(struct rings_map *map, const struct weft__own_file *file, uint32_t ring)
{
	uint32_t number = chunk_of(map, ring);
	struct rings_chunk *chunk = &map->chunks[number];
	char *none = NULL, *at;

	if (load_acquire(&chunk->at))
		return 1;
	at = map_chunk(map, file, number);
	if (at && !cas_acq_rel(&chunk->at, &none, at))
		syscall(SYS_munmap, at, chunk->bytes); /* another thread was first */
	return at || load_acquire(&chunk->at);
}

uint32_t weft__chunk_ring(const struct rings_map *map, const void *ring)
{
	uint32_t chunk;

	for (chunk = 0; chunk < RING_CHUNKS; chunk++) {
		uintptr_t at = (uintptr_t)load_relaxed(&map->chunks[chunk].at);

		if (!at)
			break;
		if ((uintptr_t)ring - at < load_relaxed(&map->chunks[chunk].bytes))
			return chunk_first(map, chunk) +
			       (uint32_t)(((uintptr_t)ring - at) / load_relaxed(&map->stride));
	}
	return UINT32_MAX;
}
