/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/error.h"
#include "record/ring/region.h"
#include "record/ship.h"
#include "record/symbolize.h"
#include "segment/format.h"

#define SYNC_NS UINT64_C(1000000000)
#define ROOM_BYTES 131072 /* recording goes on when the disk has at least this much */

/* Each time anew: the program may close whatever is open, and a directory that was good may not be so any more. */
static int use_dir(const struct weft__segments *s, int make)
{
	return weft__dir_use(s->dir, !make ? 0 : s->mode == FILE_MODE_GROUP ? DIR_MODE_GROUP : DIR_MODE, NULL);
}

static int file_create(struct weft__segments *s, int dir, const char *name)
{
	int fd = weft__dir_create(dir, name, s->mode);

	if (fd < 0)
		return fd;
	s->fd = fd;
	s->own = weft__own_of(fd);
	return weft__file_lock(fd);
}

static int begin_writing(struct weft__segments *s)
{
	struct weft__segment_head head = {0};

	memcpy(head.recording, s->recording, sizeof(head.recording));
	head.sequence = s->sequence;
	s->begin_ns = weft__clock_mono();
	head.mono_ns = s->from.mono_ns ? s->from.mono_ns : s->begin_ns;
	head.real_ns = s->from.mono_ns ? s->from.real_ns : weft__clock_real();
	s->synced_ns = s->begin_ns;
	s->synced_bytes = 0;
	return weft__writer_begin(&s->writer, s->fd, &head);
}

/* It gets the name of a segment when it is locked and has its header, so that nobody takes it for one of a dead
 * process. */
static int begin_file(struct weft__segments *s)
{
	char begun[NAME_BYTES + sizeof(NEW_END)];
	int dir = use_dir(s, 1), err;

	if (dir < 0)
		return dir;
	snprintf(begun, sizeof(begun), "%s" NEW_END, s->active);
	err = file_create(s, dir, begun);
	if (!err)
		err = begin_writing(s);
	if (!err)
		err = weft__dir_rename(dir, begun, s->active);
	if (err && s->fd >= 0)
		weft__dir_remove(dir, begun, &s->own);
	close(dir);
	return err;
}

