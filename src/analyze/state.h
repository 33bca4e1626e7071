/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an analysis: what is known of each thread and each task at the present moment, and the figures so far.
 * analysis.c hands each event on; stream.c, poll.c, task.c, sample.c and custom.c each keep their part; finish.c closes the books.
 * Context: CALLER. */
#ifndef WEFT_ANALYZE_STATE_H
#define WEFT_ANALYZE_STATE_H

#include "analyze/analysis.h"
#include "analyze/gap.h"
#include "analyze/map.h"
#include "analyze/top.h"
#include "analyze/track.h"
#include "weft/wait.h"

#define NO_LANE UINT32_MAX
#define NO_ROW UINT32_MAX
#define POLL_LEVELS_MAX 1024
#define RECENT_POLLS 16

/* What a thread is doing, apart from polls. At the beginning and behind a gap it is not known, but the next event tells what it
 * must have been: who stops waiting was waiting. */
enum weft__stream_state { STREAM_GUESS, STREAM_ACTIVE, STREAM_PARKED };

struct weft__recent {
	uint64_t begin_ns, end_ns, task, serial;
	uint32_t place;
};

/* A sample in a poll that is open. */
struct weft__logged {
	uint32_t trace;
	uint32_t n;
	uint64_t ns;
};

struct weft__trace {
	uint32_t stack, kernel;
};

struct weft__stream {
	uint32_t id;
	uint32_t worker;
	uint32_t last_worker; /* that it was, if it is none now */
	uint32_t lane;
	enum weft__stream_state state;
	uint64_t since_ns; /* time up to here is in the lane's books */
	uint64_t seen_ns;  /* its last event: it ran */
	uint64_t ran_ns;   /* its last event that nobody else records for it */
	struct weft__gap_cursor gaps;
	struct weft__cpu cpu; /* of the poll that ends next, */
	uint64_t cpu_time_ns; /* ... if it ends then */
	struct weft__remembered {
		uint64_t time_ns; /* at which the poll that it is of is told; 0: none */
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
	bool log_tight;                       /* what can be put together has been */
	uint32_t track;                       /* index, or NO_TRACK: not known yet */
	struct weft__scope scope;             /* that its events have now */
	bool in_scope;                        /* ... which was asked for, */
	uint64_t in_scope_ns;                 /* since then */
	uint64_t place_ns;                    /* up to then a poll was open of the location that was asked for */
	uint64_t sums_ns, sums_from_ns;       /* when it told sums of waits last, and since when those were summed */
	struct weft__past_scope *past_scopes; /* a ring of the last ones */
	uint64_t n_past_scopes;
	struct weft__holds *held; /* of the wait that comes next; NULL: none */
	uint64_t held_ns, held_object;
	struct weft__beat {
		uint64_t wakes, seen; /* and those that were looked at, */
		double x, y;          /* added up as directions: where in the kernel's tick they fell */
		uint64_t ns;          /* that samples stand for */
	} beat;
};

#define PAST_SCOPES 64u

struct weft__past_scope {
	uint64_t time_ns;
	struct weft__scope scope;
	bool match;
};

struct weft__task {
	uint64_t id;
	uint32_t place;
	bool seen;              /* spawned or polled, not only woken */
	bool spawned;           /* the spawn was seen */
	bool live;              /* the slot is in use */
	bool unwoken;           /* no wake came before its last poll */
	bool first;             /* ... which was its first */
	uint32_t poll_stream;   /* where its last poll began, */
	uint64_t poll_ns;       /* and when; 0: not polled yet */
	struct weft__wake wake; /* the first since its last poll began */
	struct weft__wake last; /* the last of all */
	uint64_t base_ns;       /* when it was spawned, or its last poll that is here began; 0: neither was seen */
	uint32_t n_wakes;       /* since then */
	uint32_t next_free;
};

/* A task that has ended: the poll in which it did may be told later. */
struct weft__ended {
	uint64_t id;
	uint32_t place;
	struct weft__wake last;
	bool single; /* there was no other since the task's last poll that is here */
	uint64_t base_ns;
};
#define ENDED_TASKS 4096u

/* One more holder in a chain of those who wait for one another; the result refers to it. */
struct weft__link {
	struct weft__holder holder;
	struct weft__link *before;
};

/* Between two readings of what a CPU quota withheld. */
struct weft__throttled_span {
	uint64_t from_ns, to_ns, throttled_ns, times;
	uint64_t number; /* from 1 on */
};
#define THROTTLED_SPANS 64u

/* Who held the lock of one wait, and when. */
#define HOLDS_MAX 8
struct weft__holds {
	struct weft__holds *before;
	uint32_t n;
	struct weft__hold {
		uint32_t tid;
		uint64_t begin_ns, end_ns;
		uint64_t ns; /* of that time */
	} at[HOLDS_MAX];
};

struct weft__analysis {
	struct weft__analysis_opts opts;
	struct weft__result result;
	struct weft__gaps gaps;
	struct weft__link *links; /* all */
	size_t n_links;
	struct weft__holds *holds; /* all */
	size_t n_holds;

