/* SPDX-License-Identifier: Apache-2.0 */
/* serial: samples are few */
/* Threads that rarely switch have a perf event beside their timer, and samples that are not in step with the tick. */
#include "samples.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "record/sample/precise.h"

#define BUDGET_NS 500000.0 /* of a second */

static struct samples result;

static int fits(uint64_t cpu_ns, uint64_t switches, int has, double others_ns)
{
	struct weft__precise_seen seen = {cpu_ns, switches, 1000 * MS, has};

	return weft__precise_fits(&seen, 1000, others_ns, BUDGET_NS);
}

TEST(a_thread_that_runs_for_long_between_switches_has_an_event)
{
	CHECK(fits(1000 * MS, 0, 0, 0));
	CHECK(fits(1000 * MS, 2000, 0, 1e9)); /* 0.5 ms each, whatever others take */
	CHECK(!fits(1000 * MS, 2001, 0, 1e9));
	/* One that has it keeps it for longer. */
	CHECK(fits(1000 * MS, 4000, 1, 1e9));
	CHECK(!fits(1000 * MS, 4001, 1, 1e9));
}

TEST(few_switches_cost_little_whatever_is_done_between_them)
{
	CHECK(fits(1 * MS, 499, 0, 0));
	CHECK(!fits(1 * MS, 501, 0, 0));
	CHECK(!fits(1 * MS, 499, 0, 400000));
	CHECK(fits(1 * MS, 499, 1, 400000));
	CHECK(!fits(1 * MS, 1001, 1, 0));
}

BURNER(first_half)(uint64_t ns)
{
	samples_burn(ns);
}

BURNER(second_half)(uint64_t ns)
{
	samples_burn(ns);
}

static void in_step(int rounds)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	for (int i = 0; i < rounds; i++) {
		first_half(3 * MS);
		second_half(3 * MS);
		at.tv_nsec += 20 * MS;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
}

/* With default options. Of n samples that come by chance each function has half, give or take sqrt(n)/2; the first
 * ones are the timer's, until the collector has looked. */
TEST(work_in_step_with_the_tick_has_its_true_shares)
{
	struct samples_function functions[] = {RANGE(first_half), RANGE(second_half)};
	struct weft_recorder *rec;
	uint64_t n, more, perf;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99, .budget_ppm = 10000});
	REQUIRE(rec);
	in_step(200);
	samples_end(&result, rec, functions, 2);
	perf = result.engines[WEFT_ENGINE_PERF];
	printf("\t%llu and %llu samples, %llu by events (%s)\n", (unsigned long long)functions[0].total,
	       (unsigned long long)functions[1].total, (unsigned long long)perf, result.why);
	if (!weft__precise_on())
		SKIP("no perf events here");
	n = functions[0].total + functions[1].total;
	more = functions[0].total > functions[1].total ? functions[0].total - functions[1].total
						       : functions[1].total - functions[0].total;
	CHECK(n >= 50);
	CHECK(perf * 2 > result.n);
	CHECK(more <= 8 || (more - 8) * (more - 8) <= 16 * n); /* 4 sigmas, and what the timer had */
}

/* Perf events that this process has open. */
static uint32_t events_open(void)
{
	char path[64], where[64];
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, where, sizeof(where) - 1);
		where[length < 0 ? 0 : length] = 0;
		n += strstr(where, "[perf_event]") != NULL;
	}
	return n;
}

