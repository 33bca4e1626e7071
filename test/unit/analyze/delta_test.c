/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/delta.h"

#include "weft_test.h"

TEST(wall_time_runs_from_sample_to_sample)
{
	struct weft__delta thread = {0};

	CHECK_EQ(weft__delta_sample(&thread, 1000), 0);
	CHECK_EQ(weft__delta_sample(&thread, 1010), 10);
	CHECK_EQ(weft__delta_sample(&thread, 1500), 490);
	CHECK_EQ(weft__delta_sample(&thread, 1400), 0);
	CHECK_EQ(weft__delta_sample(&thread, 1600), 100);
}

TEST(the_first_delta_counts_from_where_the_thread_began)
{
	struct weft__delta thread = {0};

	weft__delta_from(&thread, 900);
	CHECK_EQ(weft__delta_sample(&thread, 1000), 100);
}

/* The sample before may be the one that is missing. */
TEST(no_delta_reaches_across_a_gap)
{
	struct weft__delta thread = {0};

	CHECK_EQ(weft__delta_sample(&thread, 1000), 0);
	weft__delta_from(&thread, 5000);
	CHECK_EQ(weft__delta_sample(&thread, 5007), 7);
	weft__delta_from(&thread, 4000);
	CHECK_EQ(weft__delta_sample(&thread, 5010), 3);
}