static int begin_memory(struct weft__segments *s)
{
	s->fd = memfd_create("weft-segment", MFD_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	s->own = weft__own_of(s->fd);
	return begin_writing(s);
}

int weft__segments_begin(struct weft__segments *s)
{
	int err;

	snprintf(s->active, sizeof(s->active), "%s-%06llu.weft.active", s->stem, (unsigned long long)s->sequence);
	err = s->dir ? begin_file(s) : begin_memory(s);
	if (err)
		weft__segments_drop(s);
	return err;
}

void weft__segments_early(struct weft__segments *s)
{
	s->early = s->dir && s->fd < 0 && weft__segments_begin(s) == 0;
}

void weft__segments_drop(struct weft__segments *s)
{
	int fd = s->fd;

	s->early = 0;
	s->fd = -1; /* first, so that a child forked in between never closes what is not its own */
	weft__own_close(&s->own, fd);
}

void weft__segments_abandon(struct weft__segments *s)
{
	if (s->dir && s->fd >= 0)
		weft__path_remove(s->dir, s->active, &s->own);
	weft__segments_drop(s);
}

static int keep_in_memory(struct weft__segments *s)
{
	struct weft__kept *kept = weft__grow(s->kept, &s->kept_cap, s->n_kept, sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	s->kept = kept;
	kept = &s->kept[s->n_kept++];
	kept->fd = s->fd;
	kept->own = s->own;
	kept->bytes = s->writer.offset;
	kept->sequence = s->sequence;
	kept->real_ns = weft__clock_real();
	snprintf(kept->name, sizeof(kept->name), "%s-%06llu.weft", s->stem, (unsigned long long)s->sequence);
	s->fd = -1;
	return 0;
}

static int give_final_name(struct weft__segments *s)
{
	int dir = use_dir(s, 0), err;

	if (dir < 0)
		return dir;
	snprintf(s->sealed, sizeof(s->sealed), "%s-%06llu.weft", s->stem, (unsigned long long)s->sequence);
	err = weft__dir_rename(dir, s->active, s->sealed);
	close(dir);
	return err;
}

static int path_of(const struct weft__segments *s, const char *name, char *to, size_t bytes)
{
	return (size_t)snprintf(to, bytes, "%s/%s", s->dir, name) < bytes ? 0 : -ENAMETOOLONG;
}

static void submit(struct weft__segments *s)
{
	char path[4096];

	if (s->symbolize && s->dir && !path_of(s, s->sealed, path, sizeof(path)))
		weft__symbolize_submit(s->symbolize, path);
	weft__ship_poke(s->ship);
}

int weft__segments_seal(struct weft__segments *s)
{
	uint64_t mark = s->writer.offset;
	int err = weft__writer_seal(&s->writer, 0);

	if (err)
		return err;
	s->synced_ns = 0; /* the last of it, now */
	weft__segments_sync(s);
	err = s->dir ? give_final_name(s) : keep_in_memory(s);
	s->pinned = err == -EACCES || err == -EPERM || err == -EROFS;
	if (err && err != -ENOENT) {
		(void)!ftruncate(s->fd, (off_t)mark);
		s->writer.offset = mark;
		return err;
	}
	s->total_bytes += s->writer.offset;
	s->n_sealed += !err;
	if (!err)
		submit(s);
	s->sequence++;
	weft__segments_drop(s);
	weft__segments_retain(s);
	return 0;
}

/* The program closed it. When the file is still there by its name it is the same again. */
static int open_again(struct weft__segments *s)
{
	int dir = s->dir ? weft__dir_open(s->dir, 0, NULL) : -1;

	s->fd = -1;
	if (dir < 0)
		return -EBADF;
	s->fd = openat(dir, s->active, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	close(dir);
	if (s->fd < 0)
		return -EBADF;
	if (!weft__own_is(&s->own, s->fd) || weft__file_lock(s->fd)) {
		close(s->fd);
		s->fd = -1;
		return -EBADF;
	}
	s->writer.fd = s->fd;
	return 0;
}

int weft__segments_gone(struct weft__segments *s)
{
	struct stat st;

	if (s->fd < 0)
		return 0;
	if (!weft__own_is(&s->own, s->fd))
		return open_again(s) != 0;
	return s->dir && fstat(s->fd, &st) == 0 && st.st_nlink == 0;
}

int weft__segments_due(const struct weft__segments *s, uint64_t now_ns)
{
	if (s->fd < 0 || !s->writer.n_events)
		return 0;
	if (s->pinned)
		return s->writer.offset >= s->keep_bytes;
	return s->writer.offset >= s->segment_bytes || now_ns >= s->begin_ns + s->segment_ns;
}

void weft__segments_sync(struct weft__segments *s)
{
	uint64_t now = weft__clock_mono();

	if (!s->dir || s->fd < 0)
		return;
	if (s->sync) {
		fdatasync(s->fd);
		return;
	}
	if (now < s->synced_ns + SYNC_NS)
		return;
	sync_file_range(s->fd, (off_t)s->synced_bytes, 0, SYNC_FILE_RANGE_WRITE);
	s->synced_ns = now;
	s->synced_bytes = s->writer.offset;
}

int weft__segments_room(const struct weft__segments *s)
{
	struct statvfs vfs;

	if (!s->dir || statvfs(s->dir, &vfs) < 0)
		return 1; /* a try will show */
	return (uint64_t)vfs.f_bavail * vfs.f_frsize >= ROOM_BYTES;
}

static int copy_bytes_out(const struct weft__kept *kept, int fd)
{
	char bytes[16384];
	uint64_t at = 0;

	if (!weft__own_is(&kept->own, kept->fd))
		return -EBADF;
	while (at < kept->bytes) {
		ssize_t n = pread(kept->fd, bytes, sizeof(bytes), (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		errno = 0;
		if (write(fd, bytes, (size_t)n) != n)
			return errno ? -errno : -ENOSPC;
		at += (uint64_t)n;
	}
	return 0;
}

/* A segment that was saved there before gets the same again. */
static int give_saved_name(int dir, const char *from, const char *to)
{
	int err = weft__dir_rename(dir, from, to), fd;

	if (err != -EEXIST)
		return err;
	fd = weft__dir_file(dir, to, O_RDONLY);
	if (fd < 0)
		return -EEXIST;
	if (weft__file_marked(fd, SEG_MAGIC))
		err = renameat(dir, from, dir, to) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int copy_out(const struct weft__segments *s, const struct weft__kept *kept, int dir)
{
	char begun[NAME_BYTES + sizeof(NEW_END)];
	struct weft__own own;
	int fd, err;

	snprintf(begun, sizeof(begun), "%s" NEW_END, kept->name);
	fd = weft__dir_create(dir, begun, s->mode);
	if (fd < 0)
		return fd;
	own = weft__own_of(fd);
	err = weft__file_lock(fd);
	if (!err)
		err = copy_bytes_out(kept, fd);
	if (!err)
		err = give_saved_name(dir, begun, kept->name);
	if (err)
		weft__dir_remove(dir, begun, &own);
	close(fd);
	return err;
}

int weft__segments_save(const struct weft__segments *s, const char *path, struct weft_error *err)
{
	int r = 0, dir = weft__dir_use(path, DIR_MODE, err);
	size_t i;

	if (dir < 0)
		return dir;
	for (i = 0; i < s->n_kept && !r; i++) {
		r = copy_out(s, &s->kept[i], dir);
		if (r)
			weft__fail(err, r, "%s/%s: %s", path, s->kept[i].name, weft_strerror(r));
	}
	close(dir);
	return r ? r : (int)s->n_kept;
}

void weft__segments_fini(struct weft__segments *s)
{
	size_t i;

	weft__segments_drop(s);
	for (i = 0; i < s->n_kept; i++)
		weft__own_close(&s->kept[i].own, s->kept[i].fd);
	weft__free(s->kept);
	weft__writer_fini(&s->writer);
	s->kept = NULL;
	s->n_kept = 0;
}
