/* SPDX-License-Identifier: Apache-2.0 */
/* Order of time, and ranges of time. */
#include "make.h"

#include "segment/reader.h"

struct numbered {
	struct weft_event_view ev;
	size_t at;
};

static int by_time(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->ev.time_ns != y->ev.time_ns)
		return x->ev.time_ns < y->ev.time_ns ? -1 : 1;
	if (x->ev.thread != y->ev.thread)
		return x->ev.thread < y->ev.thread ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* Every event in the range, in the order, and no other. */
static void check_range(struct weft_segment *seg, const struct numbered *all, size_t n, enum weft_order order,
			uint64_t from, uint64_t to)
{
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	size_t i = 0, wrong = 0;

	CHECK_EQ(weft_cursor_open(&cursor, seg, order, from, to, NULL), 0);
	while (weft_cursor_next(cursor, &ev) > 0) {
		while (i < n && (all[i].ev.time_ns < from || (all[i].ev.time_ns >= to && to != UINT64_MAX)))
			i++;
		wrong += i >= n || !make_equal(&ev, &all[i].ev);
		i++;
	}
	while (i < n && (all[i].ev.time_ns < from || (all[i].ev.time_ns >= to && to != UINT64_MAX)))
		i++;
	CHECK_EQ(i, n);
	CHECK_EQ(wrong, 0);
	CHECK_EQ(weft_cursor_next(cursor, &ev), 0); /* stays at the end */
	weft_cursor_close(cursor);
}

/* Blocks whose ranges overlap, with several chunks of one stream in a block, and many equal times. */
static void make_blocks(struct make_file *file, uint64_t seed)
{
	uint64_t at[5] = {1000, 50, 1000, 3000, 0};
	struct weft__batch batch;
	int block, chunk;

	make_file_open(file);
	weft__batch_init(&batch, 1);
	for (block = 0; block < 12; block++) {
		weft__batch_clear(&batch);
		for (chunk = 0; chunk < 7; chunk++) {
			uint32_t stream = (uint32_t)(make_random(&seed) % 5), n = (uint32_t)(make_random(&seed) % 30);

			CHECK_EQ(weft__batch_begin(&batch, stream, 0, 0, 0), 0);
			while (n--) {
				uint64_t value = file->list.n;

				at[stream] += make_random(&seed) % 3 ? 0 : make_random(&seed) % 200;
				make_add(&file->list, &batch, stream, at[stream], 8, &value, 1);
			}
			weft__batch_end(&batch, 1);
		}
		if (batch.n)
			make_file_events(file, &batch);
	}
	weft__batch_fini(&batch);
}

TEST(merged_is_sorted_and_ranges_are_filters)
{
	uint64_t seed = 11;
	int round;

	for (round = 0; round < 12; round++) {
		struct make_file file;
		struct weft_segment *seg = NULL;
		struct numbered *stored, *sorted;
		uint8_t *bytes;
		size_t n, i;

		make_blocks(&file, seed + (uint64_t)round);
		if (round % 2)
			CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
		bytes = make_file_bytes(&file, &n);
		stored = calloc(file.list.n + 1, sizeof(*stored));
		sorted = calloc(file.list.n + 1, sizeof(*sorted));
		for (i = 0; i < file.list.n; i++)
			stored[i] = (struct numbered){file.list.all[i], i};
		memcpy(sorted, stored, file.list.n * sizeof(*stored));
		qsort(sorted, file.list.n, sizeof(*sorted), by_time);
		REQUIRE(weft_segment_open_memory(&seg, bytes, n, NULL) == 0);
		check_range(seg, sorted, file.list.n, WEFT_ORDER_TIME, 0, UINT64_MAX);
		check_range(seg, stored, file.list.n, WEFT_ORDER_STORED, 0, UINT64_MAX);
		for (i = 0; i < 40; i++) {
			uint64_t from = make_random(&seed) % 8000, to = from + make_random(&seed) % 3000;

			check_range(seg, sorted, file.list.n, WEFT_ORDER_TIME, from, to);
			check_range(seg, stored, file.list.n, WEFT_ORDER_STORED, from, to);
		}
		check_range(seg, sorted, file.list.n, WEFT_ORDER_TIME, 0, 0);
		check_range(seg, sorted, file.list.n, WEFT_ORDER_TIME, sorted[5].ev.time_ns, sorted[5].ev.time_ns);
		check_range(seg, sorted, file.list.n, WEFT_ORDER_TIME, sorted[5].ev.time_ns, sorted[5].ev.time_ns + 1);
		check_range(seg, sorted, file.list.n, WEFT_ORDER_TIME, UINT64_MAX, UINT64_MAX);
		weft_segment_close(seg);
		free(stored);
		free(sorted);
		free(bytes);
		make_file_close(&file);
	}
}

