/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread costs that records: its memory, and its start. bench_threads DIR [--quick] */
#include <pthread.h>

#include "bench.h"

#define MANY 64
#define FEW 4
#define RING_EVENTS 4096

static pthread_barrier_t filled, over;

static void *emit_many(void *data)
{
	const uint32_t *n = data;

	for (uint32_t i = 0; i < *n; i++) {
		weft_wake(i, 1);
		if (i % 500 == 499)
			bench_sleep_us(2000); /* the collector empties the ring; each slot is written all the same */
	}
	pthread_barrier_wait(&filled);
	pthread_barrier_wait(&over);
	return NULL;
}

/* Resident bytes of the process: "RssShmem:", "VmRSS:", ... */
static double resident(const char *key)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	double kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtod(line + strlen(key), NULL);
	if (file)
		fclose(file);
	return kib * 1024;
}

struct usage {
	double all, shared;
};

/* What `n` threads that are alive, after `events` events each, add to the process. */
static struct usage use_of(uint32_t n, uint32_t events)
{
	struct usage before = {resident("VmRSS:"), resident("RssShmem:")}, after;
	pthread_t threads[MANY];

	pthread_barrier_init(&filled, NULL, n + 1);
	pthread_barrier_init(&over, NULL, n + 1);
	for (uint32_t i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, emit_many, &events) != 0)
			abort();
	pthread_barrier_wait(&filled);
	after = (struct usage){resident("VmRSS:"), resident("RssShmem:")};
	pthread_barrier_wait(&over);
	for (uint32_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return (struct usage){after.all - before.all, after.shared - before.shared};
}

static void measure_memory(const char *dir)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir, .drain_ns = 1000000};
	struct weft_recorder *rec;
	struct usage without, with;

	use_of(MANY, 0); /* stacks that the C library keeps for later threads */
	rec = bench_record(&opts);
	use_of(FEW, 100000); /* the collector's buffers get their full size */
	without = use_of(MANY, 0);
	with = use_of(MANY, RING_EVENTS + 100);
	/* Some of the rings were there before. */
	bench_print("thread_memory", (with.all - without.all) / (MANY - FEW), "B", NULL, 0, 0,
		    "resident memory that a recording thread adds, over %d of them with full rings; of this shared "
		    "(the rings) "
		    "%.0f; one ring is %llu; lost %llu",
		    MANY - FEW, with.shared / (MANY - FEW), (unsigned long long)bench_stats(rec).ring_bytes,
		    (unsigned long long)bench_stats(rec).lost);
	weft_recorder_close(rec, NULL);
}

static void *emit_one(void *data)
{
	(void)data;
	weft_wake(1, 1);
	return NULL;
}

static double start_us(uint32_t n)
{
	uint64_t begin = bench_now_ns();
	pthread_t thread;

	for (uint32_t i = 0; i < n; i++) {
		if (pthread_create(&thread, NULL, emit_one, NULL) != 0)
			abort();
		pthread_join(thread, NULL);
	}
	return (double)(bench_now_ns() - begin) / 1e3 / n;
}

static void measure_start(const char *dir, int quick)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir};
	struct bench_samples with = {0}, without = {0}, added = {0};
	struct weft_recorder *rec = bench_record_apart(&opts);
	struct weft_recorder_stats stats;
	struct weft_error err;

	start_us(500);
	for (int i = 0; i < (quick ? 20 : 100); i++) {
		double on, off;

		bench_check(weft_recorder_start(rec, &err), &err);
		on = start_us(100);
		weft_recorder_pause(rec);
		off = start_us(100);
		bench_add(&with, on);
		bench_add(&without, off);
		bench_add(&added, on - off);
	}
	weft_recorder_stop(rec, NULL);
	stats = bench_stats(rec);
	bench_print("thread_start_cost", bench_median(&added), "us", "baseline", bench_median(&without),
		    bench_median(&with) / bench_median(&without),
		    "what the first event, its ring and its end add to pthread_create and join of a thread (the "
		    "baseline), all on "
		    "one CPU, the collector on another; p10 %.1f p90 %.1f; %llu threads, %llu rings; lost %llu",
		    bench_quantile(&added, 0.1), bench_quantile(&added, 0.9), (unsigned long long)stats.events / 3,
		    (unsigned long long)stats.rings, (unsigned long long)stats.lost);
	weft_recorder_close(rec, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: bench_threads DIR [--quick]\n");
		return 2;
	}
	measure_memory(argv[1]);
	measure_start(argv[1], bench_quick(argc, argv));
	return 0;
}
