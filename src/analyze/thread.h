/* SPDX-License-Identifier: Apache-2.0 */
/* A thread as its own events report it: what it does, which polls are open, what it worked for of late. Its id is that
 * of its events in the segment: what others report for a thread has another id (docs/FORMAT.md). Context: CALLER. */
#ifndef WEFT_ANALYZE_THREAD_H
#define WEFT_ANALYZE_THREAD_H

#include "analyze/analysis.h"
#include "analyze/gap.h"
#include "analyze/timeline.h"
#include "base/arena.h"
#include "base/map.h"

struct weft__analysis;
struct weft__holds;
struct weft__lanes;
struct weft__past_context;

#define NO_LANE UINT32_MAX
#define NO_ROW UINT32_MAX
#define POLL_LEVELS_MAX 1024
#define RECENT_POLLS 16

/* What a thread is doing, apart from polls. At the beginning and behind a gap it is not known, but the next event
 * says what it must have been: who stops waiting was waiting. */
enum weft__thread_doing { THREAD_GUESS, THREAD_ACTIVE, THREAD_PARKED };

struct weft__recent {
	uint64_t begin_ns, end_ns, task, serial;
	uint32_t location;
};

/* A sample in a poll that is open. */
struct weft__logged {
	uint32_t trace;
	uint32_t n;
	uint64_t ns;
};

struct weft__thread {
	uint32_t id;
	uint32_t worker;
	uint32_t last_worker; /* that it was, if it is none now */
	uint32_t lane;
	enum weft__thread_doing state;
	uint64_t since_ns; /* time up to here is in the lane's books */
	uint64_t seen_ns;  /* its last event: it ran */
	uint64_t ran_ns;   /* its last event that nobody else records for it */
	struct weft__gap_cursor gaps;
	struct weft__cpu cpu; /* of the poll that ends next, */
	uint64_t cpu_time_ns; /* ... if it ends then */
	struct weft__remembered {
		uint64_t time_ns; /* at which the poll that it is of is reported; 0: none */
		uint64_t tid, by, ago_ns, alone_ns;
	} woken; /* of a time in which wakes are not events */
	bool in_gap;
	bool after_gap;          /* an end that comes may be of a poll that a gap cut */
	struct weft__poll *open; /* polls, outermost first */
	size_t n_open, cap_open;
	uint64_t too_deep; /* open ones beyond the limit */
	bool has_sched;
	uint64_t sched_ns, cpu_ns, runqueue_ns;   /* of the last reading */
	struct weft__recent recent[RECENT_POLLS]; /* outermost polls that ended last */
	uint32_t n_recent;
	uint32_t next_free;
	bool asked;               /* opts.thread allows it */
	bool polls;               /* a poll of it was seen */
	uint32_t row;             /* in result.samples.threads, for the worker that it is now; NO_ROW: none yet */
	uint64_t unmeasured_ns;   /* sampled since the last reading of its CPU time, */
	bool unmeasured_cut;      /* but not all of it: there was a gap */
	struct weft__logged *log; /* samples since the outermost open poll began; each poll has its first one */
	size_t n_log, cap_log;
	bool log_tight;                 /* what can be put together has been */
	uint32_t timeline;              /* index, or NO_TIMELINE: not known yet */
	struct weft__context context;   /* that its events have now */
	bool has_context;               /* ... which is one, */
	bool in_context;                /* ... which was asked for, */
	uint64_t in_context_ns;         /* since then */
	uint64_t location_ns;           /* up to then a poll was open of the location that was asked for */
	uint64_t sums_ns, sums_from_ns; /* when it reported sums of waits last, and since when those were summed */
	struct weft__past_context *past_contexts; /* a ring of the last ones */
	uint64_t n_past_contexts;
	struct weft__holds *held; /* of the wait that comes next; NULL: none */
	uint64_t held_ns, held_object;
	struct weft__beat {
		uint64_t wakes, seen; /* and those that were looked at, */
		double x, y;          /* added up as directions: where in the kernel's tick they fell */
		uint64_t ns;          /* that samples stand for */
	} beat;
};

#define PAST_CONTEXTS 64u

struct weft__past_context {
	uint64_t time_ns;
	struct weft__context context;
	uint32_t number; /* of what somebody is to hear of (context.h); 0: it has none yet */
	bool match;
};

/* All of them. A slot that is free names the next that is. */
struct weft__threads {
	const struct weft__analysis_opts *opts;
	struct weft__result *result;
	struct weft__arena arena; /* of the list, and of what each has of its own */
	struct weft__thread *at;
	size_t n, cap;
	uint32_t free;
	struct weft__map by_id;
	struct weft__near near;
};

/* It is a worker's, or polls without being one. */
static inline bool weft__thread_works(const struct weft__thread *s)
{
	return s->polls || s->worker != WEFT_WORKER_NONE;
}

/* Those that can fail return 0 or -ENOMEM; get leaves NULL in `*ret` where a limit is reached. A pointer is good
 * until the next get. */
int weft__thread_get(struct weft__threads *threads, struct weft__lanes *lanes, struct weft__gaps *gaps, uint32_t id,
		     uint64_t now_ns, struct weft__thread **ret);
/* What gaps up to the event, and the event itself, say of the time before it. */
int weft__thread_catch_up(struct weft__lanes *lanes, struct weft__sampling *samples, struct weft__gaps *gaps,
			  struct weft__thread *s, const struct weft__event *ev);
static inline int weft__thread_advance(struct weft__lanes *lanes, struct weft__sampling *samples,
				       struct weft__gaps *gaps, struct weft__thread *s, const struct weft__event *ev)
{
	if (ev->time_ns >= s->gaps.quiet_ns || s->state == THREAD_GUESS)
		return weft__thread_catch_up(lanes, samples, gaps, s, ev);
	s->in_gap = false;
	return 0;
}
void weft__thread_settle(const struct weft__analysis_opts *opts, struct weft__lane_result *result,
			 struct weft__thread *s, uint64_t now_ns);
int weft__thread_worker(struct weft__lanes *lanes, bool *works, struct weft__thread *s, uint32_t worker,
			uint64_t now_ns);
int weft__thread_park(struct weft__lanes *lanes, struct weft__thread *s, const struct weft__event *ev);
/* Somebody else reports what it did until now: it is there, and known. */
void weft__thread_known(struct weft__sampling *samples, struct weft__gaps *gaps, struct weft__thread *s,
			uint64_t now_ns);
int weft__thread_sched(struct weft__sampling *samples, struct weft__thread *s, const struct weft__event *ev);
int weft__thread_end(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns, bool thread_ended);
void weft__threads_fini(struct weft__threads *threads);

#endif