	struct weft__stream *streams;
	size_t n_streams, cap_streams;
	uint32_t free_stream;
	struct weft__map stream_by_id;

	struct weft__task *tasks;
	size_t n_tasks, cap_tasks;
	uint32_t free_task;
	struct weft__map task_by_id;

	size_t cap_lanes, cap_places, cap_queues, cap_customs;
	struct weft__map lane_by_key, place_by_id, queue_by_runtime, custom_by_kind;
	struct weft__top longest, running, delayed;
	uint64_t now_ns; /* latest time seen, window or not */

	/* sample.c */
	size_t cap_sample_rows, cap_sampled, n_traces, cap_traces, n_contexts;
	struct weft__trace *traces;
	struct weft__map trace_by_ids, context_by_key, sample_row_by_key, sampled_by_key;
	size_t n_logged; /* in all logs */

	/* track.c, story.c */
	struct weft__track *tracks;
	size_t n_tracks, cap_tracks;
	uint32_t free_track;
	struct weft__map track_by_tid;
	size_t n_stretches;         /* in all tracks */
	uint64_t look_ns;           /* between two looks at a thread, as the recording says */
	uint64_t n_polls;           /* serial numbers */
	bool switches_on;           /* the recording says so */
	bool detects;               /* polls of which their thread says nothing never left the CPU */
	struct weft__piece *pieces; /* of the poll that is being settled */
	size_t n_pieces, cap_pieces;

	/* throttled.c: a ring of the last spans */
	struct weft__throttled_span throttled[THROTTLED_SPANS];
	bool quota;       /* there is one: what it took is given to one poll after the other */
	uint64_t tick_ns; /* of the kernel; 0: not known */
	uint64_t n_throttled;
	struct weft__track *settling; /* whose poll is being settled */
	uint64_t grace_ns;            /* for which polls that ended wait for what is known of them late */
	size_t max_closed;            /* polls of a thread that do so */

