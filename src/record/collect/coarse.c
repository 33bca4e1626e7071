/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/coarse.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "record/collect/poll_counts.h"
#include "record/ring/layout.h"
#include "weft/recorder.h"

#define EVENTS_SHARE 0.6 /* of what is allowed, at most: samples and switches need the rest */
#define WITH_OTHERS 0.8  /* of it, for events together with what cannot be lowered */
#define EVENTS_LEAST 0.1 /* of it, whatever that costs */
#define OTHERS_S 2.0     /* it is an average over that */
#define DEPTH_S 1.0      /* of that: how much debt there is at most */
#define CREDIT_S 3.0     /* and how much credit: a burst after a calm time is recorded whole */
#define DEPTH_NEXT_S 0.3 /* the same after a change, when it is known that there are many */
#define ROOM 0.5         /* of the events' share that a finer level may take to be tried */
#define ROOM_LOOK_NS UINT64_C(1000000000)
#define PATIENCE_NS UINT64_C(10000000000)
#define PATIENCE_MOST_NS UINT64_C(160000000000)
#define UNTIMED_FROM 2.0                    /* of what is allowed: timing polls costs more, */
#define UNTIMED_BELOW 1.0                   /* or would cost less */
#define UNTIMED_LOOK_NS UINT64_C(250000000) /* after a change it is looked at so soon */
#define WINDOWS_SHARE 0.2                   /* of what is allowed, for windows in which they are timed, */
#define WINDOWS_LEAST 0.01
#define WINDOWS_MOST 0.5 /* of the time */
#define WINDOW_NS 20000000.0
#define TIMED_LEAST_NS 20.0
#define TIMED_MOST_NS 5000.0
#define TIMED_POLLS 1000     /* so many say what one costs */
#define STEP_COST_NS 15000.0 /* of a wakeup that does nothing else: 15 to 20 us in a virtual machine */
#define STEPS_SHARE 0.2      /* of what is allowed, for these */
#define EVENT_LEAST_NS 20.0
#define EVENT_MOST_NS 200.0
#define EVENT_SLOTS 10000 /* so many say what one costs */

void weft__coarse_init(struct weft__coarse *coarse, const struct weft_recorder_opts *opts)
{
	*coarse = (struct weft__coarse){0};
	coarse->automatic = opts->poll_mode == WEFT_POLLS_AUTO && opts->budget_ppm != WEFT_OFF;
	coarse->limited = opts->budget_ppm != WEFT_OFF;
	coarse->slow_ns = opts->poll_slow_ns;
	coarse->patience_ns = PATIENCE_NS;
	coarse->event_ns = EVENT_LEAST_NS;
	coarse->pace_ns = COARSE_STEP_NS;
}

/* Too early a return makes the next one later. */
static void lose_patience(struct weft__coarse *coarse, uint64_t now_ns)
{
	if (!coarse->finer_ns)
		return;
	if (now_ns >= coarse->finer_ns + coarse->patience_ns)
		coarse->patience_ns = PATIENCE_NS;
	else if (coarse->patience_ns < PATIENCE_MOST_NS)
		coarse->patience_ns *= 2;
}

static int change(struct weft__coarse *coarse, uint64_t now_ns, uint32_t level)
{
	if (level > coarse->level)
		lose_patience(coarse, now_ns);
	else
		coarse->finer_ns = now_ns;
	coarse->level = level;
	coarse->changed++;
	coarse->credit_ns = 0;
	coarse->room_ns = 0;
	coarse->looked_ns = now_ns;
	coarse->in_window = 0;
	coarse->window_ns = level == COARSE_UNTIMED ? now_ns : 0;
	memcpy(coarse->seen, coarse->passed, sizeof(coarse->seen));
	return 1;
}

/* What events may cost, as a share of one CPU: what accounts, counts and the collector's other work leave. */
static double events_share(const struct weft__coarse *coarse, double allowed)
{
	double left = WITH_OTHERS * allowed - coarse->others;
	double least = EVENTS_LEAST * allowed, most = EVENTS_SHARE * allowed;

	return left < least ? least : left > most ? most : left;
}

void weft__coarse_others(struct weft__coarse *coarse, uint64_t span_ns, double cost_ns)
{
	double seconds = (double)span_ns / 1e9;

	if (span_ns)
		coarse->others += seconds / (seconds + OTHERS_S) * (cost_ns / (double)span_ns - coarse->others);
}

