/* SPDX-License-Identifier: Apache-2.0 */
/* A program that only computes, for bench/overhead.py: burn DIR. It does what lines on standard input say and
 * answers each with one line: "run" does the same work each time and tells the CPU time that the process took for
 * it, "short" a fifth of that and what the thread took, and "cpu" tells what the other threads of the process took
 * so far; "open HZ" opens a recorder into DIR that samples so often, without a budget unless "budget 1" came before,
 * "start", "stop" and "close" are the recorder's, "rate" tells how many samples a second it takes now, and "samples"
 * how many it has; "bare HZ" has a perf event like the perf engine's interrupt it so often, with a handler that
 * returns, until "bare 0"; "ride HZ" is the same with a CPU-time timer that fires at each tick, and an event for the
 * rest; "events 0" and "events 1" switch the samples of either off and on. */
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "bench.h"
#include "unwind_inside/chain.c"

#define RUN_NS 100000000u
#define SHORTS 5    /* of which a run consists */
#define WORDS 16384 /* 128 KiB: more than the first cache holds */

static uint64_t words[WORDS];
static uint64_t passes; /* of a short one */
static volatile uint64_t sink;

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Some of everything: arithmetic, memory, calls back from libc. */
static void work(void)
{
	for (uint64_t i = 0; i < passes; i++) {
		uint64_t x = i;

		for (int k = 0; k < 2000; k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			words[x >> 50] += x;
		}
		qsort(words + (x & (WORDS / 2 - 1)), 64, sizeof(*words), by_value);
		sink += words[x >> 50];
	}
}

/* While a timer runs on it, this clock moves with the tick and with switches only: hence a switch before each
 * reading. */
static uint64_t process_cpu_ns(void)
{
	bench_sleep_us(1);
	return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t run(void)
{
	uint64_t begin = process_cpu_ns();

	for (int i = 0; i < SHORTS; i++)
		chain_plain(work);
	return process_cpu_ns() - begin;
}

static uint64_t run_short(void)
{
	uint64_t begin = bench_cpu_ns();

	chain_plain(work);
	return bench_cpu_ns() - begin;
}

static void calibrate(void)
{
	passes = 1000;
	run();
	passes = passes * RUN_NS / run() + 1;
}

static void on_bare(int signal)
{
	(void)signal;
}

/* The events, and the timers beside them, which have the same signal: one that is held back is not set again. What was
 * held back comes here, and not in what is measured. */
static void events(int on)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	if (!on)
		prctl(PR_TASK_PERF_EVENTS_DISABLE);
	sigprocmask(on ? SIG_UNBLOCK : SIG_BLOCK, &trap, NULL);
	if (on)
		prctl(PR_TASK_PERF_EVENTS_ENABLE);
}

/* Fires at each tick; 0: none does. Answers how many ticks a second has. */
static uint32_t bare_timer(int on)
{
	struct sigevent event = {.sigev_signo = SIGTRAP, .sigev_notify = SIGEV_THREAD_ID};
	struct itimerspec spec = {{0, 1000000}, {0, 1000000}};
	static timer_t timer;
	static int is_there;
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	if (is_there)
		timer_delete(timer);
	is_there = on;
	if (!on)
		return 0;
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0 || timer_settime(timer, 0, &spec, NULL) < 0) {
		perror("bench: timer_create");
		exit(1);
	}
	return (uint32_t)(1000000000 / tick.tv_nsec);
}

static void bare(uint32_t hz, int ride)
{
	static struct sigaction before;
	static int fd = -1;
	uint32_t ticks;
	struct sigaction action = {.sa_handler = on_bare, .sa_flags = SA_RESTART | SA_ONSTACK};
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sigtrap = 1,
		.remove_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	if (!hz) {
		bare_timer(0);
		close(fd);
		sigaction(SIGTRAP, &before, NULL);
		return;
	}
	sigaction(SIGTRAP, &action, &before);
	ticks = bare_timer(ride);
	attr.sample_period = 1000000000 / (hz > ticks ? hz - ticks : 1);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		perror("bench: perf_event_open");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	uint32_t hz;
	struct weft_recorder_opts opts = {
		.size = sizeof(opts), .dir = argc > 1 ? argv[1] : NULL, .budget_ppm = WEFT_OFF};
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	char line[64];

	bench_pin(BENCH_CPU_LAST);
	calibrate();
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t answer = 0;

		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "run") == 0) {
			answer = run();
		} else if (strcmp(line, "short") == 0) {
			answer = run_short();
		} else if (strcmp(line, "cpu") == 0) {
			answer = process_cpu_ns() - bench_cpu_ns();
		} else if (sscanf(line, "events %u", &hz) == 1) {
			events(hz != 0);
		} else if (sscanf(line, "open %u", &hz) == 1) {
			opts.sample_hz = hz;
			bench_pin(BENCH_CPU_FIRST);
			bench_check(weft_recorder_open(&rec, &opts, &err), &err);
			bench_pin(BENCH_CPU_LAST);
		} else if (sscanf(line, "budget %u", &hz) == 1) {
			opts.budget_ppm = hz ? 0 : WEFT_OFF;
		} else if (strcmp(line, "rate") == 0) {
			answer = bench_stats(rec).sample_hz;
		} else if (strcmp(line, "samples") == 0) {
			answer = bench_stats(rec).samples;
		} else if (sscanf(line, "bare %u", &hz) == 1) {
			bare(hz, 0);
		} else if (sscanf(line, "ride %u", &hz) == 1) {
			bare(hz, 1);
		} else if (strcmp(line, "start") == 0) {
			bench_check(weft_recorder_start(rec, &err), &err);
		} else if (strcmp(line, "stop") == 0) {
			answer = bench_stats(rec).samples;
			weft_recorder_stop(rec, NULL);
		} else if (strcmp(line, "close") == 0) {
			answer = bench_stats(rec).samples;
			bench_check(weft_recorder_close(rec, NULL), &err);
			rec = NULL;
		} else {
			fprintf(stderr, "bench: what is %s?\n", line);
			return 2;
		}
		printf("%llu\n", (unsigned long long)answer);
		fflush(stdout);
	}
	return 0;
}
