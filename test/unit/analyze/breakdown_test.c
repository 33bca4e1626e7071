/* SPDX-License-Identifier: Apache-2.0 */
/* The time of polls, cut into parts: each test has a poll whose parts are worked out by hand. */
#include "feed.h"
#include "stingy.h"
#include "weft/hooks.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define OFF(tid, from, ms, reason) tid, (from)*MS, (ms)*MS, WEFT_OFFCPU_##reason, 1, 0, 0
#define COLLECTOR 9

enum { NAME_READ = 1, NAME_LOCK = 2 };

static void start(struct feed *feed)
{
	static const struct weft_string_def strings[] = {{NAME_READ, "read"}, {NAME_LOCK, "cache_lock"}};
	static const struct weft_fact hz = {"sample.hz", "100"};

	feed_init(feed);
	CHECK_EQ(weft__names_add_fact(&feed->names, &hz), 0);
	CHECK_EQ(weft__names_add_string(&feed->names, &strings[0]), 0);
	CHECK_EQ(weft__names_add_string(&feed->names, &strings[1]), 0);
}

#define CHECK_SPLIT(split, cpu, blocked, waiting, preempted, unknown)                                                  \
	do {                                                                                                           \
		const struct weft__split *s_ = &(split);                                                               \
		CHECK_EQ(s_->ns[WEFT__ON_CPU], (uint64_t)(cpu)*MS);                                                    \
		CHECK_EQ(s_->ns[WEFT__BLOCKED], (uint64_t)(blocked)*MS);                                               \
		CHECK_EQ(s_->ns[WEFT__WAITING], (uint64_t)(waiting)*MS);                                               \
		CHECK_EQ(s_->ns[WEFT__PREEMPTED], (uint64_t)(preempted)*MS);                                           \
		CHECK_EQ(s_->ns[WEFT__NOT_MEASURED], (uint64_t)(unknown)*MS);                                          \
	} while (0)

/* After a hand-off: 102 held the lock for the first 2 ms, then 103 for 18, in a sleep of its own. */
TEST(each_holder_of_a_lock_has_its_own_part_of_the_wait)
{
	const struct weft__holder *holder;
	const struct weft__result *r;
	struct feed feed;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 11 * MS, 2, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 29 * MS, 3, WAIT, WEFT_WAIT_CALL, NAME_READ, 7, 15 * MS, 0, 23);
	FEED(&feed, 32 * MS, 1, HELD, 103, 0xabc0, 0, 12 * MS, 12 * MS);
	FEED(&feed, 32 * MS, 1, HELD, 102, 0xabc0, 18 * MS, 4 * MS, 2 * MS);
	FEED(&feed, 32 * MS, 1, HELD, 103, 0xabc0, 12 * MS, 6 * MS, 6 * MS);
	FEED(&feed, 32 * MS, 1, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xabc0, 22 * MS, 103, 22);
	/* Of another lock, without its wait: it is nobody's. */
	FEED(&feed, 33 * MS, 1, HELD, 102, 0xdef0, 0, 5 * MS, 5 * MS);
	FEED(&feed, 34 * MS, 1, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xabc8, MS, 102, 22);
	FEED(&feed, 62 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1 && r->poll.longest[0].breakdown.n_causes == 2);
	holder = &r->poll.longest[0].breakdown.causes[0].holder;
	CHECK_EQ(holder->tid, 103);
	CHECK_EQ(holder->held_ns, 18 * MS);
	CHECK_EQ(holder->what, WEFT_WAIT_CALL);
	CHECK_EQ(holder->stack, 23);
	REQUIRE(holder->also);
	CHECK_EQ(holder->also->tid, 102);
	CHECK_EQ(holder->also->held_ns, 2 * MS);
	CHECK_EQ(holder->also->stack, 12);
	CHECK(!holder->also->also);
	holder = &r->poll.longest[0].breakdown.causes[1].holder;
	CHECK_EQ(holder->tid, 102);
	CHECK_EQ(holder->held_ns, 0);
	REQUIRE(r->wait.n_longest >= 1);
	CHECK_EQ(r->wait.longest[0].holder.tid, 103);
	CHECK_EQ(r->wait.objects[0].holder.held_ns, 18 * MS);
	feed_close(&feed);
}

