/* SPDX-License-Identifier: Apache-2.0 */
/* The governor with made-up costs and a made-up clock: whether the sum stays within the budget, and who gives way. */
#include "record/governor.h"

#include "weft_test.h"

#define MS UINT64_C(1000000)

/* A process that uses `cpus` CPUs, and sources that cost that share of a CPU at their full level. */
struct world {
	struct weft__governor g;
	uint64_t now_ns, cpu_ns;
	double cpus;
	double demand[GOVERNOR_SOURCES];
	uint64_t costs[GOVERNOR_SOURCES];
	uint64_t program_ns, spent_ns;
};

static void world_init(struct world *w, uint32_t budget_ppm, double cpus)
{
	memset(w, 0, sizeof(*w));
	weft__governor_init(&w->g, budget_ppm);
	w->cpus = cpus;
	w->now_ns = 1000 * MS;
}

static void world_begin(struct world *w)
{
	weft__governor_begin(&w->g, w->now_ns, w->cpu_ns, w->costs);
}

/* Time passes, in steps of 10 ms; the governor is asked as the collector does it. */
static void world_run(struct world *w, uint64_t ms)
{
	uint64_t until = w->now_ns + ms * MS, step = w->now_ns + GOVERNOR_STEP_NS;

	w->program_ns = w->spent_ns = 0;
	while (w->now_ns < until) {
		uint64_t dt = 10 * MS, next;

		w->now_ns += dt;
		w->cpu_ns += (uint64_t)((double)dt * w->cpus);
		w->program_ns += (uint64_t)((double)dt * w->cpus);
		for (uint32_t i = 0; i < w->g.n; i++) {
			const struct weft__governed *s = &w->g.sources[i];
			double part = s->gated ? s->on : (double)s->level / GOVERNOR_FULL;
			uint64_t cost = (uint64_t)((double)dt * w->demand[i] * part);

			w->costs[i] += cost;
			w->cpu_ns += cost;
			w->spent_ns += cost;
		}
		if (w->now_ns >= step) {
			weft__governor_step(&w->g, w->now_ns, w->cpu_ns, w->costs);
			step = w->now_ns + GOVERNOR_STEP_NS;
		}
		for (uint32_t i = 0; i < w->g.n; i++)
			if (w->g.sources[i].gated)
				weft__governor_gate(&w->g, i, w->now_ns, &next);
	}
}

static double share_of(const struct world *w)
{
	return (double)w->spent_ns / (double)w->program_ns;
}

TEST(what_fits_is_left_alone)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.002;
	w.demand[1] = 0.005;
	world_begin(&w);
	world_run(&w, 10000);
	CHECK_EQ(w.g.sources[1].level, GOVERNOR_FULL);
	CHECK(!w.g.limited);
}

TEST(a_source_that_burns_is_throttled_under_the_budget)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 2, 0);
	w.demand[0] = 0.002;
	w.demand[1] = 0.3;
	world_begin(&w);
	world_run(&w, 1000);
	CHECK(w.g.limited);
	world_run(&w, 15000);
	world_run(&w, 10000);
	CHECK(share_of(&w) <= 0.01);
	CHECK(share_of(&w) >= 0.007);
	CHECK(w.g.sources[1].level < GOVERNOR_FULL / 20);
}

TEST(a_cheap_source_does_not_suffer_from_an_expensive_one)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 102, 0);
	weft__governor_add(&w.g, 2, 1);
	w.demand[0] = 0.003;
	w.demand[1] = 0.25;
	world_begin(&w);
	world_run(&w, 20000);
	world_run(&w, 60000);
	CHECK_EQ(w.g.sources[0].level, GOVERNOR_FULL);
	CHECK(share_of(&w) <= 0.0105);
	CHECK(share_of(&w) >= 0.005);
}

TEST(a_debt_of_the_beginning_is_paid_back)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 2, 1);
	w.demand[0] = 0.3;
	world_begin(&w);
	world_run(&w, 100000); /* the first quarter of a second alone cost as much as is allowed in 7.5 s */
	CHECK(share_of(&w) <= 0.0105);
}

TEST(rates_come_back_slowly_when_there_is_room_again)
{
	struct world w;
	uint32_t low;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.05;
	world_begin(&w);
	world_run(&w, 20000);
	low = w.g.sources[0].level;
	CHECK(low < GOVERNOR_FULL / 4);
	w.demand[0] = 0.001;
	world_run(&w, 1000);
	CHECK(w.g.sources[0].level > low);
	CHECK(w.g.sources[0].level < 2 * low);
	world_run(&w, 30000);
	CHECK_EQ(w.g.sources[0].level, GOVERNOR_FULL);
	CHECK(!w.g.limited);
}

