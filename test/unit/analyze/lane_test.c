/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of workers, gaps, queues and the program's own events. */
#include "feed.h"

TEST(a_worker_has_its_shares_of_time_parked_and_in_polls)
{
	struct feed feed;
	const struct weft__lane *lane;

	feed_start(&feed);
	FEED(&feed, 1000, 1, THREAD_BEGIN, 101);
	FEED(&feed, 1000, 1, PARK, 0);
	FEED(&feed, 1400, 1, UNPARK, 2);
	FEED(&feed, 1450, 1, POLL_BEGIN, 1, 2);
	FEED(&feed, 1550, 1, POLL_END);
	FEED(&feed, 1600, 1, PARK, 0);
	feed_end(&feed, 2000);
	lane = feed_lane(&feed, 0, 0);
	CHECK_EQ(lane->observed_ns, 1000);
	CHECK_EQ(lane->parked_ns, 800);
	CHECK_EQ(lane->busy_ns, 100);
	CHECK_EQ(lane->n_park_events, 3);
	CHECK_EQ(lane->depths.n, 3); /* two parks and a poll */
	feed_close(&feed);
}

TEST(a_thread_that_existed_before_was_doing_what_its_first_event_ends)
{
	struct feed feed;

	feed_init(&feed);
	feed.opts.start_ns = 1000; /* both threads have events from 100 on */
	feed_begin(&feed);
	FEED(&feed, 1300, 1, UNPARK, 0);
	FEED(&feed, 1400, 1, PARK, 0);
	FEED(&feed, 1700, 2, POLL_END);
	feed_end(&feed, 2000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->parked_ns, 900);
	CHECK_EQ(feed_lane(&feed, 1, 0)->observed_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 1, 0)->busy_ns, 700);
	CHECK_EQ(feed_lane(&feed, 1, 0)->n_park_events, 0);
	feed_close(&feed);
}

TEST(cpu_time_is_the_difference_of_readings)
{
	struct feed feed;
	const struct weft__lane *lane;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SCHED, 5000, 70);
	FEED(&feed, 1000, 2, SCHED, 100, 0);
	FEED(&feed, 2000, 1, SCHED, 5400, 90);
	FEED(&feed, 3000, 1, SCHED, 5500, 100);
	feed_end(&feed, 0);
	lane = feed_lane(&feed, 0, 0);
	CHECK_EQ(lane->sched_ns, 2000);
	CHECK_EQ(lane->cpu_ns, 500);
	CHECK_EQ(lane->runqueue_ns, 30);
	CHECK_EQ(feed_lane(&feed, 1, 0)->sched_ns, 0); /* one reading says nothing */
	feed_close(&feed);
}

TEST(a_worker_may_move_to_another_thread)
{
	struct feed feed;
	const struct weft__lane *lane;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1100, 1, POLL_END);
	FEED(&feed, 1200, 1, WORKER, 65535);
	FEED(&feed, 1200, 3, WORKER, 0);
	FEED(&feed, 1250, 3, POLL_BEGIN, 2, 0);
	FEED(&feed, 1300, 3, POLL_END);
	feed_end(&feed, 1500);
	CHECK_EQ(feed.result->lane.n_lanes, 1);
	lane = feed_lane(&feed, 0, 0);
	CHECK_EQ(lane->polls.n, 2);
	CHECK_EQ(lane->busy_ns, 150);
	CHECK_EQ(lane->observed_ns, 500);
	CHECK_EQ(lane->thread_id, 3);
	feed_close(&feed);
}

/* Polls 1 and 3 are whole. The end of 2 and the begin of another lie in the gap. */
TEST(nothing_spans_a_gap)
{
	static const struct weft_loss loss = {WEFT_LOSS_RING_FULL, 1, 42, 2000, 3000};
	struct feed feed;
	const struct weft__result *r;

	feed_init(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &loss), 0);
	feed_begin(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1100, 1, POLL_END);
	FEED(&feed, 1200, 2, WAKE, 3, 0);
	FEED(&feed, 1500, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 3500, 1, POLL_END);
	FEED(&feed, 3600, 1, POLL_BEGIN, 3, 0);
	FEED(&feed, 3700, 1, POLL_END);
	FEED(&feed, 3700, 2, WAKE, 3, 0);
	FEED(&feed, 3800, 1, POLL_BEGIN, 3, 0);
	FEED(&feed, 3900, 1, POLL_END);
	r = feed_end(&feed, 4000);
	CHECK_EQ(r->polls.n, 3);
	CHECK_EQ(r->polls.sum, 300);
	CHECK_EQ(r->poll.cut, 1);
	CHECK_EQ(r->poll.began_before, 0);
	CHECK_EQ(r->delays.n, 1);
	CHECK_EQ(r->delays.max, 100);
	CHECK_EQ(r->poll.delays_cut, 1);
	CHECK_EQ(r->loss.events, 42);
	CHECK_EQ(r->loss.n_rows, 1);
	CHECK_EQ(r->loss.rows[0].span_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 2000); /* 1000 to 2000 and 3000 to 4000 */
	CHECK_EQ(feed_lane(&feed, 0, 0)->busy_ns, 100 + 500 + 500 + 100 + 100);
	CHECK_EQ(feed_lane(&feed, 1, 0)->observed_ns, 2800); /* the other thread lost nothing */
	feed_close(&feed);
}