#define PENDING_OF(tid, lock, holder, ms, stack) tid, WEFT_WAIT_LOCK, NAME_LOCK, lock, holder, (ms)*MS, stack, 0

/* 101 has a and waits for b since 10, 102 has b and waits for a since 20, 104 waits for b. The wait of 103 ends. */
TEST(threads_that_wait_for_each_other_are_a_deadlock)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 5 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1010 * MS, 5, PENDING, PENDING_OF(101, 0xb0, 102, 1000, 21));
	FEED(&feed, 1020 * MS, 6, PENDING, PENDING_OF(102, 0xa0, 101, 1000, 22));
	FEED(&feed, 1020 * MS, 7, PENDING, PENDING_OF(104, 0xb0, 102, 1000, 23));
	FEED(&feed, 1020 * MS, 8, PENDING, PENDING_OF(103, 0xc0, 101, 1010, 24));
	FEED(&feed, 1500 * MS, 3, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xc0, 1490 * MS, 101, 24);
	FEED(&feed, 2010 * MS, 5, PENDING, PENDING_OF(101, 0xb0, 102, 2000, 0));
	r = feed_end(&feed, 2100 * MS);
	CHECK_EQ(r->wait.n_deadlocks, 1);
	REQUIRE(r->wait.n_pendings == 3);
	CHECK_EQ(r->wait.pendings[0].tid, 101);
	CHECK_EQ(r->wait.pendings[0].deadlock, 1);
	CHECK_EQ(r->wait.pendings[0].stack, 21);
	CHECK_EQ(r->wait.pendings[0].age_ns, 2090 * MS);
	CHECK_EQ(r->wait.pendings[1].tid, 102);
	CHECK_EQ(r->wait.pendings[1].deadlock, 1);
	CHECK_EQ(r->wait.pendings[2].tid, 104);
	CHECK_EQ(r->wait.pendings[2].deadlock, 0);
	CHECK_EQ(r->wait.pendings[2].next, 1);
	/* The sums have what ended, and the poll that is open waits. */
	REQUIRE(r->wait.n_rows == 1);
	CHECK_EQ(r->wait.rows[0].n, 1);
	CHECK_EQ(r->wait.rows[0].ns, 1490 * MS);
	REQUIRE(r->poll.n_running == 1);
	CHECK_EQ(r->poll.running[0].breakdown.split.ns[WEFT__WAITING], 2090 * MS);
	REQUIRE(r->poll.running[0].breakdown.n_causes == 1);
	CHECK_EQ(r->poll.running[0].breakdown.causes[0].holder.tid, 102);
	feed_close(&feed);
}

TEST(a_wait_that_lasts_when_recording_stops_is_counted_once)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 5 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1010 * MS, 5, PENDING, PENDING_OF(101, 0xb0, 101, 1000, 21));
	FEED(&feed, 1500 * MS, 5, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xb0, 1490 * MS, 101, 0);
	FEED(&feed, 1500 * MS, 5, PENDING, PENDING_OF(101, 0xb0, 101, 1490, 0));
	/* One that did something since has it, even if the end of the wait was not recorded. */
	FEED(&feed, 1200 * MS, 6, PENDING, PENDING_OF(102, 0xc0, 101, 1000, 21));
	FEED(&feed, 1400 * MS, 2, POLL_BEGIN, 2, 0);
	r = feed_end(&feed, 1500 * MS);
	REQUIRE(r->wait.n_pendings == 1);
	CHECK_EQ(r->wait.pendings[0].tid, 101);
	CHECK_EQ(r->wait.n_deadlocks, 1); /* of one: it has the lock itself */
	REQUIRE(r->wait.n_rows == 1);
	CHECK_EQ(r->wait.rows[0].n, 1);
	REQUIRE(r->poll.n_running == 2);
	CHECK_EQ(r->poll.running[0].breakdown.split.ns[WEFT__WAITING], 1490 * MS);
	REQUIRE(r->poll.running[0].breakdown.n_causes == 1);
	CHECK_EQ(r->poll.running[0].breakdown.causes[0].n, 1);
	feed_close(&feed);
}

