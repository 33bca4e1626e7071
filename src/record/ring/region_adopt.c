/* SPDX-License-Identifier: Apache-2.0 */
/* The rings of a dead process. They are copied: who cuts a file that is mapped, of which nothing says that nobody
 * can, ends who reads it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/error.h"
#include "record/ring/region.h"

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

/* One part of the file that has something in it. */
static int copy_part(struct weft__region *region, off_t at, off_t end)
{
	while (at < end) {
		ssize_t n = pread(region->file.fd, region->base + at, (size_t)(end - at), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0; /* it was cut: the rest is zeros, as if never written */
		at += n;
	}
	return 0;
}

/* Most of it was never touched, and takes no memory here either. */
static int copy_file(struct weft__region *region)
{
	off_t at = 0, end, bytes = (off_t)region->bytes;
	int err = 0;

	while (!err && at < bytes) {
		at = lseek(region->file.fd, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : -errno;
		end = lseek(region->file.fd, at, SEEK_HOLE);
		if (end < 0 || end > bytes)
			end = bytes;
		err = at < bytes ? copy_part(region, at, end) : 0;
		at = end;
	}
	return err;
}

/* Up to the end of the last ring that was made, which is little of the file. */
static uint64_t used_bytes(int fd, uint64_t bytes)
{
	struct rings_head head;
	uint64_t used;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || !head_valid(&head, bytes))
		return bytes < RING_PAGE ? bytes : RING_PAGE; /* enough to see what is wrong with it */
	used = head.rings_at + head.ring_stride * head.n_rings;
	return used < bytes ? used : bytes;
}

static int take_copy(struct weft__region *region, uint64_t file_bytes)
{
	uint64_t bytes = used_bytes(region->file.fd, file_bytes);
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (base == MAP_FAILED)
		return -errno;
	region->base = base;
	region->head = base;
	region->bytes = bytes;
	err = copy_file(region);
	if (!err && !head_valid(region->head, bytes))
		err = !region->head->version ? -ENODATA : head_newer(region->head) ? -WEFT_E_VERSION : -WEFT_E_FORMAT;
	if (err) {
		munmap(base, bytes);
		return err;
	}
	weft__chunks_init(&region->own_map, region->head->rings_at, region->head->ring_stride, region->head->max_rings,
			  1);
	region->own_map.chunks[0].at = region->base + region->head->rings_at;
	region->own_map.chunks[0].bytes = bytes - region->head->rings_at;
	region->map = &region->own_map;
	return 0;
}

int weft__region_adopt(struct weft__region *region, int dir, const char *name, struct weft_error *err)
{
	struct stat st;
	int r = 0;

	memset(region, 0, sizeof(*region));
	region->adopted = 1;
	region->file.fd = weft__dir_file(dir, name, O_RDWR);
	if (region->file.fd < 0) {
		r = region->file.fd;
		region->file.fd = -1;
		return weft__fail(err, r, "%s: %s", name, weft_strerror(r));
	}
	if (!weft__file_marked(region->file.fd, RINGS_MAGIC) || fstat(region->file.fd, &st) < 0) {
		r = weft__fail(err, -EBADF, "%s: not a ring file of weft", name);
		goto fail;
	}
	region->file.own = (struct weft__own){st.st_dev, st.st_ino};
	r = weft__file_lock(region->file.fd);
	if (r) {
		r = weft__fail(err, r, "%s: its process is alive", name);
		goto fail;
	}
	r = st.st_size < RING_PAGE ? -ENODATA : take_copy(region, (uint64_t)st.st_size);
	if (r) {
		region->base = NULL;
		r = weft__fail(err, r, "%s: not a ring file that this version knows", name);
		goto fail;
	}
	return 0;
fail:
	close(region->file.fd);
	region->file.fd = -1;
	return r;
}
