/* SPDX-License-Identifier: Apache-2.0 */
/* serial: CPU time is measured by samples */
/* Rates that change: what samples stand for stays right, and what weft costs is reported. */
#include "samples.h"

#include "record/collect/costs.h"

struct costs {
	uint64_t n, time_ns, span_ns, lowest_hz, highest_hz; /* of samples */
	uint64_t collector;                                  /* events */
	int degraded;
	char budget[32];
	struct samples *samples;
};

static void see(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const char *budget = weft_segment_fact(seg, "budget.ppm");
	struct costs *costs = data;

	samples_event(seg, ev, costs->samples);
	costs->degraded |= weft_segment_fact(seg, "degraded.budget") != NULL;
	snprintf(costs->budget, sizeof(costs->budget), "%s", budget ? budget : "");
	if (ev->kind != WEFT_KIND_COST)
		return;
	costs->collector += ev->fields[0] == WEFT_COST_COLLECTOR && ev->fields[1] > 0;
	if (ev->fields[0] != WEFT_COST_SAMPLES)
		return;
	costs->lowest_hz = !costs->n || ev->fields[3] < costs->lowest_hz ? ev->fields[3] : costs->lowest_hz;
	costs->highest_hz = ev->fields[3] > costs->highest_hz ? ev->fields[3] : costs->highest_hz;
	costs->n++;
	costs->time_ns += ev->fields[1];
	costs->span_ns += ev->fields[2];
}

static void end(struct weft_recorder *rec, struct costs *costs, struct samples *samples)
{
	memset(costs, 0, sizeof(*costs));
	memset(samples, 0, sizeof(*samples));
	costs->samples = samples;
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&samples->tally, 0);
	samples->tally.each = see;
	samples->tally.data = costs;
	tally_dir(&samples->tally, session_dir);
	CHECK_EQ(samples->tally.damaged, 0);
	CHECK_EQ(samples->tally.undefined, 0);
	CHECK_EQ(samples->tally.backwards, 0);
	tally_fini(&samples->tally);
	session_remove_dir();
}

static uint64_t own_ns(struct samples *samples)
{
	struct samples_thread *own = samples_thread(samples, samples_tid());

	return own ? own->ns : 0;
}

static void burn_at_changing_rates(uint32_t engine, uint32_t hz)
{
	static const uint32_t levels[] = {1024, 102, 1024, 400, 102, 700};
	struct weft_recorder *rec = samples_start(engine, hz);
	static struct samples samples;
	struct costs costs;
	uint64_t used;

	REQUIRE(rec);
	used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 0; i < 12; i++) {
		weft__engine_slow(levels[i % 6], 1024);
		for (int k = 0; k < 4; k++) {
			weft__engine_turn(session_now_ns());
			samples_burn(10 * MS);
		}
	}
	/* Until a sample that is on its way at the lowest rate is there. */
	weft__engine_slow(1024, 1024);
	weft__engine_turn(session_now_ns());
	samples_burn(50 * MS);
	used = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - used;
	end(rec, &costs, &samples);
	printf("\t%s: %llu samples, %.1f ms of %.1f\n",
	       engine == WEFT_ENGINE_TIMER  ? "timer"
	       : engine == WEFT_ENGINE_PERF ? "perf"
					    : "both",
	       (unsigned long long)samples.n, (double)own_ns(&samples) / 1e6, (double)used / 1e6);
	/* The last sample of all was up to an interval before the end. */
	CHECK(samples_near(own_ns(&samples) + 500 * MS / hz * 2, used, SCALED(5, 15)));
}

TEST(weights_of_samples_add_up_while_the_rate_of_timers_changes)
{
	SKIP_UNDER_TSAN();
	burn_at_changing_rates(WEFT_ENGINE_TIMER, 250);
}

TEST(weights_of_samples_add_up_while_the_rate_of_perf_events_changes)
{
	SKIP_UNDER_TSAN();
	burn_at_changing_rates(WEFT_ENGINE_PERF, 500);
}

