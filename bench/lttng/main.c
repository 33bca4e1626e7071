/* SPDX-License-Identifier: Apache-2.0 */
/* An event of LTTng-ust beside one of ours, burst by burst in the same process. bench/lttng.py has made a session with
 * the tracepoint enabled. */
#include "bench.h"
#include "provider.h"

#define BURST 2000

static void burst_weft(void)
{
	for (uint32_t i = 0; i < BURST; i++)
		weft_wake(i, 3);
}

static void burst_lttng(void)
{
	for (uint32_t i = 0; i < BURST; i++)
		tracepoint(weft_bench, poll, i, 3);
}

static double timed(void (*fn)(void))
{
	uint64_t begin, end;

	begin = bench_tick();
	fn();
	end = bench_tick();
	return (double)(end - begin) * bench_ns_per_tick() / BURST;
}

static int enabled(void)
{
	for (int i = 0; i < 200; i++) {
		if (tracepoint_enabled(weft_bench, poll))
			return 1;
		bench_sleep_us(10000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .drain_ns = 1000000};
	uint32_t bursts = bench_quick(argc, argv) ? 100 : 400;
	struct bench_samples ours = {0}, theirs = {0};
	struct weft_recorder *rec;

	bench_ns_per_tick();
	if (!enabled()) {
		fprintf(stderr, "bench: LTTng did not enable the tracepoint\n");
		return 3;
	}
	rec = bench_record_apart(&opts);
	for (uint32_t i = 0; i < bursts + 20; i++) {
		double weft, lttng;

		bench_warm();
		weft = timed(burst_weft);
		lttng = timed(burst_lttng);

		bench_drained(rec);
		if (i < 20)
			continue;
		bench_add(&ours, weft);
		bench_add(&theirs, lttng);
	}
	bench_print("lttng_event", bench_median(&theirs), "ns", "baseline", bench_median(&ours),
		    bench_median(&theirs) / bench_median(&ours),
		    "LTTng-ust tracepoint of 2 x u32, enabled; the baseline is weft_wake beside it, so the ratio is "
		    "LTTng to "
		    "weft; p10 %.1f p90 %.1f, weft p10 %.2f p90 %.2f; weft lost %llu",
		    bench_quantile(&theirs, 0.1), bench_quantile(&theirs, 0.9), bench_quantile(&ours, 0.1),
		    bench_quantile(&ours, 0.9), (unsigned long long)bench_stats(rec).lost);
	weft_recorder_close(rec, NULL);
	return 0;
}