/* Blocks that all begin first must all be open at once: there is an end to that, and it is an error. */
TEST(memory_of_a_merge_is_bounded)
{
	struct weft_segment *seg = NULL;
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	struct weft__batch batch;
	struct make_file file;
	uint8_t *bytes;
	size_t n, i;
	int r;

	make_file_open(&file);
	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (i = 0; i < 10000; i++) {
		uint64_t fields[2] = {i + 1, i + 1}; /* equal differences: nothing in the file, all in memory */

		CHECK_EQ(weft__batch_add(&batch, i, 64, fields, 2), 0);
	}
	weft__batch_end(&batch, 1);
	for (i = 0; i < 20; i++)
		make_file_events(&file, &batch);
	bytes = make_file_bytes(&file, &n);
	CHECK(n < 10000);
	REQUIRE(weft_segment_open_memory(&seg, bytes, n, NULL) == 0);
	seg->open_bytes_max = 2u << 20;
	CHECK_EQ(weft_cursor_open(&cursor, seg, WEFT_ORDER_TIME, 0, UINT64_MAX, NULL), 0);
	CHECK_EQ(weft_cursor_next(cursor, &ev), -ENOMEM);
	weft_cursor_close(cursor);
	CHECK_EQ(weft_cursor_open(&cursor, seg, WEFT_ORDER_STORED, 0, UINT64_MAX, NULL), 0);
	for (i = 0; (r = weft_cursor_next(cursor, &ev)) > 0;)
		i++;
	CHECK_EQ(r, 0);
	CHECK_EQ(i, 200000);
	weft_cursor_close(cursor);
	seg->open_bytes_max = 64u << 20;
	CHECK_EQ(weft_cursor_open(&cursor, seg, WEFT_ORDER_TIME, 0, UINT64_MAX, NULL), 0);
	for (i = 0; (r = weft_cursor_next(cursor, &ev)) > 0;)
		i++;
	CHECK_EQ(i, 200000);
	weft_cursor_close(cursor);
	weft_segment_close(seg);
	free(bytes);
	weft__batch_fini(&batch);
	make_file_close(&file);
}

/* "All" means all: also the one event that has the largest of times. */
TEST(the_largest_time_is_in_all)
{
	struct weft__batch batch;
	struct make_file file;
	struct weft_segment *seg = NULL;
	struct numbered all[2];
	uint8_t *bytes;
	size_t n;

	make_file_open(&file);
	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	make_add(&file.list, &batch, 1, 0, 4, NULL, 0);
	make_add(&file.list, &batch, 1, UINT64_MAX, 4, NULL, 0);
	weft__batch_end(&batch, 1);
	make_file_events(&file, &batch);
	bytes = make_file_bytes(&file, &n);
	REQUIRE(weft_segment_open_memory(&seg, bytes, n, NULL) == 0);
	all[0] = (struct numbered){file.list.all[0], 0};
	all[1] = (struct numbered){file.list.all[1], 1};
	check_range(seg, all, 2, WEFT_ORDER_TIME, 0, UINT64_MAX);
	check_range(seg, all, 2, WEFT_ORDER_STORED, 0, UINT64_MAX);
	check_range(seg, all, 2, WEFT_ORDER_TIME, 0, UINT64_MAX - 1);
	weft_segment_close(seg);
	free(bytes);
	weft__batch_fini(&batch);
	make_file_close(&file);
}

/* Cursors of one segment share its decoder, and are in the middle of different blocks. */
TEST(cursors_do_not_disturb_each_other)
{
	struct weft_cursor *cursors[3] = {NULL};
	uint64_t seed = 15, time = 0, sums[3] = {0}, want = 0;
	struct weft_segment *seg = NULL;
	struct weft__batch batch;
	struct make_file file;
	uint32_t counts[3] = {0}, i, b, c, turn;
	uint8_t *bytes;
	size_t n;

	make_file_open(&file);
	weft__batch_init(&batch, 1);
	for (b = 0; b < 4; b++) {
		weft__batch_clear(&batch);
		CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
		for (i = 0; i < 500; i++) {
			uint64_t fields[6] = {make_random(&seed), i, make_random(&seed), 1, 2, make_random(&seed)};

			time += make_random(&seed) % 1000;
			CHECK_EQ(weft__batch_add(&batch, time, 3 + i % 7, fields, i % 7), 0);
			want += time;
			for (c = 0; c < i % 7; c++)
				want += fields[c] * (c + 1);
		}
		weft__batch_end(&batch, 1);
		make_file_events(&file, &batch);
	}
	bytes = make_file_bytes(&file, &n);
	REQUIRE(weft_segment_open_memory(&seg, bytes, n, NULL) == 0);
	for (c = 0; c < 3; c++)
		CHECK_EQ(weft_cursor_open(&cursors[c], seg, c == 2 ? WEFT_ORDER_TIME : WEFT_ORDER_STORED, 0, UINT64_MAX,
					  NULL),
			 0);
	for (turn = 0; turn < 40000 && counts[0] + counts[1] + counts[2] < 6000; turn++) {
		struct weft_event_view ev;

		c = (uint32_t)(make_random(&seed) % 3);
		if (weft_cursor_next(cursors[c], &ev) != 1)
			continue;
		counts[c]++;
		sums[c] += ev.time_ns;
		for (i = 0; i < ev.n_fields; i++)
			sums[c] += ev.fields[i] * (i + 1);
	}
	for (c = 0; c < 3; c++) {
		CHECK_EQ(counts[c], 2000);
		CHECK_EQ(sums[c], want);
		weft_cursor_close(cursors[c]);
	}
	weft_segment_close(seg);
	free(bytes);
	weft__batch_fini(&batch);
	make_file_close(&file);
}
