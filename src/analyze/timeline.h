/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a thread by its tid: intervals of time in which it waited, was off the CPU, or had a wall sample
 * taken, and its polls of late.
 *
 * Switches and wall samples are reported by the collector, up to some drains after they were, and not always in
 * order. So a poll that has ended waits for a while (grace_ns) before its time is cut into parts. What comes later
 * than that finds its poll gone and is counted. Memory is bounded: of a thread with more intervals than fit, the
 * oldest are dropped, and polls that began before that have time that is not measured. Context: CALLER. */
#ifndef WEFT_ANALYZE_TIMELINE_H
#define WEFT_ANALYZE_TIMELINE_H

#include "analyze/analysis.h"
#include "analyze/breakdown.h"
#include "analyze/delta.h"
#include "analyze/offcpu.h"
#include "base/arena.h"
#include "base/map.h"

#define NO_TIMELINE UINT32_MAX

struct weft__analysis;
struct weft__threads;
struct weft__thread;
struct weft__poll;
struct weft__holds;
struct weft__event;

/* In this order, the later ones say more. */
enum weft__interval_kind { INTERVAL_SAMPLE, INTERVAL_WALL, INTERVAL_OFF, INTERVAL_WAIT };

struct weft__interval {
	uint64_t begin_ns,
		end_ns;  /* of a sample both are when it was; of a wall sample, roughly when the thread waited */
	uint64_t ns;     /* that a sample or a wall sample stands for; off: of its time, that a CPU quota took */
	uint64_t object; /* wait: fd or address; wall sample: time between two; off: span of the quota (throttled.c);
			  * sample: serial of its poll, 0: none */
	uint64_t cpu_ns, ready_ns; /* wait: on the CPU, and ready without one; WEFT_NOT_MEASURED: not known;
				    * sample: number of the CPU, and location of its poll */
	uint32_t stack, kernel;
	uint32_t
		what; /* wait: enum weft_wait; off: enum weft_offcpu; wall sample: call + 1; sample: enum weft__where */
	uint32_t name;   /* wait: string; sample: row of the thread */
	uint32_t holder; /* wait: tid; sample: engine */
	enum weft__interval_kind kind;
	const struct weft__holds *holds; /* wait: who held it when; NULL: only `holder` is known */
	bool booked;                     /* sample: is in the sums, */
	bool asked;                      /* ... or would be, if it were in the right poll, */
	bool given;                      /* ... and somebody has heard of it */
	uint32_t context;                /* number of what it was done for (context.h); 0: nothing that is known */
};

/* A poll that has ended, or the recording has. */
struct weft__closed {
	uint64_t serial;
	uint64_t begin_ns, end_ns, task, sampled_ns;
	uint32_t location, lane, thread_id, worker;
	bool asked;  /* counts in sums */
	bool listed; /* is, or was, in a list */
	bool running;
	bool kept;                /* somebody is to hear of it (rows.c) */
	enum weft__cpu_known cpu; /* WEFT__CPU_SPLIT: how it was split is in timeline->extras */
};
/* What few of them have besides. */
struct weft__closed_extra {
	struct weft__cpu cpu;
	uint64_t seen_ns; /* running: the last event of its thread */
};
_Static_assert(sizeof(struct weft__closed) == 64, "many of them wait: each is one line of the cache");

/* What somebody is to hear of a poll besides (rows.c); its context, if it has one, is in kept_contexts. */
struct weft__kept {
	struct weft__wake wake;
	uint64_t behind_ns, behind_serial;
	uint64_t n_samples;
	uint32_t depth, level, n_wakes;
	bool reported, has_context;
};

/* Where the samples of a thread's time have come to (times.c). */
struct weft__times {
	struct weft__offcpu sampler;
	struct weft__delta delta;
	uint64_t done_ns;   /* intervals that end up to here are done with */
	uint64_t wait_ns;   /* begin of the last wait before which CPU time was set apart */
	uint64_t before_ns; /* ... that */
	uint64_t off_ns;    /* end of the last time off the CPU that was in a wait */
	bool cut;           /* switches were missing since the last sample */
};

/* Between two readings of a thread's CPU time (excess.c). */
struct weft__excess {
	uint64_t read_ns, cpu_ns; /* the last reading; 0: there was none */
	uint64_t from_ns;         /* the first since switches were missing */
	uint64_t off_ns, n;       /* off the CPU since the last */
	bool weighted;            /* not each switch is reported */
};

