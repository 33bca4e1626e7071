/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a thread's time: each test has a timeline whose samples are worked out by hand. */
#include "analyze/times.h"

#include "feed.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS UINT64_C(1000000)
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define OFF(tid, from, ms, reason) tid, (from)*MS, (ms)*MS, WEFT_OFFCPU_##reason, 1, 0, 0
#define LOCK(object, ms, stack) WEFT_WAIT_LOCK, 5, object, (ms)*MS, 0, stack
#define COLLECTOR 9

struct heard {
	struct weft__time_sample at[64];
	size_t n;
};

static int hear(void *data, const struct weft__time_sample *sample)
{
	struct heard *heard = data;

	if (heard->n < 64)
		heard->at[heard->n++] = *sample;
	return 0;
}

static void start(struct feed *feed, struct heard *heard)
{
	static const struct weft_fact hz = {"sample.hz", "100"};

	feed_init(feed);
	CHECK_EQ(weft__names_add_fact(&feed->names, &hz), 0);
	heard->n = 0;
	feed->opts.time_sample = hear;
	feed->opts.time_data = heard;
	feed_begin(feed);
}

#define CHECK_TIME(sample, state_, begin, end, wall, cpu)                                                              \
	do {                                                                                                           \
		const struct weft__time_sample *s_ = &(sample);                                                        \
		CHECK_EQ(s_->state, WEFT__TIME_##state_);                                                              \
		CHECK_EQ(s_->begin_ns, (begin)*MS);                                                                    \
		CHECK_EQ(s_->end_ns, (end)*MS);                                                                        \
		CHECK_EQ(s_->wall_ns, (wall)*MS);                                                                      \
		CHECK_EQ(s_->cpu_ns, (cpu)*MS);                                                                        \
		CHECK(s_->cpu_known);                                                                                  \
	} while (0)

/* On the CPU to 20, off to 22, on to 27; the wait from 27 to 59, of which 28 to 58 off the CPU; a sample at 63. */
TEST(a_long_wait_is_two_samples_and_the_first_has_all_cpu_time_since_the_last)
{
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 59 * MS, 1, WAIT, LOCK(7, 32, 12));
	FEED(&feed, 63 * MS, 1, SAMPLE, SAMPLE_OF(13, 10));
	FEED(&feed, 70 * MS, COLLECTOR, OFFCPU, OFF(101, 1, 2, BLOCKED));
	FEED(&feed, 70 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 2, BLOCKED));
	FEED(&feed, 70 * MS, COLLECTOR, OFFCPU, OFF(101, 28, 30, BLOCKED));
	feed_end(&feed, 0);
	REQUIRE(heard.n == 4);
	CHECK_TIME(heard.at[1], CPU, 10, 27, 17, 15);
	CHECK_EQ(heard.at[1].stack, 12);
	CHECK_TIME(heard.at[2], WAITING, 27, 59, 32, 0);
	CHECK_EQ(heard.at[2].what, WEFT_WAIT_LOCK);
	CHECK_EQ(heard.at[2].name, 5);
	CHECK_EQ(heard.at[2].object, 7);
	CHECK_EQ(heard.at[2].stack, 12);
	CHECK_EQ(heard.at[2].thread_id, 1);
	CHECK_EQ(heard.at[2].tid, 101);
	CHECK_TIME(heard.at[3], CPU, 59, 63, 4, 4); /* and 2 more inside of the wait: its begin and its end */
	CHECK_EQ(feed.result->times[WEFT__TIME_WAITING].n, 1);
	CHECK_EQ(feed.result->times[WEFT__TIME_WAITING].wall_ns, 32 * MS);
	CHECK_EQ(feed.result->times[WEFT__TIME_WAITING].cpu_ns, 0);
	CHECK_EQ(feed.result->times[WEFT__TIME_CPU].n, 3);
	feed_close(&feed);
}

/* Sleeps of 6, 9 and 30 ms: the sum passes 10 in the second, and 20, 30 and 40 in the third. */
TEST(groups_off_the_cpu_have_their_begin_and_end_and_the_cpu_time_before)
{
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 90 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 10, 6, BLOCKED));
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 9, PREEMPTED));
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 32, 30, BLOCKED));
	feed_end(&feed, 0);
	REQUIRE(heard.n == 3);
	CHECK_TIME(heard.at[0], PREEMPTED, 24, 24, 10, 4);
	CHECK_EQ(heard.at[0].count, 1);
	CHECK_TIME(heard.at[1], BLOCKED, 37, 57, 30, 3);
	CHECK_EQ(heard.at[1].count, 3);
	CHECK_TIME(heard.at[2], CPU, 57, 90, 33, 28);
	CHECK_EQ(feed.result->times[WEFT__TIME_BLOCKED].n, 3);
	feed_close(&feed);
}

