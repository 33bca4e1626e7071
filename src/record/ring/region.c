/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ring/region.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/dir.h"
#include "base/error.h"
#include "record/ring/region_file.h"
#include "record/ring/ring.h"

#define ATTACH_WAIT_MS 1000

static void head_init(struct weft__region *region, const struct weft__region_want *want)
{
	struct rings_head *head = region->head;

	head->pid = (uint32_t)getpid();
	memcpy(head->recording, want->recording, sizeof(head->recording));
	head->ring_slots = want->ring_slots;
	head->ring_most = want->ring_most;
	head->max_rings = want->max_rings;
	head->quantum_ns = want->quantum_ns;
	head->tick_source = want->source;
	head->facts_at = RING_PAGE;
	head->defs_at = head->facts_at + FACTS_BYTES;
	head->staging_at = head->defs_at + DEFS_BYTES;
	head->stacks_at = head->staging_at + STAGINGS * (uint64_t)STAGING_BYTES;
	head->has_stacks = want->stacks;
	head->rings_at = head->stacks_at + STACKS_BYTES;
	head->ring_stride = RING_PAGE + (uint64_t)want->ring_most * sizeof(struct weft_slot);
	head->file_bytes = head->rings_at + head->ring_stride * want->max_rings;
	snprintf(head->service, sizeof(head->service), "%s", want->service);
	snprintf(head->dir, sizeof(head->dir), "%s", region->dir);
	head->mount_space = weft__region_mount_space();
	head->next_stream = 1;
	head->next_stack = 1;
	memcpy(head->magic, RINGS_MAGIC, sizeof(head->magic));
	store_release(&head->version, RINGS_VERSION); /* all of it is true now */
}

static uint64_t rings_offset(void)
{
	return RING_PAGE + FACTS_BYTES + DEFS_BYTES + STAGINGS * STAGING_BYTES + STACKS_BYTES;
}

static uint64_t ring_bytes(const struct weft__region_want *want)
{
	return RING_PAGE + (uint64_t)want->ring_most * sizeof(struct weft_slot);
}

/* What every session needs is there from the beginning; rings get theirs when they are made, and so does the second
 * half of staging. */
static int file_back(int fd, uint64_t bytes, int stacks)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
		return -EFBIG; /* the kernel would end the program with a signal */
	if (ftruncate(fd, (off_t)bytes) < 0)
		return -errno;
	if (posix_fallocate(fd, 0, RING_PAGE + FACTS_BYTES) != 0 ||
	    posix_fallocate(fd, RING_PAGE + FACTS_BYTES + DEFS_BYTES, STAGING_BYTES) != 0 ||
	    (stacks && posix_fallocate(fd, RING_PAGE + FACTS_BYTES + DEFS_BYTES + STAGINGS * STAGING_BYTES,
				       (off_t)STACKS_BYTES) != 0))
		return -ENOSPC;
	return 0;
}

static int map(struct weft__region *region, const struct weft__region_want *want)
{
	struct rings_map *rings = &region->own_map;
	uint64_t bytes = rings_offset();
	int flags = region->file.fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	void *base;

	weft__chunks_init(rings, bytes, ring_bytes(want), want->max_rings, 0);
	bytes += rings->chunks[0].bytes;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, region->file.fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	rings->chunks[0].at = (char *)base + rings->rings_at;
	region->map = rings;
	region->base = base;
	region->head = base;
	region->bytes = bytes;
	return 0;
}

/* The name comes after the lock, so that nobody takes it for the file of a dead process; and the mark before the
 * name, so that nobody takes it for a file of somebody else. */
static int file_open(struct weft__region *region, int dir, const char *name, const struct weft__region_want *want)
{
	char begun[200 + sizeof(NEW_END)];
	int err;

	snprintf(begun, sizeof(begun), "%s" NEW_END, name);
	region->file.fd = weft__dir_create(dir, begun, FILE_MODE);
	if (region->file.fd < 0) {
		err = region->file.fd;
		region->file.fd = -1;
		return err;
	}
	region->file.own = weft__own_of(region->file.fd);
	err = weft__file_lock(region->file.fd);
	if (!err && pwrite(region->file.fd, RINGS_MAGIC, sizeof(region->head->magic), 0) < 0)
		err = -errno;
	if (!err)
		err = file_back(region->file.fd, rings_offset() + ring_bytes(want) * want->max_rings, want->stacks);
	if (!err)
		err = map(region, want);
	if (!err) {
		err = weft__dir_rename(dir, begun, name);
		if (err) {
			munmap(region->base, region->bytes);
			region->base = NULL;
		}
	}
	if (err) {
		weft__dir_remove(dir, begun, &region->file.own);
		close(region->file.fd);
		region->file.fd = -1;
		return err;
	}
	snprintf(region->name, sizeof(region->name), "%s", name);
	return 0;
}