TEST(a_level_does_not_fall_below_its_least)
{
	struct world w;

	world_init(&w, 1000, 1);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.05; /* more than the budget by itself */
	w.demand[1] = 0.01;
	world_begin(&w);
	world_run(&w, 20000);
	CHECK_EQ(w.g.sources[1].level, 102);
}

TEST(a_program_that_idles_is_not_throttled_to_nothing)
{
	struct world w;

	world_init(&w, 10000, 0.001);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.0005;
	w.demand[1] = 0.0002;
	world_begin(&w);
	world_run(&w, 20000);
	CHECK_EQ(w.g.sources[1].level, GOVERNOR_FULL);
}

/* A service that waits most of the time: what it takes to record it at all is not the whole budget. */
TEST(a_program_that_uses_little_has_the_budget_of_half_a_cpu)
{
	struct world w;

	world_init(&w, 10000, 0.14);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	weft__governor_add(&w.g, 2, 1);
	w.demand[0] = 0.002;
	w.demand[1] = 0.0005;
	w.demand[2] = 0.001;
	world_begin(&w);
	world_run(&w, 20000);
	CHECK(!w.g.limited);
	w.demand[2] = 0.05;
	world_run(&w, 20000);
	CHECK(w.g.limited);
	CHECK(w.spent_ns <= (uint64_t)(0.005 * 20000 * 1.1) * MS);
}

TEST(more_cpus_allow_more)
{
	struct world w;

	world_init(&w, 10000, 8);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.05;
	world_begin(&w);
	world_run(&w, 20000);
	CHECK_EQ(w.g.sources[0].level, GOVERNOR_FULL);
}

TEST(without_a_limit_it_only_looks)
{
	struct world w;

	world_init(&w, GOVERNOR_NO_LIMIT, 1);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.5;
	world_begin(&w);
	world_run(&w, 20000);
	CHECK_EQ(w.g.sources[0].level, GOVERNOR_FULL);
}

TEST(a_burst_that_cannot_be_lowered_is_forgotten_in_time)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.001;
	w.demand[1] = 0.004;
	world_begin(&w);
	world_run(&w, 5000);
	w.costs[0] += 500 * MS; /* tables of a large library */
	world_run(&w, 1000);
	CHECK(w.g.limited);
	world_run(&w, 60000);
	CHECK_EQ(w.g.sources[1].level, GOVERNOR_FULL);
}

TEST(a_gate_is_on_for_its_part_of_the_time)
{
	struct weft__governor g;
	uint64_t zero[GOVERNOR_SOURCES] = {0}, now = 1000 * MS, on = 0, turns = 0, next;
	int was = 1;

	weft__governor_init(&g, 10000);
	weft__governor_add(&g, 2, 1);
	weft__governor_begin(&g, now, 0, zero);
	CHECK_EQ(weft__governor_gate(&g, 0, now, &next), 1);
	CHECK(next == UINT64_MAX);
	g.sources[0].level = GOVERNOR_FULL / 16;
	for (uint64_t end = now + 100000 * MS; now < end;) {
		int is = weft__governor_gate(&g, 0, now, &next);
		uint64_t to = next < end ? next : end;

		CHECK(next > now);
		on += is ? to - now : 0;
		turns += is != was;
		was = is;
		now = to;
	}
	CHECK(on >= 5900 * MS && on <= 6600 * MS);
	CHECK(turns >= 90 && turns <= 110);
}

TEST(rates_come_before_what_is_gated)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	weft__governor_add(&w.g, 2, 1);
	w.demand[0] = 0.0085; /* nearly all of the budget by itself */
	w.demand[1] = 0.0015;
	w.demand[2] = 0.3;
	world_begin(&w);
	world_run(&w, 20000);
	world_run(&w, 20000);
	CHECK_EQ(w.g.sources[1].level, GOVERNOR_FULL);
	CHECK(w.g.sources[2].level < GOVERNOR_FULL / 100);
}

TEST(first_samples_that_take_long_do_not_lower_the_rate_for_seconds)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 0, 0);
	weft__governor_add(&w.g, 102, 0);
	w.demand[0] = 0.004;
	w.demand[1] = 0.02;
	world_begin(&w);
	world_run(&w, 250);
	w.demand[1] = 0.0005;
	world_run(&w, 500);
	CHECK(w.g.sources[1].level >= GOVERNOR_FULL / 2);
}

TEST(what_is_gated_is_held_after_its_first_moments)
{
	struct world w;

	world_init(&w, 10000, 1);
	weft__governor_add(&w.g, 2, 1);
	w.demand[0] = 0.04;
	world_begin(&w);
	w.now_ns += 20 * MS;  /* the first step, after which little is known */
	w.costs[0] += 800000; /* 4 % of that */
	w.cpu_ns += 20 * MS;
	weft__governor_step(&w.g, w.now_ns, w.cpu_ns, w.costs);
	CHECK(w.g.sources[0].level < GOVERNOR_FULL / 2);
}
