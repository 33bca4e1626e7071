/* SPDX-License-Identifier: Apache-2.0 */
/* 2 M events/s over 4 threads: what is lost, and what the collector takes. bench_sustained DIR [--quick]
 *
 * Each thread emits 500 events at every millisecond of its own. One that was not run in time makes up for it, with a
 * pause of 250 us between two batches: no ring could take everything at once. */
#include <pthread.h>

#include "bench.h"

#define THREADS 4
#define BATCH 500
#define PERIOD_NS 1000000
#define CATCH_UP_NS 250000

struct producer {
	pthread_t thread;
	uint32_t number;
	uint64_t begin_ns;
	uint64_t batches;
	uint64_t worst_late_ns;
};

/* A task is made ready, runs, wakes another, and the queue is measured. Which ones is random, as far as a compressor
 * can tell. */
static void emit_batch(uint32_t number, uint64_t *random)
{
	for (uint32_t i = 0; i < BATCH / 5; i++) {
		uint64_t r = *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		uint64_t task = number << 16 | (r >> 40 & 511);

		weft_wake(task, number);
		weft_poll_begin(task, r >> 50 & 7);
		weft_wake(number << 16 | (r >> 55), number);
		weft_poll_end();
		weft_queue_depth(0, r >> 60);
	}
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
		;
}

static void *produce(void *data)
{
	struct producer *p = data;
	uint64_t random = p->number;

	for (uint64_t i = 0; i < p->batches; i++) {
		uint64_t due = p->begin_ns + i * PERIOD_NS;
		uint64_t now = bench_now_ns();

		if (now < due)
			sleep_until(due);
		else if (i)
			sleep_until(now + CATCH_UP_NS);
		if (now > due && now - due > p->worst_late_ns)
			p->worst_late_ns = now - due;
		emit_batch(p->number, &random);
	}
	return NULL;
}

struct outcome {
	double share;   /* of a core, % */
	double rate;    /* M events/s */
	double late_ms; /* the most that a thread was behind */
	double bytes;   /* per event */
	double events;  /* emitted */
	uint64_t lost;
};

static struct outcome run(const char *dir, uint64_t seconds)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir};
	struct weft_recorder *rec = bench_record(&opts);
	struct producer producers[THREADS];
	struct weft_recorder_stats stats;
	struct outcome out = {0};
	uint64_t begin = bench_now_ns() + 10000000, ns;

	for (uint32_t i = 0; i < THREADS; i++) {
		producers[i] = (struct producer){.number = i, .begin_ns = begin + i * PERIOD_NS / THREADS};
		producers[i].batches = seconds * 1000000000u / PERIOD_NS;
		if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
			abort();
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(producers[i].thread, NULL);
		if ((double)producers[i].worst_late_ns / 1e6 > out.late_ms)
			out.late_ms = (double)producers[i].worst_late_ns / 1e6;
	}
	ns = bench_now_ns() - begin;
	weft_recorder_stop(rec, NULL);
	stats = bench_stats(rec);
	weft_recorder_close(rec, NULL);
	out.share = (double)stats.collector_ns / (double)ns * 100;
	out.rate = (double)(stats.events + stats.lost) / (double)ns * 1e3;
	out.bytes = (double)stats.bytes / (double)stats.events;
	out.events = (double)(stats.events + stats.lost);
	out.lost = stats.lost;
	return out;
}

int main(int argc, char **argv)
{
	int quick = bench_quick(argc, argv);
	int runs = quick ? 2 : 5;
	struct bench_samples share = {0}, rate = {0}, late = {0}, bytes = {0};
	char each[160] = "";
	double emitted = 0, lost = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_sustained DIR [--quick]\n");
		return 2;
	}
	for (int i = 0; i < runs; i++) {
		struct outcome out = run(argv[1], quick ? 3 : 20);
		size_t n = strlen(each);

		bench_add(&share, out.share);
		bench_add(&rate, out.rate);
		bench_add(&late, out.late_ms);
		bench_add(&bytes, out.bytes);
		lost += (double)out.lost;
		emitted += out.events;
		snprintf(each + n, sizeof(each) - n, "%s%llu (%.1f)", i ? ", " : "", (unsigned long long)out.lost,
			 out.late_ms);
	}
	bench_print(
		"sustained", bench_median(&share), "% of a core", NULL, 0, 0,
		"the collector at %.2f M events/s over %d threads (500 every ms each), %d runs of %d s; runs %.1f to "
		"%.1f %%; a thread was at most %.1f ms late; %.2f B an event",
		bench_median(&rate), THREADS, runs, quick ? 3 : 20, bench_quantile(&share, 0),
		bench_quantile(&share, 1), bench_quantile(&late, 1), bench_median(&bytes));
	bench_print(
		"sustained_lost", lost, "events", NULL, 0, 0,
		"of %.0f M in all of these runs; in each of them, with the ms that a thread was late at most: %s. "
		"A ring that has grown holds 32 ms of such a thread: when the collector is kept waiting for longer, "
		"events are lost",
		emitted / 1e6, each);
	return 0;
}
