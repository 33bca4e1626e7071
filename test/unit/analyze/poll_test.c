/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"

TEST(polls_are_counted_by_worker_and_location)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 3, SPAWN, 7, 1);
	FEED(&feed, 1000, 3, SPAWN, 8, 2);
	FEED(&feed, 1010, 1, POLL_BEGIN, 7, 3);
	FEED(&feed, 1020, 2, POLL_BEGIN, 8, NO_DEPTH);
	FEED(&feed, 1050, 1, POLL_END);
	FEED(&feed, 1100, 2, POLL_END);
	FEED(&feed, 1110, 1, POLL_BEGIN, 7, 1);
	FEED(&feed, 1120, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->n_events, 8);
	CHECK_EQ(r->first_ns, 1000);
	CHECK_EQ(r->last_ns, 1120);
	CHECK_EQ(r->polls.n, 3);
	CHECK_EQ(r->polls.sum, 130);
	CHECK_EQ(r->lane.n_lanes, 2);
	CHECK_EQ(feed_lane(&feed, 0, 0)->polls.n, 2);
	CHECK_EQ(feed_lane(&feed, 0, 0)->polls.max, 40);
	CHECK_EQ(weft__hist_at(&feed_lane(&feed, 0, 0)->polls, 5000), 10);
	CHECK_EQ(feed_lane(&feed, 0, 0)->depths.n, 2);
	CHECK_EQ(feed_lane(&feed, 0, 0)->depths.max, 3);
	CHECK_EQ(feed_lane(&feed, 1, 0)->polls.sum, 80);
	CHECK_EQ(feed_lane(&feed, 1, 0)->depths.n, 0);
	CHECK_EQ(feed_location(&feed, 1)->polls.n, 2);
	CHECK_EQ(feed_location(&feed, 2)->polls.max, 80);
	CHECK_EQ(r->lane.locations[0].id, 2); /* most time first */
	CHECK_EQ(r->poll.n_longest, 3);
	CHECK_EQ(r->poll.longest[0].rank_ns, 80);
	CHECK_EQ(r->poll.longest[0].task, 8);
	CHECK_EQ(r->poll.longest[0].depth, WEFT_DEPTH_UNKNOWN);
	CHECK_EQ(r->poll.longest[1].depth, 3);
	feed_close(&feed);
}

TEST(nested_polls_end_innermost_first_and_make_the_worker_busy_once)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1010, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 1015, 1, WAKE, 9, 0);
	FEED(&feed, 1030, 1, POLL_END);
	FEED(&feed, 1050, 1, WAKE, 10, 0);
	FEED(&feed, 1100, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 2);
	CHECK_EQ(r->poll.longest[0].task, 1);
	CHECK_EQ(r->poll.longest[0].rank_ns, 100);
	CHECK_EQ(r->poll.longest[0].level, 0);
	CHECK_EQ(r->poll.longest[0].n_wakes, 1); /* that of the inner one is not its own */
	CHECK_EQ(r->poll.longest[1].task, 2);
	CHECK_EQ(r->poll.longest[1].rank_ns, 20);
	CHECK_EQ(r->poll.longest[1].level, 1);
	CHECK_EQ(feed_lane(&feed, 0, 0)->busy_ns, 100);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 100);
	feed_close(&feed);
}

TEST(an_end_without_a_begin_is_counted_and_nothing_else)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_END);
	FEED(&feed, 1010, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1020, 1, POLL_END);
	FEED(&feed, 1030, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.began_before, 2);
	CHECK_EQ(r->polls.n, 1);
	CHECK_EQ(r->polls.max, 10);
	feed_close(&feed);
}