TEST(waits_inside_of_one_another_count_no_moment_twice)
{
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 40 * MS, 1, WAIT, LOCK(8, 10, 12)); /* 30 to 40, inside of */
	FEED(&feed, 50 * MS, 1, WAIT, LOCK(7, 30, 13)); /* 20 to 50 */
	feed_end(&feed, 0);
	REQUIRE(heard.n == 4);
	CHECK_EQ(heard.at[1].end_ns, 30 * MS);
	CHECK(!heard.at[1].cpu_known); /* nothing is known of switches */
	CHECK_EQ(heard.at[2].wall_ns, 10 * MS);
	CHECK_EQ(heard.at[3].begin_ns, 40 * MS);
	CHECK_EQ(heard.at[3].wall_ns, 10 * MS);
	CHECK_EQ(heard.at[3].object, 7);
	CHECK_EQ(feed.result->times[WEFT__TIME_CPU].cpu_unknown, 1);
	feed_close(&feed);
}

/* Without switches a CPU sample has its weight. */
TEST(the_cpu_time_of_a_sample_is_its_weight_where_switches_are_not_known)
{
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 60 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	feed_end(&feed, 0);
	REQUIRE(heard.n == 2);
	CHECK_TIME(heard.at[1], CPU, 10, 60, 50, 10);
	feed_close(&feed);
}

TEST(cpu_time_is_not_summed_across_a_gap_in_the_switches)
{
	static const struct weft_loss loss = {WEFT_LOSS_SWITCH, 0, 3, 30 * MS, 40 * MS};
	struct heard heard;
	struct feed feed;

	feed_init(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &loss), 0);
	heard.n = 0;
	feed.opts.period_ns = 10 * MS;
	feed.opts.time_sample = hear;
	feed.opts.time_data = &heard;
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 59 * MS, 1, WAIT, LOCK(7, 9, 12));
	FEED(&feed, 70 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 2, BLOCKED));
	FEED(&feed, 70 * MS, COLLECTOR, OFFCPU, OFF(101, 51, 7, BLOCKED));
	feed_end(&feed, 0);
	REQUIRE(heard.n == 3);
	CHECK_EQ(heard.at[1].end_ns, 50 * MS);
	CHECK(!heard.at[1].cpu_known);
	CHECK_EQ(heard.at[2].wall_ns, 9 * MS);
	feed_close(&feed);
}

/* The thread slept in the wait, but switches were not recorded then. */
TEST(a_wait_without_a_switch_in_it_is_no_cpu_time)
{
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 5 * MS, COLLECTOR, OFFCPU, OFF(101, 1, 2, BLOCKED));
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 60 * MS, 1, WAIT, LOCK(7, 40, 12));
	FEED(&feed, 70 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	feed_end(&feed, 0);
	REQUIRE(heard.n == 4);
	CHECK_TIME(heard.at[1], CPU, 10, 20, 10, 10);
	CHECK_TIME(heard.at[2], WAITING, 20, 60, 40, 0);
	CHECK_TIME(heard.at[3], CPU, 60, 70, 10, 10);
	feed_close(&feed);
}

/* A read from the page cache computes; a read that sleeps for most of it waits for that. */
TEST(a_wait_has_the_time_that_it_was_not_on_the_cpu)
{
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 30 * MS, 1, WAIT, WEFT_WAIT_CALL, 5, 7, 20 * MS, 0, 12, 20 * MS, 0);
	FEED(&feed, 60 * MS, 1, WAIT, WEFT_WAIT_CALL, 5, 7, 20 * MS, 0, 12, 8 * MS, 0);
	feed_end(&feed, 0);
	REQUIRE(heard.n == 3);
	CHECK_EQ(heard.at[1].state, WEFT__TIME_CPU);
	CHECK_EQ(heard.at[1].wall_ns, 30 * MS);
	CHECK_EQ(heard.at[2].state, WEFT__TIME_WAITING);
	CHECK_EQ(heard.at[2].wall_ns, 12 * MS);
	feed_close(&feed);
}

TEST(waits_for_a_collector_of_garbage_say_what_they_were_on_the_cpu)
{
	const struct weft__result *r;
	struct heard heard;
	struct feed feed;

	start(&feed, &heard);
	FEED(&feed, 30 * MS, 1, WAIT, WEFT_WAIT_GC, 5, 0, 20 * MS, 0, 12, 18 * MS, 1 * MS);
	FEED(&feed, 60 * MS, 1, WAIT, WEFT_WAIT_GC, 5, 0, 10 * MS, 0, 12, 2 * MS, 0);
	FEED(&feed, 80 * MS, 1, WAIT, WEFT_WAIT_GC, 5, 0, 10 * MS, 0, 12);
	r = feed_end(&feed, 0);
	REQUIRE(r->wait.n_rows == 1);
	CHECK_EQ(r->wait.rows[0].n_cpu, 2);
	CHECK_EQ(r->wait.rows[0].cpu_ns, 20 * MS);
	CHECK_EQ(r->wait.rows[0].cpu_of_ns, 30 * MS);
	feed_close(&feed);
}
