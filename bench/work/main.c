/* SPDX-License-Identifier: Apache-2.0 */
/* What a pair of events adds to work: a tight loop says little about that, since most of an event is waiting for the
 * counter, and the CPU can do other things meanwhile. */
#include "bench.h"
#include "work/work.h"

#define UNITS 1000 /* in a burst: 2000 events, less than half a ring */

struct variant {
	const char *name; /* of the figure; NULL: the bare work that those below are held against */
	work_fn *fn;
	const char *note;
	struct bench_samples ns;
};

static struct variant variants[] = {
	{NULL, latency_bare, "", {0}},
	{"event_pair_in_work_floor",
	 latency_floor,
	 "two readings of the counter and two stores of 16 bytes into private memory",
	 {0}},
	{"event_pair_in_work", latency_pair, "a pair of events around latency-bound work", {0}},
	{"event_pair_in_work_shared",
	 latency_shared,
	 "the same, end and next begin with one reading of the clock",
	 {0}},
	{"event_pair_in_work_call", latency_call, "the pair through libweft.so", {0}},
	{"event_pair_in_work_cold", latency_pair, "the pair, with the ring not in this CPU's cache", {0}},
	{"event_pair_in_work_off", latency_pair, "the pair when nothing records", {0}},
	{NULL, throughput_bare, "", {0}},
	{"event_pair_in_work_throughput_floor",
	 throughput_floor,
	 "two readings of the counter and two stores of 16 bytes into private memory",
	 {0}},
	{"event_pair_in_work_throughput", throughput_pair, "a pair of events around throughput-bound work", {0}},
	{"event_pair_in_work_throughput_shared", throughput_shared, "the same, one reading of the clock", {0}},
	{"event_pair_in_work_throughput_call", throughput_call, "the pair through libweft.so", {0}},
	{"event_pair_in_work_throughput_off", throughput_pair, "the pair when nothing records", {0}},
};

enum { N_VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static double timed(work_fn *fn)
{
	static struct chains chains = {{1, 2, 3, 4, 5, 6, 7, 8}};
	uint64_t begin, end;

	begin = bench_tick();
	fn(&chains, UNITS);
	end = bench_tick();
	return (double)(end - begin) * bench_ns_per_tick() / UNITS;
}

static int ends_in(const struct variant *v, const char *end)
{
	return v->name && strcmp(v->name + strlen(v->name) - strlen(end), end) == 0;
}

static int emits(const struct variant *v)
{
	return v->name && !ends_in(v, "_off") && !ends_in(v, "_floor");
}

static void run(struct weft_recorder *rec, int off, uint32_t bursts)
{
	for (uint32_t i = 0; i < bursts; i++) {
		for (int v = 0; v < N_VARIANTS; v++) {
			if (off ? emits(&variants[v]) : ends_in(&variants[v], "_off"))
				continue;
			timed(latency_bare); /* wakes the CPU up after the sleep */
			if (emits(&variants[v]) && !ends_in(&variants[v], "_cold"))
				bench_warm();
			bench_add(&variants[v].ns, timed(variants[v].fn));
			if (emits(&variants[v]))
				bench_drained(rec);
		}
	}
}

/* bench_print() with two things to hold the figure against: the bare work, and what the floor adds to it. */
static void print_one(const struct variant *v, double bare, double floor, double with, uint64_t lost)
{
	struct bench_samples ns = v->ns;

	printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"ns\", \"baseline\": %.6g, \"floor\": %.6g, "
	       "\"ratio\": %.5g, \"note\": \"%s: what it adds to the baseline, the bare work; the floor is what the "
	       "least "
	       "possible pair adds; p10 %.2f p90 %.2f min %.2f; %llu lost\"}\n",
	       v->name, with - bare, bare, floor - bare, with / bare, v->note, bench_quantile(&ns, 0.1) - bare,
	       bench_quantile(&ns, 0.9) - bare, bench_quantile(&ns, 0) - bare, (unsigned long long)lost);
}

static void print_all(uint64_t lost)
{
	double bare = 0, floor = 0;

	for (int v = 0; v < N_VARIANTS; v++) {
		double with = bench_median(&variants[v].ns);

		if (!variants[v].name) {
			bare = with;
			continue;
		}
		if (ends_in(&variants[v], "_floor"))
			floor = with;
		print_one(&variants[v], bare, floor, with, lost);
	}
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .drain_ns = 1000000};
	uint32_t bursts = bench_quick(argc, argv) ? 80 : 300;
	struct weft_recorder *rec;
	struct weft_error err;

	bench_ns_per_tick();
	rec = bench_record_apart(&opts);
	run(rec, 0, 20);
	for (int v = 0; v < N_VARIANTS; v++)
		variants[v].ns.n = 0;
	for (int round = 0; round < 4; round++) {
		run(rec, 0, bursts / 4);
		weft_recorder_pause(rec);
		run(rec, 1, bursts / 4);
		bench_check(weft_recorder_start(rec, &err), &err);
	}
	print_all(bench_stats(rec).lost);
	weft_recorder_close(rec, NULL);
	return 0;
}
