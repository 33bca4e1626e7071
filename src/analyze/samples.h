/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as an analysis gives them: added up (struct weft__samples) and one by one (struct weft__sample_view).
 * Stacks are ids of the recording; frames.h knows what they stand for. The measure is the weight, the CPU time that
 * a sample stands for; how many there were says how sure it is. Context: CALLER. */
#ifndef WEFT_ANALYZE_SAMPLES_H
#define WEFT_ANALYZE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT__ENGINES 8 /* by enum weft_engine; the last also holds those that this version does not know */

struct weft__weight {
	uint64_t n;  /* samples */
	uint64_t ns; /* of CPU time that they stand for */
};

/* Weights come from files: their sum stays at the most instead of overflowing. */
static inline void weft__weight_add(struct weft__weight *to, uint64_t n, uint64_t ns)
{
	to->n += n;
	to->ns = ns > UINT64_MAX - to->ns ? UINT64_MAX : to->ns + ns;
}

/* Where in the life of its thread a sample fell. */
enum weft__where {
	WEFT__IN_POLL,
	WEFT__BETWEEN_POLLS, /* work of the runtime itself */
	WEFT__PARKED,        /* on the way into waiting, or out of it */
	WEFT__NEVER_POLLS,   /* of a thread of which no poll is in the recording */
	WEFT__WHERE_UNKNOWN, /* a poll may be open that began before the recording, or where events are missing */
	WEFT__N_WHERE
};

/* What samples that have all of this in common weigh together. An exporter needs nothing else for a profile. */
struct weft__sample_row {
	uint32_t stack, kernel; /* ids; 0: none */
	uint32_t thread;        /* index in `threads` */
	uint32_t location;      /* of the poll's task (analysis.h); only in polls */
	enum weft__where where;
	struct weft__weight weight;
};

/* A thread, as one worker or as none. */
struct weft__sampled_thread {
	uint32_t thread_id;
	uint32_t worker; /* WEFT_WORKER_NONE, or WEFT__LANE_OTHER for all beyond a limit */
	bool polls;      /* a poll of it is in the recording */
	bool match;
	struct weft__weight all;
	struct weft__weight where[WEFT__N_WHERE];
	/* For comparison, over the time between readings of the thread's CPU clock; all samples, whatever filter
	 * there is. */
	uint64_t measured_span_ns; /* 0: there were no two readings */
	uint64_t measured_ns;      /* by the clock */
	uint64_t measured_sampled_ns;
};

struct weft__samples {
	struct weft__weight all; /* in the window, and asked for */
	struct weft__weight where[WEFT__N_WHERE];
	struct weft__weight engines[WEFT__ENGINES];
	struct weft__weight
		in_step; /* of timers, on threads whose work begins in step with the tick that timers are looked at */
	struct weft__weight left_out;  /* in the window, not asked for */
	uint64_t period_ns;            /* of CPU time between two samples of a thread, on average; 0: not known */
	uint64_t longest_period_ns;    /* ... at times, where rates were lowered */
	struct weft__sample_row *rows; /* the heaviest first */
	size_t n_rows;
	struct weft__sampled_thread *threads; /* the heaviest first */
	size_t n_threads;
	struct weft__weight beyond_rows; /* in the sums above but in no row: more rows than max_sample_rows */
	uint64_t beyond_polls;           /* whose stack is in no poll: more at one time than max_samples */
};

/* What was sampled in one poll, by stack. */
struct weft__poll_stack {
	uint32_t stack, kernel;
	struct weft__weight weight;
};

struct weft__poll;

/* One sample, and what it fell into. */
struct weft__sample_view {
	uint64_t time_ns;
	uint64_t weight_ns;
	uint32_t stack, kernel;
	uint32_t thread_id, worker;
	uint32_t cpu; /* UINT32_MAX: not known */
	uint32_t engine;
	enum weft__where where;         /* as far as it is known now: whether the thread ever polls is not */
	const struct weft__poll *polls; /* that are open, the outermost first */
	size_t n_polls;
};

#endif
