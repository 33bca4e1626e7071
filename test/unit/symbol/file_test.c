/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weft_test.h"

/* Opening alone does things to devices, and a segment of anybody's can name one. A FIFO stands for it here. */
TEST(what_is_no_regular_file_is_not_even_opened)
{
	char dir[] = "/tmp/weft-file-XXXXXX", fifo[64], plain[64], events[4096];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd;
	uint64_t bytes = 0;

	CHECK(mkdtemp(dir) != NULL);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(plain, sizeof(plain), "%s/plain", dir);
	CHECK_EQ(mkfifo(fifo, 0600), 0);
	fd = open(plain, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_EQ(write(fd, "four", 4), 4);
	close(fd);
	CHECK(inotify_add_watch(watch, dir, IN_OPEN) >= 0);
	CHECK_EQ(weft__file_open("", fifo, &bytes), -EINVAL);
	CHECK_EQ(read(watch, events, sizeof(events)), -1);
	fd = weft__file_open(dir, "/plain", &bytes);
	CHECK(fd >= 0);
	CHECK_EQ(bytes, 4);
	CHECK_EQ(read(fd, events, sizeof(events)), 4);
	CHECK(read(watch, events, sizeof(events)) > 0); /* it would have been seen */
	CHECK_EQ(weft__file_open(dir, "/none", &bytes), -ENOENT);
	close(fd);
	close(watch);
	unlink(fifo);
	unlink(plain);
	rmdir(dir);
}