static int in_shm(struct weft__region *region, const struct weft__region_want *want)
{
	char name[200];
	int err = 0, dir, shm = weft__region_shm();

	if (shm < 0)
		return shm;
	dir = weft__dir_use(want->dir, 0, NULL);
	if (dir < 0)
		err = dir;
	else if ((size_t)snprintf(name, sizeof(name), SHM_NAME, (unsigned)geteuid(), want->stem) >= sizeof(name) ||
		 (size_t)snprintf(region->link, sizeof(region->link), "%s.rings", want->stem) >= sizeof(region->link))
		err = -ENAMETOOLONG;
	snprintf(region->home, sizeof(region->home), SHM_DIR);
	/* The link first: killed in between, a link to nothing is easily swept away, a file that nothing points to
	 * is not. */
	if (!err)
		err = weft__region_link(region, dir, name);
	if (!err) {
		err = file_open(region, shm, name, want);
		if (err)
			unlinkat(dir, region->link, 0); /* which was just made */
	}
	if (err)
		region->link[0] = 0;
	if (dir >= 0)
		close(dir);
	close(shm);
	return err;
}

static int in_dir(struct weft__region *region, const struct weft__region_want *want)
{
	char name[200];
	int err, dir;

	if ((size_t)snprintf(name, sizeof(name), "%s.rings", want->stem) >= sizeof(name))
		return -ENAMETOOLONG;
	dir = weft__dir_use(want->dir, 0, NULL);
	if (dir < 0)
		return dir;
	snprintf(region->home, sizeof(region->home), "%s", want->dir);
	err = file_open(region, dir, name, want);
	close(dir);
	return err;
}

static int place(struct weft__region *region, const struct weft__region_want *want)
{
	int err = -ENOENT;

	region->place = want->dir ? want->place : WEFT_RING_MEMORY;
	if (want->dir && (size_t)snprintf(region->dir, sizeof(region->dir), "%s", want->dir) >= sizeof(region->dir))
		return -ENAMETOOLONG;
	if (region->place == WEFT_RING_AUTO) {
		err = in_shm(region, want);
		if (!err)
			return 0;
		snprintf(region->degraded, sizeof(region->degraded),
			 "rings are not in " SHM_DIR " (%s); page writeback may stall an emit", weft_strerror(err));
		region->place = WEFT_RING_DIR;
	}
	if (region->place == WEFT_RING_DIR) {
		err = in_dir(region, want);
		if (!err)
			return 0;
		snprintf(region->degraded, sizeof(region->degraded),
			 "rings are in private memory (%s): the last second is lost on a crash", weft_strerror(err));
		region->place = WEFT_RING_MEMORY;
	}
	region->file.fd = -1;
	return map(region, want);
}

int weft__region_open(struct weft__region *region, const struct weft__region_want *asked, struct weft_error *err)
{
	struct weft__region_want wanted = *asked, *want = &wanted;
	int r;

	wanted.ring_most = ring_slots_most(want->ring_slots);
	weft__retired_sweep();
	memset(region, 0, sizeof(*region));
	region->file.fd = -1;
	region->free_next = weft__calloc(want->max_rings, sizeof(*region->free_next));
	if (!region->free_next)
		return weft__fail(err, -ENOMEM, "out of memory for %u rings", want->max_rings);
	r = place(region, want);
	if (r) {
		weft__region_close(region);
		return weft__fail(
			err, r,
			"no memory for the rings (%llu bytes of address space): %s; lower max_threads or ring_bytes",
			(unsigned long long)rings_offset() + region->own_map.chunks[0].bytes, weft_strerror(r));
	}
	head_init(region, want);
	weft__region_relink(region); /* somebody who recovers may have seen the link while it led nowhere */
	return 0;
}

