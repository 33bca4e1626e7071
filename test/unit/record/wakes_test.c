/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes that are only counted: a poll that is reported still says who woke its task, and when; where that is forgotten,
 * it says nothing. */
#include "polls.h"

#include "record/collect/coarse.h"
#include "record/event/wakes.h"
#include "record/setup.h"

#define WOKEN_MOST 64

struct woken_seen {
	struct {
		uint64_t task; /* of the poll that is reported next */
		uint64_t tid, by, ago_ns, alone_ns;
	} woken[WOKEN_MOST];
	uint32_t n, polls, open;
	uint64_t counted;
	struct tally tally;
};

static void woken_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct woken_seen *seen = data;

	(void)seg;
	if (ev->kind == WEFT_KIND_WOKEN && seen->n < WOKEN_MOST) {
		seen->woken[seen->n].tid = ev->fields[0];
		seen->woken[seen->n].by = ev->fields[1];
		seen->woken[seen->n].ago_ns = ev->fields[2];
		seen->woken[seen->n].alone_ns = ev->fields[3];
		seen->open = 1;
	}
	if (ev->kind == WEFT_KIND_COUNTED && ev->fields[0] == WEFT_KIND_WAKE)
		seen->counted += ev->fields[1];
	if (ev->kind != WEFT_KIND_POLL)
		return;
	seen->polls++;
	if (seen->open)
		seen->woken[seen->n++].task = ev->fields[0];
	seen->open = 0;
}

static struct woken_seen woken_close(struct weft_recorder *rec)
{
	struct woken_seen seen = {0};

	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&seen.tally, 1);
	seen.tally.each = woken_event;
	seen.tally.data = &seen;
	tally_dir(&seen.tally, session_dir);
	CHECK_EQ(seen.tally.damaged, 0);
	CHECK_EQ(seen.tally.undefined, 0);
	tally_fini(&seen.tally);
	session_remove_dir();
	return seen;
}

static struct weft_recorder *start_counted(void)
{
	/* By itself it would change nothing: samples and switches are off, and events few. */
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_AUTO, .sample_hz = WEFT_OFF, .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = session_start(&opts);

	if (rec)
		weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	session_sleep_ns(110 * MS); /* of which the tests report */
	return rec;
}

/* Ticks so long before the present one. */
static uint64_t before(uint64_t now, uint64_t ms)
{
	return now - polls_ticks(ms * MS);
}

static int is_about(uint64_t ns, uint64_t ms)
{
	return ns > ms * MS - MS / 100 && ns < ms * MS + MS / 100;
}

TEST(a_poll_that_is_recorded_has_the_last_wake_before_it)
{
	struct weft_recorder *rec = start_counted();
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_wake_at(1, 0, before(now, 90));
	weft_wake_at(7, 0, before(now, 80));
	weft_wake_at(7, 0, before(now, 60));
	weft_poll_begin_at(7, 0, before(now, 50));
	weft_wake_at(7, 0, before(now, 40)); /* while it runs */
	weft_poll_end_at(before(now, 30));
	seen = woken_close(rec);
	CHECK_EQ(seen.counted, 4);
	CHECK_EQ(seen.polls, 1);
	REQUIRE(seen.n == 1);
	CHECK_EQ(seen.woken[0].task, 7);
	CHECK_EQ(seen.woken[0].tid, gettid());
	CHECK_EQ(seen.woken[0].by, 0);
	CHECK(is_about(seen.woken[0].ago_ns, 10));
	CHECK(is_about(seen.woken[0].alone_ns, 30));
}