/* 52 ms = 41 on CPU, 8 blocked in read, 2 waiting for cache_lock, 1 preempted. Each event is where the recorder puts
 * it: waits when they end, on their thread, switches some time later, on the collector's. */
TEST(the_breakdown_of_a_poll_adds_up_to_its_length)
{
	struct feed feed;
	const struct weft__result *r;
	const struct weft__breakdown *breakdown;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 0 * MS, 3, SPAWN, 2, 2);
	FEED(&feed, 5 * MS, 2, POLL_BEGIN, 2, 0); /* the holder */
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 32 * MS, 1, WAIT, WEFT_WAIT_CALL, NAME_READ, 7, 8 * MS, 0, 21); /* 24 to 32 */
	FEED(&feed, 41 * MS, 2, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 42 * MS, 1, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xabc0, 2 * MS, 102, 22); /* 40 to 42 */
	FEED(&feed, 50 * MS, 1, SAMPLE, SAMPLE_OF(11, 20));
	FEED(&feed, 62 * MS, 1, POLL_END);
	FEED(&feed, 70 * MS, 2, POLL_END);
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 24, 7, BLOCKED)); /* inside of read */
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 40, 1, BLOCKED)); /* inside of the wait */
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 45, 1, PREEMPTED));
	FEED(&feed, 100 * MS, COLLECTOR, OFFCPU, OFF(101, 62, 20, BLOCKED)); /* behind it */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[1].task, 1);
	breakdown = &r->poll.longest[1].breakdown;
	CHECK(breakdown->known);
	CHECK_EQ(breakdown->switches, WEFT__SWITCHES_ALL);
	CHECK_SPLIT(breakdown->split, 41, 8, 2, 1, 0);
	REQUIRE(breakdown->n_causes == 2);
	CHECK_EQ(breakdown->causes[0].part, WEFT__BLOCKED);
	CHECK_EQ(breakdown->causes[0].what, WEFT_WAIT_CALL);
	CHECK_EQ(breakdown->causes[0].name, NAME_READ);
	CHECK_EQ(breakdown->causes[0].object, 7);
	CHECK_EQ(breakdown->causes[0].stack, 21);
	CHECK_EQ(breakdown->causes[0].holder.tid, 0);
	CHECK_EQ(breakdown->causes[1].part, WEFT__WAITING);
	CHECK_EQ(breakdown->causes[1].ns, 2 * MS);
	CHECK_EQ(breakdown->causes[1].object, 0xabc0);
	CHECK_EQ(breakdown->causes[1].holder.tid, 102);
	CHECK_EQ(breakdown->causes[1].holder.thread_id, 2);
	CHECK_EQ(breakdown->causes[1].holder.worker, 1);
	CHECK(breakdown->causes[1].holder.in_poll);
	CHECK_EQ(breakdown->causes[1].holder.location, 2);
	CHECK_EQ(breakdown->causes[1].holder.task, 2);
	CHECK_EQ(breakdown->causes[1].holder.stack, 12);
	/* The other has no switches: what was sampled, and the rest is not known. */
	CHECK_EQ(r->poll.longest[0].breakdown.switches, WEFT__SWITCHES_NONE);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 10, 0, 0, 0, 55);
	CHECK_SPLIT(feed_location(&feed, 1)->split, 41, 8, 2, 1, 0);
	CHECK_SPLIT(feed_lane(&feed, 1, 2)->split, 10, 0, 0, 0, 55);
	CHECK_SPLIT(r->split, 51, 8, 2, 1, 55);
	CHECK_EQ(r->split.n, 2);
	feed_close(&feed);
}