/* Whether the next finer level would cost little, by what was counted since the last look. */
static int has_room(struct weft__coarse *coarse, uint64_t now_ns, double allowed)
{
	double seconds = (double)(now_ns - coarse->looked_ns) / 1e9, more;

	if (coarse->level == COARSE_ALL || coarse->level == COARSE_UNTIMED || now_ns < coarse->looked_ns + ROOM_LOOK_NS)
		return 0;
	more = (double)(coarse->passed[coarse->level - 1] - coarse->seen[coarse->level - 1]) / seconds;
	memcpy(coarse->seen, coarse->passed, sizeof(coarse->seen));
	coarse->looked_ns = now_ns;
	if (coarse->share + more * coarse->event_ns / 1e9 > ROOM * events_share(coarse, allowed)) {
		coarse->room_ns = 0;
		return 0;
	}
	if (!coarse->room_ns)
		coarse->room_ns = now_ns;
	if (now_ns < coarse->room_ns + coarse->patience_ns)
		return 0;
	coarse->rate += more;
	coarse->share += more * coarse->event_ns / 1e9;
	return 1;
}

int weft__coarse_decide(struct weft__coarse *coarse, uint64_t now_ns, double cost_ns, uint64_t slots, double allowed)
{
	double ns = coarse->step_ns && now_ns > coarse->step_ns ? (double)(now_ns - coarse->step_ns) : 0;
	double most = events_share(coarse, allowed);
	double depth = 1e9 * EVENTS_SHARE * allowed * (coarse->level ? DEPTH_NEXT_S : DEPTH_S);
	double one = slots ? cost_ns / (double)slots : 0;

	coarse->step_ns = now_ns;
	if (ns <= 0 || allowed <= 0)
		return 0;
	if (slots >= EVENT_SLOTS)
		coarse->event_ns = one < EVENT_LEAST_NS ? EVENT_LEAST_NS : one > EVENT_MOST_NS ? EVENT_MOST_NS : one;
	coarse->rate = 1e9 * (double)slots / ns;
	coarse->share = cost_ns / ns;
	coarse->credit_ns += most * ns - cost_ns;
	if (coarse->credit_ns > most * 1e9 * CREDIT_S)
		coarse->credit_ns = most * 1e9 * CREDIT_S;
	if (coarse->credit_ns < -depth && coarse->automatic && coarse->level < COARSE_COUNTED)
		return change(coarse, now_ns, coarse->level + 1);
	coarse->over = coarse->limited && coarse->credit_ns < -2 * depth && coarse->share > allowed;
	if (coarse->credit_ns < -2 * depth)
		coarse->credit_ns = -2 * depth;
	return has_room(coarse, now_ns, allowed) ? change(coarse, now_ns, coarse->level - 1) : 0;
}

static uint64_t gate_pace(double allowed)
{
	double ns = STEP_COST_NS / (STEPS_SHARE * allowed);

	return ns < (double)COARSE_STEP_NS        ? COARSE_STEP_NS
	       : ns > (double)COARSE_STEP_MOST_NS ? COARSE_STEP_MOST_NS
						  : (uint64_t)ns;
}

int weft__coarse_timing(struct weft__coarse *coarse, uint64_t now_ns, uint64_t span_ns, double cost_ns, uint64_t polls,
			uint64_t untimed, double allowed)
{
	double share, f;

	if (coarse->level == COARSE_ALL || !coarse->automatic || allowed <= 0 || span_ns == 0)
		return 0;
	if (coarse->level != COARSE_UNTIMED && polls >= TIMED_POLLS) {
		coarse->timed_ns = cost_ns / (double)polls;
		coarse->timed_ns = coarse->timed_ns < TIMED_LEAST_NS ? TIMED_LEAST_NS : coarse->timed_ns;
		coarse->timed_ns = coarse->timed_ns > TIMED_MOST_NS ? TIMED_MOST_NS : coarse->timed_ns;
	}
	share = (double)(polls + untimed) * coarse->timed_ns / (double)span_ns;
	f = share > 0 ? WINDOWS_SHARE * allowed / share : WINDOWS_MOST;
	coarse->windows = f < WINDOWS_LEAST ? WINDOWS_LEAST : f > WINDOWS_MOST ? WINDOWS_MOST : f;
	coarse->pace_ns = gate_pace(allowed);
	if (coarse->level != COARSE_UNTIMED) {
		if (share <= UNTIMED_FROM * allowed || polls < TIMED_POLLS) {
			coarse->dear = 0;
			return 0;
		}
		if (!coarse->dear++) /* a moment in which threads were preempted as they read clocks is no reason */
			return 0;
		coarse->dear = 0;
		coarse->share = share;
		coarse->rate = 1e9 * 2 * (double)polls / (double)span_ns;
		return change(coarse, now_ns, COARSE_UNTIMED);
	}
	if (share > UNTIMED_BELOW * allowed) {
		coarse->room_ns = 0;
		return 0;
	}
	if (!coarse->room_ns)
		coarse->room_ns = now_ns;
	return now_ns >= coarse->room_ns + coarse->patience_ns ? change(coarse, now_ns, COARSE_COUNTED) : 0;
}

