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
#include "base/error.h"
#include "record/ring/region.h"
#include "record/symbolize.h"
#include "segment/format.h"

#define SYNC_NS UINT64_C(1000000000)
#define ROOM_BYTES 131072 /* recording goes on when the disk has at least this much */

int weft__make_dirs(const char *path)
{
	char part[4096];
	size_t i, n = strlen(path);

	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	for (i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int path_of(const struct weft__segments *s, const char *name, char *to, size_t bytes)
{
	return (size_t)snprintf(to, bytes, "%s/%s", s->dir, name) < bytes ? 0 : -ENAMETOOLONG;
}

static int file_create(struct weft__segments *s, const char *path)
{
	s->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (s->fd < 0 && errno == ENOENT) {
		int err = weft__make_dirs(s->dir);

		if (err)
			return err;
		s->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	}
	if (s->fd < 0)
		return -errno;
	s->own = weft__own_of(s->fd);
	return weft__file_lock(s->fd);
}

static int begin_writing(struct weft__segments *s)
{
	struct weft__segment_head head = {0};

	memcpy(head.recording, s->recording, sizeof(head.recording));
	head.sequence = s->sequence;
	head.mono_ns = weft__clock_mono();
	head.real_ns = weft__clock_real();
	s->begin_ns = head.mono_ns;
	s->synced_ns = head.mono_ns;
	s->synced_bytes = 0;
	return weft__writer_begin(&s->writer, s->fd, &head);
}

/* It gets the name of a segment when it is locked and has its header, so that nobody takes it for one of a dead process. */
static int begin_file(struct weft__segments *s)
{
	char path[4096], begun[4096 + sizeof(NEW_END)];
	int err = path_of(s, s->active, path, sizeof(path));

	if (err)
		return err;
	snprintf(begun, sizeof(begun), "%s" NEW_END, path);
	err = file_create(s, begun);
	if (!err)
		err = begin_writing(s);
	if (!err && rename(begun, path) < 0)
		err = -errno;
	if (err && s->fd >= 0)
		unlink(begun);
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
	char path[4096];

	if (s->dir && !path_of(s, s->active, path, sizeof(path)))
		unlink(path);
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
	char from[4096], to[4096];
	int err;

	snprintf(s->sealed, sizeof(s->sealed), "%s-%06llu.weft", s->stem, (unsigned long long)s->sequence);
	err = path_of(s, s->active, from, sizeof(from));
	if (!err)
		err = path_of(s, s->sealed, to, sizeof(to));
	if (!err && rename(from, to) < 0)
		err = -errno;
	return err;
}

static void submit(struct weft__segments *s)
{
	char path[4096];

	if (s->symbolize && s->dir && !path_of(s, s->sealed, path, sizeof(path)))
		weft__symbolize_submit(s->symbolize, path);
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
	char path[4096];

	s->fd = s->dir && !path_of(s, s->active, path, sizeof(path)) ? open(path, O_RDWR | O_CLOEXEC) : -1;
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
		return 1; /* a try will tell */
	return (uint64_t)vfs.f_bavail * vfs.f_frsize >= ROOM_BYTES;
}

static int copy_out(const struct weft__kept *kept, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	char bytes[65536];
	uint64_t at = 0;
	int err = fd < 0 ? -errno : weft__own_is(&kept->own, kept->fd) ? 0 : -EBADF;

	while (!err && at < kept->bytes) {
		ssize_t n = pread(kept->fd, bytes, sizeof(bytes), (off_t)at);

		if (n <= 0)
			err = n < 0 ? -errno : -EIO;
		else if (write(fd, bytes, (size_t)n) != n)
			err = errno ? -errno : -ENOSPC;
		else
			at += (uint64_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (err && fd >= 0)
		unlink(path);
	return err;
}

int weft__segments_save(const struct weft__segments *s, const char *dir, struct weft_error *err)
{
	int r = weft__make_dirs(dir);
	size_t i;

	if (r)
		return weft__fail(err, r, "%s: %s", dir, weft_strerror(r));
	for (i = 0; i < s->n_kept; i++) {
		char path[4096];

		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, s->kept[i].name) >= sizeof(path))
			return weft__fail(err, -ENAMETOOLONG, "%s: name too long", dir);
		r = copy_out(&s->kept[i], path);
		if (r)
			return weft__fail(err, r, "%s: %s", path, weft_strerror(r));
	}
	return (int)s->n_kept;
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
