/* SPDX-License-Identifier: Apache-2.0 */
/* What events cost the threads of the program. Their number is known for nothing; what one takes is a reading of the
 * clock, which is tried out, and little else. Accounts of CPU time measure themselves: they read the clock when they
 * begin and end. */
#include "base/atomic.h"
#include "record/collect/collector.h"
#include "record/collect/costs.h"
#include "record/event/account.h"
#include "record/ring/layout.h"
#include "weft/ring.h"

#define COLLECT_MOST_NS 60.0 /* what draining, encoding and writing a slot takes at most */
#define COLLECT_RUN_NS 300.0 /* and going to one more thread's for it, whose memory is in no cache */
#define EMIT_READS 100
#define EMIT_REST_NS 1.0
/* Of a poll that is only counted, besides its readings. Fitted to one run at 400,000 a second, seen from outside. */
#define POLL_REST_NS 25.0
#define COUNT_NS 2.5                     /* of a wake that is only counted */
#define ACCOUNTS_NS UINT64_C(1000000000) /* between two looks at all rings */
#define ACCOUNTS_SHARE 0.2               /* of what is allowed, for readings between polls */
#define ACCOUNTS_BURST_NS INT64_C(4000000)

/* An event is a reading of the clock and little else, which hides behind it. */
static double emit_cost(uint32_t gate)
{
	uint64_t least = UINT64_MAX;

	for (int round = 0; round < 8; round++) {
		uint64_t begin = weft_tick(gate), last = begin, took;

		for (int i = 0; i < EMIT_READS; i++)
			last = weft_tick(gate);
		took = last - begin;
		least = took < least ? took : least;
	}
	return (double)weft_tick_ns(least) / EMIT_READS + EMIT_REST_NS;
}

/* A poll or a park that is only counted is two readings of the clock, a wake is one instruction. */
double weft__costs_of_counts(const struct weft__costs *costs, const uint64_t *counts)
{
	return (double)counts[COARSE_ALL] * (costs->emit_ns + POLL_REST_NS / 2) +
	       (double)counts[COARSE_SLOW] * costs->emit_ns + (double)counts[COARSE_PARKS] * COUNT_NS +
	       (double)counts[COARSE_COUNTED] * 2 * COUNT_NS;
}

static uint64_t counting_cost(struct weft__collector *c)
{
	uint64_t more[COARSE_UNTIMED];

	for (uint32_t i = 0; i < COARSE_UNTIMED; i++)
		more[i] = weft__costs_since(&c->costs.passed[i], c->coarse.passed[i]);
	return (uint64_t)weft__costs_of_counts(&c->costs, more);
}

/* As many readings as the budget allows: 1,500 threads that wake up now and then would spend more on these than on
 * their work. */
void weft__costs_accounts(const struct weft__costs *costs, uint64_t passed_ns)
{
	int64_t *credit = &weft__account_credit.ns, has = load_relaxed(credit), more;

	if (costs->governor.budget_ppm == GOVERNOR_NO_LIMIT) {
		store_relaxed(credit, WEFT__ACCOUNT_FREE);
		return;
	}
	if (has == WEFT__ACCOUNT_FREE) {
		store_relaxed(credit, ACCOUNTS_BURST_NS);
		return;
	}
	more = (int64_t)(ACCOUNTS_SHARE * costs->governor.allowed * (double)passed_ns);
	more = has < ACCOUNTS_BURST_NS - more ? more : ACCOUNTS_BURST_NS - has;
	__atomic_fetch_add(credit, more, __ATOMIC_RELAXED);
}

static uint64_t accounts_cost(struct weft__collector *c)
{
	const struct rings_head *head = c->region->head;
	uint64_t now_ns = weft__clock_mono(), sum = 0, span_ns, ns;
	uint32_t n = load_acquire(&head->n_rings);

	if (now_ns < c->costs.accounts_ns + ACCOUNTS_NS)
		return 0;
	span_ns = weft__costs_since(&c->costs.accounts_ns, now_ns);
	for (uint32_t i = 0; i < n; i++)
		sum += load_relaxed(&ring_page_at(c->region->map, i)->account.spent);
	ns = weft_tick_ns(weft__costs_since(&c->costs.accounts, sum));
	c->costs.accounts_share = span_ns ? (double)ns / (double)span_ns : 0;
	return ns;
}

uint64_t weft__costs_events(struct weft__collector *c, uint64_t own, uint64_t collector_ns)
{
	struct weft__costs *costs = &c->costs;
	uint64_t slots = weft__costs_since(&costs->slots, c->drained);
	double emits, most;

	if (!costs->emit_ns && weft_gate_on())
		costs->emit_ns = emit_cost(weft_gate_on());
	slots = slots > own ? slots - own : 0;
	emits = (double)slots * costs->emit_ns;
	most = COLLECT_MOST_NS * (double)slots +
	       COLLECT_RUN_NS * (double)weft__costs_since(&costs->staged_runs, c->staged_runs);
	costs->events_slots += slots;
	costs->events_cost_ns += emits + ((double)collector_ns < most ? (double)collector_ns : most);
	return (uint64_t)emits + counting_cost(c) + accounts_cost(c);
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
