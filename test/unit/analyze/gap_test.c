/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/gap.h"

#include "weft_test.h"

static const struct weft_loss losses[] = {
	{WEFT_LOSS_RING_FULL, 1, 10, 100, 200}, {WEFT_LOSS_PAUSED, 0, 0, 150, 300},
	{WEFT_LOSS_BAD_EVENT, 1, 1, 400, 500},  {WEFT_LOSS_NO_RING, 0, 5, 600, 700},
	{WEFT_LOSS_RING_FULL, 2, 1, 800, 800},
};

TEST(gaps_of_any_stream_are_found_between_two_moments)
{
	struct weft__gaps gaps;

	CHECK_EQ(weft__gaps_init(&gaps, losses, 5), 0);
	CHECK(!weft__gaps_between(&gaps, 0, 99));
	CHECK(weft__gaps_between(&gaps, 0, 100));
	CHECK(weft__gaps_between(&gaps, 160, 170));
	CHECK(weft__gaps_between(&gaps, 300, 350));
	CHECK(!weft__gaps_between(&gaps, 301, 599)); /* a bad event is no gap */
	CHECK(weft__gaps_between(&gaps, 650, 651));
	CHECK(!weft__gaps_between(&gaps, 801, UINT64_MAX));
	weft__gaps_fini(&gaps);
}

TEST(a_stream_has_its_own_gaps_and_the_pauses)
{
	struct weft__gap_cursor cursor;
	struct weft__gaps gaps;
	struct weft__gap gap;
	bool inside;

	CHECK_EQ(weft__gaps_init(&gaps, losses, 5), 0);
	weft__gap_cursor_init(&cursor, &gaps, 1);
	CHECK(!weft__gap_next(&cursor, &gaps, 99, &gap, &inside));
	CHECK(weft__gap_next(&cursor, &gaps, 120, &gap, &inside));
	CHECK(inside);
	CHECK_EQ(gap.from_ns, 100);
	CHECK_EQ(gap.to_ns, 120);
	CHECK(weft__gap_next(&cursor, &gaps, 1000, &gap, &inside));
	CHECK(!inside);
	CHECK_EQ(gap.from_ns, 120);
	CHECK_EQ(gap.to_ns, 200);
	CHECK(weft__gap_next(&cursor, &gaps, 1000, &gap, &inside));
	CHECK_EQ(gap.from_ns, 200);
	CHECK_EQ(gap.to_ns, 300);
	CHECK(!weft__gap_next(&cursor, &gaps, 1000, &gap, &inside));

	weft__gap_cursor_init(&cursor, &gaps, 2);
	CHECK(weft__gap_next(&cursor, &gaps, 1000, &gap, &inside));
	CHECK_EQ(gap.from_ns, 150);
	CHECK(weft__gap_next(&cursor, &gaps, 1000, &gap, &inside));
	CHECK_EQ(gap.from_ns, 800);
	CHECK(!weft__gap_next(&cursor, &gaps, 1000, &gap, &inside));
	weft__gaps_fini(&gaps);
}