TEST(waits_inside_of_waits_and_across_borders_of_a_poll_are_counted_once)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	/* 5 to 15, then 20 to 40 with 25 to 30 inside of it, and 36 to 45 that overlaps; 48 to 60 ends behind the
	 * poll */
	FEED(&feed, 15 * MS, 1, WAIT, WEFT_WAIT_GC, 0, 0, 10 * MS, 0, 0);
	FEED(&feed, 30 * MS, 1, WAIT, WEFT_WAIT_CALL, NAME_READ, 7, 5 * MS, 0, 0);
	FEED(&feed, 40 * MS, 1, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 1, 20 * MS, 0, 0);
	FEED(&feed, 45 * MS, 1, WAIT, WEFT_WAIT_RUNTIME, 0, 2, 9 * MS, 0, 0);
	FEED(&feed, 50 * MS, 1, POLL_END);
	FEED(&feed, 60 * MS, 1, WAIT, WEFT_WAIT_GC, 0, 0, 12 * MS, 0, 0);
	FEED(&feed, 61 * MS, COLLECTOR, OFFCPU, OFF(101, 5, 3, BLOCKED));
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	/* GC 10 to 15 and 48 to 50; lock 20 to 25, 30 to 36; runtime 36 to 45; read 25 to 30; the rest of 40 is 8 */
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 8, 5, 27, 0, 0);
	REQUIRE(r->poll.longest[0].breakdown.n_causes == 4);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[0].what, WEFT_WAIT_LOCK);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[0].ns, 11 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[1].ns, 9 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[2].what, WEFT_WAIT_GC);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[2].ns, 7 * MS);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[2].n, 2);
	CHECK_EQ(r->wait.n_rows, 4);
	feed_close(&feed);
}

TEST(a_nested_poll_has_its_own_breakdown_and_is_part_of_the_other)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 29 * MS, COLLECTOR, OFFCPU, OFF(101, 15, 10, PREEMPTED));
	FEED(&feed, 30 * MS, 1, POLL_END);
	FEED(&feed, 50 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 30, 0, 0, 10, 0);
	CHECK_SPLIT(r->poll.longest[1].breakdown.split, 5, 0, 0, 5, 0);
	feed_close(&feed);
}

/* Without switches, wall samples of waiting threads say what they can. The thread waits from 60 ms on; four wall
 * samples in intervals of 100 ms, reported at 460. Sure is what lies between 60 + 125 and 460 - 250. */
TEST(wall_samples_say_what_was_blocked_where_there_are_no_switches)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 50 * MS, 1, SAMPLE, SAMPLE_OF(11, 30));
	FEED(&feed, 450 * MS, 1, POLL_END);
	FEED(&feed, 460 * MS, COLLECTOR, WALL, 101, 400 * MS, 4, 1 + 0, 23);
	FEED(&feed, 500 * MS, COLLECTOR, WALL, 101, 10 * MS, 1, 1 + 7, 24);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 30, 25, 0, 0, 395);
	REQUIRE(r->poll.longest[0].breakdown.n_causes == 1);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[0].call, 1);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[0].stack, 23);
	REQUIRE(r->off.n_walls == 2);
	CHECK_EQ(r->off.walls[0].ns, 400 * MS);
	CHECK_EQ(r->off.walls[0].n, 4);
	feed_close(&feed);
}

/* What a wall sample reports is over when it is reported: the poll that runs by then did not wait. */
TEST(wall_samples_recorded_in_a_later_poll_count_for_the_poll_that_they_are_of)
{
	static const struct weft_fact hz = {"wall.hz", "50"};
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	CHECK_EQ(weft__names_add_fact(&feed.names, &hz), 0);
	feed_begin(&feed);
	FEED(&feed, 100 * MS, 1, PARK, 0);
	FEED(&feed, 1000 * MS, 1, UNPARK, 0);
	FEED(&feed, 1000 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1020 * MS, 1, SAMPLE, SAMPLE_OF(11, 20));
	FEED(&feed, 1040 * MS, COLLECTOR, WALL, 101, 890 * MS, 45, 1 + 232, 23);
	FEED(&feed, 1040 * MS, 1, SAMPLE, SAMPLE_OF(11, 20));
	FEED(&feed, 1050 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 40, 0, 0, 0, 10);
	CHECK_EQ(r->poll.longest[0].breakdown.n_causes, 0);
	feed_close(&feed);
}

