/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a segment names may be a device, and opening alone does things to devices: so it is looked at before. */
static int open_regular(const char *path)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, at = open(path, O_PATH | O_CLOEXEC), fd;
	char same[32];
	struct stat st;

	if (at < 0)
		return -errno;
	if (fstat(at, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(at);
		return -EINVAL;
	}
	snprintf(same, sizeof(same), "/proc/self/fd/%d", at);
	fd = open(same, flags);
	if (fd < 0 && errno == ENOENT) /* without /proc */
		fd = open(path, flags);
	if (fd < 0)
		fd = -errno;
	close(at);
	return fd;
}

int weft__file_open(const char *root, const char *path, uint64_t *ret_bytes)
{
	char whole[PATH_MAX];
	struct stat st;
	int fd, failed;

	if ((size_t)snprintf(whole, sizeof(whole), "%s%s", root, path) >= sizeof(whole))
		return -ENAMETOOLONG;
	fd = open_regular(whole);
	if (fd < 0)
		return fd;
	failed = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (failed) {
		close(fd);
		return failed;
	}
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

static int read_all(struct weft__buf *buf, int fd, uint64_t max)
{
	int failed = 0;
	ssize_t n;

	for (;;) {
		uint8_t *room = weft__buf_room(buf, 65536);

		if (!room) {
			failed = -ENOMEM;
			break;
		}
		n = read(fd, room, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			failed = -errno;
		if (n <= 0)
			break;
		buf->n += (size_t)n;
		if (buf->n > max) {
			failed = -EFBIG;
			break;
		}
	}
	close(fd);
	weft__buf_u8(buf, 0);
	return failed ? failed : buf->oom ? -ENOMEM : 0;
}

int weft__file_read(struct weft__buf *buf, const char *path, uint64_t max)
{
	uint64_t bytes;
	int fd = weft__file_open("", path, &bytes);

	return fd < 0 ? fd : read_all(buf, fd, max);
}

int weft__file_read_of(struct weft__buf *buf, const char *path, uint64_t max, uint32_t uid)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_uid == uid || st.st_uid == 0 || st.st_uid == geteuid()))
		return read_all(buf, fd, max);
	close(fd);
	return -EPERM;
}
