/* SPDX-License-Identifier: Apache-2.0 */
/* What weft view reads when it looks again. */
#include "segment/reader.h"

static int n_opened;

static int count_open(struct weft_segment **ret, int fd, const char *name, struct weft_error *err)
{
	n_opened++;
	return weft__segment_open_fd(ret, fd, name, err);
}

#define weft__segment_open_fd count_open
#include "../../../cli/view_files.c"
#undef weft__segment_open_fd

#include "weft_test.h"

TEST(a_file_that_has_not_changed_is_not_read_again)
{
	char path[] = "/tmp/weft-view-files-XXXXXX", *paths[] = {path};
	struct view_files files = {.paths = paths, .n_paths = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(view_files_look(&files), 0);
	CHECK_EQ(n_opened, 1);
	CHECK_EQ(view_files_look(&files), 0);
	CHECK_EQ(n_opened, 1);
	CHECK_EQ(write(fd, "more", 4), 4);
	CHECK_EQ(view_files_look(&files), 0);
	CHECK_EQ(n_opened, 2);
	CHECK_EQ(files.n, 1);
	close(fd);
	unlink(path);
	view_files_fini(&files);
}