TEST(a_task_that_was_woken_once_was_woken_alone)
{
	struct weft_recorder *rec = start_counted();
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_poll_begin_at(3, 0, before(now, 100));
	weft_wake_at(7, 0, before(now, 99)); /* in a poll of task 3 */
	weft_poll_end_at(before(now, 98));
	weft_poll_begin_at(7, 0, before(now, 50));
	weft_poll_end_at(before(now, 30));
	weft_wake_at(8, 0, before(now, 28));
	weft_wake_at(8, 0, before(now, 25));
	weft_poll_begin_at(8, 0, before(now, 20));
	weft_poll_end_at(before(now, 10));
	weft_poll_begin_at(9, 0, before(now, 9)); /* nobody woke it */
	weft_poll_end_at(before(now, 7));
	seen = woken_close(rec);
	CHECK_EQ(seen.polls, 4);
	REQUIRE(seen.n == 2);
	CHECK_EQ(seen.woken[0].task, 7);
	CHECK_EQ(seen.woken[0].by, 3);
	CHECK(is_about(seen.woken[0].ago_ns, 49));
	CHECK(seen.woken[0].alone_ns > 100 * MS);
	CHECK_EQ(seen.woken[1].task, 8);
	CHECK(is_about(seen.woken[1].ago_ns, 5));
	CHECK(is_about(seen.woken[1].alone_ns, 8));
}

struct waker {
	uint64_t task, tick;
	uint32_t tid, n;
};

static void *wake_it(void *data)
{
	struct waker *waker = data;

	waker->tid = (uint32_t)gettid();
	for (uint32_t i = 0; i < waker->n; i++)
		weft_wake_at(waker->task + i, 0, waker->tick);
	return NULL;
}

static void wake_elsewhere(struct waker *waker)
{
	pthread_t thread;

	REQUIRE(pthread_create(&thread, NULL, wake_it, waker) == 0);
	pthread_join(thread, NULL);
}

TEST(the_waker_is_another_thread_that_has_ended)
{
	struct weft_recorder *rec = start_counted();
	struct woken_seen seen;
	struct waker waker;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	waker = (struct waker){.task = 7, .tick = before(now, 60), .n = 1};
	weft_wake_at(7, 0, before(now, 80));
	wake_elsewhere(&waker);
	weft_poll_begin_at(7, 0, before(now, 50));
	weft_poll_end_at(before(now, 40));
	seen = woken_close(rec);
	REQUIRE(seen.n == 1);
	CHECK_EQ(seen.woken[0].tid, waker.tid);
	CHECK(is_about(seen.woken[0].ago_ns, 10));
	CHECK(is_about(seen.woken[0].alone_ns, 30));
}

/* The next thread has the memory of the one that ended: what that one said is forgotten, and so is whether it woke
 * the task. */
TEST(a_wake_that_may_be_forgotten_is_not_recorded)
{
	struct weft_recorder *rec = start_counted();
	struct waker first, many;
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_wake_at(7, 0, before(now, 80));
	first = (struct waker){.task = 7, .tick = before(now, 70), .n = 1};
	many = (struct waker){.task = 1000, .tick = before(now, 60), .n = WAKES_A_MS};
	wake_elsewhere(&first);
	wake_elsewhere(&many);
	weft_poll_begin_at(7, 0, before(now, 50));
	weft_poll_end_at(before(now, 40));
	seen = woken_close(rec);
	CHECK_EQ(seen.polls, 1);
	CHECK_EQ(seen.n, 0);
	CHECK_EQ(seen.counted, 2 + many.n);
}

/* A thread's memory goes round. */
TEST(of_wakes_that_were_overwritten_nothing_is_recorded)
{
	struct weft_recorder *rec = start_counted();
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_wake_at(7, 0, before(now, 100));
	for (uint64_t i = 0; i < WAKES_KEPT; i++) /* not so often that it stops remembering */
		weft_wake_at(i == WAKES_KEPT - 10 ? 8 : 1000 + i, 0, before(now, 95) + i * polls_ticks(MS / 64));
	now = weft_now_ticks();
	weft_poll_begin_at(7, 0, before(now, 20));
	weft_poll_end_at(before(now, 18));
	weft_poll_begin_at(8, 0, before(now, 10));
	weft_poll_end_at(before(now, 8));
	seen = woken_close(rec);
	CHECK_EQ(seen.polls, 2);
	REQUIRE(seen.n == 1);
	CHECK_EQ(seen.woken[0].task, 8);
}

