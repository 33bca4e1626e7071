/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/hist.h"

#include <stdlib.h>

#include "weft_test.h"

TEST(small_values_of_a_histogram_are_exact)
{
	struct weft__hist hist = {0};
	struct weft__arena arena = {0};
	uint64_t v;

	for (v = 1; v <= 100; v++)
		CHECK_EQ(weft__hist_add(&hist, &arena, v), 0);
	CHECK_EQ(hist.n, 100);
	CHECK_EQ(hist.sum, 5050);
	CHECK_EQ(hist.min, 1);
	CHECK_EQ(weft__hist_at(&hist, 5000), 50);
	CHECK_EQ(weft__hist_at(&hist, 9900), 99);
	CHECK_EQ(weft__hist_at(&hist, 9990), 100);
	CHECK_EQ(weft__hist_at(&hist, 10000), 100);
	CHECK_EQ(weft__hist_at(&hist, 0), 1);
	CHECK(weft__hist_mean(&hist) == 50.5);
	weft__arena_fini(&arena);
}

TEST(an_empty_histogram_answers_zero)
{
	struct weft__hist hist = {0};
	struct weft__arena arena = {0};

	CHECK_EQ(weft__hist_at(&hist, 5000), 0);
	CHECK(weft__hist_mean(&hist) == 0.0);
	weft__arena_fini(&arena);
}

/* Every power of two and its neighbours, and pseudo-random values over the whole range. */
TEST(the_error_of_a_histogram_is_below_one_percent)
{
	uint64_t x = 88172645463325252u, worst = 0, tested = 0;
	int i;

	for (i = 0; i < 20000; i++) {
		struct weft__hist hist = {0};
		struct weft__arena arena = {0};
		uint64_t value, got, error;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		value = i < 192 ? (UINT64_C(1) << (i / 3)) - 1 + (uint64_t)(i % 3) : x >> (i % 64);
		CHECK_EQ(weft__hist_add(&hist, &arena, value), 0);
		/* a second value on each side, so that clamping to min and max does not hide the bucket */
		CHECK_EQ(weft__hist_add(&hist, &arena, 0), 0);
		CHECK_EQ(weft__hist_add(&hist, &arena, UINT64_MAX), 0);
		got = weft__hist_at(&hist, 5000);
		error = got > value ? got - value : value - got;
		tested++;
		if (value >= 1000 && error / (value / 1000) > worst)
			worst = error / (value / 1000);
		if (value < 128)
			CHECK_EQ(got, value);
		weft__arena_fini(&arena);
	}
	CHECK(tested == 20000);
	CHECK(worst <= 8); /* thousandths */
}

TEST(the_sum_of_a_histogram_does_not_overflow)
{
	struct weft__hist hist = {0};
	struct weft__arena arena = {0};

	CHECK_EQ(weft__hist_add(&hist, &arena, UINT64_MAX), 0);
	CHECK_EQ(weft__hist_add(&hist, &arena, 5), 0);
	CHECK(hist.sum == UINT64_MAX);
	CHECK(hist.max == UINT64_MAX);
	CHECK_EQ(hist.min, 5);
	weft__arena_fini(&arena);
}
