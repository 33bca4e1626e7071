/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/range.h"

#include "weft_test.h"

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

TEST(the_last_that_covers_an_address_wins)
{
	unsigned state = 1;

	for (int round = 0; round < 200; round++) {
		struct weft__ranges ranges = {0};
		uint32_t want[300];

		memset(want, 0xff, sizeof(want));
		for (uint32_t i = 0; i < next_random(&state) % 40; i++) {
			uint64_t lo = next_random(&state) % 256, hi = lo + next_random(&state) % 40;

			CHECK_EQ(weft__ranges_add(&ranges, lo, hi, i, 100), 0);
			for (uint64_t at = lo; at < hi; at++)
				want[at] = i;
		}
		CHECK_EQ(weft__ranges_seal(&ranges), 0);
		for (uint64_t at = 0; at < 300; at++)
			CHECK_EQ(weft__ranges_find(&ranges, at), want[at]);
		weft__ranges_fini(&ranges);
	}
}

TEST(the_ends_of_the_address_space_can_be_asked_for)
{
	struct weft__ranges ranges = {0};

	CHECK_EQ(weft__ranges_add(&ranges, 0, UINT64_MAX, 7, 10), 0);
	CHECK_EQ(weft__ranges_seal(&ranges), 0);
	CHECK_EQ(weft__ranges_find(&ranges, 0), 7);
	CHECK_EQ(weft__ranges_find(&ranges, UINT64_MAX - 1), 7);
	CHECK_EQ(weft__ranges_find(&ranges, UINT64_MAX), WEFT__RANGE_NONE);
	weft__ranges_fini(&ranges);
}

TEST(nothing_is_found_in_nothing)
{
	struct weft__ranges ranges = {0};

	CHECK_EQ(weft__ranges_seal(&ranges), 0);
	CHECK_EQ(weft__ranges_find(&ranges, 5), WEFT__RANGE_NONE);
	weft__ranges_fini(&ranges);
}
