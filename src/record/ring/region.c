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
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "record/ring/ring.h"

#define SHM_DIR "/dev/shm"
#define TMPFS 0x01021994
#define ATTACH_WAIT_MS 1000

static void head_init(struct weft__region *region, const struct weft__region_want *want)
{
	struct rings_head *head = region->head;

	head->version = RINGS_VERSION;
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
	head->next_stream = 1;
	head->next_stack = 1;
	memcpy(head->magic, RINGS_MAGIC, sizeof(head->magic));
}

static uint64_t region_bytes(const struct weft__region_want *want)
{
	return RING_PAGE + FACTS_BYTES + DEFS_BYTES + STAGINGS * STAGING_BYTES + STACKS_BYTES +
	       (RING_PAGE + (uint64_t)want->ring_most * sizeof(struct weft_slot)) * want->max_rings;
}

/* What every session needs is there from the beginning; rings get theirs when they are made, and so does the second half of staging. */
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

static int map(struct weft__region *region, uint64_t bytes)
{
	int flags = region->file.fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
		    : region->adopted   ? MAP_PRIVATE
					: MAP_SHARED;
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, region->file.fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	region->base = base;
	region->head = base;
	region->bytes = bytes;
	return 0;
}

/* The name comes after the lock, so that nobody takes it for the file of a dead process. */
static int file_open(struct weft__region *region, const char *path, uint64_t bytes, int stacks)
{
	char begun[420];
	int err;

	snprintf(begun, sizeof(begun), "%s" NEW_END, path);
	region->file.fd = open(begun, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (region->file.fd < 0)
		return -errno;
	region->file.own = weft__own_of(region->file.fd);
	err = weft__file_lock(region->file.fd);
	if (!err)
		err = file_back(region->file.fd, bytes, stacks);
	if (!err)
		err = map(region, bytes);
	if (!err && rename(begun, path) < 0) {
		err = -errno;
		munmap(region->base, region->bytes);
		region->base = NULL;
	}
	if (err) {
		unlink(begun);
		close(region->file.fd);
		region->file.fd = -1;
		return err;
	}
	snprintf(region->path, sizeof(region->path), "%s", path);
	return 0;
}

static int in_shm(struct weft__region *region, const struct weft__region_want *want, uint64_t bytes)
{
	struct statfs fs;
	char path[400];
	int err;

	if (statfs(SHM_DIR, &fs) < 0 || fs.f_type != TMPFS)
		return -ENOENT;
	if ((size_t)snprintf(path, sizeof(path), SHM_DIR "/weft-%u-%s.rings", (unsigned)getuid(), want->stem) >=
		    sizeof(path) ||
	    (size_t)snprintf(region->link, sizeof(region->link), "%s/%s.rings", want->dir, want->stem) >=
		    sizeof(region->link)) {
		region->link[0] = 0;
		return -ENAMETOOLONG;
	}
	/* The link first: killed in between, a link to nothing is easily swept away, a file that nothing points to is not. */
	err = symlink(path, region->link) < 0 ? -errno : file_open(region, path, bytes, want->stacks);
	if (err) {
		unlink(region->link);
		region->link[0] = 0;
	}
	return err;
}

void weft__region_relink(const struct weft__region *region)
{
	if (region->link[0] && symlink(region->path, region->link) < 0 && errno != EEXIST)
		weft__log(WEFT_LOG_WARN, "%s: %s; after a crash the rings will not be found", region->link,
			  weft_strerror(-errno));
}

static int in_dir(struct weft__region *region, const struct weft__region_want *want, uint64_t bytes)
{
	char path[400];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s.rings", want->dir, want->stem) >= sizeof(path))
		return -ENAMETOOLONG;
	return file_open(region, path, bytes, want->stacks);
}

static int place(struct weft__region *region, const struct weft__region_want *want, uint64_t bytes)
{
	int err = -ENOENT;

	region->place = want->dir ? want->place : WEFT_RING_MEMORY;
	if (region->place == WEFT_RING_AUTO) {
		err = in_shm(region, want, bytes);
		if (!err)
			return 0;
		snprintf(region->degraded, sizeof(region->degraded),
			 "rings are not in " SHM_DIR " (%s); page writeback may stall an emit", weft_strerror(err));
		region->place = WEFT_RING_DIR;
	}
	if (region->place == WEFT_RING_DIR) {
		err = in_dir(region, want, bytes);
		if (!err)
			return 0;
		snprintf(region->degraded, sizeof(region->degraded),
			 "rings are in private memory (%s): the last second is lost on a crash", weft_strerror(err));
		region->place = WEFT_RING_MEMORY;
	}
	region->file.fd = -1;
	return map(region, bytes);
}

int weft__region_open(struct weft__region *region, const struct weft__region_want *asked, struct weft_error *err)
{
	struct weft__region_want wanted = *asked, *want = &wanted;
	uint64_t bytes;
	int r;

	wanted.ring_most = ring_slots_most(want->ring_slots);
	bytes = region_bytes(want);

	weft__graves_sweep();
	memset(region, 0, sizeof(*region));
	region->file.fd = -1;
	region->free_next = weft__calloc(want->max_rings, sizeof(*region->free_next));
	if (!region->free_next)
		return weft__fail(err, -ENOMEM, "out of memory for %u rings", want->max_rings);
	r = place(region, want, bytes);
	if (r && want->ring_most > want->ring_slots) { /* address space may be limited: without room to grow, then */
		wanted.ring_most = want->ring_slots;
		bytes = region_bytes(want);
		r = place(region, want, bytes);
	}
	if (r) {
		weft__region_close(region);
		return weft__fail(
			err, r,
			"no memory for the rings (%llu bytes of address space): %s; lower max_threads or ring_bytes",
			(unsigned long long)bytes, weft_strerror(r));
	}
	head_init(region, want);
	weft__region_relink(region); /* somebody who recovers may have seen the link while it led nowhere */
	return 0;
}

void weft__region_use(struct weft__region *region)
{
	weft__hot.head = region->head;
	weft__hot.file = region->file;
	weft__hot.free_next = region->free_next;
	weft__hot.threads_now = 0;
	store_relaxed(&weft__hot.free_list, 0);
	store_relaxed(&weft__hot.bytes, region->bytes);
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
		const struct ring_page *ring = ring_page_at(region->base, region->head, i);

		for (; load_relaxed(&ring->hot.resv) != load_acquire(&ring->hot.head) && tries < 100; tries++)
			usleep(1000);
	}
}