TEST(weights_of_samples_add_up_while_the_rate_of_both_changes)
{
	SKIP_UNDER_TSAN();
	burn_at_changing_rates(WEFT_ENGINE_AUTO, 999);
}

TEST(a_budget_that_is_too_small_lowers_the_rate_and_that_is_recorded)
{
	struct weft_recorder_opts opts = {.sample_hz = 250, .sample_engine = WEFT_ENGINE_TIMER, .budget_ppm = 50};
	struct weft_recorder_stats stats;
	struct weft_recorder *rec;
	static struct samples samples;
	struct costs costs;

	SKIP_UNDER_TSAN();
	rec = session_start(&opts);
	REQUIRE(rec);
	/* The governor's first look may come when the program has hardly run. */
	CHECK(WAIT_FOR((samples_burn(10 * MS), stats = session_stats(rec),
			stats.sample_hz < 250 && stats.program_ns > 10 * MS)));
	CHECK(stats.limited);
	CHECK(stats.sample_hz < 250);
	CHECK(stats.sample_hz >= 24); /* no less than a tenth */
	CHECK(stats.cost_ns > 0);
	CHECK(stats.program_ns > 10 * MS);
	end(rec, &costs, &samples);
	CHECK(costs.n > 0);
	CHECK(costs.collector > 0);
	CHECK(costs.time_ns > 0);
	CHECK(costs.lowest_hz < 250);
	CHECK(costs.degraded);
	CHECK_STR(costs.budget, "50");
}

TEST(without_a_limit_nothing_is_lowered_and_the_cost_is_recorded_all_the_same)
{
	struct weft_recorder *rec;
	static struct samples samples;
	struct costs costs;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	REQUIRE(rec);
	samples_burn(150 * MS);
	CHECK(!session_stats(rec).limited);
	end(rec, &costs, &samples);
	CHECK_EQ(costs.lowest_hz, 250);
	CHECK_EQ(costs.highest_hz, 250);
	CHECK(costs.collector > 0);
	CHECK(!costs.degraded);
	CHECK_STR(costs.budget, "none");
	/* Between nothing and what the slowest machine would take for each. */
	CHECK(costs.time_ns > samples.n * 1000 && costs.time_ns < samples.n * 110000);
}

TEST(each_segment_has_the_cost_of_its_time)
{
	struct weft_recorder *rec;
	static struct samples samples;
	struct costs costs;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	REQUIRE(rec);
	samples_burn(50 * MS);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	samples_burn(50 * MS);
	end(rec, &costs, &samples);
	CHECK_EQ(samples.tally.segments, 2);
	CHECK(costs.n >= 2);
}

/* Tables of a library, and names: once, and more than the budget has for a second. */
TEST(what_is_made_once_is_counted_bit_by_bit)
{
	struct weft__costs costs = {.spread_at_ns = 1000 * MS};
	uint64_t now = 1000 * MS, *tables = &costs.spent_ns[WEFT_COST_TABLES - 1],
		 *names = &costs.spent_ns[WEFT_COST_SYMBOLS - 1], before;

	*tables = 60 * MS;
	CHECK_EQ(weft__costs_spread(&costs, now), 60 * MS);
	now += 250 * MS;
	CHECK(samples_near(weft__costs_spread(&costs, now), 60 * MS - 500000, 1));
	CHECK_EQ(costs.spread_ns[0], 500000); /* in a quarter of a second: 0.2 % of a CPU */
	for (int i = 0; i < 4 * 60; i++) {
		before = costs.spread_ns[0];
		now += 250 * MS;
		weft__costs_spread(&costs, now);
		CHECK(costs.spread_ns[0] >= before && costs.spread_ns[0] - before <= 500000);
	}
	CHECK(costs.spread_ns[0] > 50 * MS); /* after a minute */
	*names = 30 * MS;
	CHECK(weft__costs_spread(&costs, now) >= 30 * MS);
	CHECK_EQ(weft__costs_spread(&costs, now + 60000 * MS), 0); /* long after it is all there */
	CHECK_EQ(costs.spread_ns[0] + costs.spread_ns[1], 90 * MS);
}
