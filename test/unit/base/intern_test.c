/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>

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

TEST(keys_have_their_numbers)
{
	struct weft__intern set = {0};
	char key[16];
	uint32_t i;

	CHECK_EQ(weft__intern_get(&set, "none", 4), 0);
	for (i = 1; i <= 20000; i++) {
		int n = snprintf(key, sizeof(key), "key %u", i);

		CHECK_EQ(weft__intern_get(&set, key, (size_t)n), 0);
		CHECK_EQ(weft__intern_add(&set, key, (size_t)n, i), 0);
	}
	CHECK_EQ(set.n, 20000);
	for (i = 1; i <= 20000; i++) {
		int n = snprintf(key, sizeof(key), "key %u", i);

		if (!CHECK_EQ(weft__intern_get(&set, key, (size_t)n), i))
			break;
	}
	CHECK_EQ(weft__intern_get(&set, "key 1", 4), 0); /* a shorter key is another */
	weft__intern_fini(&set);
	CHECK_EQ(weft__intern_get(&set, "key 1", 5), 0);
}

TEST(interned_keys_may_hold_any_bytes)
{
	struct weft__intern set = {0};

	CHECK_EQ(weft__intern_add(&set, "", 0, 1), 0);
	CHECK_EQ(weft__intern_add(&set, "\0", 1, 2), 0);
	CHECK_EQ(weft__intern_add(&set, "\0\0", 2, 3), 0);
	CHECK_EQ(weft__intern_get(&set, "", 0), 1);
	CHECK_EQ(weft__intern_get(&set, "\0", 1), 2);
	CHECK_EQ(weft__intern_get(&set, "\0\0", 2), 3);
	weft__intern_fini(&set);
}

TEST(out_of_memory_adds_nothing)
{
	static const struct weft_allocator scarce = {scarce_resize, scarce_release, NULL};
	struct weft__intern set = {0};
	uint32_t i, n = 0;

	weft_set_allocator(&scarce);
	for (i = 1; i < 300; i++) {
		left = i % 3;
		if (weft__intern_add(&set, &i, sizeof(i), i) < 0) {
			CHECK_EQ(weft__intern_get(&set, &i, sizeof(i)), 0);
			CHECK_EQ(set.n, n);
		} else {
			n++;
		}
	}
	CHECK(n > 150);
	CHECK_EQ(set.n, n);
	weft__intern_fini(&set);
	weft_set_allocator(NULL);
}
