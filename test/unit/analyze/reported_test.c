/* SPDX-License-Identifier: Apache-2.0 */
/* Polls in the modes slow and caught: reported at their end, and counted by duration. */
#include "feed.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define COLLECTOR 9

static void start(struct feed *feed, const char *mode)
{
	const struct weft_fact facts[] = {{"poll.mode", mode}, {"sample.hz", "100"}};

	feed_init(feed);
	CHECK_EQ(weft__names_add_fact(&feed->names, &facts[0]), 0);
	CHECK_EQ(weft__names_add_fact(&feed->names, &facts[1]), 0);
}

TEST(a_poll_recorded_at_its_end_has_its_samples_and_its_breakdown)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed, "caught");
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 1 * MS, 3, WAKE, 1, 0);
	FEED(&feed, 5 * MS, 1, SAMPLE, SAMPLE_OF(11, 10)); /* before it */
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 25 * MS, 1, SAMPLE, SAMPLE_OF(13, 10));
	FEED(&feed, 35 * MS, 1, WAIT, WEFT_WAIT_LOCK, 0, 5, 4 * MS, 0, 0);
	FEED(&feed, 50 * MS, 1, POLL, 1, 3, 40 * MS, 0, WEFT_POLL_CAUGHT);
	FEED(&feed, 60 * MS, 1, SAMPLE, SAMPLE_OF(11, 10)); /* behind it */
	FEED(&feed, 70 * MS, COLLECTOR, OFFCPU, 101, 40 * MS, 6 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_EQ(r->poll.longest[0].rank_ns, 40 * MS);
	CHECK_EQ(r->poll.longest[0].begin_ns, 10 * MS);
	CHECK_EQ(r->poll.longest[0].location, 1);
	CHECK_EQ(r->poll.longest[0].depth, 3);
	CHECK(r->poll.longest[0].reported);
	CHECK(r->poll.longest[0].wake.known && r->poll.longest[0].wake.measured); /* the only one since the spawn */
	CHECK_EQ(r->poll.longest[0].sampled.n, 2);
	CHECK_EQ(r->poll.longest[0].n_stacks, 2);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__WAITING], 4 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__BLOCKED], 6 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__ON_CPU], 30 * MS);
	CHECK_EQ(r->delays.n, 0);
	CHECK_EQ(r->polls.n, 1); /* nothing was counted: it is all there is */
	/* What was sampled is where it was: in the poll, or who knows. */
	CHECK_EQ(r->samples.all.ns, 40 * MS);
	CHECK_EQ(r->samples.where[WEFT__IN_POLL].ns, 20 * MS);
	CHECK_EQ(r->samples.where[WEFT__WHERE_UNKNOWN].ns, 20 * MS);
	CHECK_EQ(feed_location(&feed, 1)->sampled.ns, 20 * MS);
	CHECK_EQ(r->samples.n_rows, 3);
	feed_close(&feed);
}

/* The end of a task is reported before the poll in which it ended. */
TEST(a_poll_recorded_at_its_end_keeps_the_location_of_its_ended_task)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	start(&feed, "slow");
	feed_begin(&feed);
	for (i = 1; i <= 10000; i++) { /* more than are remembered */
		FEED(&feed, i * MS, 3, SPAWN, i % 7000, 1 + i % 2);
		FEED(&feed, i * MS, 3, WAKE, i % 7000, 0);
		FEED(&feed, i * MS, 1, TASK_END, i % 7000);
	}
	FEED(&feed, UINT64_C(10020) * MS, 1, POLL, 3000, 0, 19 * MS, 0, WEFT_POLL_SLOW); /* 10000 % 7000 */
	FEED(&feed, UINT64_C(10040) * MS, 1, POLL, 2999, 0, 18 * MS, 0, WEFT_POLL_SLOW); /* 9999 */
	FEED(&feed, UINT64_C(10060) * MS, 1, POLL, 3500, 0, 17 * MS, 0, WEFT_POLL_SLOW); /* forgotten */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 3);
	CHECK_EQ(r->poll.longest[0].location, 1);
	CHECK(r->poll.longest[0].wake.known);
	CHECK_EQ(r->poll.longest[1].location, 2);
	CHECK_EQ(r->poll.longest[2].location, WEFT__LOCATION_UNSEEN);
	feed_close(&feed);
}

