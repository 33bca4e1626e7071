/* SPDX-License-Identifier: Apache-2.0 */
/* A target that is a directory: a copy of each segment, under its own name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/dir.h"
#include "base/error.h"
#include "ship/ship.h"
#include "ship/url.h"

#define NEW_END ".new" /* of a copy that is being made; whoever finds an old one begins it again */

struct file_target {
	char path[PATH_MAX];
	const uint32_t *stop;
};

static int file_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	struct file_target *file = weft__calloc(1, sizeof(*file));
	struct weft__url url;
	int r;

	if (!file)
		return weft__fail(err, -ENOMEM, "out of memory");
	file->stop = opts->stop;
	t->state = file;
	if (!strstr(opts->url, "://")) {
		snprintf(file->path, sizeof(file->path), "%s", opts->url);
		return 0;
	}
	r = weft__url_parse(&url, opts->url, err);
	if (!r && (url.authority[0] || url.path[0] != '/'))
		r = weft__fail(err, -WEFT_E_OPTION, "%s: give a path from the root on: file:///DIRECTORY", t->shown);
	snprintf(file->path, sizeof(file->path), "%s", url.path);
	return r;
}

static int copy_bytes(const struct file_target *file, const struct weft__parcel *parcel, int to)
{
	char bytes[65536];
	uint64_t at = 0;

	while (at < parcel->bytes) {
		ssize_t n = pread(parcel->fd, bytes, sizeof(bytes), (off_t)at);

		if (file->stop && load_relaxed(file->stop))
			return -ECANCELED;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		errno = 0;
		if (write(to, bytes, (size_t)n) != n)
			return errno ? -errno : -ENOSPC;
		at += (uint64_t)n;
	}
	return fdatasync(to) < 0 ? -errno : 0;
}

/* A copy of the same length is the same segment: names are used once. One of another length is of before names were
 * put into it, and is replaced. */
static int copy_into(const struct file_target *file, const struct weft__parcel *parcel, int dir)
{
	char begun[NAME_MAX + 1];
	struct stat st;
	int fd, r = weft__dir_mine(dir, parcel->name, &st);

	if (!r && (uint64_t)st.st_size == parcel->bytes)
		return 0;
	if (r && r != -ENOENT)
		return r;
	snprintf(begun, sizeof(begun), "%.250s" NEW_END, parcel->name);
	fd = weft__dir_create(dir, begun, FILE_MODE);
	if (fd == -EEXIST) {
		fd = weft__dir_file(dir, begun, O_RDWR);
		if (fd >= 0 && ftruncate(fd, 0) < 0)
			return close(fd), -EIO;
	}
	if (fd < 0)
		return fd;
	r = copy_bytes(file, parcel, fd);
	close(fd);
	if (!r && renameat(dir, begun, dir, parcel->name) < 0)
		r = -errno;
	if (r)
		unlinkat(dir, begun, 0);
	return r;
}

static void file_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	const struct file_target *file = t->state;
	struct weft_error err = {0};
	int dir = weft__dir_use(file->path, DIR_MODE, &err), r;

	if (dir < 0) {
		weft__verdict(ret, PARCEL_RETRY, "%s", err.msg);
		return;
	}
	r = copy_into(file, parcel, dir);
	close(dir);
	if (r == -ECANCELED)
		weft__verdict(ret, PARCEL_STOPPED, "stopped");
	else if (r)
		weft__verdict(ret, PARCEL_RETRY, "%s/%s: %s", file->path, parcel->name, weft_strerror(r));
	else
		weft__verdict(ret, PARCEL_SENT, "%s", "");
}

static int file_reach(struct weft__target *t, struct weft_error *err)
{
	const struct file_target *file = t->state;
	int dir = weft__dir_use(file->path, DIR_MODE, err), r = 0;

	if (dir < 0)
		return dir;
	if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = weft__fail(err, -errno, "%s: %s", file->path, weft_strerror(-errno));
	close(dir);
	return r;
}

static void file_close(struct weft__target *t)
{
	weft__free(t->state);
}

const struct weft__target_kind weft__target_file = {"file",     "a directory", file_open, file_send,
						    file_close, TARGET_PLAIN,  file_reach};
