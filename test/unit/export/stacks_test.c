/* SPDX-License-Identifier: Apache-2.0 */
/* The stack recorder: what is added comes out, whole, once, also when it is full. */
#include "export/stacks.h"

#include "weft_test.h"

static int64_t total(const struct weft__sums *sums, size_t value)
{
	int64_t all = sums->dropped[value];
	size_t i;

	for (i = 0; i < sums->n_rows; i++)
		all += sums->values[i * sums->n_values + value];
	return all;
}

TEST(rows_of_one_stack_and_one_set_of_labels_are_added_up)
{
	const uint32_t a[] = {1, 2, 3}, b[] = {1, 2};
	int64_t values[] = {1, 10};
	struct weft__sums sums;
	uint32_t stack, other, labels, again;
	const uint32_t *frames;
	size_t n;

	weft__sums_init(&sums, 2, 1 << 20);
	CHECK_EQ(weft__sums_stack(&sums, a, 3, &stack), 0);
	CHECK_EQ(weft__sums_stack(&sums, b, 2, &other), 0);
	CHECK_EQ(weft__sums_stack(&sums, a, 3, &again), 0);
	CHECK_EQ(stack, again);
	CHECK(stack != other);
	CHECK_EQ(weft__sums_labels(&sums, "x", 1, &labels), 0);
	CHECK_EQ(weft__sums_add(&sums, stack, labels, values), 0);
	CHECK_EQ(weft__sums_add(&sums, stack, labels, values), 0);
	CHECK_EQ(weft__sums_add(&sums, other, labels, values), 0);
	CHECK_EQ(sums.n_rows, 2);
	CHECK_EQ(sums.values[0], 2);
	CHECK_EQ(sums.values[1], 20);
	CHECK_EQ(sums.values[3], 10);
	frames = weft__sums_frames(&sums, stack, &n);
	CHECK_EQ(n, 3);
	CHECK_EQ(frames[2], 3);
	CHECK_EQ(sums.n_dropped, 0);
	weft__sums_fini(&sums);
}

TEST(sums_stay_at_the_most_instead_of_overflowing)
{
	int64_t most[] = {INT64_MAX}, one[] = {1};
	struct weft__sums sums;
	uint32_t stack, labels;

	weft__sums_init(&sums, 1, 1 << 20);
	CHECK_EQ(weft__sums_stack(&sums, NULL, 0, &stack), 0);
	CHECK_EQ(weft__sums_labels(&sums, NULL, 0, &labels), 0);
	CHECK_EQ(weft__sums_add(&sums, stack, labels, most), 0);
	CHECK_EQ(weft__sums_add(&sums, stack, labels, one), 0);
	CHECK_EQ(sums.values[0], INT64_MAX);
	weft__sums_fini(&sums);
}

/* A full one takes what it knows, and counts the rest. */
TEST(a_full_recorder_keeps_its_bound_and_loses_no_weight)
{
	struct weft__sums sums;
	int64_t value[] = {1};
	uint32_t i, stack, labels;

	weft__sums_init(&sums, 1, 64 << 10);
	for (i = 0; i < 10000; i++) {
		uint32_t frames[] = {i, i + 1, i + 2}, first[] = {0, 1, 2}; /* which fits always */

		CHECK_EQ(weft__sums_labels(&sums, "l", 1, &labels), 0);
		CHECK_EQ(weft__sums_stack(&sums, frames, 3, &stack), 0);
		CHECK_EQ(weft__sums_add(&sums, stack, labels, value), 0);
		CHECK_EQ(weft__sums_stack(&sums, first, 3, &stack), 0);
		CHECK_EQ(weft__sums_add(&sums, stack, labels, value), 0);
	}
	CHECK(weft__sums_bytes(&sums) <= 64 << 10);
	CHECK(sums.n_dropped > 0);
	CHECK(sums.n_rows > 100);
	CHECK_EQ(sums.values[0], 10001);
	CHECK_EQ(total(&sums, 0), 20000);
	CHECK_EQ(sums.n_dropped + sums.n_rows - 1, 9999);
	weft__sums_fini(&sums);
}
