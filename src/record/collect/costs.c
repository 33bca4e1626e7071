/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/costs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "record/event/account.h"
#include "record/event/poll.h"
#include "record/package.h"
#include "record/ship.h"
#include "record/source.h"
#include "record/symbolize.h"
#include "record/tables/tables.h"
#include "record/thread/thread.h"
#include "weft/runtime.h"

#define FIRST_NS UINT64_C(20000000) /* from the start to the first step; then twice that, and so on */
#define REPORT_NS UINT64_C(1000000000)
#define SPREAD_NS UINT64_C(30000000000)  /* over which what is done once is counted */
#define SCARCE 0.5                       /* of what is allowed goes for what cannot be lowered: fewer wakes then, */
#define AMPLE 0.25                       /* until it is this little */
#define HOPELESS 0.5                     /* of what is allowed goes for what a source cannot lower */
#define HOPELESS_NS UINT64_C(2000000000) /* for so long */

/* What costs and is no source. */
enum { COLLECTOR = WEFT_COST_COLLECTOR - 1, TABLES = WEFT_COST_TABLES - 1 };
enum { SYMBOLS = WEFT_COST_SYMBOLS - 1, EVENTS = WEFT_COST_EVENTS - 1, SHIP = WEFT_COST_SHIP - 1 };

_Static_assert((uint32_t)WEFT_OFF == GOVERNOR_NO_LIMIT, "the option's value for no limit");
_Static_assert(SOURCE_FULL == GOVERNOR_FULL, "sources and the governor mean the same level");

/* The next source that says what it costs, from *i on; *at: its number among the costs. */
static const struct weft__source *next_that_costs(uint32_t *i, uint32_t *at)
{
	const struct weft__source *s;

	while ((s = weft__source_next(i)) && !s->cost)
		;
	*at = s ? s->costs - 1u : 0;
	return s;
}

