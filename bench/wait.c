/* SPDX-License-Identifier: Apache-2.0 */
/* What a short wait costs: begin and end, against the two readings of the clock in it, while it records and while it
 * does not. And what the detector of context switches adds to two readings. */
#include "bench.h"

#define PAIRS 2000

static uint32_t name;

static void burst_wait(void)
{
	for (uint32_t i = 0; i < PAIRS; i++) {
		weft_wait_begin(WEFT_WAIT_LOCK, name, 4096);
		BENCH_BARRIER();
		weft_wait_end(WEFT_WAIT_LOCK, 4096);
		BENCH_BARRIER();
	}
}

static void burst_waited(void)
{
	for (uint32_t i = 0; i < PAIRS; i++) {
		uint64_t since = weft_now_ticks();

		BENCH_BARRIER();
		weft_waited(WEFT_WAIT_CALL, name, 3, 0, since);
		BENCH_BARRIER();
	}
}

static void burst_clock(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < PAIRS; i++) {
		sum += weft_tick(1);
		BENCH_BARRIER();
		sum += weft_tick(1);
		BENCH_BARRIER();
	}
	__asm__ volatile("" : : "r"(sum));
}

/* What a poll pays for knowing whether it left the CPU. */
static void burst_detector(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < PAIRS; i++) {
		sum += weft_tick(1);
		sum += (uint64_t)weft_stayed();
		BENCH_BARRIER();
		sum += weft_tick(1);
		sum += (uint64_t)weft_stayed();
		BENCH_BARRIER();
	}
	__asm__ volatile("" : : "r"(sum));
}

static double timed(void (*burst)(void))
{
	uint64_t begin = bench_tick();

	burst();
	return (double)(bench_tick() - begin) * bench_ns_per_tick() / PAIRS;
}

int main(int argc, char **argv)
{
	struct bench_samples pair = {0}, waited = {0}, clock = {0}, off = {0}, detector = {0};
	int rounds = bench_quick(argc, argv) ? 300 : 2000, i;
	struct weft_recorder *rec = bench_record_apart(NULL);
	double floor;

	name = weft_string("lock");
	for (i = 0; i < rounds; i++) {
		timed(burst_clock);
		bench_add(&clock, timed(burst_clock));
		bench_add(&detector, timed(burst_detector));
		bench_add(&pair, timed(burst_wait));
		bench_add(&waited, timed(burst_waited));
	}
	weft_recorder_close(rec, NULL);
	for (i = 0; i < rounds; i++)
		bench_add(&off, timed(burst_wait));
	floor = bench_median(&clock);
	bench_print(
		"wait_pair", bench_median(&pair), "ns", "floor", floor, bench_median(&pair) / floor,
		"weft_wait_begin and weft_wait_end of a short wait, seen by others meanwhile, against two readings of "
		"the counter");
	bench_print("wait_pair_after", bench_median(&waited), "ns", "floor", floor, bench_median(&waited) / floor,
		    "the same reported afterwards (weft_now_ticks, weft_waited)");
	bench_print(
		"rseq_pair", bench_median(&detector) - floor, "ns", "floor", floor, bench_median(&detector) / floor,
		"the detector of context switches, asked at the begin and the end of a poll, beside two readings of "
		"the counter");
	bench_print("wait_pair_off", bench_median(&off), "ns", NULL, 0, 0, "while nothing records");
	return 0;
}
