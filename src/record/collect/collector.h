/* SPDX-License-Identifier: Apache-2.0 */
/* The collector: one thread that moves events from the rings to staging and from staging to segments. COLLECTOR; the
 * functions that CALLER may use say so.
 *
 *     drain    rings -> staging     copies slots; short, so that rings are free again soon
 *     flush    staging -> file      encodes and compresses what was staged, as one block; what is long of it is left to
 *                                   a thread that runs when no other wants the CPU (idle.h), while staging goes on in
 *                                   its other half
 *     tend     everything that is due: drains, flushes, rotation, queue depths, dead threads, full disks */
#ifndef WEFT_COLLECT_COLLECTOR_H
#define WEFT_COLLECT_COLLECTOR_H

#include <pthread.h>

#include "base/clock.h"
#include "record/collect/calm.h"
#include "record/collect/check.h"
#include "record/collect/coarse.h"
#include "record/collect/contexts.h"
#include "record/collect/costs.h"
#include "record/collect/flight.h"
#include "record/collect/idle.h"
#include "record/collect/segments.h"
#include "record/collect/stack_ids.h"
#include "record/found.h"
#include "record/host/throttle.h"
#include "record/ring/region.h"
#include "record/source.h"
#include "segment/batch.h"
#include "segment/defs.h"

/* What the collector knows of each ring beside what is in its page. */
struct weft__ring_note {
	uint32_t stream;             /* whose definition is in the active segment */
	uint64_t segment;            /* number of that segment, plus 1 */
	uint32_t last_stream;        /* of the last chunk that was encoded */
	uint64_t last_ns;            /* and its last event */
	uint32_t looks;              /* at the thread's name so far */
	uint32_t grown;              /* slots that the ring was given, or could not be; 0: none yet */
	uint64_t drained_ns;         /* when it was looked into last */
	struct ring_context context; /* after the events of the block that is being made */
	uint64_t context_flush;      /* in which that was begun */
	uint64_t run_gather;         /* the block whose last run of this ring is `run` */
	uint32_t run;
};

/* A run of staged events, and the next one of the same ring. */
struct weft__run {
	const struct staged_run *staged;
	uint32_t next; /* UINT32_MAX: none */
	uint32_t taken;
};

/* A lane of what the collector itself finds out. */
struct weft__found_stream {
	uint32_t stream; /* 0: none yet */
	uint64_t next;   /* slot; they never repeat */
	uint64_t first_ns;
	struct weft_loss lost; /* not reported yet; count 0: nothing is */
};

enum weft__ask { ASK_NOTHING = 0, ASK_ROTATE, ASK_STOP, ASK_ATTACH, ASK_DETACH };

struct weft__collector {
	/* set at open, then constant */
	struct weft__region *region;
	uint64_t drain_ns;
	uint64_t flush_ns;
	uint64_t slack_ns; /* that a timed wake may be late */
	int counts_polls;  /* poll modes slow and caught; collector: or a time of such a mode */
	int private_fds;   /* has a table of files of its own (base/private_fds.h); until start returned: shall have */
	struct weft__defs facts; /* host, options, labels: in front of every segment */
	uint32_t facts_open;     /* the version of those of sources among them */

	/* collector */
	struct weft__timeline timeline;
	struct weft__batch *batch; /* NULL: left to the encoder thread, and no memory for another yet */
	struct weft__encoder *encoder;
	struct weft__idle *idle; /* the encoder thread; NULL: not needed yet, or not to be had */
	int has_idle;            /* that was tried */
	int level;
	uint64_t pending_ns; /* since when a block of the older half of staging is being encoded there; 0: none is */
	struct weft__buf payload;
	struct weft__defs defs; /* of the block that is being made */
	struct weft__defs news; /* to be staged */
	struct weft__run *runs; /* of that block */
	size_t n_runs, runs_cap;
	uint64_t gathers;
	uint64_t n_bad;                /* events of the block that is being made that made no sense */
	uint64_t refused_seen;         /* definitions that were refused, as reported */
	struct weft_loss bad;          /* the last of them, not yet written; count 0: none */
	struct weft__ring_note *notes; /* of rings, and of what stands for one: FOUND_RING */
	struct {
		uint32_t tid;
		uint32_t half; /* of staging, in which the last run of found events is */
		uint64_t run;  /* where that run begins, */
		uint64_t end;  /* and ends; 0: it is gone */
		struct weft__found_stream lanes[FOUND_LANES];
	} found; /* staging.c */
	struct weft__segments segments;
	struct weft__flight flight;
	struct weft__stack_ids stacks;
	struct weft__costs costs;
	struct weft__coarse coarse;
	struct weft__calm calm;
	struct weft__throttle throttle;
	struct weft__check check;
	struct weft__cputime {
		uint64_t at_ns; /* of the last reading; 0: there is none */
		struct weft__source_cpu seen;
	} cputime;
	uint64_t throttle_due_ns; /* when it is read next; 0: nobody has begun to */
	uint64_t n_flushes;       /* tried so far */
	uint64_t registry_at;     /* how much of the registry is in the active segment */
	uint64_t flushed_ns, tended_ns, retained_ns;
	uint32_t tends;       /* looks at rings whose threads may have died */
	uint32_t name_looks;  /* at names of threads, since the last of these */
	uint64_t counted_ns;  /* polls */
	uint64_t cpu_read_ns; /* when its own CPU time was read last */
	uint32_t facts_seen;  /* of sources: the version that is in the active segment */
	uint64_t drain_due_ns;
	uint64_t grown_bytes; /* that rings were given beyond what they began with */
	uint64_t drained;     /* slots that threads filled, and were drained */
	uint64_t staged_runs; /* of one thread each, in which they were */
	uint64_t fast_ns;     /* when a ring was seen that is full soon after it wakes the collector */
	int is_soon;          /* its thread asks to run soon */
	uint64_t staged_ns;   /* when the oldest staged event was staged; 0: none */
	uint64_t stuck_ns;    /* since when the disk has been full; 0: it is not */
	int stuck_err;
	int starved; /* memory ran out in this round */
	struct weft_recorder_stats stats;

