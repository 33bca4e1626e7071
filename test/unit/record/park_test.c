/* SPDX-License-Identifier: Apache-2.0 */
/* Parks that are only counted: how many, and exactly how long, of each thread, whatever becomes of the thread, the
 * mode and the process. */
#include "polls.h"

#include <signal.h>

#include "record/collect/coarse.h"
#include "record/setup.h"

#define S UINT64_C(1000000000)
#define PARKS_THREADS 256

struct parks_seen {
	uint64_t count, ns, wakes, queues;
	uint64_t by_thread[PARKS_THREADS]; /* ns */
	uint64_t n_parked, parked_ns;      /* events of kind parked */
	uint64_t wrong;                    /* threads that are not defined, more time than there was */
	struct tally tally;
};

static void parks_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct parks_seen *seen = data;

	if (ev->kind == WEFT_KIND_PARKED) {
		seen->n_parked++;
		seen->parked_ns += ev->fields[0];
	}
	if (ev->kind == WEFT_KIND_COUNTED)
		*(ev->fields[0] == WEFT_KIND_WAKE ? &seen->wakes : &seen->queues) += ev->fields[1];
	if (ev->kind != WEFT_KIND_PARK_COUNT)
		return;
	seen->count += ev->fields[1];
	seen->ns += ev->fields[2];
	seen->wrong += !weft_segment_thread(seg, (uint32_t)ev->fields[0]) || ev->fields[2] > ev->fields[3];
	seen->by_thread[ev->fields[0] % PARKS_THREADS] += ev->fields[2];
}

static struct parks_seen parks_read(void)
{
	struct parks_seen seen = {0};

	tally_init(&seen.tally, 1);
	seen.tally.each = parks_event;
	seen.tally.data = &seen;
	tally_dir(&seen.tally, session_dir);
	CHECK_EQ(seen.tally.damaged, 0);
	CHECK_EQ(seen.tally.undefined, 0);
	CHECK_EQ(seen.tally.backwards, 0);
	CHECK_EQ(seen.wrong, 0);
	tally_fini(&seen.tally);
	return seen;
}

static struct parks_seen parks_close(struct weft_recorder *rec)
{
	struct parks_seen seen;

	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	seen = parks_read();
	session_remove_dir();
	return seen;
}

static struct weft_recorder *parks_start_in(const char *where, uint32_t level)
{
	/* By itself it would change nothing: samples and switches are off, and events few. */
	struct weft_recorder_opts opts = {
		.dir = where, .poll_mode = WEFT_POLLS_AUTO, .sample_hz = WEFT_OFF, .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = session_start(&opts);

	if (rec && level)
		weft__collector_coarse(&rec->collector, level);
	return rec;
}

static struct weft_recorder *parks_start(uint32_t level)
{
	return parks_start_in(NULL, level);
}

/* Parks of the past; answers how many ticks they took. */
static uint64_t parks_make(uint64_t ns, uint32_t n)
{
	uint64_t took = polls_ticks(ns);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t end = weft_now_ticks();

		weft_park_at(0, end - took);
		weft_unpark_at(0, end);
	}
	return n * took;
}

static void *park_some(void *data)
{
	*(uint64_t *)data = parks_make(50000, 1000); /* the first thing that this thread says */
	return NULL;
}

TEST(parks_are_counted_with_their_time)
{
	struct weft_recorder *rec = parks_start(COARSE_PARKS);
	uint64_t ticks[4], sum = 0, expected;
	struct parks_seen seen;
	pthread_t threads[4];

	REQUIRE(rec);
	for (int round = 0; round < 3; round++) { /* rings go from one thread to the next */
		for (int i = 0; i < 4; i++)
			REQUIRE(pthread_create(&threads[i], NULL, park_some, &ticks[i]) == 0);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			sum += ticks[i];
		}
	}
	sum += parks_make(70000, 10);
	weft_queue_depth(0, 1);
	weft_wake(1, WEFT_WORKER_NONE);
	expected = weft_tick_ns(sum); /* the length of a tick becomes known better with time */
	seen = parks_close(rec);
	CHECK(seen.ns >= expected - expected / 10000 && seen.ns <= expected + expected / 10000);
	CHECK_EQ(seen.count, 12010);
	CHECK_EQ(seen.queues, 1);
	CHECK_EQ(seen.tally.by_kind[WEFT_KIND_WAKE], 1); /* these go last */
	CHECK_EQ(seen.tally.by_kind[WEFT_KIND_PARK] + seen.tally.by_kind[WEFT_KIND_UNPARK], 0);
	CHECK_EQ(seen.n_parked, 0);
}

