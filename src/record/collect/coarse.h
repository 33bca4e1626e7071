/* SPDX-License-Identifier: Apache-2.0 */
/* How polls are recorded when the mode is weft's to choose (WEFT_POLLS_AUTO): finer while events fit the budget,
 * coarser when they do not. COLLECTOR.
 *
 * Events may cost a part of what the governor allows. What they cost beyond it is a debt, what they cost less a
 * credit of a few seconds at most; when the debt is as large as the credit may be, the next coarser level is taken.
 * So a burst is recorded whole, and a program that always emits too much is held after a fraction of a second. A
 * finer level comes back when it would have cost little for some time; how much is known from the exact counts and
 * from what an event cost.
 *
 * What polls cost that are only counted is little, but for programs with very many of them, or very many threads: then
 * reading the clock is too much, and most are counted without. */
#ifndef WEFT_COLLECT_COARSE_H
#define WEFT_COLLECT_COARSE_H

#include <stdint.h>

struct weft__collector;
struct weft__defs;
struct weft_recorder_opts;

enum weft__coarse_level {
	COARSE_ALL = 0,   /* as the recorder began */
	COARSE_SLOW = 1,  /* of polls only the slow ones */
	COARSE_PARKS = 2, /* and of parks and queue depths only how many there were, and how long parks took */
	COARSE_COUNTED =
		/* and of wakes, too: without them it is not known why a slow poll began when it did, so they go last */
	3,
	COARSE_UNTIMED =
		/* and of most polls only the number is known: where reading a clock for each poll costs far more than
		 * all of weft may. In short windows, spread at random, it is as COARSE_COUNTED. */
	4,
};

/* At COARSE_UNTIMED, between two steps of the gate: each is a wakeup, so it depends on what is allowed. */
#define COARSE_STEP_NS UINT64_C(5000000)
#define COARSE_STEP_MOST_NS UINT64_C(20000000)

struct weft__coarse {
	int automatic; /* the mode is weft's to choose */
	int limited;   /* there is a budget */
	uint32_t level;
	uint32_t changed;                     /* this often */
	uint64_t slow_ns;                     /* threshold */
	double credit_ns;                     /* what was allowed and not spent; negative: a debt */
	double event_ns;                      /* what one costs, from emit to file, as far as is known */
	uint64_t step_ns;                     /* of the last step; 0: none yet */
	uint64_t room_ns;                     /* since when a finer level has had room; 0: it has none */
	uint64_t patience_ns;                 /* for so long it must have had */
	uint64_t finer_ns;                    /* when it went finer last; 0: never */
	uint64_t passed[COARSE_UNTIMED];      /* by level: events that the next coarser one only counted, so far */
	uint64_t seen[COARSE_UNTIMED];        /* at the last look for room */
	uint64_t looked_ns;                   /* when that was */
	uint64_t counted_tick;                /* until when wakes and queue depths are recorded */
	double rate, share;                   /* at the last step: events a second, and what they cost, of one CPU */
	uint64_t timing_seen[COARSE_UNTIMED]; /* `passed` at the last look at what timing costs, */
	uint64_t timing_ns;                   /* and when that was */
	double timed_ns;    /* what a poll with a clock costs its thread, with its wakes and account */
	double cold_ns;     /* that polls cost so far because nothing was in a cache (costs.h) */
	double others;      /* what accounts, counts and the collector's other work cost of late, of one CPU */
	uint32_t dear;      /* timing polls was too dear at the last look */
	double windows;     /* of the time, in which polls are timed at COARSE_UNTIMED */
	uint64_t window_ns; /* when the next one begins or ends; 0: there are none */
	uint64_t random;    /* for their spread */
	uint64_t pace_ns;   /* of steps of the gate */
	int in_window;
	int over;              /* they exceed the budget, and there is nothing coarser */
	uint64_t over_segment; /* that says so, plus 1 */
};

/* CALLER, at open. */
void weft__coarse_init(struct weft__coarse *coarse, const struct weft_recorder_opts *opts);
/* What events cost since the last step, how many slots of rings there were, and what the governor allows, as a share
 * of one CPU. Answers whether the level is another now. Reads no clock and changes nothing else. */
int weft__coarse_decide(struct weft__coarse *coarse, uint64_t now_ns, double cost_ns, uint64_t slots, double allowed);
/* What cannot be lowered cost that much in `span_ns`: events have to leave it. */
void weft__coarse_others(struct weft__coarse *coarse, uint64_t span_ns, double cost_ns);
/* The same, and does it: sets the gate, records an event and facts. True when it did. */
int weft__coarse_step(struct weft__collector *c, uint64_t now_ns, double cost_ns, uint64_t slots, double allowed);
/* What counting `polls` and `untimed` ones without a clock cost since the last look, `cost_ns`, in `span_ns`. Answers
 * whether the level is another now. */
int weft__coarse_timing(struct weft__coarse *coarse, uint64_t now_ns, uint64_t span_ns, double cost_ns, uint64_t polls,
			uint64_t untimed, double allowed);
/* The same with what was counted since, and does it. After poll counts were reported. */
void weft__coarse_counted(struct weft__collector *c, uint64_t now_ns);
/* Begins or ends a window, when it is time. */
void weft__coarse_window(struct weft__collector *c, uint64_t now_ns);
/* When that is; UINT64_MAX: never. */
uint64_t weft__coarse_due(const struct weft__coarse *coarse);
/* collector.c. Any thread. Sets the bits of the gate that go with the level; polls that are open go on. */
void weft__collector_coarse(struct weft__collector *c, uint32_t level);
/* collector.c. Any thread. The gate's value at `*tick`; where it is closed, what it was last, and `*tick` is when it
 * was closed. */
uint32_t weft__collector_gate_last(struct weft__collector *c, uint64_t *tick);
/* The facts of a mode that was chosen, for a segment that begins. */
void weft__coarse_facts(const struct weft__coarse *coarse, struct weft__defs *defs);

#endif
