/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "weft/hooks.h"
#include "weft_test.h"

static long left;

static void *scarce_resize(void *ptr, size_t bytes, void *data)
{
	(void)data;
	return left-- > 0 ? realloc(ptr, bytes) : NULL;
}

static void scarce_release(void *ptr, void *data)
{
	(void)data;
	free(ptr);
}

static const struct weft_allocator scarce = {scarce_resize, scarce_release, NULL};

TEST(grows_and_keeps_its_bytes)
{
	struct weft__buf buf = {0};
	struct weft__in in;
	uint64_t i;

	for (i = 0; i < 100000; i++)
		weft__buf_varint(&buf, i * i);
	weft__buf_text(&buf, "text");
	weft__buf_u8(&buf, 7);
	CHECK(!buf.oom && buf.n <= buf.cap);
	in = weft__in(buf.bytes, buf.n);
	for (i = 0; i < 100000; i++)
		if (!CHECK_EQ(in_varint(&in), i * i))
			break;
	CHECK_EQ(in_u8(&in), 4);
	CHECK(!memcmp(in_bytes(&in, 4), "text", 4));
	CHECK_EQ(in_u8(&in), 7);
	weft__buf_free(&buf);
	CHECK(buf.bytes == NULL && buf.n == 0);
}

TEST(room_for_nothing_is_not_out_of_memory)
{
	struct weft__buf buf = {0};

	CHECK(weft__buf_room(&buf, 0) != NULL);
	weft__buf_put(&buf, NULL, 0);
	CHECK(!buf.oom && buf.n == 0);
	weft__buf_free(&buf);
}

TEST(remembers_that_memory_ran_out)
{
	struct weft__buf buf = {0};
	size_t n;

	weft_set_allocator(&scarce);
	left = 1;
	weft__buf_put(&buf, "abc", 3);
	CHECK(!buf.oom);
	CHECK(weft__buf_room(&buf, 100000) == NULL);
	CHECK(buf.oom);
	n = buf.n;
	left = 10;
	weft__buf_put(&buf, "def", 3); /* would fit, but something is missing before it */
	CHECK_EQ(buf.n, n);
	weft__buf_clear(&buf);
	weft__buf_put(&buf, "def", 3);
	CHECK_EQ(buf.n, 3);
	CHECK(!buf.oom);
	weft__buf_free(&buf);
	weft_set_allocator(NULL);
}

TEST(a_buffer_refuses_sizes_that_cannot_be)
{
	struct weft__buf buf = {0};

	CHECK(weft__buf_room(&buf, SIZE_MAX) == NULL);
	CHECK(buf.oom);
	weft__buf_clear(&buf);
	weft__buf_put(&buf, "abc", 3);
	CHECK(weft__buf_room(&buf, SIZE_MAX - 1) == NULL);
	CHECK_EQ(buf.n, 3);
	weft__buf_free(&buf);
	CHECK(weft__calloc(SIZE_MAX / 2, 3) == NULL);
}

TEST(an_array_that_is_full_doubles)
{
	size_t cap = 0, n;
	uint64_t *array = NULL;

	for (n = 0; n < 1000; n++) {
		uint64_t *moved = weft__grow(array, &cap, n, sizeof(*array));

		REQUIRE(moved != NULL && cap > n);
		array = moved;
		array[n] = n;
	}
	CHECK_EQ(array[999], 999);
	cap = SIZE_MAX / 8;
	CHECK(weft__grow(array, &cap, cap, sizeof(*array)) == NULL);
	weft__free(array);
	weft__free(NULL);
}