TEST(polls_recorded_at_their_end_may_be_nested)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed, "slow");
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 0 * MS, 3, SPAWN, 2, 2);
	FEED(&feed, 15 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 25 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 30 * MS, 1, POLL, 2, 0, 10 * MS, 1, WEFT_POLL_SLOW);
	FEED(&feed, 50 * MS, 1, POLL, 1, 0, 40 * MS, 0, WEFT_POLL_SLOW);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[0].sampled.n, 2);
	CHECK_EQ(r->poll.longest[0].level, 0);
	CHECK_EQ(r->poll.longest[1].sampled.n, 1);
	CHECK_EQ(r->poll.longest[1].level, 1);
	CHECK_EQ(feed_location(&feed, 2)->sampled.ns, 10 * MS); /* the innermost */
	CHECK_EQ(feed_location(&feed, 1)->sampled.ns, 10 * MS);
	CHECK_EQ(feed_lane(&feed, 0, 1)->busy_ns, 40 * MS);
	feed_close(&feed);
}

TEST(a_location_filters_samples_of_polls_recorded_at_their_end)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed, "slow");
	feed.opts.location = "echo";
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 0 * MS, 3, SPAWN, 2, 2);
	FEED(&feed, 15 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 30 * MS, 1, POLL, 1, 0, 20 * MS, 0, WEFT_POLL_SLOW);
	FEED(&feed, 45 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 46 * MS, 1, WAIT, WEFT_WAIT_LOCK, 0, 9, 5 * MS, 0, 0);
	FEED(&feed, 47 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 0, 3, 2 * MS, MS);
	FEED(&feed, 50 * MS, 1, POLL, 2, 0, 20 * MS, 0, WEFT_POLL_SLOW);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.n_longest, 1);
	CHECK_EQ(r->wait.n_rows, 0);
	CHECK_EQ(r->wait.n_mixed, 4); /* whether they were in it was not known when they came */
	CHECK_EQ(r->wait.mixed_ns, 7 * MS);
	CHECK_EQ(r->samples.all.n, 1);
	CHECK_EQ(r->samples.left_out.n, 1);
	REQUIRE(r->samples.n_rows == 1);
	CHECK_EQ(r->samples.rows[0].stack, 12);
	CHECK_EQ(r->samples.rows[0].where, WEFT__IN_POLL);
	feed_close(&feed);
}

TEST(polls_are_counted_by_duration)
{
	struct feed feed;
	const struct weft__result *r;
	const struct weft__lane *lane;

	start(&feed, "slow");
	feed_begin(&feed);
	FEED(&feed, 40 * MS, 1, POLL, 1, 0, 30 * MS, 0, WEFT_POLL_SLOW);
	FEED(&feed, 50 * MS, COLLECTOR, POLL_COUNT, 1, 1000, 1100, 9000);
	FEED(&feed, 50 * MS, COLLECTOR, POLL_COUNT, 1, 50000, 60000, 990);
	FEED(&feed, 50 * MS, COLLECTOR, POLL_COUNT, 1, 28 * MS, 32 * MS, 1);
	FEED(&feed, 50 * MS, COLLECTOR, POLL_COUNT, 2, 2000, 2200, 10);
	FEED(&feed, 55 * MS, 1, WORKER, WEFT_WORKER_NONE); /* what comes now is the worker's all the same */
	FEED(&feed, 60 * MS, COLLECTOR, POLL_COUNT, 1, 1000, 1100, 9);
	r = feed_end(&feed, 0);
	CHECK(r->counted);
	CHECK_EQ(r->polls.n, 10010);
	lane = feed_lane(&feed, 0, 1);
	CHECK(lane->counted);
	CHECK_EQ(lane->polls.n, 10000);
	CHECK_EQ(lane->reported.n, 1);
	CHECK(weft__hist_at(&lane->polls, 5000) >= 1000 && weft__hist_at(&lane->polls, 5000) < 1100);
	CHECK(weft__hist_at(&lane->polls, 9900) >= 50000 && weft__hist_at(&lane->polls, 9900) < 60000);
	CHECK_EQ(lane->polls.max, 30 * MS);
	CHECK_EQ(feed_lane(&feed, 1, 2)->polls.n, 10);
	feed_close(&feed);
}

