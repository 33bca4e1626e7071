/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads there are to look at, and which ring is whose. COLLECTOR. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/sort.h"
#include "record/ring/ring.h"
#include "record/wall/state.h"

#define THREADS_MOST 65536

static int wall_full_reported; /* that there are more threads */

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

long weft__wall_ids(uint32_t **ids, size_t *cap)
{
	static char buf[16384];
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;
	long got;

	if (fd < 0)
		return -1;
	while ((got = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < got && n < THREADS_MOST;) {
			struct dirent64 *entry = (struct dirent64 *)(void *)(buf + at);
			uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
			uint32_t *more = weft__grow(*ids, cap, n, sizeof(*more));

			if (!more) {
				close(fd);
				return -1;
			}
			*ids = more;
			if (tid)
				more[n++] = tid;
			at += entry->d_reclen;
		}
	}
	close(fd);
	if (n == THREADS_MOST && !wall_full_reported++)
		weft__log(WEFT_LOG_WARN, "more than %d threads: the others are not looked at while they wait",
			  THREADS_MOST);
	weft__sort(*ids, n, sizeof(**ids), by_id);
	return got < 0 ? -1 : (long)n;
}

struct ring_page *weft__wall_ring(uint32_t tid, uint32_t *known, int search)
{
	uint32_t i, n = load_acquire(&weft__hot.head->n_rings);

	if (*known) {
		struct ring_page *ring = ring_page_at(&weft__hot.map, *known - 1);

		if (load_acquire(&ring->owner) == tid)
			return ring;
	}
	*known = 0;
	for (i = 0; search && i < n; i++)
		if (load_acquire(&ring_page_at(&weft__hot.map, i)->owner) == tid) {
			*known = i + 1;
			return ring_page_at(&weft__hot.map, i);
		}
	return NULL;
}