/* A time of events in between: what was counted before it is not taken for the last wake. */
TEST(what_was_counted_before_wakes_were_events_is_forgotten)
{
	struct weft_recorder *rec = start_counted();
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	weft_wake(7, WEFT_WORKER_NONE);
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_wake(7, WEFT_WORKER_NONE);
	weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	session_sleep_ns(20 * MS);
	now = weft_now_ticks();
	weft_wake_at(8, 0, before(now, 15));
	weft_poll_begin_at(7, 0, before(now, 12));
	weft_poll_end_at(before(now, 8));
	weft_poll_begin_at(8, 0, before(now, 6));
	weft_poll_end_at(before(now, 3));
	seen = woken_close(rec);
	CHECK_EQ(seen.polls, 2);
	REQUIRE(seen.n == 1);
	CHECK_EQ(seen.woken[0].task, 8);
}

/* It would cost more than it says. */
TEST(a_thread_that_wakes_all_the_time_remembers_nothing_for_a_while)
{
	struct weft_recorder *rec = start_counted();
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_wake_at(7, 0, before(now, 100));
	for (uint64_t i = 0; i < 2 * WAKES_A_MS; i++)
		weft_wake_at(1000 + i, 0,
			     before(now, 90)); /* those beyond are forgotten, and may have been of task 7 */
	weft_poll_begin_at(7, 0, before(now, 80));
	weft_poll_end_at(before(now, 70));
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	session_sleep_ns((WAKES_PAUSE_MS + 20) * MS);
	now = weft_now_ticks();
	weft_wake_at(8, 0, before(now, 9));
	weft_poll_begin_at(8, 0, before(now, 6));
	weft_poll_end_at(before(now, 3));
	seen = woken_close(rec);
	CHECK_EQ(seen.polls, 2);
	REQUIRE(seen.n == 1);
	CHECK_EQ(seen.woken[0].task, 8);
	CHECK_EQ(seen.counted, 2 + 2 * WAKES_A_MS);
}

#define CROWD (WAKES_LOGS + 2)
static pthread_barrier_t crowd;

static void *wake_in_crowd(void *data)
{
	wake_it(data);
	pthread_barrier_wait(&crowd); /* all have a table at once, or none is left */
	return NULL;
}

TEST(beyond_the_last_table_nothing_is_recorded_that_may_be_wrong)
{
	struct weft_recorder *rec = start_counted();
	struct waker wakers[CROWD];
	pthread_t threads[CROWD];
	struct woken_seen seen;
	uint64_t now;

	REQUIRE(rec);
	REQUIRE(pthread_barrier_init(&crowd, NULL, CROWD) == 0);
	now = weft_now_ticks();
	for (uint32_t i = 0; i < CROWD; i++) {
		wakers[i] = (struct waker){.task = 100 + i, .tick = before(now, 60), .n = 1};
		REQUIRE(pthread_create(&threads[i], NULL, wake_in_crowd, &wakers[i]) == 0);
	}
	for (uint32_t i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	weft_wake_at(7, 0, before(now, 70));
	weft_wake_at(8, 0, before(now, 55));
	weft_poll_begin_at(7, 0, before(now, 50)); /* one of those without a table may have woken it since */
	weft_poll_end_at(before(now, 40));
	weft_poll_begin_at(8, 0, before(now, 30));
	weft_poll_end_at(before(now, 20));
	seen = woken_close(rec);
	pthread_barrier_destroy(&crowd);
	CHECK_EQ(seen.counted, CROWD + 2);
	REQUIRE(seen.n == 1);
	CHECK_EQ(seen.woken[0].task, 8);
}