/* A wait that another thread ended is reported by the collector, in a thread of its own with the thread's tid. */
TEST(a_wait_recorded_by_the_collector_counts_for_its_thread)
{
	static const struct weft_thread other = {8, 101, WEFT_WORKER_NONE, "w0", 0};
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	CHECK_EQ(weft__names_add_thread(&feed.names, &other), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, 8, THREAD_BEGIN, 101);
	FEED(&feed, 20 * MS, 8, WAIT, WEFT_WAIT_RUNTIME, 0, 1, 5 * MS, 0, 0);
	FEED(&feed, 30 * MS, 8, THREAD_END);
	FEED(&feed, 50 * MS, 1, POLL_END);
	FEED(&feed, 51 * MS, COLLECTOR, OFFCPU, OFF(101, 15, 6, BLOCKED));
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 34, 1, 5, 0, 0);
	REQUIRE(r->wait.n_longest == 1);
	CHECK_EQ(r->wait.longest[0].worker, 0);
	CHECK(r->wait.longest[0].in_poll);
	CHECK_EQ(r->wait.longest[0].task, 1);
	feed_close(&feed);
}

/* With switches, a wall sample names the interval that it fell into, and no other. */
TEST(wall_samples_name_the_switches_that_they_fell_into)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 60 * MS, 1, POLL_END);
	FEED(&feed, 61 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 30, BLOCKED));
	FEED(&feed, 61 * MS, COLLECTOR, WALL, 101, 28 * MS, 2, 1 + 35, 23);
	FEED(&feed, 100 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 140 * MS, 1, POLL_END);
	FEED(&feed, 141 * MS, COLLECTOR, OFFCPU, OFF(101, 70, 30, BLOCKED));
	FEED(&feed, 141 * MS, COLLECTOR, OFFCPU, OFF(101, 110, 2, BLOCKED));
	FEED(&feed, 141 * MS, COLLECTOR, WALL, 101, 30 * MS, 2, 1 + 232, 24); /* before it */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 20, 30, 0, 0, 0);
	REQUIRE(r->poll.longest[0].breakdown.n_causes == 1);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[0].call, 1 + 35);
	CHECK_EQ(r->poll.longest[0].breakdown.causes[0].stack, 23);
	CHECK_SPLIT(r->poll.longest[1].breakdown.split, 38, 2, 0, 0, 0);
	REQUIRE(r->poll.longest[1].breakdown.n_causes == 1);
	CHECK_EQ(r->poll.longest[1].breakdown.causes[0].call, 0);
	feed_close(&feed);
}

/* CPU time that was used while waiting, by spinning, is the wait's. */
TEST(samples_in_a_wait_are_not_counted_twice)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 25 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 35 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 40 * MS, 1, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 1, 25 * MS, 0, 0);
	FEED(&feed, 50 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 10, 0, 25, 0, 15);
	feed_close(&feed);
}

/* Of 12 ms off the CPU, 2 were in short waits, which are only in a sum: the short interval was one. */
TEST(causes_are_never_more_than_their_part_where_short_waits_are_only_in_a_sum)
{
	struct feed feed;
	const struct weft__breakdown *b;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, COLLECTOR, OFFCPU, 101, 10 * MS, 10 * MS, WEFT_OFFCPU_BLOCKED, 1, 11, 0);
	FEED(&feed, 32 * MS, COLLECTOR, OFFCPU, 101, 30 * MS, 2 * MS, WEFT_OFFCPU_BLOCKED, 1, 12, 0);
	FEED(&feed, 50 * MS, 1, POLL_CPU, 38 * MS, 0, 0, 2 * MS);
	FEED(&feed, 50 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	b = &r->poll.longest[0].breakdown;
	CHECK_SPLIT(b->split, 38, 10, 2, 0, 0);
	REQUIRE(b->n_causes == 1);
	CHECK_EQ(b->causes[0].ns, 10 * MS);
	CHECK_EQ(b->causes[0].stack, 11);
	feed_close(&feed);
}

