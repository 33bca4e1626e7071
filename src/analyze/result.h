/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one recording, as the analysis answers them. Each part of the analysis has a struct of its own here,
 * which it fills and knows alone; struct weft__result is all of them side by side. */
#ifndef WEFT_ANALYZE_RESULT_H
#define WEFT_ANALYZE_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/breakdown.h"
#include "analyze/hist.h"
#include "analyze/samples.h"
#include "analyze/times.h"
#include "weft/segment.h"

/* Locations of a task besides the ids of locations (1 to 65535) and 0, a spawn that gave none. */
#define WEFT__LOCATION_UNSEEN 0xffffffffu    /* spawned before the recording, or its spawn was lost */
#define WEFT__LOCATION_UNTRACKED 0xfffffffeu /* more tasks at a time than max_tasks */
#define WEFT__LOCATION_OTHER 0xfffffffdu     /* more locations than max_rows */

#define WEFT__LANE_OTHER 0xffffffffu /* as worker of a lane: more lanes than max_rows */

struct weft__wake {
	bool known;         /* there was a wake */
	bool measured;      /* ... and no gap between it and the poll */
	bool in_poll;       /* the waker was in a poll: `task` and `location` are that one's */
	bool unlisted;      /* it was in none that is here, but polls were counted then */
	bool again;         /* of a poll that was reported: there may have been an earlier wake, too */
	uint32_t thread_id; /* of the waker */
	uint32_t worker;    /* of the waker, or WEFT_WORKER_NONE */
	uint32_t location;
	uint64_t task;
	uint64_t time_ns;
};

/* A task that is not polled as the recording ends. */
struct weft__waiting {
	uint64_t task;
	uint32_t location;
	uint32_t stack;         /* where it last began to wait; 0: not recorded */
	uint64_t silent_ns;     /* since its last poll began, or its spawn */
	uint64_t since_wake_ns; /* if there was a wake */
	bool polled;            /* that was a poll */
	bool woken;             /* it was woken since */
	struct weft__wake wake; /* its last */
};

/* The poll that held the worker longest while a woken task waited for it. */
struct weft__behind {
	uint64_t held_ns; /* of the wait; 0: there was none */
	uint64_t serial;
	uint64_t task;
	uint64_t duration_ns;
	uint32_t location;
};

struct weft__poll {
	uint64_t rank_ns; /* what a list is ordered by: duration, age or delay */
	uint64_t task;
	uint64_t begin_ns;
	uint64_t end_ns; /* 0: was still running */
	uint64_t serial; /* inside */
	uint32_t thread_id;
	uint32_t worker;   /* WEFT_WORKER_NONE: the thread was none */
	uint32_t location; /* location id or WEFT__LOCATION_... */
	uint32_t depth;    /* of the local queue at its begin, or WEFT_DEPTH_UNKNOWN */
	uint32_t level;    /* 0: outermost; more: nested in that many others */
	uint32_t n_wakes;  /* issued by this poll itself */
	struct weft__wake wake;
	struct weft__weight sampled; /* in it and in those nested in it */
	uint32_t lane;               /* inside: index */
	bool reported;               /* as a whole, at its end: others of its kind were not */
	bool has_context;            /* it had a context; `context` is the last one */
	bool in_context;             /* one of those was asked for */
	struct weft__behind behind;  /* in the list of delays only */
	uint32_t why;                /* it was reported: enum weft_poll_why */
	struct weft__context context;
	size_t first_sample;               /* inside */
	struct weft__weight stacks_beyond; /* in `sampled` but not in `stacks`: there were too many */
	/* Samples by stack, heaviest first, and the breakdown; in the lists of longest and running polls only. */
	struct weft__poll_stack *stacks;
	size_t n_stacks;
	struct weft__breakdown breakdown;
};