TEST(polls_open_at_the_end_are_still_running)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1500, 2, POLL_BEGIN, 2, 0);
	FEED(&feed, 1600, 2, POLL_END);
	FEED(&feed, 1700, 2, POLL_BEGIN, 3, 0);
	r = feed_end(&feed, 2000);
	CHECK_EQ(r->polls.n, 1);
	CHECK_EQ(r->poll.open, 2);
	CHECK_EQ(r->poll.n_running, 2);
	CHECK_EQ(r->poll.running[0].task, 1);
	CHECK_EQ(r->poll.running[0].rank_ns, 1000);
	CHECK_EQ(r->poll.running[0].end_ns, 0);
	CHECK_EQ(r->poll.running[1].rank_ns, 300);
	CHECK_EQ(feed_lane(&feed, 0, 0)->busy_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 1, 0)->busy_ns, 400);
	CHECK_EQ(feed_lane(&feed, 1, 0)->observed_ns, 500);
	feed_close(&feed);
}

TEST(a_poll_of_a_thread_that_ended_is_not_running)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1100, 1, THREAD_END);
	FEED(&feed, 5000, 2, POLL_BEGIN, 1, 0);
	FEED(&feed, 5010, 2, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.never_ended, 1);
	CHECK_EQ(r->poll.open, 0);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 100);
	feed_close(&feed);
}

TEST(threads_that_are_no_worker_have_a_lane_when_they_poll)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 3, SPAWN, 1, 1);
	FEED(&feed, 1000, 4, SPAWN, 2, 1);
	FEED(&feed, 1010, 3, POLL_BEGIN, 1, 0);
	FEED(&feed, 1020, 3, POLL_END);
	FEED(&feed, 1040, 4, SPAWN, 3, 1);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->lane.n_lanes, 1);
	CHECK_EQ(feed_lane(&feed, WEFT_WORKER_NONE, 3)->polls.n, 1);
	CHECK_EQ(feed_lane(&feed, WEFT_WORKER_NONE, 3)->observed_ns, 40);
	feed_close(&feed);
}

TEST(a_poll_counts_for_the_worker_it_began_on)
{
	struct feed feed;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1040, 1, WORKER, 1);
	FEED(&feed, 1060, 1, POLL_END);
	FEED(&feed, 1070, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1080, 1, POLL_END);
	feed_end(&feed, 0);
	CHECK_EQ(feed_lane(&feed, 0, 0)->polls.n, 1);
	CHECK_EQ(feed_lane(&feed, 0, 0)->polls.max, 60);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 40);
	CHECK_EQ(feed_lane(&feed, 1, 0)->polls.max, 10);
	CHECK_EQ(feed_lane(&feed, 1, 0)->observed_ns, 40);
	feed_close(&feed);
}

TEST(the_top_list_keeps_the_longest)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i, now = 1000;

	feed_init(&feed);
	feed.opts.top = 3;
	feed_begin(&feed);
	for (i = 0; i < 100; i++) {
		uint64_t ns = i * 37 % 101; /* each of 0..100 but one, in no order */

		FEED(&feed, now, 1, POLL_BEGIN, i, 0);
		FEED(&feed, now + ns, 1, POLL_END);
		now += 200;
	}
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 100);
	CHECK_EQ(r->poll.n_longest, 3);
	CHECK_EQ(r->poll.longest[0].rank_ns, 100);
	CHECK_EQ(r->poll.longest[1].rank_ns, 99);
	CHECK_EQ(r->poll.longest[2].rank_ns, 98);
	CHECK_EQ(weft__hist_at(&r->polls, 5000), 49);
	feed_close(&feed);
}

TEST(filters_choose_polls_and_rows)
{
	struct feed feed;
	const struct weft__result *r;

	feed_init(&feed);
	feed.opts.worker = "demo/[1-9]";
	feed.opts.location = "ech*";
	feed_begin(&feed);
	FEED(&feed, 1000, 3, SPAWN, 7, 1);
	FEED(&feed, 1000, 3, SPAWN, 8, 2);
	FEED(&feed, 1010, 1, POLL_BEGIN, 8, 3); /* wrong worker */
	FEED(&feed, 1050, 1, POLL_END);
	FEED(&feed, 1060, 2, POLL_BEGIN, 7, 0); /* wrong location */
	FEED(&feed, 1070, 2, POLL_END);
	FEED(&feed, 1080, 2, POLL_BEGIN, 8, 0);
	FEED(&feed, 1085, 2, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 1);
	CHECK_EQ(r->polls.sum, 5);
	CHECK_EQ(r->poll.n_longest, 1);
	CHECK_EQ(r->lane.n_lanes, 1);
	CHECK_EQ(r->lane.lanes[0].worker, 1);
	CHECK_EQ(r->lane.lanes[0].busy_ns, 15); /* the share is the worker's, whatever it polled */
	CHECK_EQ(r->lane.n_locations, 1);
	CHECK_EQ(r->lane.locations[0].id, 2);
	feed_close(&feed);
}