TEST(switches_that_are_missing_or_sampled_leave_time_that_is_not_measured)
{
	static const struct weft_loss loss = {WEFT_LOSS_SWITCH, 0, 5, 120 * MS, 130 * MS};
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &loss), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 50 * MS, 1, POLL_END);
	FEED(&feed, 60 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 10, BLOCKED));
	FEED(&feed, 100 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 135 * MS, 1, POLL_END);
	FEED(&feed, 140 * MS, COLLECTOR, OFFCPU, OFF(101, 101, 10, BLOCKED));
	FEED(&feed, 200 * MS, 2, POLL_BEGIN, 3, 0);
	FEED(&feed, 220 * MS, 2, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 230 * MS, 2, POLL_END);
	FEED(&feed, 240 * MS, COLLECTOR, OFFCPU, 102, 201 * MS, 5 * MS, WEFT_OFFCPU_BLOCKED, 4, 0, 0);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 3);
	CHECK_SPLIT(r->poll.longest[0].breakdown.split, 30, 10, 0, 0, 0);
	CHECK_EQ(r->poll.longest[1].breakdown.switches, WEFT__SWITCHES_SOME);
	CHECK_SPLIT(r->poll.longest[1].breakdown.split, 0, 10, 0, 0, 25);
	CHECK_SPLIT(r->poll.longest[2].breakdown.split, 10, 5, 0, 0, 15);
	CHECK_EQ(r->poll.cut, 0);
	REQUIRE(r->off.n_threads == 2);
	CHECK_EQ(r->off.threads[0].tid, 101);
	CHECK_EQ(r->off.threads[0].blocked_ns, 20 * MS);
	CHECK_EQ(r->off.threads[1].blocked_ns, 20 * MS); /* one stands for four */
	CHECK_EQ(r->off.threads[1].n_blocked, 4);
	feed_close(&feed);
}

/* That a thread is off the CPU is reported when it is back: what it does at the end of a recording is not known. */
TEST(what_a_running_poll_did_since_its_thread_was_last_seen_is_not_measured)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 50 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 60 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 10, BLOCKED));
	FEED(&feed, 70 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, NAME_LOCK, 1, 10,
	     10);                                                   /* which the collector may tell for it */
	FEED(&feed, 70 * MS, COLLECTOR, STUCK, 101, 1, 60 * MS, 0); /* it ran then, or could not be looked at */
	r = feed_end(&feed, 110 * MS);
	REQUIRE(r->poll.n_running == 1);
	/* Up to the last switch it ran where there is none; from then on for as long as the sample says. */
	CHECK_SPLIT(r->poll.running[0].breakdown.split, 20, 10, 0, 0, 70);
	CHECK_EQ(r->poll.running[0].breakdown.n_causes, 1);
	feed_close(&feed);
}

TEST(a_poll_that_still_runs_has_a_breakdown_so_far)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 60 * MS, COLLECTOR, OFFCPU, OFF(101, 20, 10, BLOCKED));
	FEED(&feed, 70 * MS, COLLECTOR, STUCK, 101, 1, 60 * MS, 31);
	FEED(&feed, 80 * MS, COLLECTOR, STUCK, 101, 1, 70 * MS, 32);
	r = feed_end(&feed, 110 * MS);
	REQUIRE(r->poll.n_running == 1);
	CHECK(r->poll.running[0].breakdown.known);
	/* It was found waiting, and has not come back since it went on at 30. */
	CHECK_SPLIT(r->poll.running[0].breakdown.split, 10, 90, 0, 0, 0);
	REQUIRE(r->poll.running[0].breakdown.n_causes == 2);
	CHECK_EQ(r->poll.running[0].breakdown.causes[0].ns, 80 * MS);
	CHECK_EQ(r->poll.running[0].breakdown.causes[0].stack, 32);
	CHECK_EQ(r->split.n, 0);
	REQUIRE(r->off.n_stucks == 1);
	CHECK_EQ(r->off.stucks[0].n_reports, 2);
	CHECK_EQ(r->off.stucks[0].rank_ns, 70 * MS);
	CHECK_EQ(r->off.stucks[0].stack, 32);
	CHECK(!r->off.stucks[0].ended);
	feed_close(&feed);
}