/* A worker, or a thread that is none but polls or parks. */
struct weft__lane {
	uint32_t worker;    /* id, WEFT_WORKER_NONE, or WEFT__LANE_OTHER */
	uint32_t thread_id; /* the last that it ran on */
	bool match;
	uint64_t rank;            /* the order of rows */
	struct weft__hist polls;  /* durations */
	struct weft__hist delays; /* wake to poll */
	struct weft__hist depths; /* of its queue */
	uint64_t observed_ns;     /* gaps are not */
	uint64_t busy_ns;         /* in outermost polls */
	uint64_t parked_ns;
	uint64_t n_poll_events, n_park_events;
	uint64_t sched_ns; /* time between the readings that the next two come from; 0: not measured */
	uint64_t cpu_ns;
	uint64_t runqueue_ns;
	struct weft__split split;   /* of its polls; of reported ones where not all are */
	struct weft__hist reported; /* durations of those that were reported as a whole */
	bool counted;               /* `polls` is from counts by duration: percentiles are rough, the total is, too */
};

/* Where tasks are spawned. */
struct weft__location {
	uint32_t id;
	bool match;
	struct weft__hist polls;
	struct weft__hist delays;
	uint64_t spawned, ended, alive;
	struct weft__weight sampled; /* in polls of its tasks, the innermost that was asked for */
	/* Polls that were shorter than the sampling period, too short for samples to say anything of one alone. */
	uint64_t n_short, short_ns;
	struct weft__weight short_sampled;
	struct weft__split split;
};

struct weft__queue {
	uint32_t runtime;
	struct weft__hist depths;
};

union weft__number {
	uint64_t u;
	int64_t i;
	double f;
};

struct weft__field_stat {
	uint64_t n; /* values that are numbers: NaN is not */
	double sum;
	union weft__number min, max;
};

/* A kind of the program's own, or one that this version does not know. */
struct weft__custom {
	uint32_t kind;
	uint64_t n;
	struct weft__field_stat fields[WEFT_FIELDS_MAX];
};

struct weft__lost {
	uint32_t reason;
	uint32_t thread_id;
	uint64_t records;
	uint64_t count;
	uint64_t span_ns; /* of the records together */
	uint64_t from_ns, to_ns;
};

/* How detailed events were, where the recorder chose that (kind mode), and what was only counted (kind counted). */
struct weft__detail {
	uint32_t n;     /* changes */
	uint32_t level; /* after the last; enum weft_detail */
	struct weft__detail_change {
		uint64_t ns; /* when; 0: never */
		uint64_t slow_ns, rate, cost_ppm, allowed_ppm;
	} coarser, parked, counted, untimed; /* the first change to less than all, to counts of parks, of wakes, and of
					  * polls without their duration */
	uint64_t finer_ns;                   /* the first time after that that all was recorded again; 0: never */
	uint32_t times;                      /* that less was */
	uint64_t wakes, queues, parks;
	uint64_t polls_untimed; /* polls of which only the number is known: they are in no other figure */
	uint64_t timed_ns;      /* the last change to a level at which all polls are timed */
	uint64_t parks_ns;      /* the last change to a level that has all parks */
	uint64_t wakes_ns;      /* wakes before say nothing of polls after */
};

/* Of poll.c and reported.c: lists, the worst first, of at most `top`; and what is in none. */
struct weft__poll_result {
	struct weft__poll *longest, *running, *delayed;
	size_t n_longest, n_running, n_delayed;
	uint64_t open;         /* at the end, all of them */
	uint64_t began_before; /* ends without a begin */
	uint64_t cut;          /* not measured: a gap lies in them */
	uint64_t never_ended;  /* their thread ended first */
	uint64_t too_deep;     /* nested beyond 1024 */
	uint64_t delays_cut;   /* not measured: a gap lies between wake and poll */
};

/* Of task.c and waiting.c. */
struct weft__task_result {
	struct weft__waiting *waiting; /* tasks that are not polled at the end, at most `top` */
	size_t n_waiting;
	uint64_t n_waiting_all; /* all of them */
	bool waiting_known;     /* every poll is recorded */
	uint64_t wakes_again;   /* of a task that was awake already */
	uint64_t late_causes;   /* wakes and spawns with a time just behind the poll that they caused (task.c) */
	uint64_t ids_reused;    /* spawned again without an end: the earlier task counts as ended */
	uint64_t untracked;     /* events of tasks beyond max_tasks */
};

