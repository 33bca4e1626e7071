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
#include "record/event/queue.h"
#include "record/sample/engine.h"
#include "record/sample/meter.h"
#include "record/switch/switch.h"
#include "record/symbolize.h"
#include "record/tables/tables.h"
#include "record/wait/wait.h"
#include "record/wall/wall.h"
#include "weft/runtime.h"

#define FIRST_NS UINT64_C(20000000) /* from the start to the first step; then twice that, and so on */
#define TELL_NS UINT64_C(1000000000)
#define SPREAD_NS UINT64_C(30000000000) /* over which what is done once is counted */
#define LEAST_RATE (GOVERNOR_FULL / 10)
#define LEAST_GATE (GOVERNOR_FULL / 512)
#define SCARCE 0.5                       /* of what is allowed goes for what cannot be lowered: fewer wakes then, */
#define AMPLE 0.25                       /* until it is this little */
#define HOPELESS 0.5                     /* of what is allowed goes for perf events, though they are off */
#define HOPELESS_NS UINT64_C(2000000000) /* for so long */

enum { COLLECTOR = WEFT_COST_COLLECTOR - 1, SAMPLES = WEFT_COST_SAMPLES - 1, SWITCHES = WEFT_COST_SWITCH - 1 };
enum { WALL = WEFT_COST_WALL - 1, WAITS = WEFT_COST_WAITS - 1, TABLES = WEFT_COST_TABLES - 1 };
enum { SYMBOLS = WEFT_COST_SYMBOLS - 1, EVENTS = WEFT_COST_EVENTS - 1 };

_Static_assert((uint32_t)WEFT_OFF == GOVERNOR_NO_LIMIT, "the option's value for no limit");

