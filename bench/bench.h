/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark programs share: time, samples, one CPU to run on, and figures as lines of JSON on standard output.
 * A program is one run; tools/bench makes several and takes medians. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#define BENCH_BARRIER() __asm__ volatile("" : : : "memory")

static inline uint64_t bench_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t bench_now_ns(void)
{
	return bench_clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread: what others do to the machine meanwhile does not count. */
static inline uint64_t bench_cpu_ns(void)
{
	return bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void bench_sleep_us(uint64_t us)
{
	struct timespec ts = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};

	nanosleep(&ts, NULL);
}

/* Cycles of the counter that stand around what is timed: nothing of it may leak out on either side. */
static inline uint64_t bench_tick(void)
{
#if defined(__x86_64__)
	uint64_t tick;

	__builtin_ia32_lfence();
	tick = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return tick;
#else
	return bench_now_ns();
#endif
}

static inline double bench_ns_per_tick(void)
{
	static double known;

	if (known == 0) {
		uint64_t ns = bench_now_ns();
		uint64_t tick = bench_tick();

		bench_sleep_us(50000);
		ns = bench_now_ns() - ns;
		known = (double)ns / (double)(bench_tick() - tick);
	}
	return known;
}

/* Keeps the calling thread on the first or the last CPU that the process had at its start; threads that it makes
 * inherit that. So a collector that is started on the first and a loop that runs on the last are never on the same. */
enum bench_cpu { BENCH_CPU_FIRST, BENCH_CPU_LAST };

static inline void bench_pin(enum bench_cpu which)
{
	static cpu_set_t all;
	static int known;
	cpu_set_t one;
	int cpu, first = -1, last = 0;

	if (!known && sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	known = 1;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		first = first < 0 ? cpu : first;
		last = cpu;
	}
	CPU_ZERO(&one);
	CPU_SET(which == BENCH_CPU_FIRST ? first : last, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static inline int bench_by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The samples of one variant. Quantiles sort them. */
struct bench_samples {
	double *at;
	size_t n;
	size_t cap;
};

static inline void bench_add(struct bench_samples *s, double value)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		s->at = realloc(s->at, s->cap * sizeof(*s->at));
		if (!s->at)
			abort();
	}
	s->at[s->n++] = value;
}

static inline double bench_quantile(struct bench_samples *s, double q)
{
	if (!s->n)
		return 0;
	qsort(s->at, s->n, sizeof(*s->at), bench_by_size);
	return s->at[(size_t)(q * (double)(s->n - 1) + 0.5)];
}

static inline double bench_median(struct bench_samples *s)
{
	return bench_quantile(s, 0.5);
}

/* Between which two numbers the next figure is, with 95 % probability. */
static double bench_low = 1, bench_high;

static inline void bench_between(double low, double high)
{
	bench_low = low;
	bench_high = high;
}

/* The same: between which two of the samples the true median is, whatever they are distributed like. Of fewer than
 * six, the least and the largest. */
static inline void bench_between_samples(struct bench_samples *s)
{
	double half = s->n < 6 ? 0.5 : 0.98 / __builtin_sqrt((double)s->n);

	bench_between(bench_quantile(s, 0.5 - half), bench_quantile(s, 0.5 + half));
}

/* One figure. `base` is that of `against`, "floor" or "baseline"; when `against` is NULL the figure stands alone. */
__attribute__((format(printf, 7, 8))) static inline void bench_print(const char *name, double value, const char *unit,
								     const char *against, double base, double ratio,
								     const char *note, ...)
{
	char text[512];
	va_list args;

	va_start(args, note);
	vsnprintf(text, sizeof(text), note, args);
	va_end(args);
	printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", name, value, unit);
	if (against)
		printf(", \"%s\": %.6g, \"ratio\": %.5g", against, base, ratio);
	if (bench_low <= bench_high)
		printf(", \"interval\": [%.6g, %.6g], \"noise\": %.4g", bench_low, bench_high,
		       (bench_high - bench_low) / 2);
	bench_between(1, 0);
	printf(", \"note\": \"%s\"}\n", text);
	fflush(stdout);
}

/* The only option of every program: fewer repeats. */
static inline int bench_quick(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[argc - 1], "--quick") == 0;
}

static inline void bench_check(int result, const struct weft_error *err)
{
	if (result >= 0)
		return;
	fprintf(stderr, "bench: %s\n", err->msg);
	exit(1);
}

/* A recorder that records; it takes samples only when it is told to. */
static inline struct weft_recorder *bench_record(const struct weft_recorder_opts *given)
{
	struct weft_recorder_opts opts = given ? *given : (struct weft_recorder_opts){.size = sizeof(opts)};
	struct weft_recorder *rec;
	struct weft_error err;

	if (!opts.sample_hz)
		opts.sample_hz = WEFT_OFF;
	if (!opts.budget_ppm)
		opts.budget_ppm = WEFT_OFF; /* what it costs, not what it may cost */
	bench_check(weft_recorder_open(&rec, &opts, &err), &err);
	bench_check(weft_recorder_start(rec, &err), &err);
	return rec;
}

/* The same with the collector on the first CPU and the caller on the last. */
static inline struct weft_recorder *bench_record_apart(const struct weft_recorder_opts *opts)
{
	struct weft_recorder *rec;

	bench_pin(BENCH_CPU_FIRST);
	rec = bench_record(opts);
	bench_pin(BENCH_CPU_LAST);
	return rec;
}

static inline struct weft_recorder_stats bench_stats(struct weft_recorder *rec)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};

	weft_recorder_stats(rec, &stats);
	return stats;
}

/* Brings the calling thread's ring into this CPU's cache, as a buffer is that nobody else touches. */
static inline void bench_warm(void)
{
	struct weft_ring *ring = weft_ring_self;

	for (uint64_t i = 0; ring->slots && i <= ring->mask; i += 64 / sizeof(struct weft_slot))
		__atomic_fetch_or(&ring->slots[i].w0, 0, __ATOMIC_RELAXED);
}

/* Waits until the collector has been through the rings once, after what the caller has emitted so far. */
static inline void bench_drained(struct weft_recorder *rec)
{
	uint64_t drains = bench_stats(rec).drains;

	while (bench_stats(rec).drains < drains + 2)
		bench_sleep_us(200);
}

#endif