/* Of lane.c. */
struct weft__lane_result {
	struct weft__lane *lanes; /* by runtime and index, threads behind them */
	size_t n_lanes;
	struct weft__location *locations; /* the one with most poll time first */
	size_t n_locations;
};

/* Of custom.c. */
struct weft__custom_result {
	struct weft__custom *kinds;
	size_t n_kinds;
	struct weft__queue *queues;
	size_t n_queues;
};

/* Of finish.c, from the losses of the segments. */
struct weft__loss_result {
	struct weft__lost *rows; /* by reason and thread */
	size_t n_rows;
	uint64_t events;         /* samples among them, where a ring was full */
	uint64_t samples;        /* for which there was no memory */
	uint64_t missed_samples; /* about so many, while another handler had their signal */
	uint64_t uncovered;      /* threads that could not be sampled */
	uint64_t switches;
	uint64_t polls; /* that were counted, but not reported one by one: more than the cap */
};

/* Of waits.c, waits_rank.c and pending.c. */
struct weft__wait_result {
	struct weft__wait_row *rows; /* the most time first */
	size_t n_rows;
	uint64_t n_mixed, mixed_ns;        /* left out: in sums that are of other requests and polls, too */
	struct weft__wait_object *objects; /* the most time that matters first; calls of the system are not here */
	size_t n_objects;
	uint64_t objects_beyond;           /* waits for more objects than max_rows */
	struct weft__wait_thread *threads; /* the most time first; of threads that are no workers */
	size_t n_threads;
	uint64_t threads_beyond;    /* waits of more threads than max_rows */
	struct weft__wait *longest; /* the longest first, at most `top`; those of `threads` only where nobody polls */
	size_t n_longest;
	struct weft__pending *pendings; /* the oldest first */
	size_t n_pendings, n_deadlocks;
};

/* Of thread_state.c: what the collector found out of threads. */
struct weft__off_result {
	struct weft__off_thread *threads; /* the most time blocked first */
	size_t n_threads;
	struct weft__off_row *rows, *walls; /* the most time first */
	size_t n_rows, n_walls;
	uint64_t beyond_ns, walls_beyond_ns;        /* in no row: more rows than max_rows */
	uint64_t switch_span_ns, switch_missing_ns; /* the time of the window, and of that without switches */
	struct weft__stuck *stucks;                 /* the oldest first, at most `top` */
	size_t n_stucks;
	struct weft__cost costs[WEFT__COSTS];
};

/* Of timeline.c and thread.c: what no part could take. */
struct weft__untracked {
	uint64_t events;         /* of threads beyond max_threads */
	uint64_t threads;        /* switches, waits and wall samples of threads beyond max_threads */
	uint64_t intervals_cut;  /* waits, switches and wall samples that were dropped: more than max_intervals */
	uint64_t intervals_late; /* that came too late to be of a poll */
};

struct weft__result {
	uint64_t first_ns, last_ns; /* events of the window; 0 and 0 when there are none */
	uint64_t n_events;
	uint64_t n_kind[WEFT_KIND_BUILTIN_END];
	uint64_t malformed; /* events with fewer fields than their kind has: left out */
	bool works;         /* some thread polls or is a worker */
	bool context_met;   /* there was one that was asked for */

	/* Of all polls. */
	struct weft__hist polls, delays;
	struct weft__split split;
	struct weft__hist reported; /* durations of those that were reported as a whole */
	bool counted;               /* `polls` is from counts by duration */

	struct weft__poll_result poll;
	struct weft__task_result task;
	struct weft__lane_result lane;
	struct weft__custom_result custom;
	struct weft__loss_result loss;
	struct weft__wait_result wait;
	struct weft__off_result off;
	struct weft__samples samples;
	struct weft__time_sum times[WEFT__TIME_STATES]; /* of all threads */
	struct weft__throttling throttling;
	struct weft__detail detail;
	struct weft__cpu_clock cpu_clock;
	struct weft__untracked untracked;
};

#endif
