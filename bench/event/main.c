/* SPDX-License-Identifier: Apache-2.0 */
/* What an event costs in a tight loop: inline, through the library, and when nothing records.
 *
 * A ring must not run full while it is timed, so events come in bursts, and between two bursts the collector empties
 * the ring, untimed. Bursts of the variants alternate, so that whatever the machine does meanwhile falls on all of
 * them. */
#include "bench.h"
#include "event/event.h"

#define SLOTS_DEFAULT 4096
#define BIG_RING_BYTES (64u << 20)

struct variant {
	burst_fn *fn;
	uint32_t pairs;                   /* in one burst */
	enum { QUIET, WARM, COLD } emits; /* events; with the ring in the cache before, or as it is */
	struct bench_samples ns;          /* per event */
};

static double timed(burst_fn *fn, struct floor_ring *ring, uint32_t pairs)
{
	uint64_t begin, end;

	begin = bench_tick();
	fn(ring, pairs);
	end = bench_tick();
	return (double)(end - begin) * bench_ns_per_tick() / (2.0 * pairs);
}

static void run(struct variant *variants, size_t n, struct floor_ring *ring, struct weft_recorder *rec, uint32_t bursts)
{
	uint32_t i;
	size_t v;

	for (i = 0; i < bursts; i++) {
		for (v = 0; v < n; v++) {
			timed(burst_floor, ring, 200); /* wakes the CPU up after the sleep */
			if (variants[v].emits == WARM && rec)
				bench_warm();
			bench_add(&variants[v].ns, timed(variants[v].fn, ring, variants[v].pairs));
			if (variants[v].emits && rec)
				bench_drained(rec);
		}
	}
}

static struct floor_ring floor_ring(uint64_t slots)
{
	struct floor_ring ring = {.slots = malloc(slots * sizeof(*ring.slots)), .mask = slots - 1};

	if (!ring.slots)
		abort();
	memset(ring.slots, 1, slots * sizeof(*ring.slots));
	return ring;
}

static void print_one(const char *name, struct variant *v, struct variant *floor, const char *note, uint64_t lost)
{
	double median = bench_median(&v->ns), base = bench_median(&floor->ns);

	bench_print(name, median, "ns", "floor", base, median / base,
		    "%s; bursts: p10 %.2f p90 %.2f min %.2f, floor p10 %.2f p90 %.2f; %llu lost", note,
		    bench_quantile(&v->ns, 0.1), bench_quantile(&v->ns, 0.9), bench_quantile(&v->ns, 0),
		    bench_quantile(&floor->ns, 0.1), bench_quantile(&floor->ns, 0.9), (unsigned long long)lost);
}

static void measure_on(int quick)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .drain_ns = 1000000};
	struct weft_recorder *rec = bench_record_apart(&opts);
	struct floor_ring ring = floor_ring(SLOTS_DEFAULT);
	struct variant v[] = {
		{burst_floor, 1000, QUIET, {0}}, {burst_inline, 1000, WARM, {0}}, {burst_call, 1000, WARM, {0}},
		{burst_tick, 1000, QUIET, {0}},  {burst_inline, 1800, WARM, {0}}, {burst_inline, 1000, COLD, {0}},
	};
	const size_t n = sizeof(v) / sizeof(v[0]);
	uint64_t lost;

	run(v, n, &ring, rec, 20);
	for (size_t i = 0; i < n; i++)
		v[i].ns.n = 0;
	run(v, n, &ring, rec, quick ? 100 : 400);
	lost = bench_stats(rec).lost;
	print_one("event_cost", &v[1], &v[0], "weft_poll_begin and weft_poll_end, ring of 64 KiB, bursts of 2000",
		  lost);
	print_one("event_cost_call", &v[2], &v[0], "the same through libweft.so", lost);
	print_one("event_cost_wake", &v[4], &v[0],
		  "as event_cost, bursts of 3600: the collector is woken at half a ring and drains meanwhile", lost);
	print_one("event_cost_cold", &v[5], &v[0],
		  "as event_cost, the ring where the collector and others left it, not in this CPU's cache", lost);
	bench_print("event_cost_tick", bench_median(&v[1].ns), "ns", "floor", bench_median(&v[3].ns),
		    bench_median(&v[1].ns) / bench_median(&v[3].ns),
		    "as event_cost, against reading the counter alone");
	weft_recorder_close(rec, NULL);
	free(ring.slots);
}

