/* SPDX-License-Identifier: Apache-2.0 */
/* Poll mode caught with real samples. How many there are is up to the machine; which polls they catch is not. */
#include <time.h>

#include "polls.h"
#include "record/wait/wait.h"
#include "weft/wait.h"

#define POLL_NS (2 * MS)

static void burn(uint64_t ns)
{
	uint64_t until = session_now_ns() + ns;

	while (session_now_ns() < until)
		;
}

/* Polls with polls in them, until there are samples enough. Answers how many polls. */
static uint64_t poll_until_sampled(struct weft_recorder *rec, uint64_t samples)
{
	uint64_t until = session_now_ns() + 20000 * MS, n = 0;

	while (session_stats(rec).samples < samples && session_now_ns() < until) {
		weft_poll_begin(1, 0);
		burn(POLL_NS);
		weft_poll_begin(2, 0);
		burn(POLL_NS);
		weft_poll_end();
		weft_poll_next(3, 0);
		burn(POLL_NS / 4);
		weft_poll_end();
		n += 3;
	}
	return n;
}

/* With times of a quantum of 8 ns. */
static int holds(const struct poll_seen *poll, uint64_t ns)
{
	return ns + 8 > poll->begin_ns && ns < poll->end_ns + 8;
}

static int is_inside(const struct poll_seen *inner, const struct poll_seen *outer)
{
	return inner->level > outer->level && inner->begin_ns + 8 > outer->begin_ns &&
	       inner->end_ns < outer->end_ns + 8;
}

/* A sample that makes this poll a caught one: in it, and in no caught poll inside of it. */
static int has_own_sample(const struct polls_seen *seen, const struct poll_seen *poll)
{
	for (uint64_t i = 0; i < seen->samples; i++) {
		int deeper = 0;

		for (uint32_t k = 0; k < seen->n; k++)
			deeper |= is_inside(&seen->polls[k], poll) && holds(&seen->polls[k], seen->sample_ns[i]);
		if (holds(poll, seen->sample_ns[i]) && !deeper)
			return 1;
	}
	return 0;
}

TEST(each_caught_poll_has_a_sample_of_its_own)
{
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_CAUGHT, .sample_hz = 250, .wait_ns = WEFT_OFF, .budget_ppm = WEFT_OFF};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;
	uint64_t made;
	uint32_t i;

	REQUIRE(rec);
	made = poll_until_sampled(rec, 40);
	seen = polls_close(rec);
	REQUIRE(seen);
	if (!seen->samples) {
		free(seen);
		SKIP("this machine takes no samples");
	}
	CHECK_EQ(seen->counted, made);
	CHECK(seen->n > 0 && seen->n <= seen->samples);
	for (i = 0; i < seen->n; i++) {
		const struct poll_seen *poll = &seen->polls[i];

		CHECK(poll->why & WEFT_POLL_CAUGHT);
		CHECK_EQ(poll->level, poll->task == 2);
		CHECK(poll->ns >= POLL_NS / 4);
		CHECK(has_own_sample(seen, poll));
	}
	free(seen);
}

#define WAIT_MOST_NS (20000 * MS)

static void nap(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Waits in a poll until somebody has marked it at a level. */
static int wait_until_caught(uint32_t level)
{
	const struct ring_page *mine = weft__ring_mine();
	uint64_t until = session_now_ns() + WAIT_MOST_NS;

	while (mine && session_now_ns() < until) {
		const struct poll_open *open = &mine->polls.open[level];

		if (load_relaxed(&open->sampled) > load_relaxed(&open->tick))
			return 1;
		nap(5 * MS);
	}
	return 0;
}

/* Only what looks at it from outside sees a thread that sleeps: a poll of 20 ms is caught, the short ones around it
 * are not. */
static void blocked_poll_is_caught(const struct weft_recorder_opts *opts, int nested)
{
	struct weft_recorder *rec = session_start(opts);
	struct polls_seen *seen;
	uint32_t i, found = 0;

	REQUIRE(rec);
	for (i = 0; i < 10; i++) {
		weft_poll_begin(1, 0);
		weft_poll_end();
	}
	weft_poll_begin(2, 0);
	if (nested)
		weft_poll_begin(3, 0);
	CHECK(wait_until_caught(nested == 2));
	if (nested)
		weft_poll_end();
	weft_poll_end();
	for (i = 0; i < 10; i++) {
		weft_poll_begin(1, 0);
		weft_poll_end();
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, nested ? 22 : 21);
	CHECK_EQ(seen->samples, 0);
	CHECK(seen->n > 0);
	for (i = 0; i < seen->n; i++) {
		CHECK(seen->polls[i].why & WEFT_POLL_CAUGHT);
		CHECK(seen->polls[i].task >= 2);
		found += seen->polls[i].task == (nested == 2 ? 3 : 2);
	}
	CHECK_EQ(found, 1); /* where the detector says that the other was blocked as long, that one is caught as well */
	free(seen);
}

TEST(a_poll_that_sleeps_is_caught_by_a_wall_sample)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_CAUGHT,
					  .sample_hz = WEFT_OFF,
					  .wall_hz = 200,
					  .wait_ns = WEFT_OFF,
					  .stuck_ns = WEFT_OFF,
					  .budget_ppm = WEFT_OFF};

	blocked_poll_is_caught(&opts, 0);
}

