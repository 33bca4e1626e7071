/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"

TEST(tasks_are_spawned_end_and_stay_alive)
{
	struct feed feed;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SPAWN, 1, 1);
	FEED(&feed, 1000, 1, SPAWN, 2, 1);
	FEED(&feed, 1000, 1, SPAWN, 3, 2);
	FEED(&feed, 1010, 1, TASK_END, 1);
	FEED(&feed, 1020, 1, TASK_END, 99);      /* spawned before, never seen */
	FEED(&feed, 1030, 1, POLL_BEGIN, 50, 0); /* spawned before, seen now */
	FEED(&feed, 1031, 1, POLL_END);
	FEED(&feed, 1040, 1, WAKE, 60, 0); /* only woken: perhaps long gone */
	feed_end(&feed, 0);
	CHECK_EQ(feed_location(&feed, 1)->spawned, 2);
	CHECK_EQ(feed_location(&feed, 1)->ended, 1);
	CHECK_EQ(feed_location(&feed, 1)->alive, 1);
	CHECK_EQ(feed_location(&feed, 2)->alive, 1);
	CHECK_EQ(feed_location(&feed, WEFT__LOCATION_UNSEEN)->polls.n, 1);
	CHECK_EQ(feed_location(&feed, WEFT__LOCATION_UNSEEN)->spawned, 0);
	CHECK_EQ(feed_location(&feed, WEFT__LOCATION_UNSEEN)->ended, 1);
	CHECK_EQ(feed_location(&feed, WEFT__LOCATION_UNSEEN)->alive, 1);
	feed_close(&feed);
}

TEST(tasks_that_wait_at_the_end_are_listed_woken_ones_first)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SPAWN, 1, 1); /* ends */
	FEED(&feed, 1000, 1, SPAWN, 2, 1); /* never polled */
	FEED(&feed, 1000, 1, SPAWN, 3, 2); /* waits, in stack 9 */
	FEED(&feed, 1000, 1, SPAWN, 4, 2); /* woken by 3, and not polled */
	FEED(&feed, 1000, 1, SPAWN, 5, 2); /* in its poll */
	FEED(&feed, 2000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 2010, 1, TASK_END, 1);
	FEED(&feed, 2020, 1, POLL_END);
	FEED(&feed, 3000, 1, POLL_BEGIN, 3, 0);
	FEED(&feed, 3005, 1, TASK_WAIT, 3, 8);
	FEED(&feed, 3010, 1, TASK_WAIT, 3, 9);
	FEED(&feed, 3020, 1, WAKE, 4, 0);
	FEED(&feed, 3030, 1, POLL_END);
	FEED(&feed, 4000, 2, POLL_BEGIN, 5, 0);
	r = feed_end(&feed, 5000);
	CHECK(r->task.waiting_known);
	CHECK_EQ(r->task.n_waiting_all, 3);
	REQUIRE(r->task.n_waiting == 3);
	CHECK_EQ(r->task.waiting[0].task, 4);
	CHECK(r->task.waiting[0].woken && r->task.waiting[0].wake.in_poll);
	CHECK_EQ(r->task.waiting[0].wake.task, 3);
	CHECK_EQ(r->task.waiting[0].since_wake_ns, 1980);
	CHECK_EQ(r->task.waiting[1].task, 2);
	CHECK_EQ(r->task.waiting[1].silent_ns, 4000);
	CHECK(!r->task.waiting[1].polled && !r->task.waiting[1].woken && !r->task.waiting[1].wake.known);
	CHECK_EQ(r->task.waiting[2].task, 3);
	CHECK_EQ(r->task.waiting[2].silent_ns, 2000);
	CHECK_EQ(r->task.waiting[2].stack, 9);
	CHECK(r->task.waiting[2].polled);
	feed_close(&feed);
}

TEST(of_tasks_that_wait_the_longest_silent_are_kept)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_init(&feed);
	feed.opts.top = 3;
	feed_begin(&feed);
	for (i = 0; i < 10; i++)
		FEED(&feed, 1000 + i, 1, SPAWN, 100 - i, 1);
	r = feed_end(&feed, 5000);
	CHECK_EQ(r->task.n_waiting_all, 10);
	REQUIRE(r->task.n_waiting == 3);
	for (i = 0; i < 3; i++)
		CHECK_EQ(r->task.waiting[i].task, 100 - i);
	feed_close(&feed);
}

TEST(where_polls_are_only_counted_no_task_is_said_to_wait)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SPAWN, 1, 1);
	FEED(&feed, 2000, 1, POLL_COUNT, 1, 0, 1000, 5);
	r = feed_end(&feed, 5000);
	CHECK(!r->task.waiting_known);
	CHECK_EQ(r->task.n_waiting, 0);
	feed_close(&feed);
}