TEST(a_pause_is_everybodys_gap)
{
	static const struct weft_loss loss = {WEFT_LOSS_PAUSED, 0, 0, 2000, 3000};
	struct feed feed;
	const struct weft__result *r;

	feed_init(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &loss), 0);
	feed_begin(&feed);
	FEED(&feed, 1000, 1, PARK, 0);
	FEED(&feed, 1000, 2, POLL_BEGIN, 1, 0);
	FEED(&feed, 3500, 1, UNPARK, 0);
	r = feed_end(&feed, 4000);
	CHECK_EQ(r->poll.open, 0);
	CHECK_EQ(r->poll.cut, 1);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 2000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->parked_ns, 1500);
	CHECK_EQ(feed_lane(&feed, 1, 0)->observed_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 1, 0)->busy_ns, 1000);
	feed_close(&feed);
}

TEST(losses_are_added_up_by_reason_and_thread)
{
	static const struct weft_loss losses[] = {{WEFT_LOSS_RING_FULL, 2, 5, 100, 200},
						  {WEFT_LOSS_RING_FULL, 1, 1, 300, 400},
						  {WEFT_LOSS_RING_FULL, 2, 7, 500, 650},
						  {WEFT_LOSS_BAD_EVENT, 2, 1, 700, 700}};
	struct feed feed;
	const struct weft__result *r;
	int i;

	feed_init(&feed);
	for (i = 0; i < 4; i++)
		CHECK_EQ(weft__names_add_loss(&feed.names, &losses[i]), 0);
	feed_begin(&feed);
	r = feed_end(&feed, 1000);
	CHECK_EQ(r->loss.n_rows, 3);
	CHECK_EQ(r->loss.events, 14);
	CHECK_EQ(r->loss.rows[1].thread_id, 2);
	CHECK_EQ(r->loss.rows[1].count, 12);
	CHECK_EQ(r->loss.rows[1].records, 2);
	CHECK_EQ(r->loss.rows[1].span_ns, 250);
	CHECK_EQ(r->loss.rows[1].from_ns, 100);
	CHECK_EQ(r->loss.rows[1].to_ns, 650);
	CHECK_EQ(r->loss.rows[2].reason, WEFT_LOSS_BAD_EVENT);
	feed_close(&feed);
}

TEST(queue_depths_are_kept_by_runtime)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_start(&feed);
	for (i = 1; i <= 100; i++)
		FEED(&feed, 1000 + i, 3, QUEUE, i, 0);
	FEED(&feed, 2000, 3, QUEUE, 5, 1);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->custom.n_queues, 2);
	CHECK_EQ(r->custom.queues[0].depths.min, 1);
	CHECK_EQ(r->custom.queues[0].depths.max, 100);
	CHECK_EQ(weft__hist_at(&r->custom.queues[0].depths, 9900), 99);
	CHECK(weft__hist_mean(&r->custom.queues[0].depths) == 50.5);
	CHECK_EQ(r->custom.queues[1].depths.n, 1);
	feed_close(&feed);
}

