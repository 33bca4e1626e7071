/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"
#include "weft_test.h"

static size_t held, limit; /* blocks that are allocated, and how many may be */

static void *count_resize(void *ptr, size_t bytes, void *data)
{
	void *moved;

	(void)data;
	if (!ptr && held >= limit)
		return NULL;
	moved = realloc(ptr, bytes);
	held += !ptr && moved;
	return moved;
}

static void count_release(void *ptr, void *data)
{
	(void)data;
	held -= ptr != NULL;
	free(ptr);
}

static void count_blocks(size_t most)
{
	static const struct weft_allocator counting = {.resize = count_resize, .release = count_release};

	held = 0;
	limit = most;
	weft_set_allocator(&counting);
}

/* Arrays grow in turn, so that each moves between others, and keep what is in them. */
TEST(arrays_that_grow_keep_their_content_and_go_with_their_arena)
{
	struct weft__arena arena = {0};
	uint32_t *arrays[5] = {0};
	size_t caps[5] = {0}, i, k;

	count_blocks(SIZE_MAX);
	for (i = 0; i < 10000; i++)
		for (k = 0; k < 5; k++) {
			uint32_t *grown = weft__arena_grow(&arena, arrays[k], &caps[k], i, sizeof(*grown));

			if (!CHECK(grown))
				return;
			arrays[k] = grown;
			grown[i] = (uint32_t)(i * 5 + k);
		}
	for (k = 0; k < 5; k++)
		for (i = 0; i < 10000; i++)
			if (arrays[k][i] != i * 5 + k)
				CHECK_EQ(arrays[k][i], i * 5 + k);
	CHECK_EQ(held, 5);
	weft__arena_fini(&arena);
	CHECK_EQ(held, 0);
	weft_set_allocator(NULL);
}

TEST(blocks_can_be_given_back_in_any_order)
{
	struct weft__arena arena = {0};
	char *blocks[6];
	size_t i;

	count_blocks(SIZE_MAX);
	for (i = 0; i < 6; i++) {
		blocks[i] = weft__arena_new(&arena, 100, 1);
		if (!CHECK(blocks[i] && blocks[i][0] == 0 && blocks[i][99] == 0))
			return;
		memset(blocks[i], (int)i, 100);
	}
	weft__arena_del(&arena, blocks[5]); /* the newest, */
	weft__arena_del(&arena, blocks[0]); /* the oldest, */
	weft__arena_del(&arena, blocks[2]); /* and one between */
	weft__arena_del(&arena, NULL);
	CHECK_EQ(held, 3);
	blocks[3] = weft__arena_cut(&arena, blocks[3], 10);
	CHECK(blocks[1][99] == 1 && blocks[3][9] == 3 && blocks[4][99] == 4);
	weft__arena_fini(&arena);
	CHECK_EQ(held, 0);
	weft_set_allocator(NULL);
}

TEST(small_things_share_a_block_and_are_aligned)
{
	struct weft__arena arena = {0};
	size_t i;

	count_blocks(SIZE_MAX);
	for (i = 0; i < 1000; i++) {
		uint64_t *at = weft__arena_take(&arena, sizeof(*at));

		if (!CHECK(at && (uintptr_t)at % 8 == 0))
			return;
		*at = i;
	}
	CHECK_EQ(held, 1);
	CHECK(weft__arena_take(&arena, 1 << 20) != NULL);
	CHECK_EQ(held, 2);
	CHECK(weft__arena_take(&arena, 8) != NULL);
	CHECK_EQ(held, 2);
	weft__arena_fini(&arena);
	CHECK_EQ(held, 0);
	weft_set_allocator(NULL);
}

TEST(an_arena_without_memory_leaves_its_arrays_as_they_are)
{
	struct weft__arena arena = {0};
	size_t cap = 0, none = 0;
	char *array;

	count_blocks(1);
	array = weft__arena_grow(&arena, NULL, &cap, 0, 1);
	CHECK(array && cap == 8);
	CHECK(weft__arena_grow(&arena, NULL, &none, 0, 1) == NULL && none == 0);
	CHECK(weft__arena_new(&arena, 1, 1) == NULL);
	CHECK(weft__arena_take(&arena, 1) == NULL);
	CHECK(weft__arena_new(&arena, SIZE_MAX / 2, 4) == NULL);
	none = SIZE_MAX / 8;
	CHECK(weft__arena_grow(&arena, array, &none, none, 64) == NULL);
	weft__arena_fini(&arena);
	CHECK_EQ(held, 0);
	weft_set_allocator(NULL);
}