static uint64_t cost_clock(clockid_t clock)
{
	struct timespec ts = {0, 0};

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void weft__costs_init(struct weft__costs *costs, uint32_t budget_ppm, struct weft__defs *facts)
{
	static const struct {
		uint32_t least;
		int gated;
	} sources[COSTS] = {[SAMPLES] = {LEAST_RATE, 0},
			    [SWITCHES] = {LEAST_GATE, 1},
			    [WALL] = {LEAST_RATE, 0},
			    [WAITS] = {LEAST_GATE, 0}};
	char text[24];

	*costs = (struct weft__costs){0};
	weft__governor_init(&costs->governor, budget_ppm);
	for (uint32_t i = 0; i < COSTS; i++)
		weft__governor_add(&costs->governor, sources[i].least, sources[i].gated);
	costs->gate_ns = costs->turn_ns = UINT64_MAX;
	costs->waits_ns = weft__waits_cost();
	costs->tables_ns = weft__tables_cost();
	store_relaxed(&weft__account_credit.ns, WEFT__ACCOUNT_FREE);
	weft__costs_accounts(costs, 0);
	snprintf(text, sizeof(text), "%u", budget_ppm);
	weft__defs_fact(facts, "budget.ppm", budget_ppm == GOVERNOR_NO_LIMIT ? "none" : text);
}

void weft__costs_thread(struct weft__costs *costs)
{
	costs->collector_ns = 0;
	weft__meter_thread();
}

/* What of the collector's work is for context switches: as much as of its events. */
static uint64_t for_switches(struct weft__collector *c, uint64_t switches, uint64_t ns)
{
	uint64_t events = weft__costs_since(&c->costs.events, c->stats.events);

	if (!switches)
		return 0;
	return switches < events ? (uint64_t)((double)ns * (double)switches / (double)events) : ns;
}

uint64_t weft__costs_spread(struct weft__costs *costs, uint64_t now_ns)
{
	static const uint32_t of[2] = {TABLES, SYMBOLS};
	uint64_t passed = weft__costs_since(&costs->spread_at_ns, now_ns), left = 0;

	for (int i = 0; i < 2; i++) {
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
	ns[COLLECTOR] -= costs->for_switches_ns;
	ns[SWITCHES] += costs->for_switches_ns;
	ns[SAMPLES] -= costs->fixed_ns; /* what no lower rate would save */
	ns[COLLECTOR] += costs->fixed_ns;
	ns[TABLES] = costs->spread_ns[0];
	ns[SYMBOLS] = costs->spread_ns[1];
	return ns;
}

static void costs_measure(struct weft__collector *c)
{
	struct weft__costs *costs = &c->costs;
	struct weft__engine_counts counts = weft__engine_counts();
	uint64_t collector = weft__costs_since(&costs->collector_ns, cost_clock(CLOCK_THREAD_CPUTIME_ID)) +
			     weft__costs_since(&costs->encoder_ns, weft__idle_cost(c->idle));
	uint64_t wall = weft__costs_since(&costs->wall_ns, weft__wall_cost()), *spent = costs->spent_ns;
	uint64_t switches = weft__costs_since(&costs->switches, weft__switch_counts().switches);
	uint32_t switch_ns = weft__switch_cost_ns();
	uint64_t for_switches_ns;

	costs->switch_ns = switch_ns ? switch_ns : costs->switch_ns;
	spent[COLLECTOR] += collector > wall ? collector - wall : 0; /* looks at threads are made in this thread */
	spent[WALL] += wall;
	spent[SAMPLES] = counts.spent_ns + weft__meter_ns(&costs->fixed_ns);
	spent[SWITCHES] += switches * costs->switch_ns;
	spent[WAITS] += weft__costs_since(&costs->waits_ns, weft__waits_cost());
	spent[TABLES] += weft__costs_since(&costs->tables_ns, weft__tables_cost());
	spent[SYMBOLS] += weft__costs_since(&costs->symbols_ns, weft__symbolize_cost(c->segments.symbolize));
	collector = collector > wall ? collector - wall : 0;
	for_switches_ns = for_switches(c, switches, collector);
	costs->for_switches_ns += for_switches_ns;
	spent[EVENTS] += weft__costs_events(c, switches, collector - for_switches_ns);
}

static uint32_t cost_level(const struct weft__costs *costs, uint32_t source)
{
	return costs->governor.sources[source].level;
}

static void costs_apply(struct weft__costs *costs)
{
	uint32_t wall = weft__wall_hz(), level = cost_level(costs, WALL);

	if (weft__engine_hz())
		costs->rate[SAMPLES] = weft__engine_slow(cost_level(costs, SAMPLES), GOVERNOR_FULL);
	costs->turn_ns = 0;
	costs->rate[WALL] = level == GOVERNOR_FULL ? wall : wall * level / GOVERNOR_FULL + 1;
	weft__waits_limit(cost_level(costs, WAITS));
	weft__wall_limit(level == GOVERNOR_FULL ? 0 : costs->rate[WALL]);
	costs->rate[SWITCHES] = weft__switch_works() ? cost_level(costs, SWITCHES) * 1000 / GOVERNOR_FULL : 0;
}

/* Without a budget nobody holds the records of switches. */
static int gates(const struct weft__costs *costs)
{
	return weft__switch_works() && costs->governor.budget_ppm != GOVERNOR_NO_LIMIT;
}

static void costs_begin(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__costs *costs = &c->costs;
	uint64_t ns[COSTS], later;

	costs_measure(c);
	costs->spread_at_ns = costs->spread_at_ns ? costs->spread_at_ns : now_ns;
	later = weft__costs_spread(costs, now_ns);
	costs->cpu_ns = cost_clock(CLOCK_PROCESS_CPUTIME_ID);
	weft__governor_begin(&costs->governor, now_ns, costs->cpu_ns - later, as_caused(costs, ns));
	costs->looked_ns = now_ns;
	costs->hopeless_ns = 0;
	costs->events_cost_ns = 0;
	costs->events_slots = 0;
	c->coarse.step_ns = now_ns;
	costs->pace_ns = FIRST_NS;
	costs->step_ns = now_ns + FIRST_NS;
	costs->gate_ns = gates(costs) ? costs->step_ns : UINT64_MAX;
	if (!costs->told_at_ns)
		costs->told_at_ns = now_ns;
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

static int tell_limited(struct weft__collector *c)
{
	if (!c->costs.governor.limited || c->costs.limited_segment == c->segments.sequence + 1)
		return 0;
	if (!c->costs.limited_segment)
		weft__log(WEFT_LOG_INFO, "rates are lowered, so that recording costs no more than the budget allows");
	weft__costs_facts(c, &c->news);
	return weft__stage_news(c);
}

/* An event adds to each context switch whether it is on or off, and a program may do hardly anything else. */
static void look_for_hopeless(struct weft__costs *costs, uint64_t now_ns, uint64_t fixed_ns)
{
	const struct weft__governor *g = &costs->governor;
	double share = (double)(costs->fixed_ns - fixed_ns) / (double)(now_ns - costs->looked_ns);

	if (g->budget_ppm == GOVERNOR_NO_LIMIT || share <= HOPELESS * g->allowed) {
		costs->hopeless_ns = 0;
	} else if (!costs->hopeless_ns) {
		costs->hopeless_ns = now_ns;
	} else if (now_ns >= costs->hopeless_ns + HOPELESS_NS) {
		costs->hopeless_ns = 0;
		if (weft__engine_give_up())
			weft__log(WEFT_LOG_INFO,
				  "perf events cost too much at context switches; timers sample instead");
	}
	costs->looked_ns = now_ns;
}

/* To wake up for a look at a queue is a good part of what the collector costs. */
static void set_queue_pace(const struct weft__governor *g)
{
	if (g->budget_ppm == GOVERNOR_NO_LIMIT)
		return;
	if (g->fixed > SCARCE * g->allowed)
		weft__queue_spare(1);
	else if (g->fixed < AMPLE * g->allowed)
		weft__queue_spare(0);
}

static int costs_step(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__costs *costs = &c->costs;
	uint64_t fixed_ns = costs->fixed_ns;
	uint64_t before = sum_of(costs->spent_ns), cpu_ns = cost_clock(CLOCK_PROCESS_CPUTIME_ID), own, all, later,
		 ns[COSTS];

	costs_measure(c);
	weft__costs_accounts(costs, now_ns - costs->looked_ns);
	later = weft__costs_spread(costs, now_ns);
	own = sum_of(costs->spent_ns) - before;
	all = weft__costs_since(&costs->cpu_ns, cpu_ns);
	costs->program_ns += all > own ? all - own : 0;
	if (weft__governor_step(&costs->governor, now_ns, cpu_ns - later, as_caused(costs, ns)))
		costs_apply(costs);
	if (weft__coarse_step(c, now_ns, costs->events_cost_ns, costs->events_slots, costs->governor.allowed))
		costs->pace_ns = FIRST_NS; /* whether that is enough is to be known soon */
	costs->events_cost_ns = 0;
	costs->events_slots = 0;
	set_queue_pace(&costs->governor);
	if (weft__engine_look(now_ns))
		costs->turn_ns = 0;
	look_for_hopeless(costs, now_ns, fixed_ns);
	costs->pace_ns = 2 * costs->pace_ns < GOVERNOR_STEP_NS ? 2 * costs->pace_ns : GOVERNOR_STEP_NS;
	costs->step_ns = now_ns + costs->pace_ns;
	return tell_limited(c);
}

static void costs_gate(struct weft__costs *costs, uint64_t now_ns)
{
	int on = weft__governor_gate(&costs->governor, SWITCHES, now_ns, &costs->gate_ns);

	if (on != (weft__switch_cost_ns() != 0))
		weft__switch_hold(!on);
	weft__governor_really(&costs->governor, SWITCHES, now_ns, weft__switch_cost_ns() != 0);
	/* How expensive they are becomes known while they are on. */
	if (on && costs->gate_ns != UINT64_MAX && costs->step_ns > costs->gate_ns)
		costs->step_ns = costs->gate_ns;
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

/* When there are too many, one that is told already grows. */
static void tell_cost(struct weft__costs *costs, const struct weft__cost *cost)
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

static void tell_costs(struct weft__costs *costs, uint64_t now_ns)
{
	for (uint32_t i = 0; i < COSTS; i++) {
		struct weft__cost cost = {now_ns,
					  WEFT_KIND_COST,
					  {i + 1, costs->spent_ns[i] - costs->told_ns[i], now_ns - costs->told_at_ns,
					   costs->rate[i]}};

		if (WEFT_FIELD(&cost, COST, TIME) || WEFT_FIELD(&cost, COST, RATE))
			tell_cost(costs, &cost);
		costs->told_ns[i] = costs->spent_ns[i];
	}
	costs->told_at_ns = now_ns;
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
	err = weft__batch_begin(c->batch, costs->stream, c->region->head->max_rings, 0, costs->last_ns);
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
		costs->running = costs->trying = 0;
		costs->gate_ns = costs->turn_ns = UINT64_MAX;
		return 0;
	}
	/* Before the governor looks at what the collector takes. */
	costs->trying = !costs->running && weft__meter_try();
	if (costs->trying)
		return 0;
	if (!costs->running)
		costs_begin(c, now_ns);
	if (now_ns >= costs->step_ns)
		err = costs_step(c, now_ns);
	if (gates(costs))
		costs_gate(costs, now_ns);
	if (now_ns >= costs->turn_ns)
		costs->turn_ns = weft__engine_turn(now_ns);
	if (now_ns >= costs->told_at_ns + TELL_NS)
		tell_costs(costs, now_ns);
	return err;
}

uint64_t weft__costs_due(const struct weft__costs *costs)
{
	uint64_t due = costs->gate_ns < costs->turn_ns ? costs->gate_ns : costs->turn_ns;

	return costs->running ? due : costs->trying ? 0 : UINT64_MAX;
}

int weft__costs_tell(struct weft__collector *c)
{
	uint64_t now_ns = weft__clock_mono();
	/* What costs next to nothing is not worth an event in a recording of a moment. */
	int worth =
		weft__engine_hz() || weft__switch_works() || weft__wall_hz() || now_ns >= c->costs.told_at_ns + TELL_NS;
	int err = 0;

	if (!c->costs.told_at_ns || !worth)
		return 0;
	if (c->costs.running && weft_gate_on())
		err = costs_step(c, now_ns);
	else
		costs_measure(c);
	tell_costs(&c->costs, now_ns);
	return err;
}

void weft__costs_facts(struct weft__collector *c, struct weft__defs *defs)
{
	weft__coarse_facts(&c->coarse, defs);
	if (!c->costs.governor.limited)
		return;
	c->costs.limited_segment = c->segments.sequence + 1;
	weft__defs_fact(defs, "degraded.budget",
			"rates were lowered to stay within the budget; events of kind cost have those in force");
}

void weft__costs_stats(const struct weft__costs *costs, struct weft_recorder_stats *stats)
{
	stats->cost_ns = sum_of(costs->spent_ns);
	stats->program_ns = costs->program_ns;
	stats->sample_hz = costs->rate[SAMPLES];
	stats->limited = (uint32_t)costs->governor.limited;
}