/* Who looks for a ring meanwhile finds it, or none. */
static void map_move(struct rings_map *to, struct rings_map *from)
{
	uint32_t i;

	store_relaxed(&to->shift, from->shift);
	store_relaxed(&to->rings_at, from->rings_at);
	store_relaxed(&to->stride, from->stride);
	for (i = 0; i < RING_CHUNKS; i++) {
		store_relaxed(&to->chunks[i].bytes, from->chunks[i].bytes);
		store_release(&to->chunks[i].at, __atomic_exchange_n(&from->chunks[i].at, NULL, __ATOMIC_ACQ_REL));
	}
}

/* The emit path has it no longer. */
static void map_back(struct weft__region *region)
{
	if (region->map != &weft__hot.map)
		return;
	map_move(&region->own_map, &weft__hot.map);
	region->map = &region->own_map;
}

void weft__region_use(struct weft__region *region)
{
	weft__hot.head = region->head;
	weft__hot.file = region->file;
	weft__hot.free_next = region->free_next;
	weft__hot.threads_now = 0;
	store_relaxed(&weft__hot.free_list, 0);
	map_move(&weft__hot.map, &region->own_map);
	region->map = &weft__hot.map;
	store_release(&weft__hot.base, region->base);
	store_seq_cst(&weft__hot.open, 1u);
}

/* Nobody is inside attach or detach, and nobody can come in: the gate is shut. */
static void wait_attached(void)
{
	int i;

	for (i = 0; load_seq_cst(&weft__hot.attaching) && i < ATTACH_WAIT_MS; i++) {
		if (i < 10)
			sched_yield();
		else
			usleep(1000);
	}
}

/* An emit that passed the gate before it was shut ends within nanoseconds, unless its thread was preempted. */
static void wait_emitted(const struct weft__region *region)
{
	uint32_t n = load_relaxed(&region->head->n_rings);
	uint32_t i;
	int tries = 0;

	for (i = 0; i < n; i++) {
		const struct ring_page *ring = ring_page_at(region->map, i);

		for (; load_relaxed(&ring->hot.resv) != load_acquire(&ring->hot.head) && tries < 100; tries++)
			usleep(1000);
	}
}

static void close_sched_fds(const struct weft__region *region)
{
	uint32_t n = load_relaxed(&region->head->n_rings);
	uint32_t i;

	for (i = 0; i < n; i++) {
		int32_t fd = __atomic_exchange_n(&ring_page_at(region->map, i)->sched_fd, 0, __ATOMIC_RELAXED);

		weft__own_close_proc(fd - 1);
	}
}

void weft__region_leave(struct weft__region *region)
{
	store_seq_cst(&weft__hot.open, 0u);
	wait_attached();
	wait_emitted(region);
	store_release(&weft__hot.base, NULL);
	weft__hot.head = NULL;
	weft__hot.file.fd = -1;
	map_back(region);
	close_sched_fds(region);
}

void weft__region_forsake(struct weft__region *region)
{
	store_relaxed(&weft__hot.open, 0u);
	store_relaxed(&weft__hot.base, NULL);
	weft__hot.head = NULL;
	weft__hot.file.fd = -1;
	weft__hot.attaching = 0;
	weft__hot.asleep = 0;
	map_back(region);
	if (region->base)
		weft__region_retire(region);
	weft__own_close(&region->file.own,
			region->file.fd); /* the lock belongs to the open file, which the parent still has */
	weft__free(region->free_next);
	region->free_next = NULL;
	region->file.fd = -1;
	region->name[0] = 0;
	region->link[0] = 0;
}

void weft__region_close(struct weft__region *region)
{
	if (region->base && region->adopted) {
		munmap(region->base, region->bytes);
	} else if (region->base) {
		map_back(region);
		weft__region_retire(region);
	}
	weft__own_close(&region->file.own, region->file.fd);
	if (!load_seq_cst(&weft__hot.attaching)) /* else a thread is stuck in there: better leak than crash */
		weft__free(region->free_next);
	memset(region, 0, sizeof(*region));
	region->file.fd = -1;
}