static void apply(struct weft__collector *c, uint64_t now_ns, double allowed)
{
	static const uint32_t detail[] = {WEFT_DETAIL_ALL, WEFT_DETAIL_SLOW, WEFT_DETAIL_PARKS, WEFT_DETAIL_COUNTED,
					  WEFT_DETAIL_UNTIMED};
	struct weft__coarse *coarse = &c->coarse;
	struct weft__cost event = {now_ns,
				   WEFT_KIND_MODE,
				   {detail[coarse->level], coarse->slow_ns, (uint64_t)coarse->rate,
				    (uint64_t)(coarse->share * 1e6), (uint64_t)(allowed * 1e6)}};

	weft__log(WEFT_LOG_INFO,
		  "%.0f events/s would cost %.2f %% of a CPU, and weft may take %.2f %%: detail level %u", coarse->rate,
		  100 * coarse->share, 100 * allowed, coarse->level);
	weft__collector_coarse(c, coarse->level);
	weft__costs_event(&c->costs, &event);
	weft__coarse_facts(coarse, &c->news);
	weft__stage_news(c);
}

/* There is nothing coarser, or it is not wanted. */
static void report_over(struct weft__collector *c, double allowed)
{
	struct weft__coarse *coarse = &c->coarse;
	char text[240];

	if (coarse->over_segment == c->segments.sequence + 1)
		return;
	coarse->over_segment = c->segments.sequence + 1;
	snprintf(text, sizeof(text), "%.0f events/s, %s, cost %.2f %% of one CPU, and all of weft may take %.2f %%",
		 coarse->rate,
		 coarse->automatic ? "the program's own and others that are always recorded"
				   : "in the poll mode that was asked for",
		 100 * coarse->share, 100 * allowed);
	weft__defs_fact(&c->news, "degraded.events", text);
	weft__stage_news(c);
}

int weft__coarse_step(struct weft__collector *c, uint64_t now_ns, double cost_ns, uint64_t slots, double allowed)
{
	struct weft__coarse *coarse = &c->coarse;

	if (weft__coarse_decide(coarse, now_ns, cost_ns, slots, allowed)) {
		apply(c, now_ns, allowed);
		memcpy(coarse->timing_seen, coarse->passed, sizeof(coarse->timing_seen));
		coarse->timing_ns = now_ns;
		weft__poll_counts_soon(c, now_ns, UNTIMED_LOOK_NS);
		return 1;
	}
	if (coarse->over)
		report_over(c, allowed);
	return 0;
}

void weft__coarse_counted(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__coarse *coarse = &c->coarse;
	uint64_t span_ns = coarse->timing_ns ? now_ns - coarse->timing_ns : 0, more[COARSE_UNTIMED];
	double cost_ns, cold_ns;

	for (uint32_t i = 0; i < COARSE_UNTIMED; i++)
		more[i] = weft__costs_since(&coarse->timing_seen[i], coarse->passed[i]);
	coarse->timing_ns = now_ns;
	cold_ns = weft__costs_of_cold(load_acquire(&c->region->head->n_rings), more[COARSE_ALL] / 2, span_ns);
	coarse->cold_ns += cold_ns;
	cost_ns = weft__costs_of_counts(&c->costs, more) + cold_ns + c->costs.accounts_share * (double)span_ns;
	if (weft__coarse_timing(coarse, now_ns, span_ns, cost_ns, more[COARSE_ALL] / 2, more[COARSE_COUNTED],
				c->costs.governor.allowed))
		apply(c, now_ns, c->costs.governor.allowed);
	if (coarse->dear)
		weft__poll_counts_soon(c, now_ns, UNTIMED_LOOK_NS);
}

uint64_t weft__coarse_due(const struct weft__coarse *coarse)
{
	return coarse->window_ns ? coarse->window_ns : UINT64_MAX;
}

/* From one window to the next it is a random time, so that no rhythm of the program is in step with it. */
void weft__coarse_window(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__coarse *coarse = &c->coarse;
	double next_ns = WINDOW_NS, spread;

	if (now_ns < weft__coarse_due(coarse))
		return;
	if (coarse->in_window) {
		coarse->random = (coarse->random ^ now_ns) * UINT64_C(6364136223846793005) + 1442695040888963407u;
		spread = (double)(coarse->random >> 40) / (double)(1u << 24) + 0.5;
		next_ns = spread * WINDOW_NS * (1 / coarse->windows - 1);
	}
	coarse->in_window = !coarse->in_window;
	coarse->window_ns = now_ns + (uint64_t)next_ns;
	weft__collector_coarse(c, coarse->in_window ? COARSE_COUNTED : COARSE_UNTIMED);
}

void weft__coarse_facts(const struct weft__coarse *coarse, struct weft__defs *defs)
{
	char text[24];

	if (!coarse->changed)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)coarse->slow_ns);
	weft__defs_fact(defs, "poll.mode", "slow"); /* for a part of the time at least */
	weft__defs_fact(defs, "poll.slow_ns", text);
	weft__defs_fact(defs, "poll.chosen", "budget");
}