static void close_sched_fds(const struct weft__region *region)
{
	uint32_t n = load_relaxed(&region->head->n_rings);
	uint32_t i;

	for (i = 0; i < n; i++) {
		int32_t fd = __atomic_exchange_n(&ring_page_at(region->base, region->head, i)->sched_fd, 0,
						 __ATOMIC_RELAXED);

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
	if (region->base)
		weft__region_bury(region);
	weft__own_close(&region->file.own,
			region->file.fd); /* the lock belongs to the open file, which the parent still has */
	weft__free(region->free_next);
	region->free_next = NULL;
	region->file.fd = -1;
	region->path[0] = 0;
	region->link[0] = 0;
}

void weft__region_remove(struct weft__region *region)
{
	if (region->link[0])
		unlink(region->link);
	if (region->path[0])
		unlink(region->path);
	region->link[0] = 0;
	region->path[0] = 0;
}

void weft__region_close(struct weft__region *region)
{
	if (region->base && region->adopted)
		munmap(region->base, region->bytes);
	else if (region->base)
		weft__region_bury(region);
	weft__own_close(&region->file.own, region->file.fd);
	if (!load_seq_cst(&weft__hot.attaching)) /* else a thread is stuck in there: better leak than crash */
		weft__free(region->free_next);
	memset(region, 0, sizeof(*region));
	region->file.fd = -1;
}

static int head_blank(const struct rings_head *head)
{
	static const char none[sizeof(head->magic)];

	return !memcmp(head->magic, none, sizeof(none));
}

static int head_newer(const struct rings_head *head)
{
	return !memcmp(head->magic, RINGS_MAGIC, sizeof(head->magic)) && head->version > RINGS_VERSION;
}

/* A name that stays in the directory and can become a segment's, or none yet. */
static int name_valid(const char *name, size_t bytes)
{
	static const char end[] = ".weft.active";
	size_t n = strnlen(name, bytes);

	return n < bytes && !memchr(name, '/', n) &&
	       (!n || (n >= sizeof(end) && !memcmp(name + n - (sizeof(end) - 1), end, sizeof(end))));
}

/* Geometry that a foreign or torn file might claim. */
static int head_valid(const struct rings_head *head, uint64_t bytes)
{
	uint64_t stride = RING_PAGE + (uint64_t)head->ring_most * sizeof(struct weft_slot);

	return !memcmp(head->magic, RINGS_MAGIC, sizeof(head->magic)) && head->version == RINGS_VERSION &&
	       head->ring_slots >= 256 && head->ring_slots <= (1u << 26) &&
	       !(head->ring_slots & (head->ring_slots - 1)) &&
	       (head->ring_most == ring_slots_most(head->ring_slots) || head->ring_most == head->ring_slots) &&
	       head->quantum_ns && !(head->quantum_ns & (head->quantum_ns - 1)) && head->facts_at == RING_PAGE &&
	       head->facts_used <= FACTS_BYTES && head->defs_at == head->facts_at + FACTS_BYTES &&
	       head->staging_at == head->defs_at + DEFS_BYTES &&
	       head->stacks_at == head->staging_at + STAGINGS * (uint64_t)STAGING_BYTES &&
	       head->rings_at == head->stacks_at + STACKS_BYTES && head->ring_stride == stride &&
	       head->n_rings <= head->max_rings && head->max_rings <= (1u << 20) &&
	       head->rings_at + stride * head->n_rings <= bytes && head->defs_used <= DEFS_BYTES &&
	       head->staging_used[0] <= STAGING_BYTES && head->staging_used[1] <= STAGING_BYTES &&
	       head->staging_now < STAGINGS && name_valid(head->active, sizeof(head->active)) &&
	       memchr(head->service, 0, sizeof(head->service));
}

int weft__region_adopt(struct weft__region *region, const char *path, struct weft_error *err)
{
	struct stat st;
	int r;

	memset(region, 0, sizeof(*region));
	region->adopted = 1;
	region->file.fd = open(path, O_RDWR | O_CLOEXEC);
	if (region->file.fd < 0 || fstat(region->file.fd, &st) < 0) {
		r = weft__fail(err, -errno, "%s: %s", path, weft_strerror(-errno));
		goto fail;
	}
	region->file.own = (struct weft__own){st.st_dev, st.st_ino};
	r = weft__file_lock(region->file.fd);
	if (r) {
		r = weft__fail(err, r, "%s: its process is alive", path);
		goto fail;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < RING_PAGE) {
		r = weft__fail(err, -WEFT_E_FORMAT, "%s: not a ring file", path);
		goto fail;
	}
	r = map(region, (uint64_t)st.st_size);
	if (!r && !head_valid(region->head, (uint64_t)st.st_size)) {
		r = head_blank(region->head) ? -ENODATA : head_newer(region->head) ? -WEFT_E_VERSION : -WEFT_E_FORMAT;
		munmap(region->base, region->bytes);
	}
	if (r) {
		region->base = NULL;
		r = weft__fail(err, r, "%s: not a ring file that this version knows", path);
		goto fail;
	}
	return 0;
fail:
	if (region->file.fd >= 0)
		close(region->file.fd);
	region->file.fd = -1;
	return r;
}