static uint64_t cost_clock(clockid_t clock)
{
	struct timespec ts = {0, 0};

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void weft__costs_init(struct weft__costs *costs, uint32_t budget_ppm, struct weft__defs *facts)
{
	const struct weft__source *by_cost[COSTS] = {0}, *s;
	uint32_t i = 0, at;
	char text[24];

	*costs = (struct weft__costs){0};
	weft__governor_init(&costs->governor, budget_ppm);
	while ((s = next_that_costs(&i, &at))) {
		by_cost[at] = s;
		s->cost(&costs->seen[at]);
	}
	for (i = 0; i < COSTS; i++)
		weft__governor_add(&costs->governor, by_cost[i] ? by_cost[i]->least : 0,
				   by_cost[i] && by_cost[i]->hold);
	costs->gate_ns = UINT64_MAX;
	costs->tables_ns = weft__tables_cost();
	store_relaxed(&weft__account_credit.ns, WEFT__ACCOUNT_FREE);
	weft__costs_accounts(costs, 0);
	snprintf(text, sizeof(text), "%u", budget_ppm);
	weft__defs_fact(facts, "budget.ppm", budget_ppm == GOVERNOR_NO_LIMIT ? "none" : text);
}

void weft__costs_thread(struct weft__costs *costs)
{
	costs->collector_ns = 0;
}

/* What of the collector's work is for a source: as much as of its events. */
static uint64_t part_of(uint64_t events, uint64_t all_events, uint64_t ns)
{
	if (!events)
		return 0;
	return events < all_events ? (uint64_t)((double)ns * (double)events / (double)all_events) : ns;
}

uint64_t weft__costs_spread(struct weft__costs *costs, uint64_t now_ns)
{
	static const uint32_t of[COSTS_SPREAD] = {TABLES, SYMBOLS, SHIP};
	uint64_t passed = weft__costs_since(&costs->spread_at_ns, now_ns), left = 0;

	for (int i = 0; i < COSTS_SPREAD; i++) {
		uint64_t open = costs->spent_ns[of[i]] - costs->spread_ns[i];
		uint64_t part =
			passed < SPREAD_NS ? (uint64_t)((double)open * (double)passed / (double)SPREAD_NS) : open;

		costs->spread_ns[i] += part;
		left += open - part;
	}
	return left;
}

/* As the governor sees them: what would be gone without a source is its cost. */
static const uint64_t *as_caused(struct weft__costs *costs, uint64_t *ns)
{
	memcpy(ns, costs->spent_ns, sizeof(costs->spent_ns));
	for (uint32_t i = 0; i < COSTS; i++) {
		ns[COLLECTOR] += costs->fixed_ns[i] - costs->caused_ns[i];
		ns[i] += costs->caused_ns[i] - costs->fixed_ns[i];
	}
	ns[TABLES] = costs->spread_ns[0];
	ns[SYMBOLS] = costs->spread_ns[1];
	ns[SHIP] = costs->spread_ns[2];
	return ns;
}

/* What sources cost since the last time: the events and slots that the collector made for each, and, as the answer,
 * what of the collector's own time was for them. */
static uint64_t sources_measure(struct weft__costs *costs, struct weft__source_cost *more)
{
	const struct weft__source *s;
	uint64_t own_ns = 0;
	uint32_t i = 0, at;

	while ((s = next_that_costs(&i, &at))) {
		struct weft__source_cost now = {0}, *seen = &costs->seen[at];

		s->cost(&now);
		costs->spent_ns[at] += weft__costs_since(&seen->spent_ns, now.spent_ns);
		costs->fixed_ns[at] += weft__costs_since(&seen->fixed_ns, now.fixed_ns);
		own_ns += weft__costs_since(&seen->own_ns, now.own_ns);
		more[at].events = weft__costs_since(&seen->events, now.events);
		more[at].slots = weft__costs_since(&seen->slots, now.slots);
	}
	return own_ns;
}

static void costs_measure(struct weft__collector *c)
{
	struct weft__costs *costs = &c->costs;
	struct weft__source_cost more[COSTS] = {0};
	uint64_t collector = weft__costs_since(&costs->collector_ns, cost_clock(CLOCK_THREAD_CPUTIME_ID)) +
			     weft__costs_since(&costs->encoder_ns, weft__idle_cost(c->idle));
	uint64_t events = weft__costs_since(&costs->events, c->stats.events), slots = 0;
	uint64_t own = sources_measure(costs, more), *spent = costs->spent_ns, caused = 0;

	collector = collector > own ? collector - own : 0;
	spent[COLLECTOR] += collector;
	spent[TABLES] += weft__costs_since(&costs->tables_ns, weft__tables_cost());
	spent[SYMBOLS] += weft__costs_since(&costs->symbols_ns,
					    weft__symbolize_cost(c->segments.symbolize) + weft__package_cost());
	spent[SHIP] += weft__costs_since(&costs->ship_ns, weft__ship_cost(c->segments.ship));
	for (uint32_t i = 0; i < COSTS; i++) {
		uint64_t part = part_of(more[i].events, events, collector - caused);

		costs->caused_ns[i] += part;
		caused += part;
		slots += more[i].slots;
	}
	spent[EVENTS] += weft__costs_events(c, slots, collector - caused);
}

static void costs_apply(struct weft__costs *costs)
{
	const struct weft__source *s;
	uint32_t i = 0, at;

	while ((s = next_that_costs(&i, &at)))
		if (s->limit)
			costs->rate[at] = s->limit(costs->governor.sources[at].level);
}

/* Without a budget nobody is held. */
static int gates(const struct weft__costs *costs, const struct weft__source *s)
{
	return s->hold && s->works() && costs->governor.budget_ppm != GOVERNOR_NO_LIMIT;
}

static int gates_any(const struct weft__costs *costs)
{
	const struct weft__source *s;
	uint32_t i = 0, at;

	while ((s = next_that_costs(&i, &at)))
		if (gates(costs, s))
			return 1;
	return 0;
}

static void costs_begin(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__costs *costs = &c->costs;
	uint64_t ns[COSTS], later;

	costs_measure(c);
	costs->spread_at_ns = costs->spread_at_ns ? costs->spread_at_ns : now_ns;
	later = weft__costs_spread(costs, now_ns);
	costs->cpu_ns = weft__process_cpu();
	weft__governor_begin(&costs->governor, now_ns, costs->cpu_ns - later, as_caused(costs, ns));
	costs->looked_ns = now_ns;
	memset(costs->hopeless_ns, 0, sizeof(costs->hopeless_ns));
	costs->events_cost_ns = 0;
	costs->events_slots = 0;
	c->coarse.step_ns = now_ns;
	costs->pace_ns = FIRST_NS;
	costs->step_ns = now_ns + FIRST_NS;
	costs->gate_ns = gates_any(costs) ? costs->step_ns : UINT64_MAX;
	if (!costs->reported_at_ns)
		costs->reported_at_ns = now_ns;
	costs->running = 1;
	costs_apply(costs);
}

static uint64_t sum_of(const uint64_t *spent)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < COSTS; i++)
		sum += spent[i];
	return sum;
}

