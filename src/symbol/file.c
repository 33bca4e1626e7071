/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int weft__file_open(const char *root, const char *path, uint64_t *ret_bytes)
{
	char whole[PATH_MAX];
	struct stat st;
	int fd, failed;

	if ((size_t)snprintf(whole, sizeof(whole), "%s%s", root, path) >= sizeof(whole))
		return -ENAMETOOLONG;
	fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	failed = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (failed) {
		close(fd);
		return failed;
	}
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

int weft__file_read(struct weft__buf *buf, const char *path, uint64_t max)
{
	uint64_t bytes;
	int fd = weft__file_open("", path, &bytes);
	int failed = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
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