	/* waits.c, away.c */
	size_t cap_waits, cap_wait_objects, cap_wait_threads, cap_off_threads, cap_off_rows, cap_look_rows, cap_stucks,
		cap_pendings;
	struct weft__map wait_by_key, wait_object_by_key, wait_thread_by_key, off_row_by_key, look_row_by_key;
	struct weft__wait *apart_waits; /* as long_waits, of threads that are no workers */
	size_t n_apart_waits;
	struct weft__ended *ended; /* a ring of the last ones, where polls are told at their end */
	uint64_t n_ended;
	struct weft__map ended_by_id;
	bool polls_told; /* not all polls are told one by one */
	bool scoped;     /* only some contexts are asked for */
};

/* How much of [from, to) lies in the window. */
static inline uint64_t weft__window_ns(const struct weft__analysis *a, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < a->opts.from_ns)
		from_ns = a->opts.from_ns;
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static inline uint64_t weft__sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The stream has polls, and so has what its samples are summed in. */
static inline void weft__stream_polls(struct weft__analysis *a, struct weft__stream *s)
{
	if (s->polls)
		return;
	s->polls = true;
	a->result.works = true;
	if (s->row != NO_ROW)
		a->result.samples.threads[s->row].polls = true;
}

/* It is a worker's, or polls without being one. */
static inline bool weft__stream_works(const struct weft__stream *s)
{
	return s->polls || s->worker != WEFT_WORKER_NONE;
}

static inline uint64_t weft__since(uint64_t now_ns, uint64_t then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* All return 0 or -ENOMEM; those that look something up also leave NULL in `*ret` where a limit is reached. */

/* stream.c. A pointer to a stream is good until the next get. */
int weft__stream_get(struct weft__analysis *a, uint32_t id, uint64_t now_ns, struct weft__stream **ret);
int weft__stream_advance(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
int weft__stream_lane(struct weft__analysis *a, struct weft__stream *s, struct weft__lane **ret);
void weft__stream_settle(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns);
int weft__stream_worker(struct weft__analysis *a, struct weft__stream *s, uint32_t worker, uint64_t now_ns);
int weft__stream_park(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
/* Somebody else tells of what it did until now: it is there, and known. */
void weft__stream_known(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns);
int weft__stream_sched(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
int weft__stream_end(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns, bool thread_ended);

/* lane.c */
bool weft__thread_asked(const struct weft__analysis *a, uint32_t stream);
bool weft__worker_asked(const struct weft__analysis *a, uint32_t worker, uint32_t stream);
int weft__lane_get(struct weft__analysis *a, uint32_t worker, uint32_t stream, uint32_t *ret);
int weft__place_get(struct weft__analysis *a, uint32_t id, struct weft__place **ret);

/* poll.c */
int weft__poll_begin(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
int weft__poll_end(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns);
int weft__poll_next(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
/* The innermost open poll ends. */
int weft__poll_finish(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns);
/* The open poll of `task` that began at `begin_ns` on a stream, or NULL. */
struct weft__poll *weft__poll_open(struct weft__analysis *a, uint32_t stream, uint64_t task, uint64_t begin_ns);
int weft__poll_woken(struct weft__analysis *a, struct weft__poll *poll, const struct weft__wake *wake);
/* What the thread says of the poll that is about to end. */
void weft__poll_cpu(struct weft__stream *s, const struct weft_event_view *ev);
void weft__poll_cut(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns); /* a gap begins */
int weft__poll_leave(struct weft__analysis *a, struct weft__stream *s, uint64_t now_ns, bool thread_ended);

/* sample.c, sample_log.c, sample_rows.c */
int weft__sample_add(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
/* A sample that came before turns out to be in the innermost open poll. */
int weft__sample_found(struct weft__analysis *a, struct weft__stream *s, struct weft__stretch *mark);
/* A reading of the thread's CPU time came, which is `cpu_ns` more than the last, `span_ns` before; 0 and 0: the first. */
int weft__sample_measured(struct weft__analysis *a, struct weft__stream *s, uint64_t cpu_ns, uint64_t span_ns);
int weft__log_add(struct weft__analysis *a, struct weft__stream *s, uint32_t trace, uint64_t weight_ns);
void weft__log_clear(struct weft__analysis *a, struct weft__stream *s);
/* The samples of a poll that ends or is about to be put into a list, by stack, into the poll. */
int weft__log_take(struct weft__analysis *a, const struct weft__stream *s, struct weft__poll *poll);
int weft__samples_settle(struct weft__analysis *a);
void weft__samples_fini(struct weft__analysis *a);

/* rows.c: single ones, to opts.rows, which is not NULL. A poll that has ended is kept until its time is divided. */
int weft__rows_keep(struct weft__analysis *a, struct weft__track *track, const struct weft__poll *poll, bool *kept);
/* The first one that is kept has its time divided. */
int weft__rows_poll(struct weft__analysis *a, struct weft__track *track, const struct weft__story *story);
int weft__rows_wait(struct weft__analysis *a, struct weft__wait *wait, const struct weft__stretch *stretch,
		    const struct weft__poll *poll);
int weft__rows_wait_sum(struct weft__analysis *a, const struct weft__stream *s, const struct weft__wait_row *sum,
			uint64_t time_ns);
int weft__rows_off(struct weft__analysis *a, const struct weft__off_row *row, uint32_t worker,
		   const struct weft__stretch *stretch);
/* Samples wait in the log of their track where their poll may be recorded at its end. The first `n` of the log go. */
int weft__rows_sample(struct weft__analysis *a, const struct weft__stretch *mark);
int weft__rows_samples(struct weft__analysis *a, struct weft__track *track, size_t n);
int weft__rows_settle(struct weft__analysis *a);

/* told.c: polls that are told as a whole, at their end, and counts of all of them */
int weft__poll_told(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
int weft__poll_count(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__park_count(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__told_settle(struct weft__analysis *a);

/* waits.c */
int weft__wait_add(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
int weft__wait_sum(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
void weft__waits_settle(struct weft__analysis *a);
/* Nobody waits for these because there is nothing to do. */
static inline bool weft__wait_matters(uint32_t what)
{
	return what == WEFT_WAIT_LOCK || what == WEFT_WAIT_RWLOCK || what == WEFT_WAIT_RUNTIME ||
	       what == WEFT_WAIT_GC || what == WEFT_WAIT_PAUSE;
}

/* pending.c: waits for locks that do not end */
int weft__pending_add(struct weft__analysis *a, const struct weft_event_view *ev);
/* A wait has ended that may have been pending. */
void weft__pending_end(struct weft__analysis *a, uint32_t tid, const struct weft__stretch *wait);
int weft__pending_settle(struct weft__analysis *a, uint64_t end_ns);
void weft__deadlocks_find(struct weft__analysis *a);

/* waits_rank.c */
int weft__wait_rank(struct weft__analysis *a, const struct weft__stream *s, struct weft__wait *wait,
		    const struct weft__stretch *stretch);
int weft__wait_apart(struct weft__analysis *a, const struct weft__stream *s, const struct weft__wait_row *more,
		     uint32_t stack);
void weft__wait_ranks_settle(struct weft__analysis *a);

static inline bool weft__wait_is_call(uint32_t what)
{
	return what == WEFT_WAIT_CALL;
}

/* away.c: what the collector tells of threads */
int weft__off_add(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__look_add(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__stuck_add(struct weft__analysis *a, const struct weft_event_view *ev);
/* cputime.c. A reading of the CPU clock; how long the kernel's tick is, 0: not known; a thread begins to work; a sample of it. */
void weft__cpu_add(struct weft__analysis *a, const struct weft_event_view *ev);
uint64_t weft__tick_of(const struct weft__names *names);
void weft__beat_wake(struct weft__analysis *a, struct weft__stream *s, uint64_t time_ns);
void weft__beat_sample(struct weft__analysis *a, struct weft__stream *s, uint64_t ns, uint64_t engine);
void weft__cost_add(struct weft__analysis *a, const struct weft_event_view *ev);
void weft__away_settle(struct weft__analysis *a, uint64_t end_ns);

/* times.c. Those of what ended up to then, which nothing comes late for. */
int weft__times_run(struct weft__analysis *a, struct weft__track *track, uint64_t until_ns);
int weft__times_settle(struct weft__analysis *a);

/* excess.c */
void weft__excess_off(struct weft__analysis *a, struct weft__track *track, const struct weft__stretch *off,
		      uint64_t count);
void weft__excess_read(struct weft__analysis *a, const struct weft_event_view *ev);
void weft__excess_settle(struct weft__analysis *a);

/* throttled.c: CPU time that a cgroup's quota withheld */
void weft__throttled_init(struct weft__analysis *a);
void weft__throttled_add(struct weft__analysis *a, const struct weft_event_view *ev);
/* A time off the CPU that ended then has come to the track, perhaps behind the reading of its span. */
/* Of a time that a poll's thread was ready without a CPU, of which no switch says when: what the quota took. */
uint64_t weft__throttled_rest(struct weft__analysis *a, const struct weft__closed *poll, uint64_t ns);
void weft__throttled_late(struct weft__analysis *a, struct weft__track *track, uint64_t end_ns);

/* scope.c: contexts */
int weft__scope_set(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
/* Those in force between two moments, into the poll. */
void weft__scope_poll(const struct weft__stream *s, uint64_t from_ns, uint64_t to_ns, struct weft__poll *poll);
/* Whether the context of a stream is asked for. */
bool weft__scope_asked(const struct weft__analysis *a, const struct weft__stream *s);

/* task.c */
int weft__task_spawn(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__task_end(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__task_wake(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev);
/* A poll of the task begins: its place and its wake, which is used up, are filled in. */
int weft__task_poll(struct weft__analysis *a, struct weft__poll *poll);
/* The same for a poll that is told at its end, while others of the task were not. */
int weft__task_told(struct weft__analysis *a, struct weft__stream *s, struct weft__poll *poll);
uint32_t weft__task_place(const struct weft__analysis *a, uint64_t task);

/* custom.c */
int weft__custom_add(struct weft__analysis *a, const struct weft_event_view *ev);
int weft__queue_add(struct weft__analysis *a, const struct weft_event_view *ev);

/* finish.c */
int weft__finish(struct weft__analysis *a, uint64_t end_ns);

/* detail.c */
void weft__detail_change(struct weft__detail *d, const struct weft_event_view *ev);
void weft__detail_count(struct weft__detail *d, const struct weft_event_view *ev);
/* Whether a wake of the poll's task can be the one that it began after. */
bool weft__detail_has_wake(const struct weft__detail *d, const struct weft__wake *wake, uint64_t begin_ns);

#endif
