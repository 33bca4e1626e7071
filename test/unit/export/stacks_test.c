/* SPDX-License-Identifier: Apache-2.0 */
/* The stack recorder: what is added comes out, whole, once, also when it is full and while others add. */
#include "export/stacks.h"

#include "weft_test.h"

#define ADDERS 3
#define ADDED 20000

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
	struct weft__stack_recorder recorder;
	const struct weft__sums *full;
	int64_t value[] = {1};
	uint32_t i;

	weft__stack_recorder_init(&recorder, 1, 64 << 10);
	for (i = 0; i < 10000; i++) {
		uint32_t frames[] = {i, i + 1, i + 2};
		struct weft__stack_sample sample = {frames, 3, "l", 1, value};

		CHECK_EQ(weft__stack_recorder_add(&recorder, &sample), 0);
		frames[0] = 0, frames[1] = 1, frames[2] = 2; /* the first, which fits always */
		CHECK_EQ(weft__stack_recorder_add(&recorder, &sample), 0);
	}
	full = weft__stack_recorder_swap(&recorder);
	CHECK(weft__sums_bytes(full) <= 64 << 10);
	CHECK(full->n_dropped > 0);
	CHECK(full->n_rows > 100);
	CHECK_EQ(full->values[0], 10001);
	CHECK_EQ(total(full, 0), 20000);
	CHECK_EQ(full->n_dropped + full->n_rows - 1, 9999);
	/* The other slot is empty, and so is this one after it was swapped again. */
	CHECK_EQ(weft__stack_recorder_swap(&recorder)->n_rows, 0);
	full = weft__stack_recorder_swap(&recorder);
	CHECK_EQ(full->n_rows, 0);
	CHECK_EQ(total(full, 0), 0);
	weft__stack_recorder_fini(&recorder);
}

struct adder {
	struct weft__stack_recorder *recorder;
	uint32_t number;
	int failed;
};

static void *add(void *data)
{
	struct adder *adder = data;
	int64_t values[] = {1, 0};
	uint32_t i;

	for (i = 0; i < ADDED; i++) {
		uint32_t frames[] = {i % 97, adder->number};
		struct weft__stack_sample sample = {frames, 2, &adder->number, sizeof(adder->number), values};

		values[1] = i;
		adder->failed |= weft__stack_recorder_add(adder->recorder, &sample);
	}
	return NULL;
}

/* Each addition is in just one of the slots that were swapped out. */
TEST(swaps_while_threads_add_lose_nothing_and_count_nothing_twice)
{
	struct weft__stack_recorder recorder;
	struct adder adders[ADDERS];
	pthread_t threads[ADDERS];
	int64_t counted = 0, summed = 0;
	size_t i;

	weft__stack_recorder_init(&recorder, 2, 1 << 20);
	for (i = 0; i < ADDERS; i++) {
		adders[i] = (struct adder){&recorder, (uint32_t)i, 0};
		REQUIRE(pthread_create(&threads[i], NULL, add, &adders[i]) == 0);
	}
	while (counted < ADDERS * ADDED) {
		const struct weft__sums *full = weft__stack_recorder_swap(&recorder);

		counted += total(full, 0);
		summed += total(full, 1);
	}
	for (i = 0; i < ADDERS; i++) {
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
		CHECK_EQ(adders[i].failed, 0);
	}
	CHECK_EQ(counted, ADDERS * ADDED);
	CHECK_EQ(summed, (int64_t)ADDERS * ADDED * (ADDED - 1) / 2);
	CHECK_EQ(total(weft__stack_recorder_swap(&recorder), 0), 0);
	weft__stack_recorder_fini(&recorder);
}