/* Any perf event makes context switches of threads that had one dearer. */
TEST(a_thread_that_does_nothing_for_a_while_has_no_event_any_more)
{
	struct weft_recorder *rec;
	uint32_t had = 0, i;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){
		.sample_hz = 99, .budget_ppm = 10000, .switches = WEFT_SWITCH_OFF, .wall_hz = WEFT_OFF});
	REQUIRE(rec);
	if (!weft__precise_on()) {
		CHECK_EQ(weft_recorder_close(rec, NULL), 0);
		session_remove_dir();
		SKIP("no perf events here");
	}
	for (i = 0; i < 50 && !had; i++) {
		samples_burn(100 * MS);
		had = events_open();
	}
	CHECK_EQ(had, 1);
	for (i = 0; i < 20 && had; i++) {
		session_sleep_ns(1000 * MS); /* looking is work, too */
		had = events_open();
	}
	CHECK_EQ(had, 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

/* Its CPU time is of before: over how long it used that is not known. */
TEST(a_thread_that_worked_before_it_was_first_seen_has_no_event)
{
	struct weft_recorder *rec;
	uint32_t most = 0;

	SKIP_UNDER_TSAN();
	samples_burn(100 * MS);
	rec = session_start(&(struct weft_recorder_opts){
		.sample_hz = 99, .budget_ppm = 10000, .switches = WEFT_SWITCH_OFF, .wall_hz = WEFT_OFF});
	REQUIRE(rec);
	for (int i = 0; i < 5; i++) {
		uint32_t n;

		session_sleep_ns(300 * MS);
		n = events_open();
		most = n > most ? n : most;
	}
	CHECK_EQ(most, 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

static int pipes[2][2];

static void *echo(void *data)
{
	char byte;

	(void)data;
	while (read(pipes[0][0], &byte, 1) == 1 && byte != 'x')
		if (write(pipes[1][1], &byte, 1) != 1)
			break;
	return NULL;
}

/* Two threads that do nothing but wake each other have no event, when there are many switches. */
TEST(threads_that_switch_all_the_time_have_timers_alone)
{
	struct weft_recorder *rec;
	pthread_t thread;
	uint64_t end;
	char byte = 'a';

	SKIP_UNDER_TSAN();
	CHECK_EQ(pipe(pipes[0]) | pipe(pipes[1]), 0);
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99, .budget_ppm = 10000});
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, echo, NULL), 0);
	end = weft__clock_mono() + 1500 * MS;
	while (weft__clock_mono() < end)
		CHECK(write(pipes[0][1], &byte, 1) == 1 && read(pipes[1][0], &byte, 1) == 1);
	CHECK_EQ(write(pipes[0][1], "x", 1), 1);
	pthread_join(thread, NULL);
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
	samples_end(&result, rec, NULL, 0);
	printf("\t%llu samples, %llu by events\n", (unsigned long long)result.n,
	       (unsigned long long)result.engines[WEFT_ENGINE_PERF]);
	CHECK(result.n > 10);
	CHECK(result.engines[WEFT_ENGINE_PERF] * 5 <= result.n);
}

/* A thread that blocks the signal of events is sampled by its timer. */
static void *burn_blocked(void *data)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	samples_burn(*(uint64_t *)data);
	return NULL;
}

TEST(a_thread_that_blocks_the_signal_of_events_is_sampled_all_the_same)
{
	uint64_t ns = 1000 * MS;
	struct weft_recorder *rec;
	pthread_t thread;

	SKIP_UNDER_TSAN();
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99, .budget_ppm = 10000});
	REQUIRE(rec);
	CHECK_EQ(pthread_create(&thread, NULL, burn_blocked, &ns), 0);
	pthread_join(thread, NULL);
	samples_end(&result, rec, NULL, 0);
	CHECK(statistics_cover(result.ns, result.n, ns, 99));
	CHECK(result.n > 20);
}

static void refused_main(const void *data)
{
	struct weft_recorder *rec;

	(void)data;
	CHECK_EQ(child_refuse(SYS_perf_event_open, EPERM), 0);
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 99, .budget_ppm = 10000});
	REQUIRE(rec);
	CHECK(samples_burn_for(10));
	samples_end(&result, rec, NULL, 0);
	CHECK_EQ(result.engines[WEFT_ENGINE_PERF], 0);
	CHECK(result.n >= 10);
	CHECK(strstr(result.why, "perf events cannot be had") != NULL);
}

TEST(where_events_are_refused_timers_sample_and_the_facts_say_why)
{
	SKIP_UNDER_TSAN();
	CHECK_EQ(child_run(refused_main, NULL), 0);
}