TEST(an_id_may_be_used_again_after_its_end)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SPAWN, 1, 1);
	FEED(&feed, 1010, 1, WAKE, 1, 0);
	FEED(&feed, 1020, 1, TASK_END, 1); /* woken, never polled */
	FEED(&feed, 1030, 1, SPAWN, 1, 2);
	FEED(&feed, 5000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 5010, 1, TASK_END, 1); /* inside its last poll */
	FEED(&feed, 5020, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->delays.n, 0); /* the wake was the earlier task's */
	CHECK_EQ(feed_location(&feed, 1)->polls.n, 0);
	CHECK_EQ(feed_location(&feed, 2)->polls.n, 1);
	CHECK_EQ(feed_location(&feed, 2)->ended, 1);
	CHECK_EQ(feed_location(&feed, 2)->alive, 0);
	CHECK_EQ(r->task.ids_reused, 0);
	feed_close(&feed);
}

TEST(an_id_that_is_spawned_again_without_an_end_is_a_new_task)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SPAWN, 1, 1);
	FEED(&feed, 1010, 1, WAKE, 1, 0);
	FEED(&feed, 1030, 1, SPAWN, 1, 2);
	FEED(&feed, 5000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 5020, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->task.ids_reused, 1);
	CHECK_EQ(r->delays.n, 0);
	CHECK_EQ(feed_location(&feed, 1)->alive, 0);
	CHECK_EQ(feed_location(&feed, 2)->alive, 1);
	CHECK_EQ(feed_location(&feed, 2)->polls.n, 1);
	feed_close(&feed);
}

TEST(delay_is_from_the_first_wake_since_the_last_poll_began)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 3, SPAWN, 1, 1);
	FEED(&feed, 1000, 3, SPAWN, 2, 2);
	FEED(&feed, 1010, 1, POLL_BEGIN, 1, 0); /* no wake: no delay */
	FEED(&feed, 1020, 1, WAKE, 2, 1);
	FEED(&feed, 1030, 1, WAKE, 2, 1); /* again */
	FEED(&feed, 1040, 1, POLL_END);
	FEED(&feed, 1090, 2, POLL_BEGIN, 2, 4);
	FEED(&feed, 1095, 2, WAKE, 2, 1); /* itself, while it runs */
	FEED(&feed, 1100, 2, POLL_END);
	FEED(&feed, 1105, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 1106, 1, POLL_END);
	FEED(&feed, 5110, 3, WAKE, 1, 65535); /* by a thread in no poll */
	FEED(&feed, 5113, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 5114, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->delays.n, 3);
	CHECK_EQ(r->delays.sum, 70 + 10 + 3);
	CHECK_EQ(r->task.wakes_again, 1);
	CHECK_EQ(feed_lane(&feed, 1, 0)->delays.max, 70);
	CHECK_EQ(feed_lane(&feed, 0, 0)->delays.n, 2);
	CHECK_EQ(feed_location(&feed, 2)->delays.n, 2);
	CHECK_EQ(feed_location(&feed, 1)->delays.max, 3);
	CHECK_EQ(r->poll.n_delayed, 3);
	CHECK_EQ(r->poll.delayed[0].rank_ns, 70);
	CHECK_EQ(r->poll.delayed[0].wake.in_poll, 1);
	CHECK_EQ(r->poll.delayed[0].wake.task, 1);
	CHECK_EQ(r->poll.delayed[0].wake.location, 1);
	CHECK_EQ(r->poll.delayed[0].wake.worker, 0);
	CHECK_EQ(r->poll.delayed[1].wake.task, 2);
	CHECK_EQ(r->poll.delayed[1].wake.thread_id, 2);
	CHECK_EQ(r->poll.delayed[2].wake.in_poll, 0);
	CHECK_EQ(r->poll.delayed[2].wake.thread_id, 3);
	CHECK_EQ(r->poll.delayed[2].wake.worker, WEFT_WORKER_NONE);
	feed_close(&feed);
}

/* Worker 1 read the clock at 1000, took a task that worker 0 spawned and woke at 1016, and began its poll "at 1000". */
TEST(a_spawn_and_a_wake_just_behind_the_poll_are_its_cause)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 990, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 1000, 2, POLL_BEGIN, 5, 0);
	FEED(&feed, 1008, 1, SPAWN, 5, 2);
	FEED(&feed, 1016, 1, WAKE, 5, 1);
	FEED(&feed, 1100, 2, POLL_END);
	FEED(&feed, 1100, 1, POLL_END);
	FEED(&feed, 900000, 1, WAKE, 5, 1);
	FEED(&feed, 900300, 2, POLL_BEGIN, 5, 0);
	FEED(&feed, 900400, 2, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->task.late_causes, 2);
	CHECK_EQ(r->task.ids_reused, 0);
	CHECK_EQ(r->task.wakes_again, 0);
	CHECK_EQ(r->delays.n, 2);
	CHECK_EQ(r->delays.min, 0);
	CHECK_EQ(r->delays.max, 300);
	CHECK_EQ(feed_location(&feed, 2)->polls.n, 2);
	CHECK_EQ(feed_location(&feed, 2)->alive, 1);
	feed_close(&feed);
}

