/* SPDX-License-Identifier: Apache-2.0 */
/* Of the time that threads were preempted, what a CPU quota took. */
#include "feed.h"

#define MS UINT64_C(1000000)
#define OFF(tid, from, ms, reason) tid, (from)*MS, (ms)*MS, WEFT_OFFCPU_##reason, 1, 0, 0
#define COLLECTOR 9

static void start(struct feed *feed, bool quota)
{
	static const struct weft_fact max = {"cgroup.cpu.max", "50000 100000"};

	feed_init(feed);
	if (quota)
		CHECK_EQ(weft__names_add_fact(&feed->names, &max), 0);
	feed_begin(feed);
}

/* Two polls in one span: one is preempted for 4 ms by another thread, one is stopped by the quota for 50, and its 2
 * ms more were none. */
TEST(the_longest_times_preempted_are_the_quotas_as_long_as_it_withheld_cpus)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed, true);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 30 * MS, 1, POLL_END);
	FEED(&feed, 40 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 140 * MS, 1, POLL_END);
	FEED(&feed, 150 * MS, COLLECTOR, OFFCPU, OFF(101, 12, 4, PREEMPTED));
	FEED(&feed, 150 * MS, COLLECTOR, OFFCPU, OFF(101, 45, 5, BLOCKED));
	FEED(&feed, 150 * MS, COLLECTOR, OFFCPU, OFF(101, 50, 50, PREEMPTED));
	FEED(&feed, 150 * MS, COLLECTOR, OFFCPU, OFF(101, 110, 2, PREEMPTED));
	FEED(&feed, 200 * MS, COLLECTOR, THROTTLED, 200 * MS, 50 * MS, 1, 2, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__PREEMPTED], 52 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.throttled_ns, 50 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__BLOCKED], 5 * MS);
	CHECK_EQ(r->poll.longest[1].breakdown.split.ns[WEFT__PREEMPTED], 4 * MS);
	CHECK_EQ(r->poll.longest[1].breakdown.split.throttled_ns, 0);
	CHECK_EQ(r->split.throttled_ns, 50 * MS);
	REQUIRE(r->off.n_threads == 1);
	CHECK_EQ(r->off.threads[0].throttled_ns, 50 * MS);
	CHECK_EQ(r->throttling.ns, 50 * MS);
	CHECK_EQ(r->throttling.times, 1);
	feed_close(&feed);
}

TEST(a_thread_is_stopped_at_most_as_often_as_the_quota_was_used_up)
{
	const struct weft__result *r;
	struct feed feed;
	uint64_t i;

	start(&feed, true);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 190 * MS, 1, POLL_END);
	/* On two CPUs 60 ms were withheld, 30 of this thread; and it was preempted for 3 ms, ten times. */
	FEED(&feed, 195 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 30, PREEMPTED));
	for (i = 0; i < 10; i++)
		FEED(&feed, 195 * MS, COLLECTOR, OFFCPU, OFF(101, 60 + 10 * i, 3, PREEMPTED));
	FEED(&feed, 200 * MS, COLLECTOR, THROTTLED, 200 * MS, 60 * MS, 1, 2, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__PREEMPTED], 60 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.throttled_ns, 30 * MS);
	feed_close(&feed);
}

/* A damaged file can have both: the count must not become a loop of as many turns. */
TEST(preempted_for_no_time_is_not_the_quotas_however_often_it_was_used_up)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed, true);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 190 * MS, 1, POLL_END);
	FEED(&feed, 195 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 0, PREEMPTED));
	FEED(&feed, 200 * MS, COLLECTOR, THROTTLED, 200 * MS, 60 * MS, UINT64_MAX, 2, 0);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->split.throttled_ns, 0);
	feed_close(&feed);
}