static int report_limited(struct weft__collector *c)
{
	if (!c->costs.governor.limited || c->costs.limited_segment == c->segments.sequence + 1)
		return 0;
	if (!c->costs.limited_segment)
		weft__log(WEFT_LOG_INFO, "rates are lowered, so that recording costs no more than the budget allows");
	weft__costs_facts(c, &c->news);
	return weft__stage_news(c);
}

/* What a source cannot lower may be most of what there is, as where a program hardly does more than switch. */
static void look_for_hopeless(struct weft__costs *costs, uint64_t now_ns, const uint64_t *fixed_ns)
{
	const struct weft__governor *g = &costs->governor;
	const struct weft__source *s;
	uint32_t i = 0, at;

	while ((s = next_that_costs(&i, &at))) {
		double share = (double)(costs->fixed_ns[at] - fixed_ns[at]) / (double)(now_ns - costs->looked_ns);
		uint64_t *since_ns = &costs->hopeless_ns[at];

		if (!s->give_up || g->budget_ppm == GOVERNOR_NO_LIMIT || share <= HOPELESS * g->allowed) {
			*since_ns = 0;
		} else if (!*since_ns) {
			*since_ns = now_ns;
		} else if (now_ns >= *since_ns + HOPELESS_NS) {
			*since_ns = 0;
			s->give_up();
		}
	}
	costs->looked_ns = now_ns;
}

/* To wake up is a good part of what the collector costs. */
static void spare_wakeups(const struct weft__governor *g)
{
	int dear = g->fixed > SCARCE * g->allowed;
	const struct weft__source *s;
	uint32_t i = 0;

	if (g->budget_ppm == GOVERNOR_NO_LIMIT || (!dear && g->fixed >= AMPLE * g->allowed))
		return;
	while ((s = weft__source_next(&i)))
		if (s->spare)
			s->spare(dear);
}

static int costs_step(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__costs *costs = &c->costs;
	uint64_t fixed_ns[COSTS];
	uint64_t before = sum_of(costs->spent_ns), cpu_ns = weft__process_cpu(), own, all, later, ns[COSTS];
	uint64_t base = costs->spent_ns[EVENTS] + costs->spent_ns[COLLECTOR];

	memcpy(fixed_ns, costs->fixed_ns, sizeof(fixed_ns));
	costs_measure(c);
	weft__costs_accounts(costs, now_ns - costs->looked_ns);
	later = weft__costs_spread(costs, now_ns);
	own = sum_of(costs->spent_ns) - before;
	all = weft__costs_since(&costs->cpu_ns, cpu_ns);
	costs->program_ns += all > own ? all - own : 0;
	weft__calm_see(&c->calm, now_ns, now_ns - costs->looked_ns, all > own ? all - own : 0, c->drained);
	if (weft__governor_step(&costs->governor, now_ns, cpu_ns - later, as_caused(costs, ns)))
		costs_apply(costs);
	weft__coarse_others(&c->coarse, now_ns - costs->looked_ns,
			    (double)(costs->spent_ns[EVENTS] + costs->spent_ns[COLLECTOR] - base) -
				    costs->events_cost_ns);
	if (weft__coarse_step(c, now_ns, costs->events_cost_ns, costs->events_slots, costs->governor.allowed))
		costs->pace_ns = FIRST_NS; /* whether that is enough is to be known soon */
	costs->events_cost_ns = 0;
	costs->events_slots = 0;
	spare_wakeups(&costs->governor);
	look_for_hopeless(costs, now_ns, fixed_ns);
	costs->pace_ns = 2 * costs->pace_ns < GOVERNOR_STEP_NS ? 2 * costs->pace_ns : GOVERNOR_STEP_NS;
	costs->step_ns =
		now_ns + (costs->pace_ns > weft__process_cpu_rest() ? costs->pace_ns : weft__process_cpu_rest());
	return report_limited(c);
}