static uint64_t bits(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

TEST(fields_of_the_programs_events_are_summed)
{
	static const struct weft_kind_def def = {64,
						 4,
						 "request",
						 {{"bytes", WEFT_TYPE_U64, "By"},
						  {"delta", WEFT_TYPE_I64, NULL},
						  {"load", WEFT_TYPE_F64, "1"},
						  {"path", WEFT_TYPE_STRING, NULL}}};
	struct feed feed;
	const struct weft__custom *custom;

	feed_init(&feed);
	CHECK_EQ(weft__names_add_kind(&feed.names, &def), 0);
	feed_begin(&feed);
	feed_event(&feed, 1000, 3, 64, 4, (uint64_t[]){10, (uint64_t)-5, bits(0.5), 1});
	feed_event(&feed, 1001, 3, 64, 4, (uint64_t[]){30, 7, bits(-1.5), 2});
	feed_event(&feed, 1002, 3, 64, 4, (uint64_t[]){20, 1, bits(__builtin_nan("")), 3});
	feed_event(&feed, 1003, 3, 4000, 2, (uint64_t[]){1, 2}); /* not described */
	feed_end(&feed, 0);
	if (!CHECK_EQ(feed.result->custom.n_kinds, 2))
		return;
	custom = &feed.result->custom.kinds[0];
	CHECK_EQ(custom->n, 3);
	CHECK_EQ(custom->fields[0].min.u, 10);
	CHECK_EQ(custom->fields[0].max.u, 30);
	CHECK(custom->fields[0].sum == 60.0);
	CHECK_EQ(custom->fields[1].min.i, -5);
	CHECK_EQ(custom->fields[1].max.i, 7);
	CHECK_EQ(custom->fields[2].n, 2);
	CHECK(custom->fields[2].min.f == -1.5);
	CHECK(custom->fields[2].max.f == 0.5);
	CHECK_EQ(custom->fields[3].n, 0);
	CHECK_EQ(feed.result->custom.kinds[1].n, 1);
	CHECK_EQ(feed.result->custom.kinds[1].fields[0].n, 0);
	feed_close(&feed);
}

/* The same twice: parks as events, and counted by somebody else. */
TEST(shares_are_the_same_when_parks_are_counted)
{
	struct feed events, counted;
	uint64_t t, parked = 0, reported = 1000, count = 0;

	feed_start(&events);
	feed_start(&counted);
	FEED(&events, 1000, 1, THREAD_BEGIN, 101);
	FEED(&counted, 1000, 1, THREAD_BEGIN, 101);
	FEED(&events, 1000, 1, SPAWN, 1, 1);
	FEED(&counted, 1000, 1, SPAWN, 1, 1);
	for (t = 1000; t < 901000; t += 300) {
		FEED(&events, t, 1, UNPARK, 0);
		FEED(&events, t + 100, 1, PARK, 0);
		parked += 200;
		count++;
		if (t % 9000 == 1000) {
			FEED(&counted, t + 300, 3, PARK_COUNT, 1, count, parked, t + 300 - reported);
			reported = t + 300;
			parked = count = 0;
		}
	}
	FEED(&events, t, 1, UNPARK, 0);
	FEED(&counted, t, 3, PARK_COUNT, 1, count, parked, t - reported);
	feed_end(&events, t);
	feed_end(&counted, t);
	CHECK_EQ(feed_lane(&events, 0, 0)->observed_ns, 900000);
	CHECK_EQ(feed_lane(&counted, 0, 0)->observed_ns, 900000);
	CHECK_EQ(feed_lane(&events, 0, 0)->parked_ns, 600000);
	CHECK_EQ(feed_lane(&counted, 0, 0)->parked_ns, 600000);
	CHECK_EQ(counted.result->detail.parks, 3000);
	feed_close(&events);
	feed_close(&counted);
}

TEST(a_thread_of_which_only_parks_are_counted_is_observed)
{
	struct feed feed;

	feed_init(&feed);
	feed.opts.start_ns = 1000; /* the thread has events from 100 on */
	feed_begin(&feed);
	FEED(&feed, 3000, 3, PARK_COUNT, 1, 10, 1500, 1800);
	feed_end(&feed, 4000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 3000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->parked_ns, 1500);
	feed_close(&feed);
}

TEST(a_window_has_its_part_of_the_parks_that_were_counted)
{
	struct feed feed;

	feed_init(&feed);
	feed.opts.from_ns = 2000;
	feed_begin(&feed);
	FEED(&feed, 1000, 1, SPAWN, 1, 1);
	FEED(&feed, 1500, 3, PARK_COUNT, 1, 10, 400, 500);
	FEED(&feed, 2500, 3, PARK_COUNT, 1, 10, 600, 1000);
	FEED(&feed, 3000, 3, PARK_COUNT, 1, 10, 100, 500);
	feed_end(&feed, 3000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->observed_ns, 1000);
	CHECK_EQ(feed_lane(&feed, 0, 0)->parked_ns, 400);
	feed_close(&feed);
}