/* The kernel counts a time when it is over: all of it is in the second span, though it began in the first. */
TEST(throttled_time_that_spans_two_readings_belongs_to_the_second)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed, true);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 100 * MS, COLLECTOR, THROTTLED, 100 * MS, 1 * MS, 1, 1, 0);
	FEED(&feed, 150 * MS, 1, POLL_END);
	FEED(&feed, 160 * MS, COLLECTOR, OFFCPU, OFF(101, 90, 50, PREEMPTED));
	FEED(&feed, 200 * MS, COLLECTOR, THROTTLED, 100 * MS, 50 * MS, 1, 1, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_EQ(r->poll.longest[0].breakdown.split.throttled_ns, 50 * MS);
	CHECK_EQ(r->off.threads[0].throttled_ns, 50 * MS);
	feed_close(&feed);
}

TEST(switches_that_are_reported_after_the_reading_count_once)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed, true);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 150 * MS, 1, POLL_END);
	FEED(&feed, 160 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 10, PREEMPTED));
	FEED(&feed, 200 * MS, COLLECTOR, THROTTLED, 200 * MS, 70 * MS, 2, 2, 0);
	FEED(&feed, 210 * MS, COLLECTOR, OFFCPU, OFF(101, 40, 60, PREEMPTED));
	FEED(&feed, 210 * MS, COLLECTOR, OFFCPU, OFF(101, 110, 30, PREEMPTED));
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__PREEMPTED], 100 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.throttled_ns, 70 * MS);
	CHECK_EQ(r->off.threads[0].throttled_ns, 70 * MS);
	feed_close(&feed);
}

/* A reading comes up to a second after the poll, behind many others. */
TEST(polls_wait_for_the_next_reading_where_there_is_a_quota)
{
	const struct weft__result *r;
	struct feed feed;
	uint64_t i;

	start(&feed, true);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 100 * MS, 1, POLL_END);
	FEED(&feed, 105 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 60, PREEMPTED));
	for (i = 0; i < 20000; i++) {
		FEED(&feed, 110 * MS + i * 40000, 1, POLL_BEGIN, 2, 0);
		FEED(&feed, 110 * MS + i * 40000 + 100, 1, POLL_END);
	}
	FEED(&feed, 1000 * MS, COLLECTOR, THROTTLED, 1000 * MS, 60 * MS, 1, 10, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest > 0);
	CHECK_EQ(r->poll.longest[0].breakdown.split.throttled_ns, 60 * MS);
	feed_close(&feed);
}

TEST(without_a_quota_nothing_is_throttled)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed, false);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 100 * MS, 1, POLL_END);
	FEED(&feed, 105 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 60, PREEMPTED));
	r = feed_end(&feed, 0);
	CHECK_EQ(r->split.ns[WEFT__PREEMPTED], 60 * MS);
	CHECK_EQ(r->split.throttled_ns, 0);
	CHECK_EQ(r->throttling.n, 0);
	feed_close(&feed);
}

/* By its own clocks the poll was ready without a CPU for 60 ms; switches were not recorded. */
TEST(time_ready_without_a_record_of_switches_is_the_quotas_as_far_as_it_withheld_cpus)
{
	static const struct weft_loss loss = {WEFT_LOSS_SWITCH, 0, 3, 1 * MS, 150 * MS};
	static const struct weft_fact max = {"cgroup.cpu.max", "50000 100000"};
	const struct weft__result *r;
	struct feed feed;

	feed_init(&feed);
	CHECK_EQ(weft__names_add_fact(&feed.names, &max), 0);
	CHECK_EQ(weft__names_add_loss(&feed.names, &loss), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 100 * MS, 1, POLL_CPU, 20 * MS, 60 * MS, 0);
	FEED(&feed, 100 * MS, 1, POLL_END);
	FEED(&feed, 110 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 120 * MS, 1, POLL_CPU, 6 * MS, 4 * MS, 0); /* another thread's slice */
	FEED(&feed, 120 * MS, 1, POLL_END);
	FEED(&feed, 200 * MS, COLLECTOR, THROTTLED, 200 * MS, 50 * MS, 1, 2, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__PREEMPTED], 60 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.split.throttled_ns, 50 * MS);
	CHECK_EQ(r->poll.longest[1].breakdown.split.ns[WEFT__PREEMPTED], 4 * MS);
	CHECK_EQ(r->poll.longest[1].breakdown.split.throttled_ns, 0);
	feed_close(&feed);
}