/* Modes that write nothing: no ring to be emptied. */
static void measure_pair(const char *name, uint32_t mode, const char *note, int quick)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .poll_mode = mode};
	struct weft_recorder *rec = bench_record_apart(&opts);
	struct floor_ring ring = floor_ring(SLOTS_DEFAULT);
	struct variant v[] = {{burst_tick, 1000, QUIET, {0}},
			      {burst_inline, 1000, QUIET, {0}},
			      {burst_next, 1000, QUIET, {0}},
			      {burst_call, 1000, QUIET, {0}}};
	double pair, floor;

	run(v, 4, &ring, NULL, 50);
	for (size_t i = 0; i < 4; i++)
		v[i].ns.n = 0;
	run(v, 4, &ring, NULL, quick ? 400 : 2000);
	pair = 2 * bench_median(&v[1].ns);
	floor = 2 * bench_median(&v[0].ns);
	bench_print(name, pair, "ns", "floor", floor, pair / floor,
		    "%s, against reading the counter twice; p10 %.2f p90 %.2f; through libweft.so %.2f; weft_poll_next "
		    "alone "
		    "%.2f against %.2f for one reading",
		    note, 2 * bench_quantile(&v[1].ns, 0.1), 2 * bench_quantile(&v[1].ns, 0.9),
		    2 * bench_median(&v[3].ns), bench_median(&v[2].ns), floor / 2);
	weft_recorder_close(rec, NULL);
	free(ring.slots);
}

static void measure_big(int quick)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .drain_ns = 1000000, .ring_bytes = BIG_RING_BYTES};
	struct weft_recorder *rec = bench_record_apart(&opts);
	struct floor_ring ring = floor_ring(BIG_RING_BYTES / sizeof(struct floor_slot));
	struct variant v[] = {{burst_floor, 50000, QUIET, {0}}, {burst_inline, 50000, COLD, {0}}};

	run(v, 2, &ring, rec, 50); /* more than once around: no page is new afterwards */
	v[0].ns.n = v[1].ns.n = 0;
	run(v, 2, &ring, rec, quick ? 20 : 60);
	print_one("event_cost_big_ring", &v[1], &v[0], "as event_cost, ring of 64 MiB, bursts of 100000",
		  bench_stats(rec).lost);
	weft_recorder_close(rec, NULL);
	free(ring.slots);
}

static void measure_off(int quick)
{
	struct floor_ring ring = floor_ring(SLOTS_DEFAULT);
	struct variant v[] = {
		{burst_empty, 100000, QUIET, {0}},
		{burst_wake_inline, 100000, QUIET, {0}},
		{burst_wake_call, 100000, QUIET, {0}},
	};
	/* These bursts have one event where timed() counts two. */
	double empty, on_top;

	run(v, 3, &ring, NULL, quick ? 100 : 500);
	empty = 2 * bench_median(&v[0].ns);
	on_top = 2 * bench_median(&v[1].ns) - empty;
	bench_print(
		"event_cost_off", on_top, "ns", "floor", empty, (empty + on_top) / empty,
		"what weft_wake adds to a turn of an empty loop (the floor) when nothing records; p10 %.2f p90 %.2f",
		2 * bench_quantile(&v[1].ns, 0.1) - empty, 2 * bench_quantile(&v[1].ns, 0.9) - empty);
	on_top = 2 * bench_median(&v[2].ns) - empty;
	bench_print("event_cost_off_call", on_top, "ns", "floor", empty, (empty + on_top) / empty,
		    "the same through libweft.so; p10 %.2f p90 %.2f", 2 * bench_quantile(&v[2].ns, 0.1) - empty,
		    2 * bench_quantile(&v[2].ns, 0.9) - empty);
	free(ring.slots);
}

int main(int argc, char **argv)
{
	int quick = bench_quick(argc, argv);

	bench_ns_per_tick();
	measure_on(quick);
	measure_pair("hook_pair_caught", WEFT_POLLS_CAUGHT,
		     "weft_poll_begin and weft_poll_end in poll mode caught, nothing caught", quick);
	measure_pair("hook_pair_slow", WEFT_POLLS_SLOW, "the same in poll mode slow, none slow", quick);
	measure_big(quick);
	measure_off(quick);
	return 0;
}