TEST(a_window_has_the_polls_that_end_in_it)
{
	struct feed feed;
	const struct weft__result *r;

	feed_init(&feed);
	feed.opts.from_ns = 2000;
	feed.opts.to_ns = 3000;
	feed_begin(&feed);
	FEED(&feed, 1000, 1, SPAWN, 5, 2);
	FEED(&feed, 1100, 1, POLL_BEGIN, 5, 0); /* before */
	FEED(&feed, 1200, 1, POLL_END);
	FEED(&feed, 1900, 1, POLL_BEGIN, 5, 0); /* into it */
	FEED(&feed, 2100, 1, POLL_END);
	FEED(&feed, 2200, 1, POLL_BEGIN, 5, 0); /* in it */
	FEED(&feed, 2250, 1, POLL_END);
	FEED(&feed, 2900, 1, POLL_BEGIN, 5, 0); /* out of it */
	FEED(&feed, 3100, 1, POLL_END);
	r = feed_end(&feed, 3000);
	CHECK_EQ(r->n_events, 4);
	CHECK_EQ(r->polls.n, 2);
	CHECK_EQ(r->polls.max, 200);
	CHECK_EQ(r->poll.open, 1);
	CHECK_EQ(r->poll.running[0].rank_ns, 100);
	CHECK_EQ(feed_location(&feed, 2)->polls.n, 2); /* the spawn before the window is known */
	CHECK_EQ(feed_location(&feed, 2)->spawned, 0);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->busy_ns, 100 + 50 + 100);
	feed_close(&feed);
}

TEST(polls_nested_too_deep_are_counted_and_not_kept)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_start(&feed);
	for (i = 0; i < 1500; i++)
		FEED(&feed, 1000 + i, 1, POLL_BEGIN, i, 0);
	for (i = 0; i < 1500; i++)
		FEED(&feed, 3000 + i, 1, POLL_END);
	FEED(&feed, 5000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 5001, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.too_deep, 1500 - 1024);
	CHECK_EQ(r->polls.n, 1024 + 1);
	CHECK_EQ(r->polls.min, 1);
	CHECK_EQ(r->poll.longest[0].rank_ns, 3499); /* the outermost: its end is the last */
	CHECK_EQ(r->poll.began_before, 0);
	feed_close(&feed);
}

TEST(events_with_too_few_fields_are_left_out)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1);
	FEED(&feed, 1000, 1, SPAWN);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->malformed, 2);
	CHECK_EQ(r->n_events, 0);
	CHECK_EQ(r->poll.open, 0);
	feed_close(&feed);
}

TEST(rows_of_polls_end_at_their_limit)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_init(&feed);
	feed.opts.max_rows = 4;
	feed_begin(&feed);
	for (i = 0; i < 20; i++) {
		FEED(&feed, 1000 + 10 * i, (uint32_t)(10 + i), SPAWN, i, 10 + i);
		FEED(&feed, 1001 + 10 * i, (uint32_t)(10 + i), POLL_BEGIN, i, 0);
		FEED(&feed, 1002 + 10 * i, (uint32_t)(10 + i), POLL_END);
	}
	r = feed_end(&feed, 0);
	CHECK_EQ(r->lane.n_lanes, 5);
	CHECK_EQ(r->lane.lanes[4].worker, WEFT__LANE_OTHER);
	CHECK_EQ(r->lane.lanes[4].polls.n, 16);
	CHECK_EQ(r->lane.n_locations, 5);
	CHECK_EQ(feed_location(&feed, WEFT__LOCATION_OTHER)->polls.n, 16);
	CHECK_EQ(r->polls.n, 20);
	feed_close(&feed);
}
