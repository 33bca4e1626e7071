/* SPDX-License-Identifier: Apache-2.0 */
/* Time off the CPU that is more than a thread's CPU clock leaves room for, and how much of the time switches were
 * recorded in. */
#include "feed.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define COLLECTOR 9

/* Every 10 us the thread is off the CPU for 6 us by the switches, of which 1 us is the switch itself: its CPU clock
 * says 5 of 10. */
static void switch_much(struct feed *feed, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t t;

	for (t = from_ns; t + 10 * US <= to_ns; t += 10 * US)
		FEED(feed, t + 8 * US, COLLECTOR, OFFCPU, 101, t + 2 * US, 6 * US,
		     t / (10 * US) % 4 ? WEFT_OFFCPU_BLOCKED : WEFT_OFFCPU_PREEMPTED, 1, 7, 0);
}

TEST(what_a_switch_itself_takes_is_no_time_off_the_cpu)
{
	const struct weft__result *r;
	struct feed feed;

	feed_start(&feed);
	switch_much(&feed, 0, 10 * MS);
	FEED(&feed, 10 * MS, COLLECTOR, THREAD_CPU, 101, 5 * MS);
	switch_much(&feed, 10 * MS, 60 * MS);
	FEED(&feed, 60 * MS, COLLECTOR, THREAD_CPU, 101, 30 * MS);
	switch_much(&feed, 60 * MS, 80 * MS);
	r = feed_end(&feed, 0);
	REQUIRE(r->off.n_threads == 1);
	CHECK_EQ(r->off.threads[0].n_blocked, 6000);
	CHECK_EQ(r->off.threads[0].blocked_ns, 30 * MS);
	CHECK_EQ(r->off.threads[0].preempted_ns, 10 * MS);
	CHECK_EQ(r->off.threads[0].over_ns, 8 * MS);
	REQUIRE(r->off.n_rows == 2);
	CHECK_EQ(r->off.rows[0].ns, 30 * MS);
	CHECK_EQ(r->off.rows[1].ns, 10 * MS);
	feed_close(&feed);
}

/* In the gap the thread has run for 30 ms, which no switch says. */
TEST(readings_with_a_gap_between_them_say_nothing)
{
	static const struct weft_loss loss = {WEFT_LOSS_SWITCH, 0, 3, 20 * MS, 50 * MS};
	const struct weft__result *r;
	struct feed feed;

	feed_init(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &loss), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, COLLECTOR, THREAD_CPU, 101, 5 * MS);
	switch_much(&feed, 10 * MS, 20 * MS);
	switch_much(&feed, 50 * MS, 60 * MS);
	FEED(&feed, 60 * MS, COLLECTOR, THREAD_CPU, 101, 55 * MS);
	switch_much(&feed, 60 * MS, 70 * MS);
	FEED(&feed, 70 * MS, COLLECTOR, THREAD_CPU, 101, 60 * MS);
	r = feed_end(&feed, 0);
	REQUIRE(r->off.n_threads == 1);
	CHECK_EQ(r->off.threads[0].held_n, 1000);
	CHECK_EQ(r->off.threads[0].blocked_ns + r->off.threads[0].preempted_ns, 15 * MS);
	/* Of 70 ms, 30 are missing. */
	CHECK_EQ(r->off.switch_span_ns, 70 * MS);
	CHECK_EQ(r->off.switch_missing_ns, 30 * MS);
	feed_close(&feed);
}

TEST(a_thread_that_was_off_the_cpu_less_than_it_could_is_left_alone)
{
	const struct weft__result *r;
	struct feed feed;

	feed_start(&feed);
	FEED(&feed, 5 * MS, COLLECTOR, OFFCPU, 101, 1 * MS, 1 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	FEED(&feed, 10 * MS, COLLECTOR, THREAD_CPU, 101, 5 * MS);
	FEED(&feed, 25 * MS, COLLECTOR, OFFCPU, 101, 15 * MS, 5 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	FEED(&feed, 30 * MS, COLLECTOR, THREAD_CPU, 101, 18 * MS);
	r = feed_end(&feed, 0);
	REQUIRE(r->off.n_threads == 1);
	CHECK_EQ(r->off.threads[0].blocked_ns, 6 * MS);
	CHECK_EQ(r->off.threads[0].over_ns, 0);
	feed_close(&feed);
}

/* One that was under way at the first reading counts from there on only. */
TEST(a_time_off_the_cpu_at_the_first_reading_counts_from_there_on)
{
	const struct weft__result *r;
	struct feed feed;

	feed_start(&feed);
	FEED(&feed, 2 * MS, COLLECTOR, OFFCPU, 101, 1 * MS, 1 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	FEED(&feed, 10 * MS, COLLECTOR, THREAD_CPU, 101, 5 * MS);
	FEED(&feed, 25 * MS, COLLECTOR, OFFCPU, 101, 5 * MS, 20 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0); /* 15 of them */
	FEED(&feed, 30 * MS, COLLECTOR, THREAD_CPU, 101, 10 * MS);
	r = feed_end(&feed, 0);
	REQUIRE(r->off.n_threads == 1);
	CHECK_EQ(r->off.threads[0].held_ns, 15 * MS);
	CHECK_EQ(r->off.threads[0].rest_ns, 15 * MS);
	CHECK_EQ(r->off.threads[0].blocked_ns, 21 * MS);
	feed_close(&feed);
}
