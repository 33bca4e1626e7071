/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the rings' memory when a session ends and threads may still point to it. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "record/ring/region.h"

/* Threads still point to their rings, and one may have looked at its limit and not yet written: the addresses of rings
 * that have an owner stay, as private memory that looks like a full ring, until every owner has moved on. */
struct retired {
	struct retired *next;
	char *rings;
	uint64_t bytes;
	uint64_t stride;
	uint32_t n;
	uint32_t age; /* sessions since */
	pid_t pid;    /* a child knows nothing of the owners */
};
static struct retired *retired_all;

static int retired_visited(const struct retired *retired)
{
	pid_t pid = getpid();
	uint32_t i;

	for (i = 0; i < retired->n && retired->pid == pid; i++) {
		const struct ring_page *ring =
			(const struct ring_page *)(const void *)(retired->rings + retired->stride * i);
		uint32_t owner = load_acquire(&ring->owner);

		if (owner && (syscall(SYS_tgkill, pid, owner, 0) == 0 || errno != ESRCH))
			return 1;
	}
	return retired->pid != pid;
}

/* A handler can find a new session while the emit that it interrupted still holds the ring of the old one: hence the
 * age. */
void weft__retired_sweep(void)
{
	struct retired **at = &retired_all;

	while (*at) {
		struct retired *retired = *at;

		if (retired->age++ < 2 || retired_visited(retired)) {
			at = &retired->next;
			continue;
		}
		*at = retired->next;
		munmap(retired->rings, retired->bytes);
		weft__free(retired);
	}
}

static void retired_add(char *rings, uint64_t bytes, uint64_t stride, uint32_t n)
{
	struct retired *retired = weft__alloc(sizeof(*retired));

	if (!retired)
		return; /* it stays for good */
	*retired = (struct retired){retired_all, rings, bytes, stride, n, 0, getpid()};
	retired_all = retired;
}

/* Copies of the rings that have an owner, of `n` at `from`, into `to`, full. Answers how many there are. */
static uint32_t make_full(const char *from, char *to, uint64_t stride, uint32_t n)
{
	uint32_t i, owned = 0;

	for (i = 0; i < n; i++) {
		const struct ring_page *ring = (const struct ring_page *)(const void *)(from + stride * i);
		struct ring_page *copy = (struct ring_page *)(void *)(to + stride * i);
		uint32_t owner = load_acquire(&ring->owner);

		if (!owner)
			continue;
		owned++;
		copy->owner = owner;
		copy->hot.slots = ring->hot.slots;
		copy->hot.mask = load_relaxed(&ring->hot.mask);
		copy->slots_first = ring->slots_first;
		copy->hot.resv = copy->hot.head = copy->hot.mask + 1;
	}
	return owned;
}

/* Of a chunk in which `n` rings were made. */
static void chunk_retire(char *rings, uint64_t all, uint64_t stride, uint32_t n)
{
	uint64_t bytes = stride * n;
	char *copy = n ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
		       : NULL;

	if (copy == MAP_FAILED) {
		weft__log(WEFT_LOG_ERROR, "cannot replace the rings' mapping: %s", weft_strerror(-errno));
	} else if (n && make_full(rings, copy, stride, n)) {
		if (all > bytes)
			munmap(rings + bytes, all - bytes);
		if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, rings) != MAP_FAILED)
			retired_add(rings, bytes, stride, n);
	} else {
		if (n)
			munmap(copy, bytes);
		munmap(rings, all);
	}
}

void weft__region_retire(struct weft__region *region)
{
	struct rings_map *map = region->map;
	uint32_t n = load_acquire(&region->head->n_rings);
	uint32_t i;

	for (i = 0; i < RING_CHUNKS; i++) {
		uint64_t all = map->chunks[i].bytes, most = all / map->stride;
		uint32_t first = all ? chunk_first(map, i) : 0;

		if (map->chunks[i].at)
			chunk_retire(map->chunks[i].at, all, map->stride,
				     n <= first         ? 0
				     : n - first < most ? n - first
							: (uint32_t)most);
		map->chunks[i].at = NULL;
	}
	munmap(region->base, map->rings_at);
	region->base = NULL;
	region->head = NULL;
}