TEST(a_wall_sample_catches_the_innermost_poll)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_CAUGHT,
					  .sample_hz = WEFT_OFF,
					  .wall_hz = 200,
					  .wait_ns = WEFT_OFF,
					  .stuck_ns = WEFT_OFF,
					  .budget_ppm = WEFT_OFF};

	blocked_poll_is_caught(&opts, 2);
}

TEST(a_poll_that_was_recorded_as_stuck_is_caught)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_CAUGHT,
					  .sample_hz = WEFT_OFF,
					  .wall_hz = WEFT_OFF,
					  .wait_ns = WEFT_OFF,
					  .stuck_ns = 20 * MS,
					  .budget_ppm = WEFT_OFF};

	blocked_poll_is_caught(&opts, 1);
}

/* The wait itself is in a sum then, but the poll that it was in is known. */
TEST(a_poll_with_a_long_wait_is_caught_even_if_the_budget_does_not_allow_the_wait)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_CAUGHT,
					  .sample_hz = WEFT_OFF,
					  .wall_hz = WEFT_OFF,
					  .wait_ns = 2 * MS,
					  .stuck_ns = WEFT_OFF,
					  .budget_ppm = WEFT_OFF};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;

	REQUIRE(rec);
	while (!session_stats(rec).collector_ns) /* it has been round once, and the governor has set its levels */
		nap(MS);
	weft_poll_begin(1, 0);
	weft_poll_end();
	weft__waits_limit(0);
	weft_poll_begin(2, 0);
	weft_wait_begin(WEFT_WAIT_LOCK, 0, 7);
	nap(4 * MS);
	weft_wait_end(WEFT_WAIT_LOCK, 7);
	weft_poll_end();
	seen = polls_close(rec);
	REQUIRE(seen);
	REQUIRE(seen->n == 1);
	CHECK_EQ(seen->polls[0].task, 2);
	CHECK(seen->polls[0].why & WEFT_POLL_CAUGHT);
	free(seen);
}

/* Its thread's own clock says that it slept, from the second reading on. */
TEST(a_poll_that_sleeps_is_caught_though_nobody_looked)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_CAUGHT,
					  .sample_hz = WEFT_OFF,
					  .wall_hz = WEFT_OFF,
					  .wait_ns = WEFT_OFF,
					  .stuck_ns = WEFT_OFF,
					  .budget_ppm = WEFT_OFF};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;
	int detects = (weft_gate_on() & WEFT_GATE_RSEQ) != 0;
	uint32_t i;

	REQUIRE(rec);
	weft_park(0); /* from then on the scheduler's counts of the thread are read */
	nap(MS);
	weft_unpark(0);
	for (i = 0; i < 10; i++) {
		weft_poll_begin(1, 0);
		weft_poll_end();
	}
	for (i = 0; i < 4; i++) {
		weft_poll_begin(2, 0);
		nap(30 * MS);
		weft_poll_end();
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 14);
	if (!detects) {
		free(seen);
		SKIP("there is no detector of switches here");
	}
	CHECK(seen->n >= 2 && seen->n <= 4);
	for (i = 0; i < seen->n; i++) {
		CHECK_EQ(seen->polls[i].task, 2);
		CHECK(seen->polls[i].why & WEFT_POLL_CAUGHT);
	}
	free(seen);
}
