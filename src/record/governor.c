/* SPDX-License-Identifier: Apache-2.0 */
#include "record/governor.h"

#include <string.h>

#define STEP_LEAST_NS 10000000
#define PROGRAM_LEAST 0.5   /* of one CPU: a program that idles is not throttled to nothing */
#define SPARED 0.25         /* of what is allowed is left to rates, in debt too; what is gated can do without */
#define MARGIN 0.9          /* of the budget is given out, since rates have to fall before it is exceeded */
#define REMEMBER_S 2.0      /* costs, of late */
#define BELIEVE_S 0.5       /* that a rate costs more than it did */
#define REPAY_S 5.0         /* a debt */
#define DEBT_MOST_S 10.0    /* of what is allowed: one large library is no reason to be blind for minutes */
#define CREDIT_MOST_S 1.0   /* and quiet times none to be loud */
#define RISE 0.25           /* of its level, in a second */
#define RISE_GATED 1.0      /* of what is on for a part of the time */
#define STEADY 0.03         /* changes of levels below that are left */
#define GATE_NS 2000000000u /* once on and once off */
#define GATE_MOST_NS UINT64_C(10000000000)
#define GATE_ON_NS UINT64_C(20000000) /* at least, since switching costs */

void weft__governor_init(struct weft__governor *g, uint32_t budget_ppm)
{
	memset(g, 0, sizeof(*g));
	g->budget_ppm = budget_ppm;
}

uint32_t weft__governor_add(struct weft__governor *g, uint32_t least, int gated)
{
	g->sources[g->n] = (struct weft__governed){.least = least, .gated = gated, .level = GOVERNOR_FULL};
	return g->n++;
}

void weft__governor_begin(struct weft__governor *g, uint64_t now_ns, uint64_t cpu_ns, const uint64_t *costs_ns)
{
	for (uint32_t i = 0; i < g->n; i++) {
		struct weft__governed *s = &g->sources[i];

		s->seen_ns = costs_ns[i];
		s->on |= s->level == GOVERNOR_FULL;
		s->really = s->on;
		s->on_ns = 0;
		s->gate_ns = now_ns - (s->counted_ns - s->gate_ns); /* it goes on where it was */
		s->counted_ns = s->learned_ns = now_ns;
	}
	g->at_ns = now_ns;
	g->cpu_ns = cpu_ns;
}

static double clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

static void count_on(struct weft__governed *s, uint64_t now_ns)
{
	if (s->really && now_ns > s->counted_ns)
		s->on_ns += now_ns - s->counted_ns;
	s->counted_ns = now_ns;
}

/* What it would cost at its full level. More is believed at once, less after a while; but of a rate that nobody
 * lowered yet, a moment is believed for as much as it is of a step, since a program that starts is not like what it
 * will be. What is gated is dear: each moment that it is on too long is missing from what comes. */
static void learn_demand(struct weft__governed *s, double spent_ns, uint64_t now_ns, double ns)
{
	double on, demand, seconds,
		trust = s->level == GOVERNOR_FULL && !s->gated ? clamp(ns / GOVERNOR_STEP_NS, 0, 1) : 1;

	count_on(s, now_ns);
	on = s->gated ? (double)s->on_ns / ns : (double)s->level / GOVERNOR_FULL;
	s->on_ns = 0;
	if (on < 0.005)
		return;
	demand = spent_ns / ns / on;
	seconds = (double)(now_ns - s->learned_ns) / 1e9;
	if (!s->gated) /* the first samples find nothing in any cache */
		trust *= seconds / (seconds + BELIEVE_S);
	s->learned_ns = now_ns;
	s->demand += (demand > s->demand ? trust : seconds / (seconds + REMEMBER_S)) * (demand - s->demand);
}

/* The largest share that a source may have so that all of them, the gated ones or the others, have no more than
 * there is. */
static double equal_share(const struct weft__governor *g, double available, int gated)
{
	double share = 0, left;
	uint32_t i;

	/* Each round those that need less than the share drop out and leave the rest to the others. */
	for (uint32_t rounds = 0; rounds <= g->n; rounds++) {
		uint32_t wanting = 0;

		left = available;
		for (i = 0; i < g->n; i++) {
			const struct weft__governed *s = &g->sources[i];

			if (!s->least || s->gated != gated)
				continue;
			if (rounds && s->demand <= share)
				left -= s->demand;
			else
				wanting++;
		}
		if (!wanting)
			return available > share ? available : share;
		share = left / wanting;
	}
	return share;
}

