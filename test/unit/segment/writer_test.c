/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that fail: a block is in the file whole or not at all, and a later try goes on where it ended. */
#include "make.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "segment/format.h"

static void fill(struct weft__buf *payload, size_t n)
{
	uint8_t *bytes = weft__buf_room(payload, n);

	memset(bytes, 0x5a, n);
	payload->n += n;
}

/* What the file holds is what the writer thinks: read it. */
static void check_file(int fd, const struct weft__writer *w, uint32_t n_blocks)
{
	struct weft_segment *seg = NULL;
	size_t n = (size_t)w->offset;
	uint8_t *bytes = malloc(n);
	struct stat st;

	CHECK_EQ(fstat(fd, &st), 0);
	CHECK_EQ(st.st_size, w->offset);
	CHECK_EQ(pread(fd, bytes, n, 0), n);
	if (CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, NULL), 0)) {
		CHECK_EQ(weft_segment_info(seg)->n_blocks, n_blocks);
		CHECK_EQ(weft_segment_damage(seg).places, 0);
		CHECK_EQ(w->n_blocks, n_blocks);
	}
	weft_segment_close(seg);
	free(bytes);
}

TEST(writing_to_a_full_device_fails_with_its_error)
{
	struct weft__segment_head head = {0};
	struct weft__buf payload = {0};
	struct weft__writer w = {0};
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		SKIP("no /dev/full");
	CHECK_EQ(weft__writer_begin(&w, fd, &head), -ENOSPC);
	fill(&payload, 1000);
	CHECK_EQ(weft__writer_block(&w, 9, 0, 3, 0, 0, &payload), -ENOSPC);
	CHECK_EQ(weft__writer_block(&w, BLOCK_EVENTS, 0, 3, 0, 0, &payload), -ENOSPC);
	CHECK_EQ(w.offset, SEG_HEADER_BYTES);
	CHECK_EQ(w.n_blocks, 0);
	CHECK_EQ(w.n_events, 0);
	CHECK_EQ(w.index.n, 0);
	CHECK_EQ(weft__writer_seal(&w, 0), -ENOSPC);
	weft__writer_fini(&w);
	weft__buf_free(&payload);
	close(fd);
}

TEST(writing_to_a_closed_file_fails_with_its_error)
{
	struct weft__segment_head head = {0};
	struct weft__buf payload = {0};
	struct weft__writer w = {0};
	int fd = memfd_create("segment", MFD_CLOEXEC);

	CHECK_EQ(weft__writer_begin(&w, fd, &head), 0);
	close(fd);
	CHECK_EQ(weft__writer_block(&w, 9, 0, 0, 0, 0, &payload), -EBADF);
	CHECK_EQ(weft__writer_seal(&w, 0), -EBADF);
	CHECK_EQ(w.offset, SEG_HEADER_BYTES);
	weft__writer_fini(&w);
}

/* In a child, because the limit is the process's. */
static int under_limits(void)
{
	struct weft__segment_head head = {0};
	struct weft__buf payload = {0};
	struct weft__writer w = {0};
	struct rlimit limit = {0, RLIM_INFINITY};
	int fd = memfd_create("segment", MFD_CLOEXEC);
	rlim_t most;

	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(weft__writer_begin(&w, fd, &head), 0);
	fill(&payload, 500);
	CHECK_EQ(weft__writer_block(&w, 9, 0, 3, 0, 0, &payload), 0);
	for (most = w.offset - 1; most < w.offset + BLOCK_HEADER_BYTES + payload.n; most += 7) {
		limit.rlim_cur = most;
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
		CHECK_EQ(weft__writer_block(&w, 9, 0, 3, 0, 0, &payload), -EFBIG);
		check_file(fd, &w, 1);
		CHECK(weft__writer_seal(&w, 0) == -EFBIG || w.offset <= most);
		if (w.offset > SEG_HEADER_BYTES + BLOCK_HEADER_BYTES + 500) /* the seal did fit: go on without it */
			break;
		check_file(fd, &w, 1);
	}
	CHECK(most > SEG_HEADER_BYTES + BLOCK_HEADER_BYTES + 500);
	limit.rlim_cur = RLIM_INFINITY;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	weft__writer_adopt(&w, fd, SEG_HEADER_BYTES + BLOCK_HEADER_BYTES + 500);
	CHECK_EQ(ftruncate(fd, (off_t)w.offset), 0);
	CHECK_EQ(weft__writer_adopted(&w, 9, SEG_HEADER_BYTES, BLOCK_HEADER_BYTES + 500, 3, 0, 0), 0);
	CHECK_EQ(weft__writer_block(&w, 9, 0, 3, 0, 0, &payload), 0);
	check_file(fd, &w, 2);
	CHECK_EQ(weft__writer_seal(&w, 0), 0);
	check_file(fd, &w, 2);
	weft__writer_fini(&w);
	weft__buf_free(&payload);
	close(fd);
	return weft_test_failures;
}

TEST(file_that_may_not_grow)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(under_limits() ? 1 : 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(out_of_memory_leaves_the_file_alone)
{
	struct make_memory memory = {0, 0};
	struct weft_allocator allocator = {make_resize, make_release, &memory};
	struct weft__segment_head head = {0};
	struct weft__buf payload = {0};
	struct weft__writer w = {0};
	int fd = memfd_create("segment", MFD_CLOEXEC), err = -ENOMEM;
	long n;

	fill(&payload, 500);
	CHECK_EQ(weft__writer_begin(&w, fd, &head), 0);
	for (n = 0; err && n < 50; n++) {
		memory.left = n;
		weft_set_allocator(&allocator);
		err = weft__writer_block(&w, 9, 0, 3, 0, 0, &payload);
		if (!err)
			err = weft__writer_seal(&w, 0);
		weft__writer_fini(&w);
		weft_set_allocator(NULL);
		CHECK(!err || err == -ENOMEM);
		CHECK_EQ(memory.live, 0);
		check_file(fd, &w, w.n_blocks);
		if (err) {
			weft__writer_adopt(&w, fd, SEG_HEADER_BYTES);
			CHECK_EQ(ftruncate(fd, SEG_HEADER_BYTES), 0);
		}
	}
	CHECK_EQ(err, 0);
	CHECK(n > 2);
	weft__writer_fini(&w);
	weft__buf_free(&payload);
	close(fd);
}