/* Polls wait for their switches half a second, so that each has its own, however many come in between. */
TEST(switches_that_are_recorded_late_still_count_for_their_poll)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i, at;

	start(&feed);
	feed.opts.top = 2;
	feed_begin(&feed);
	FEED(&feed, 0, COLLECTOR, OFFCPU, 101, 0, 1, WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	for (i = 0; i < 4000; i++) {
		at = (1 + i) * MS;
		FEED(&feed, at, 1, POLL_BEGIN, i, 0);
		FEED(&feed, at + 900000, 1, POLL_END);
		if (i % 200 == 199) /* all of the last 200, in one go */
			for (at = (i - 198) * MS; at <= (i + 1) * MS; at += MS)
				FEED(&feed, (2 + i) * MS, COLLECTOR, OFFCPU, 101, at + 100000, 300000,
				     WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	}
	r = feed_end(&feed, 0);
	CHECK_EQ(r->split.n, 4000);
	CHECK_EQ(r->split.ns[WEFT__BLOCKED], 4000 * UINT64_C(300000));
	CHECK_EQ(r->split.ns[WEFT__ON_CPU], 4000 * UINT64_C(600000));
	CHECK_EQ(r->split.ns[WEFT__NOT_MEASURED], 0);
	CHECK_EQ(r->untracked.intervals_late, 0);
	feed_close(&feed);
}

/* More than fits: nothing is taken for CPU time that may have been none. */
TEST(a_poll_with_more_intervals_than_are_kept_is_partly_not_measured)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i, sum = 0;

	start(&feed);
	feed.opts.max_intervals = 100;
	feed_begin(&feed);
	FEED(&feed, 0, 1, POLL_BEGIN, 1, 0);
	for (i = 0; i < 1000; i++)
		FEED(&feed, (1 + i) * MS, COLLECTOR, OFFCPU, 101, i * MS, 500000, WEFT_OFFCPU_BLOCKED, 1, 0, 0);
	FEED(&feed, 1000 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK(r->untracked.intervals_cut > 800);
	CHECK_EQ(r->poll.longest[0].breakdown.switches, WEFT__SWITCHES_SOME);
	CHECK_EQ(r->poll.longest[0].breakdown.split.ns[WEFT__ON_CPU], 0);
	for (i = 0; i < WEFT__N_PARTS; i++)
		sum += r->poll.longest[0].breakdown.split.ns[i];
	CHECK_EQ(sum, 1000 * MS);
	CHECK_EQ(r->off.threads[0].blocked_ns, 500 * MS);
	feed_close(&feed);
}

static uint64_t next(uint64_t *seed)
{
	return *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
}

static void feed_nonsense(struct feed *feed, uint64_t seed, size_t n)
{
	uint64_t fields[WEFT_FIELDS_MAX], word, at;
	size_t i, k;

	for (i = 0; i < n; i++) {
		uint16_t kind = (uint16_t)(1 + (next(&seed) >> 33) % (WEFT_KIND_BUILTIN_END - 1));

		for (k = 0; k < WEFT_FIELDS_MAX; k++) {
			word = next(&seed);
			fields[k] = (word >> 60) == 0 ? word << (word >> 58 & 31) : (word >> 40) % (k ? 90000 : 104);
			if (k == 0 && kind >= WEFT_KIND_OFFCPU && kind != WEFT_KIND_POLL)
				fields[k] = 100 + (word >> 50) % 5;
		}
		word = next(&seed);
		at = (word >> 40) % 97 == 0 ? word : i * 1000 + (word >> 20) % 5000;
		if (kind == WEFT_KIND_OFFCPU && (word >> 50) % 8)
			fields[1] = at - fields[2];
		feed_event(feed, at, (uint32_t)(1 + (word >> 50) % 4), kind, WEFT_FIELDS_MAX, fields);
	}
}

/* Any events in any order: sums hold and nothing breaks. */
TEST(intervals_that_cannot_be_leave_the_breakdown_whole)
{
	static const struct weft_fact mode = {"poll.mode", "slow"};
	const struct weft__result *r;
	struct feed feed;
	uint64_t sum, turn;
	size_t i, k;

	for (turn = 0; turn < 4; turn++) {
		start(&feed);
		if (turn == 1)
			CHECK_EQ(weft__names_add_fact(&feed.names, &mode), 0);
		feed.opts.max_intervals = turn == 2 ? 0 : 500;
		feed.opts.location = turn == 2 ? "*" : NULL;
		feed.opts.label = turn == 3 ? "a=b" : NULL;
		feed_begin(&feed);
		feed_nonsense(&feed, 42 + turn, 30000);
		r = feed_end(&feed, 0);
		CHECK(turn == 3 || r->poll.n_longest > 0);
		for (i = 0; i < r->poll.n_longest; i++) {
			for (k = 0, sum = 0; k < WEFT__N_PARTS; k++)
				sum += r->poll.longest[i].breakdown.split.ns[k];
			CHECK(!r->poll.longest[i].breakdown.known || sum == r->poll.longest[i].rank_ns);
		}
		feed_close(&feed);
	}
}

/* A bit of everything, without checks on the way. */
static int push_all(struct weft__analysis *a)
{
	static const struct {
		uint64_t time_ns;
		uint32_t thread_id;
		uint16_t kind;
		uint64_t fields[8];
	} events[] = {
		{0 * MS, 3, WEFT_KIND_SPAWN, {1, 1}},
		{5 * MS, 2, WEFT_KIND_POLL_BEGIN, {2, 0}},
		{10 * MS, 1, WEFT_KIND_POLL_BEGIN, {1, 0}},
		{11 * MS, 1, WEFT_KIND_CONTEXT, {1, 2, 3, 3, 1, 0}},
		{20 * MS, 1, WEFT_KIND_SAMPLE, {11, 0, 10 * MS, 0, 1}},
		{32 * MS, 1, WEFT_KIND_WAIT, {WEFT_WAIT_CALL, NAME_READ, 7, 8 * MS, 0, 21}},
		{42 * MS, 1, WEFT_KIND_WAIT, {WEFT_WAIT_LOCK, NAME_LOCK, 9, 2 * MS, 102, 22}},
		{62 * MS, 1, WEFT_KIND_POLL_END, {0}},
		{63 * MS, 1, WEFT_KIND_WAIT_SUM, {WEFT_WAIT_LOCK, NAME_LOCK, 10, 5 * MS, MS}},
		{70 * MS, 2, WEFT_KIND_POLL_END, {0}},
		{80 * MS, 3, WEFT_KIND_SAMPLE, {12, 0, 10 * MS, 0, 1}},
		{90 * MS, 3, WEFT_KIND_POLL, {4, 0, 20 * MS, 0, WEFT_POLL_SLOW}},
		{100 * MS, COLLECTOR, WEFT_KIND_OFFCPU, {OFF(101, 24, 7, BLOCKED)}},
		{101 * MS, COLLECTOR, WEFT_KIND_WALL, {101, MS, 1, 1, 5}},
		{102 * MS, COLLECTOR, WEFT_KIND_STUCK, {101, 1, 50 * MS, 5}},
		{103 * MS, COLLECTOR, WEFT_KIND_POLL_COUNT, {3, 1000, 2000, 50}},
		{104 * MS, COLLECTOR, WEFT_KIND_COST, {1, 1, 1, 1}},
	};
	struct weft__event ev;
	size_t i;
	int rc = 0;

	for (i = 0; i < sizeof(events) / sizeof(events[0]) && rc == 0; i++) {
		ev = feed_one(events[i].time_ns, events[i].thread_id, events[i].kind, 8, events[i].fields);
		rc = weft__analysis_push(a, &ev);
	}
	return rc;
}

TEST(no_memory_at_any_allocation_is_an_error)
{
	struct stingy stingy = {0};
	struct weft_allocator allocator = {stingy_resize, stingy_release, &stingy};
	const struct weft__result *r;
	struct feed feed;
	long granted;
	int rc = -ENOMEM;

	start(&feed);
	weft__names_settle(&feed.names);
	for (granted = 0; rc < 0 && granted < 5000; granted++) {
		weft_set_allocator(&allocator);
		stingy.left = granted;
		feed.analysis = NULL;
		rc = weft__analysis_open(&feed.analysis, &feed.opts);
		if (rc == 0)
			rc = push_all(feed.analysis);
		if (rc == 0)
			rc = weft__analysis_finish(feed.analysis, 0, &r);
		if (rc == 0)
			CHECK_EQ(r->poll.n_longest, 3);
		else
			CHECK_EQ(rc, -ENOMEM);
		weft__analysis_close(feed.analysis);
		weft_set_allocator(NULL);
		if (!CHECK_EQ(stingy.live, 0))
			break;
	}
	CHECK_EQ(rc, 0);
	CHECK(granted > 30);
	weft__names_fini(&feed.names);
}