	/* shared with callers, under `mutex` */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t done;
	int running;
	int settled; /* its thread has what it needs */
	enum weft__ask ask;
	uint64_t asked_ns; /* when that was, of ASK_ATTACH */
	int answer;
	char answer_path[512];
	uint32_t want_on;            /* value for weft_gate.on while nothing is in the way */
	uint32_t coarse_on;          /* for the bits of it that say how polls are recorded; 0: as they are */
	uint64_t paused_ns;          /* since when the user has paused it; 0: not */
	struct weft_loss pauses[16]; /* that are over and not yet in the segment */
	uint32_t n_pauses;
	struct weft_recorder_stats shown; /* `stats` as of the last round */
};

/* CALLER. Memory for everything that runs later, so that the collector itself needs little. 0 or -ENOMEM. */
int weft__collector_init(struct weft__collector *c);
void weft__collector_fini(struct weft__collector *c);
/* thread.c. CALLER. Starts the thread, all signals blocked. */
int weft__collector_start(struct weft__collector *c);
/* CALLER. Asks for a rotation or the end and waits for the answer. */
int weft__collector_ask(struct weft__collector *c, enum weft__ask what, char *path, size_t path_bytes);
/* CALLER. Sources are attached or detached, on the thread that has the files. */
void weft__collector_attach(struct weft__collector *c, int on);
void weft__collector_attach_here(struct weft__collector *c, enum weft__ask what);
/* CALLER. Opens and shuts the gate; with `pause` the time until it is opened again is noted in the segment. */
void weft__collector_gate(struct weft__collector *c, uint32_t on, int pause);
/* On its thread: whether it has to run soon after it was woken. */
void weft__collector_soon(struct weft__collector *c, int soon);
/* What the thread does, until it is asked to stop. */
void weft__collector_run(struct weft__collector *c);

/* round.c. Sources of a stage that are due have their turn; `err` of the round so far. Answers that, or the first
 * error. */
int weft__round_sources(struct weft__collector *c, enum weft__source_stage stage, uint64_t now_ns, int err);
/* Sources finish, those of SOURCE_LATE or all others. */
int weft__round_finish_sources(struct weft__collector *c, int late, uint64_t now_ns, int err, int last);
/* Facts that changed, losses and counts of sources. */
int weft__round_news(struct weft__collector *c, uint64_t now_ns);
/* Names for which there was no room: at the first, and how many by the end of a segment. */
int weft__round_refused(struct weft__collector *c, int all);
/* collector.c. Everything that was recorded so far is written and sealed; `last`: the collector ends. */
int weft__round_finish(struct weft__collector *c, int last);

/* drain.c. 0, or the error of a flush that was needed to make room. */
int weft__drain(struct weft__collector *c);
/* Whether a ring, or the memory for stacks, is half full. */
int weft__drain_pressing(const struct weft__collector *c);
/* Whether a ring is a quarter full: nothing to get up for, but to be done by who is up. */
int weft__drain_worthwhile(const struct weft__collector *c);
/* The thread of ring `i`, which is known, is in the active segment: something that is not its own event refers to
 * it. */
int weft__drain_define(struct weft__collector *c, uint32_t i);
/* Defines every thread again, for a segment that takes the place of one that had the definitions of what is staged. */
void weft__drain_define_again(struct weft__collector *c);
/* Rings whose threads died without a word; names that became known. */
void weft__drain_tend(struct weft__collector *c);

/* throttled.c. What a CPU quota took, as events: when that is due; and what is left of it, at a rotation and at the
 * end. 0 or the error of a flush. */
int weft__throttled_tend(struct weft__collector *c, uint64_t now_ns);
/* cputime.c. The process' CPU time and what samples stand for, in the same way. */
void weft__cputime_tend(struct weft__collector *c, uint64_t now_ns);
void weft__cputime_report(struct weft__collector *c);
void weft__throttled_report(struct weft__collector *c);

/* grow.c. `slots` are filled: gives the ring more of them if at this rate it is soon full. */
void weft__grow_ring(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint64_t slots);

/* gather.c. What is in a half of staging, into the batch and `defs`. 0 or an error, after which both are of no use. */
struct weft__half {
	char *base;
	uint64_t used;
};
int weft__gather(struct weft__collector *c, const struct weft__half *half);

/* flush.c. Begins a segment when there is none. Staging is empty after success, and everything is in the file. */
int weft__flush(struct weft__collector *c);
/* The same, but large blocks are encoded by the thread for that, and written in a later turn. */
int weft__flush_soon(struct weft__collector *c);
/* There is room in staging after success. */
int weft__flush_room(struct weft__collector *c);
/* Writes a block that was encoded meanwhile, or encodes it here when that takes too long. */
int weft__flush_turn(struct weft__collector *c, uint64_t now_ns);
/* CALLER. Memory for blocks; 0: there is none. And gives it back. */
int weft__flush_init(struct weft__collector *c);
void weft__flush_fini(struct weft__collector *c);
/* Flushes and seals; no new segment is begun. */
int weft__flush_seal(struct weft__collector *c);
/* staging.c. Puts the records of `news` into staging, flushing for room if need be. */
int weft__stage_news(struct weft__collector *c);

#endif