static void costs_gate(struct weft__costs *costs, uint64_t now_ns)
{
	const struct weft__source *s;
	uint32_t i = 0, at;

	costs->gate_ns = UINT64_MAX;
	while ((s = next_that_costs(&i, &at))) {
		uint64_t next_ns;
		int on;

		if (!gates(costs, s))
			continue;
		on = weft__governor_gate(&costs->governor, at, now_ns, &next_ns);
		if (on != s->hold(SOURCE_ASK))
			s->hold(on ? SOURCE_LET : SOURCE_HOLD);
		weft__governor_really(&costs->governor, at, now_ns, s->hold(SOURCE_ASK));
		/* How expensive it is becomes known while it is on. */
		if (on && next_ns != UINT64_MAX && costs->step_ns > next_ns)
			costs->step_ns = next_ns;
		costs->gate_ns = next_ns < costs->gate_ns ? next_ns : costs->gate_ns;
	}
}

/* 1: some source has not found out yet what it costs. */
static int costs_try_out(void)
{
	const struct weft__source *s;
	uint32_t i = 0, at;

	while ((s = next_that_costs(&i, &at)))
		if (s->try_out && s->try_out())
			return 1;
	return 0;
}

void weft__costs_event(struct weft__costs *costs, const struct weft__cost *event)
{
	uint32_t i = costs->n_pending, field;

	if (i < COSTS_PENDING) {
		costs->pending[costs->n_pending++] = *event;
		return;
	}
	while (i-- > 0)
		if (costs->pending[i].kind == event->kind) {
			costs->pending[i].ns = event->ns;
			for (field = 0; field < COSTS_FIELDS; field++)
				costs->pending[i].fields[field] += event->fields[field];
			return;
		}
}

/* When there are too many, one that is reported already grows. */
static void report_cost(struct weft__costs *costs, const struct weft__cost *cost)
{
	uint32_t i = costs->n_pending;

	if (i < COSTS_PENDING) {
		costs->pending[costs->n_pending++] = *cost;
		return;
	}
	while (i-- > costs->n_gathered)
		if (costs->pending[i].kind == WEFT_KIND_COST &&
		    WEFT_FIELD(&costs->pending[i], COST, WHAT) == WEFT_FIELD(cost, COST, WHAT)) {
			costs->pending[i].ns = cost->ns;
			WEFT_FIELD(&costs->pending[i], COST, TIME) += WEFT_FIELD(cost, COST, TIME);
			WEFT_FIELD(&costs->pending[i], COST, SPAN) += WEFT_FIELD(cost, COST, SPAN);
			WEFT_FIELD(&costs->pending[i], COST, RATE) = WEFT_FIELD(cost, COST, RATE);
			return;
		}
}

static void report_costs(struct weft__costs *costs, uint64_t now_ns)
{
	for (uint32_t i = 0; i < COSTS; i++) {
		struct weft__cost cost = {now_ns,
					  WEFT_KIND_COST,
					  {i + 1, costs->spent_ns[i] - costs->reported_ns[i],
					   now_ns - costs->reported_at_ns, costs->rate[i]}};

		if (WEFT_FIELD(&cost, COST, TIME) || WEFT_FIELD(&cost, COST, RATE))
			report_cost(costs, &cost);
		costs->reported_ns[i] = costs->spent_ns[i];
	}
	costs->reported_at_ns = now_ns;
}