/* Which of several wakes began the wait is known only where no poll can be missing in between. */
TEST(a_poll_recorded_at_its_end_has_its_wake)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed, "slow");
	feed_begin(&feed);
	FEED(&feed, 1 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 2 * MS, 3, WAKE, 1, 0);
	FEED(&feed, 50 * MS, 1, POLL, 1, 0, 40 * MS, 0, WEFT_POLL_SLOW); /* its first: 8 ms after the wake */
	FEED(&feed, 60 * MS, 3, WAKE, 1, 0);
	FEED(&feed, 100 * MS, 1, POLL, 1, 0, 30 * MS, 0, WEFT_POLL_SLOW); /* the only wake since: 10 ms */
	FEED(&feed, 110 * MS, 3, WAKE, 1, 0);
	FEED(&feed, 120 * MS, 3, WAKE, 1, 0);
	FEED(&feed, 150 * MS, 1, POLL, 1, 0, 20 * MS, 0, WEFT_POLL_SLOW); /* 10 ms, or 20 */
	FEED(&feed, 160 * MS, 3, WAKE, 2, 0);
	FEED(&feed, 180 * MS, 1, POLL, 2, 0, 15 * MS, 0, WEFT_POLL_SLOW); /* who knows what was before */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 4);
	for (int i = 0; i < 4; i++) {
		CHECK(r->poll.longest[i].wake.known && !r->poll.longest[i].wake.in_poll &&
		      r->poll.longest[i].wake.unlisted);
		CHECK_EQ(r->poll.longest[i].wake.measured, i < 2);
		CHECK_EQ(r->poll.longest[i].wake.again, i >= 2);
	}
	CHECK_EQ(r->poll.longest[0].begin_ns - r->poll.longest[0].wake.time_ns, 8 * MS);
	CHECK_EQ(r->poll.longest[1].begin_ns - r->poll.longest[1].wake.time_ns, 10 * MS);
	CHECK_EQ(r->poll.longest[2].begin_ns - r->poll.longest[2].wake.time_ns, 10 * MS);
	feed_close(&feed);
}

/* Wakes were counted: the poll's own comes with it. */
TEST(a_poll_recorded_at_its_end_has_the_wake_that_was_remembered)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed, "slow");
	feed_begin(&feed);
	FEED(&feed, 1 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 1 * MS, 3, SPAWN, 2, 2);
	FEED(&feed, 50 * MS, 1, WOKEN, 3, 2, 8 * MS, 900 * MS);
	FEED(&feed, 50 * MS, 1, POLL, 1, 0, 40 * MS, 0, WEFT_POLL_SLOW); /* no other since it was spawned */
	FEED(&feed, 100 * MS, 1, WOKEN, 3, 0, 5 * MS, 20 * MS);
	FEED(&feed, 100 * MS, 1, POLL, 1, 0, 30 * MS, 0,
	     WEFT_POLL_SLOW); /* another 20 ms before, in or after the last poll */
	FEED(&feed, 150 * MS, 1, WOKEN, 3, 0, 5 * MS, 900 * MS);
	FEED(&feed, 151 * MS, 1, POLL, 1, 0, 20 * MS, 0,
	     WEFT_POLL_SLOW); /* it was of another poll, which was not reported */
	FEED(&feed, 160 * MS, 3, WAKE, 1, 0);
	FEED(&feed, 180 * MS, 1, WOKEN, 3, 2, 9 * MS, 900 * MS);
	FEED(&feed, 180 * MS, 1, POLL, 1, 0, 15 * MS, 0, WEFT_POLL_SLOW); /* an event that is younger */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 4);
	CHECK(r->poll.longest[0].wake.known && r->poll.longest[0].wake.in_poll && r->poll.longest[0].wake.measured);
	CHECK_EQ(r->poll.longest[0].wake.task, 2);
	CHECK_EQ(r->poll.longest[0].wake.location, 2);
	CHECK_EQ(r->poll.longest[0].begin_ns - r->poll.longest[0].wake.time_ns, 8 * MS);
	CHECK(r->poll.longest[1].wake.known && !r->poll.longest[1].wake.in_poll && r->poll.longest[1].wake.again);
	CHECK_EQ(r->poll.longest[1].begin_ns - r->poll.longest[1].wake.time_ns, 5 * MS);
	CHECK(!r->poll.longest[2].wake.known);
	CHECK(r->poll.longest[3].wake.known && !r->poll.longest[3].wake.in_poll);
	CHECK_EQ(r->poll.longest[3].begin_ns - r->poll.longest[3].wake.time_ns, 5 * MS);
	feed_close(&feed);
}