/* A wake that comes while the poll is open is its cause when nothing else was, but not for the first poll of a task. */
TEST(a_wake_later_in_the_poll_is_its_cause_unless_spawning_was)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, SPAWN, 5, 2);
	FEED(&feed, 2000, 2, POLL_BEGIN, 5, 0); /* by the spawn */
	FEED(&feed, 7000, 1, WAKE, 5, 1);       /* for the next one */
	FEED(&feed, 9000, 2, POLL_END);
	FEED(&feed, 9500, 2, POLL_BEGIN, 5, 0);
	FEED(&feed, 9600, 2, POLL_END);
	FEED(&feed, 20000, 2, POLL_BEGIN, 5, 0);
	FEED(&feed, 25000, 1, WAKE, 5, 1); /* of this one */
	FEED(&feed, 30000, 2, POLL_END);
	FEED(&feed, 40000, 2, POLL_BEGIN, 5, 0);
	FEED(&feed, 41000, 2, WAKE, 5, 1); /* its own thread cannot be late */
	FEED(&feed, 42000, 2, POLL_END);
	FEED(&feed, 42500, 2, POLL_BEGIN, 5, 0);
	FEED(&feed, 42600, 2, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->task.late_causes, 1);
	CHECK_EQ(r->delays.n, 3);
	CHECK_EQ(r->delays.sum, 2500 + 0 + 1500);
	feed_close(&feed);
}

TEST(a_long_wait_names_the_poll_it_was_behind)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 3, SPAWN, 1, 1);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1100, 3, WAKE, 2, 0);
	FEED(&feed, 2000, 1, POLL_BEGIN, 9, 0); /* nested: part of the outer one */
	FEED(&feed, 4000, 1, POLL_END);
	FEED(&feed, 5000, 1, POLL_END);
	FEED(&feed, 5000, 1, POLL_BEGIN, 8, 0);
	FEED(&feed, 5400, 1, POLL_END);
	FEED(&feed, 5500, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 5600, 1, POLL_END);
	FEED(&feed, 6000, 3, WAKE, 2, 0);
	FEED(&feed, 6100, 1, POLL_BEGIN, 2, 0); /* behind nobody */
	FEED(&feed, 6200, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.n_delayed, 2);
	CHECK_EQ(r->poll.delayed[0].rank_ns, 4400);
	CHECK_EQ(r->poll.delayed[0].behind.held_ns, 3900);
	CHECK_EQ(r->poll.delayed[0].behind.duration_ns, 4000);
	CHECK_EQ(r->poll.delayed[0].behind.task, 1);
	CHECK_EQ(r->poll.delayed[0].behind.location, 1);
	CHECK_EQ(r->poll.delayed[1].behind.held_ns, 0);
	feed_close(&feed);
}

TEST(tasks_are_limited_and_the_rest_is_counted)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_init(&feed);
	feed.opts.max_tasks = 10;
	feed_begin(&feed);
	for (i = 0; i < 25; i++)
		FEED(&feed, 1000 + i, 1, SPAWN, i, 1);
	FEED(&feed, 2000, 1, POLL_BEGIN, 20, 0);
	FEED(&feed, 2010, 1, POLL_END);
	FEED(&feed, 2020, 1, TASK_END, 3); /* makes room for one */
	FEED(&feed, 2030, 1, SPAWN, 100, 2);
	FEED(&feed, 2040, 1, POLL_BEGIN, 100, 0);
	FEED(&feed, 2050, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->task.untracked, 16);
	CHECK_EQ(feed_location(&feed, 1)->spawned, 25);
	CHECK_EQ(feed_location(&feed, WEFT__LOCATION_UNTRACKED)->polls.n, 1);
	CHECK_EQ(feed_location(&feed, 2)->polls.n, 1);
	feed_close(&feed);
}

TEST(threads_are_limited_and_those_that_end_make_room)
{
	struct feed feed;
	const struct weft__result *r;
	uint32_t i;

	feed_init(&feed);
	feed.opts.max_threads = 5;
	feed.opts.max_rows = 1000;
	feed_begin(&feed);
	for (i = 0; i < 100; i++) { /* short-lived ones, one after the other */
		FEED(&feed, 1000 + 10 * i, 100 + i, POLL_BEGIN, 1, 0);
		FEED(&feed, 1005 + 10 * i, 100 + i, POLL_END);
		FEED(&feed, 1006 + 10 * i, 100 + i, THREAD_END);
	}
	for (i = 0; i < 7; i++)
		FEED(&feed, 5000, 300 + i, SPAWN, i, 1);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 100);
	CHECK_EQ(r->untracked.events, 2);
	feed_close(&feed);
}