int weft__costs_gather(struct weft__collector *c)
{
	struct weft__costs *costs = &c->costs;
	struct weft_thread thread = {.tid = (uint32_t)syscall(SYS_gettid),
				     .worker = WEFT_WORKER_NONE,
				     .name = "weft-collector",
				     .first_ns = costs->n_pending ? costs->pending[0].ns : 0};
	int err;

	if (!costs->n_pending)
		return 0;
	if (!costs->stream)
		costs->stream = c->region->head->next_stream++;
	thread.id = costs->stream;
	if (costs->segment != c->segments.sequence + 1)
		weft__defs_thread(&c->defs, &thread);
	err = weft__batch_begin(c->batch, costs->stream, COSTS_RING(c->region->head), 0, costs->last_ns);
	if (err)
		return err;
	for (uint32_t i = 0; i < costs->n_pending && !err; i++) {
		const struct weft__cost *one = &costs->pending[i];

		err = weft__batch_add(c->batch, one->ns, one->kind, one->fields, weft__kind_fields(one->kind));
	}
	weft__batch_end(c->batch, 0);
	costs->n_gathered = costs->n_pending;
	return err == -EOVERFLOW ? 0 : err;
}

void weft__costs_settle(struct weft__collector *c, int written)
{
	struct weft__costs *costs = &c->costs;
	uint32_t n = costs->n_gathered;

	if (written && n) {
		costs->segment = c->segments.sequence + 1;
		costs->last_ns = costs->pending[n - 1].ns;
		costs->n_pending -= n;
		memmove(costs->pending, costs->pending + n, costs->n_pending * sizeof(costs->pending[0]));
	}
	costs->n_gathered = 0;
}

int weft__costs_tend(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__costs *costs = &c->costs;
	int err = 0;

	if (!weft_gate_on()) {
		costs->running = costs->trying = c->calm.on = 0;
		c->calm.since_ns = 0;
		costs->gate_ns = UINT64_MAX;
		return 0;
	}
	/* Before the governor looks at what the collector takes. */
	costs->trying = !costs->running && costs_try_out();
	if (costs->trying)
		return 0;
	if (!costs->running)
		costs_begin(c, now_ns);
	if (now_ns >= costs->step_ns)
		err = costs_step(c, now_ns);
	costs_gate(costs, now_ns);
	if (c->coarse.level == COARSE_UNTIMED)
		weft__polls_step(weft__clock_tick(c->timeline.source));
	weft__coarse_window(c, now_ns);
	if (now_ns >= costs->reported_at_ns + (c->calm.on ? CALM_REPORT_NS : REPORT_NS))
		report_costs(costs, now_ns);
	return err;
}

uint64_t weft__costs_due(const struct weft__costs *costs)
{
	return costs->running ? costs->gate_ns : costs->trying ? 0 : UINT64_MAX;
}

int weft__costs_report(struct weft__collector *c)
{
	uint64_t now_ns = weft__clock_mono();
	/* What costs next to nothing is not worth an event in a recording of a moment. */
	int worth = now_ns >= c->costs.reported_at_ns + REPORT_NS, err = 0;
	const struct weft__source *s;
	uint32_t i = 0, at;

	while (!worth && (s = next_that_costs(&i, &at)))
		worth = s->works && s->works();

	if (!c->costs.reported_at_ns || !worth)
		return 0;
	if (c->costs.running && weft_gate_on())
		err = costs_step(c, now_ns);
	else
		costs_measure(c);
	report_costs(&c->costs, now_ns);
	return err;
}

void weft__costs_stats(const struct weft__costs *costs, struct weft_recorder_stats *stats)
{
	stats->cost_ns = sum_of(costs->spent_ns);
	stats->program_ns = costs->program_ns;
	stats->limited = (uint32_t)costs->governor.limited;
}
