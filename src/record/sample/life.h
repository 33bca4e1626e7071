/* SPDX-License-Identifier: Apache-2.0 */
/* Between engine.c, which starts and stops the engine, and tend.c, which sees it through. Under the engine's lock. */
#ifndef WEFT_SAMPLE_LIFE_H
#define WEFT_SAMPLE_LIFE_H

#include "record/sample/state.h"

struct weft__engine_life {
	int want_signal;
	uint32_t max_threads;
	sigset_t blocked; /* in the thread that started it */
	uint32_t starter; /* that thread */
	uint64_t drawn_ns;
	uint64_t looked_ns;            /* at the modules */
	uint64_t scanned_ns, ran_ns;   /* the last look at the threads, and what the program had used by then */
	uint64_t maybe_ns, changed_ns; /* when threads may have come and gone, and when they did */
	uint64_t astray_ns;            /* since when its signals that went astray are counted */
	uint64_t net_off_ns;           /* the net stays in until then */
	uint64_t net_back_ns;          /* and for how long the next time */
	uint32_t churn_seen, astray_seen, uncovered, uncovered_reported;
	uint32_t begun;           /* and has not been tended since */
	uint64_t due_ns, pace_ns; /* of the next turn, and how long after the last one that is */
	uint64_t uncovered_lost;  /* threads, as reported */
	int unblocked;            /* the collector has let it through */
	int running;
};
extern struct weft__engine_life weft__engine_life;

/* engine.c. Signal, table, threads: 0 or a negative error; and all of it undone. */
int weft__engine_begin(void);
void weft__engine_undo(void);
/* Whether our handlers are still there. */
int weft__engine_signals_are_ours(void);

/* tend.c. Of the source. */
uint64_t weft__engine_due(const struct weft__turn *turn);
int weft__engine_tend(const struct weft__turn *turn);

#endif