TEST(a_park_ends_as_it_began_when_the_level_changes)
{
	struct weft_recorder *rec = parks_start(COARSE_ALL);
	struct parks_seen seen;

	REQUIRE(rec);
	weft_park(0); /* an event */
	weft__collector_coarse(&rec->collector, COARSE_PARKS);
	weft_unpark(0);
	weft_park(0); /* counted: 1 */
	weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	weft_unpark(0);
	weft_park(0); /* counted: 2 */
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_unpark(0);
	weft_park(0); /* an event */
	weft__collector_coarse(&rec->collector, COARSE_ALL);
	weft_unpark(0);
	weft_park(0); /* an event */
	weft_unpark(0);
	seen = parks_close(rec);
	CHECK_EQ(seen.tally.by_kind[WEFT_KIND_PARK], 3);
	CHECK_EQ(seen.tally.by_kind[WEFT_KIND_UNPARK], 3);
	CHECK_EQ(seen.count, 2);
}

TEST(a_long_park_is_an_event_too)
{
	struct weft_recorder *rec = parks_start(COARSE_PARKS);
	struct parks_seen seen;

	REQUIRE(rec);
	parks_make(MS - 1000, 5);
	parks_make(3 * MS, 2);
	seen = parks_close(rec);
	CHECK_EQ(seen.n_parked, 2);
	CHECK(seen.parked_ns >= 6 * MS && seen.parked_ns < 6 * MS + 1000);
	CHECK_EQ(seen.count, 7);
	CHECK(seen.ns > 11 * MS - 5000 && seen.ns < 11 * MS);
}

/* Of a park that does not end, the time until recording ends is there, whichever segment has it. */
TEST(the_time_of_a_park_that_is_open_is_counted)
{
	struct weft_recorder *rec = parks_start(COARSE_PARKS);
	uint64_t from, begun, to, done;
	struct parks_seen seen;

	REQUIRE(rec);
	from = session_now_ns();
	weft_park(0);
	begun = session_now_ns();
	session_sleep_ns(3 * MS);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0); /* counts what is over */
	session_sleep_ns(3 * MS);
	to = session_now_ns();
	weft_recorder_stop(rec, NULL);
	done = session_now_ns();
	session_sleep_ns(3 * MS); /* nothing records */
	weft_unpark(0);
	seen = parks_close(rec);
	CHECK(seen.ns + 1000 >= to - begun);
	CHECK(seen.ns <= done - from + 1000);
}

/* The park that is open when recording pauses ends unseen: no more than what was reported it is there, and all that
 * came after it is. */
TEST(parks_are_counted_on_after_a_pause)
{
	struct weft_recorder *rec = parks_start(COARSE_PARKS);
	uint64_t sum, from = session_now_ns(), until;
	struct parks_seen seen;
	struct weft_error err;

	REQUIRE(rec);
	weft_park(0);
	session_sleep_ns(2 * MS);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	until = session_now_ns();
	session_sleep_ns(2 * MS);
	weft_unpark(0);
	CHECK_EQ(weft_recorder_start(rec, &err), 0);
	sum = weft_tick_ns(parks_make(90000, 100));
	seen = parks_close(rec);
	CHECK_EQ(seen.count, 100);
	CHECK(seen.ns + 1000 >= sum);
	CHECK(seen.ns <= sum + (until - from) + 1000);
}

static void record_and_die(int report)
{
	struct weft_recorder *rec = parks_start_in(session_dir, COARSE_COUNTED);
	uint64_t sum = parks_make(60000, 500);

	for (int i = 0; i < 700; i++)
		weft_wake(1, WEFT_WORKER_NONE);
	for (int i = 0; i < 30; i++)
		weft_queue_depth(0, 1);
	sum = rec ? weft_tick_ns(sum) : 0;
	if (write(report, &sum, sizeof(sum)) == sizeof(sum))
		kill(getpid(), SIGKILL);
	_exit(1);
}

TEST(what_was_counted_is_recovered)
{
	struct parks_seen seen;
	uint64_t sum = 0;
	int report[2];
	pid_t pid;

	session_fresh_dir();
	REQUIRE(pipe(report) == 0);
	pid = fork();
	if (!pid)
		record_and_die(report[1]);
	close(report[1]);
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(read(report[0], &sum, sizeof(sum)), sizeof(sum));
	close(report[0]);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	seen = parks_read();
	CHECK_EQ(seen.count, 500);
	CHECK_EQ(seen.wakes, 700);
	CHECK_EQ(seen.queues, 30);
	/* The scale of ticks is the one that the process knew last. */
	CHECK((double)seen.ns > 0.999 * (double)sum && (double)seen.ns < 1.001 * (double)sum);
	session_remove_dir();
}
