/* SPDX-License-Identifier: Apache-2.0 */
/* When there are too many context switches for any records, and when not any more. */
#include "record/switch/state.h"
#include "weft_test.h"

#define SECOND UINT64_C(1000000000)

/* So many switches a second, for so many seconds, a look in each. */
static void pass(struct weft__switch_watch *watch, uint64_t rate, uint32_t seconds)
{
	for (uint32_t i = 0; i < seconds; i++)
		weft__switch_watch_see(watch, watch->at_ns + SECOND, watch->switches + rate);
}

static struct weft__switch_watch new_watch(void)
{
	struct weft__switch_watch watch = {.at_ns = SECOND, .switches = 1000, .patience_ns = 4 * SECOND, .looked = 1};

	return watch;
}

TEST(a_calm_program_keeps_its_records)
{
	struct weft__switch_watch watch = new_watch();

	pass(&watch, 0, 1);
	pass(&watch, 9000, 100);
	CHECK_EQ(watch.many, 0);
}

TEST(many_switches_end_the_records_at_once_and_few_bring_them_back_after_a_while)
{
	struct weft__switch_watch watch = new_watch();

	pass(&watch, 30000, 1);
	CHECK_EQ(watch.many, 1);
	pass(&watch, 8000, 100); /* not many, and not few */
	CHECK_EQ(watch.many, 1);
	pass(&watch, 1000, 3);
	CHECK_EQ(watch.many, 1);
	pass(&watch, 1000, 3);
	CHECK_EQ(watch.many, 0);
}

TEST(records_that_came_back_too_early_come_back_later)
{
	struct weft__switch_watch watch = new_watch();
	uint64_t patience = watch.patience_ns;
	uint32_t i;

	for (i = 0; i < 10; i++) {
		pass(&watch, 50000, 1);
		CHECK_EQ(watch.many, 1);
		pass(&watch, 0, (uint32_t)(watch.patience_ns / SECOND) + 1);
		CHECK_EQ(watch.many, 0);
		CHECK(watch.patience_ns >= patience);
		patience = watch.patience_ns;
	}
	CHECK_EQ(patience, 120 * SECOND);
	pass(&watch, 0, 2 * 120 + 1); /* that one was not too early */
	pass(&watch, 50000, 1);
	CHECK_EQ(watch.patience_ns, 4 * SECOND);
}

TEST(a_program_that_is_busy_as_it_starts_has_records_soon_after_it)
{
	struct weft__switch_watch watch = {.at_ns = SECOND, .patience_ns = 4 * SECOND};

	weft__switch_watch_see(&watch, watch.at_ns + SECOND / 10, 2000);
	CHECK_EQ(watch.many, 1);
	for (int i = 0; i < 7; i++)
		weft__switch_watch_see(&watch, watch.at_ns + SECOND / 10, watch.switches + 100);
	CHECK_EQ(watch.many, 0);
	pass(&watch, 50000, 1); /* so it was no matter of the start */
	CHECK_EQ(watch.many, 1);
	pass(&watch, 0, 1);
	CHECK_EQ(watch.many, 1);
}

TEST(a_clock_that_stands_still_and_counts_that_go_back_are_no_rate)
{
	struct weft__switch_watch watch = new_watch();

	weft__switch_watch_see(&watch, watch.at_ns, watch.switches + 1000000);
	weft__switch_watch_see(&watch, watch.at_ns + SECOND, 5);
	CHECK_EQ(watch.many, 0);
}
