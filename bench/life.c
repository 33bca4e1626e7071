/* SPDX-License-Identifier: Apache-2.0 */
/* A recorder's life: opening, idling, closing, and recovery after a kill. bench_life DIR [--quick] */
#include <signal.h>
#include <sys/wait.h>

#include "bench.h"

static double ms_since(uint64_t begin)
{
	return (double)(bench_now_ns() - begin) / 1e6;
}

static void measure_open(const char *dir, int quick)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir};
	struct bench_samples open = {0}, close = {0};

	for (int i = 0; i < (quick ? 5 : 20); i++) {
		uint64_t begin = bench_now_ns();
		struct weft_recorder *rec = bench_record(&opts);

		bench_add(&open, ms_since(begin));
		for (uint64_t k = 0; k < 1000; k++)
			weft_wake(k, 1);
		begin = bench_now_ns();
		weft_recorder_close(rec, NULL);
		bench_add(&close, ms_since(begin));
	}
	bench_print("open_cost", bench_median(&open), "ms", NULL, 0, 0,
		    "weft_recorder_open and weft_recorder_start; 2 ms of it are two readings of the clock; p10 %.2f "
		    "p90 %.2f",
		    bench_quantile(&open, 0.1), bench_quantile(&open, 0.9));
	bench_print("close_cost", bench_median(&close), "ms", NULL, 0, 0,
		    "weft_recorder_close with 1000 events in a ring, segment sealed; p10 %.2f p90 %.2f",
		    bench_quantile(&close, 0.1), bench_quantile(&close, 0.9));
}

static uint64_t no_queue(void *data)
{
	(void)data;
	return 0;
}

static double idle_share(struct weft_recorder *rec, uint64_t us)
{
	uint64_t cpu = bench_stats(rec).collector_ns, begin = bench_now_ns();

	bench_sleep_us(us);
	return (double)(bench_stats(rec).collector_ns - cpu) / (double)(bench_now_ns() - begin) * 100;
}

static void measure_idle(const char *dir, int quick)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir};
	struct weft_runtime_opts runtime = {.size = sizeof(runtime), .name = "idle", .queue = no_queue};
	uint64_t us = quick ? 1000000 : 5000000;
	struct weft_recorder *rec = bench_record(&opts);
	uint64_t drains;
	double alone;

	weft_wake(1, 1);
	bench_sleep_us(1500000); /* the first flush, the looks at the thread's name */
	drains = bench_stats(rec).drains;
	alone = idle_share(rec, us);
	bench_print("idle_cost", alone, "% of a core", NULL, 0, 0,
		    "the collector of an idle process over %.0f s, %.1f drains/s", (double)us / 1e6,
		    (double)(bench_stats(rec).drains - drains) / ((double)us / 1e6));
	weft_runtime_add(&runtime, NULL);
	bench_print("idle_cost_queue", idle_share(rec, us), "% of a core", NULL, 0, 0,
		    "the same with one global queue that is asked every 10 ms");
	weft_recorder_close(rec, NULL);
}

/* Records at a high rate until it is killed. */
static void be_killed(const char *dir)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir};

	bench_record(&opts);
	for (uint64_t i = 0;; i++) {
		for (int k = 0; k < 500; k++)
			weft_wake(i & 127, 1);
		bench_sleep_us(500);
	}
}

struct recovery {
	uint64_t events, from_rings;
	int failed;
};

static void count_recovered(const struct weft_recovered *one, void *data)
{
	struct recovery *r = data;

	r->events += one->events;
	r->from_rings += one->from_rings;
	r->failed |= one->status < 0;
}

static void measure_recover(const char *dir, int quick)
{
	struct bench_samples ms = {0};
	struct recovery last = {0};

	for (int i = 0; i < (quick ? 3 : 5); i++) {
		struct weft_error err;
		uint64_t begin;
		int n;
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid == 0)
			be_killed(dir);
		bench_sleep_us(1300000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		last = (struct recovery){0};
		begin = bench_now_ns();
		n = weft_recover(dir, count_recovered, &last, &err);
		bench_add(&ms, ms_since(begin));
		bench_check(n, &err);
		if (n != 1 || last.failed) {
			fprintf(stderr, "bench: %d segments recovered where there should be one\n", n);
			exit(1);
		}
	}
	bench_print("recover_time", bench_median(&ms), "ms", NULL, 0, 0,
		    "weft_recover after kill -9 of a process at about 0.9 M events/s; the last had %llu events, %llu "
		    "of them from "
		    "shared memory; min %.2f max %.2f",
		    (unsigned long long)last.events, (unsigned long long)last.from_rings, bench_quantile(&ms, 0),
		    bench_quantile(&ms, 1));
}

int main(int argc, char **argv)
{
	int quick = bench_quick(argc, argv);

	if (argc < 2) {
		fprintf(stderr, "usage: bench_life DIR [--quick]\n");
		return 2;
	}
	measure_recover(argv[1], quick); /* first: it forks */
	measure_open(argv[1], quick);
	measure_idle(argv[1], quick);
	return 0;
}