static int set_level(struct weft__governed *s, double share, double seconds)
{
	double target = s->demand <= share ? GOVERNOR_FULL : share > 0 ? GOVERNOR_FULL * share / s->demand : 0;
	double level = s->level;
	uint32_t before = s->level;

	target = clamp(target, s->least, GOVERNOR_FULL);
	if (target > level)
		target = clamp(level + 1 + (s->gated ? RISE_GATED : RISE) * seconds * level, 0, target);
	if (target >= GOVERNOR_FULL || target > level * (1 + STEADY) || target < level * (1 - STEADY))
		s->level = (uint32_t)target;
	return s->level != before;
}

static int set_levels(struct weft__governor *g, double seconds)
{
	double available = MARGIN * g->allowed - g->fixed + (g->credit_ns < 0 ? g->credit_ns / (REPAY_S * 1e9) : 0);
	double share = equal_share(g, clamp(available, SPARED * g->allowed, 1e6), 0);
	int changed = 0;

	g->limited = 0;
	for (int gated = 0; gated <= 1; gated++) {
		for (uint32_t i = 0; i < g->n; i++) {
			struct weft__governed *s = &g->sources[i];

			if (!s->least || s->gated != gated)
				continue;
			changed |= set_level(s, share, seconds);
			g->limited |= s->level != GOVERNOR_FULL;
			available -= s->demand < share ? s->demand : share;
		}
		share = equal_share(g, clamp(available, 0, 1e6), 1);
	}
	return changed;
}

int weft__governor_step(struct weft__governor *g, uint64_t now_ns, uint64_t cpu_ns, const uint64_t *costs_ns)
{
	double ns = (double)(now_ns - g->at_ns), seconds = ns / 1e9, part = seconds / (seconds + REMEMBER_S);
	double all = 0, fixed = 0, program, allowed;

	if (now_ns < g->at_ns + STEP_LEAST_NS)
		return 0;
	for (uint32_t i = 0; i < g->n; i++) {
		struct weft__governed *s = &g->sources[i];
		double spent = costs_ns[i] > s->seen_ns ? (double)(costs_ns[i] - s->seen_ns) : 0;

		s->seen_ns = costs_ns[i];
		all += spent;
		if (s->least)
			learn_demand(s, spent, now_ns, ns);
		else
			fixed += spent / ns;
	}
	program = (cpu_ns > g->cpu_ns ? (double)(cpu_ns - g->cpu_ns) : 0) - all;
	allowed = clamp(program / ns, PROGRAM_LEAST, 1e6) * g->budget_ppm / 1e6;
	g->allowed = g->allowed > 0 ? g->allowed + part * (allowed - g->allowed) : allowed;
	g->fixed += part * (fixed - g->fixed);
	g->credit_ns = clamp(g->credit_ns + allowed * ns - all, -DEBT_MOST_S * 1e9 * g->allowed,
			     CREDIT_MOST_S * 1e9 * g->allowed);
	g->at_ns = now_ns;
	g->cpu_ns = cpu_ns;
	return g->budget_ppm == GOVERNOR_NO_LIMIT ? 0 : set_levels(g, seconds);
}

int weft__governor_gate(struct weft__governor *g, uint32_t source, uint64_t now_ns, uint64_t *next_ns)
{
	struct weft__governed *s = &g->sources[source];
	uint64_t whole = GATE_ON_NS * GOVERNOR_FULL / s->level, on, part;

	count_on(s, now_ns);
	*next_ns = UINT64_MAX;
	if (s->level == GOVERNOR_FULL) {
		if (!s->on)
			s->gate_ns = now_ns;
		s->on = s->really = 1;
		return 1;
	}
	whole = whole < GATE_NS ? GATE_NS : whole > GATE_MOST_NS ? GATE_MOST_NS : whole;
	on = whole / GOVERNOR_FULL * s->level;
	part = s->on ? on : whole - on;
	if (now_ns >= s->gate_ns + part) {
		s->on = !s->on;
		s->gate_ns = now_ns;
		part = s->on ? on : whole - on;
	}
	*next_ns = s->gate_ns + part;
	s->really = s->on;
	return s->on;
}

void weft__governor_really(struct weft__governor *g, uint32_t source, uint64_t now_ns, int on)
{
	count_on(&g->sources[source], now_ns);
	g->sources[source].really = on;
}