struct weft__thread_timeline {
	uint32_t tid;
	uint32_t thread_id; /* of the last thread with this tid that emitted; 0: none */
	bool used;
	uint64_t ended_ns;          /* 0: the thread lives */
	struct weft__interval *log; /* by end */
	size_t n_log, cap_log;
	uint64_t n_changes; /* from 1 on */
	/* Where the last poll that was settled began among them, and the earliest begin of those behind it, as they
	 * were then. */
	size_t settled;
	uint64_t settled_changes, nearest_ns;
	uint64_t cut_ns; /* up to here there were more */
	/* Polls that have ended, in a ring: the one with number i is at i & (cap_closed - 1). From number
	 * first_closed on they wait for their breakdown. A few before that are still there. */
	struct weft__closed *closed;
	uint64_t first_closed, n_closed;
	size_t cap_closed;
	/* Rings, too: of those that have WEFT__CPU_SPLIT or are running, and of those that are `kept`. */
	struct weft__closed_extra *extras;
	uint64_t first_extra, n_extras;
	size_t cap_extras;
	struct weft__kept *kept;
	uint64_t first_kept, n_kept;
	size_t cap_kept;
	struct weft__context *kept_contexts;
	uint64_t first_kept_context, n_kept_contexts;
	size_t cap_kept_contexts;
	uint64_t n_off;
	bool off_sampled; /* not each switch is reported */
	uint64_t offs_ns; /* where the last interval off the CPU ended */
	struct weft__offcpu sampler;
	struct weft__times times;
	struct weft__excess excess;
	uint64_t rest_span,
		rest_ns;  /* throttled.c: the last span of the quota, and what of it has been given to polls */
	uint32_t off_row; /* in off.threads of the result */
	uint32_t next_free;
};

struct weft__thread_timelines {
	const struct weft__analysis_opts *opts;
	struct weft__off_result *result;
	struct weft__arena arena; /* of the list, and of logs and rings of each */
	struct weft__thread_timeline *at;
	size_t n, cap;
	uint32_t free;
	struct weft__map by_tid;
	size_t n_intervals; /* in all of them */
};

/* What breakdown.c keeps. */
struct weft__breakdowns {
	const struct weft__analysis_opts *opts;
	struct weft__arena arena;
	struct weft__slice *slices; /* of the poll that is being settled */
	size_t n_slices, cap_slices;
	struct weft__thread_timeline *settling; /* whose poll that is */
	struct weft__closed_extra extra;
	struct weft__poll heard; /* as somebody hears of it */
	uint64_t grace_ns;       /* for which polls that ended wait for what is known of them late */
	size_t max_closed;       /* polls of a thread that do so */
	bool detects;            /* polls of which their thread says nothing never left the CPU */
};

/* Room for item number `n` of a ring that has those from number `first` on; `*cap` is 0 or a power of two. New room
 * is zero. Returns the ring, or NULL when out of memory. */
void *weft__ring_grow(struct weft__thread_timelines *timelines, void *ring, size_t *cap, uint64_t first, uint64_t n,
		      size_t item_bytes);
static inline void *weft__ring_room(struct weft__thread_timelines *timelines, void *ring, size_t *cap, uint64_t first,
				    uint64_t n, size_t item_bytes)
{
	return n - first < *cap ? ring : weft__ring_grow(timelines, ring, cap, first, n, item_bytes);
}

static inline struct weft__closed *weft__closed_at(const struct weft__thread_timeline *timeline, uint64_t number)
{
	return &timeline->closed[number & (timeline->cap_closed - 1)];
}

/* All return 0 or -ENOMEM; `*ret` is NULL where there are too many threads. A pointer is good until the next get. */
int weft__thread_timeline_get(struct weft__analysis *a, uint32_t tid, struct weft__thread_timeline **ret);
uint32_t weft__thread_timeline_key(const struct weft__analysis_opts *opts, const struct weft__thread *s);
int weft__thread_timeline_find_of(struct weft__analysis *a, struct weft__thread *s, struct weft__thread_timeline **ret);
struct weft__thread_timeline *weft__thread_timeline_find(struct weft__thread_timelines *timelines,
							 uint32_t tid); /* NULL: there is none */
int weft__thread_timeline_add(struct weft__analysis *a, struct weft__thread_timeline *timeline,
			      const struct weft__interval *interval);
/* The first interval that ends behind `ns`, as index. */
size_t weft__thread_timeline_after(const struct weft__thread_timeline *timeline, uint64_t ns);
void weft__thread_timeline_fini(struct weft__thread_timelines *timelines, struct weft__thread_timeline *timeline);
void weft__thread_timelines_fini(struct weft__thread_timelines *timelines);
/* The last thread that it was of, or NULL. */
const struct weft__thread *weft__thread_timeline_owner(const struct weft__threads *threads,
						       const struct weft__thread_timeline *timeline);

/* breakdown.c. A poll has ended: its time is cut into parts when all is there. */
int weft__breakdown_close(struct weft__analysis *a, struct weft__thread *s, const struct weft__poll *poll,
			  uint32_t lane, bool asked, bool listed);
/* Does so now with those that waited long enough; with all of them if `now_ns` is UINT64_MAX. */
int weft__breakdown_settle(struct weft__analysis *a, struct weft__thread_timeline *timeline, uint64_t now_ns);
int weft__breakdown_settle_all(struct weft__analysis *a);

#endif
