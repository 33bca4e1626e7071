/* SPDX-License-Identifier: Apache-2.0 */
/* Waits (weft/wait.h): what a thread waits for now, and the sums of what it has waited for.
 *
 * Each thread that ever waits has a place in one table, by its thread id, for as long as it lives. The place does not
 * depend on the recorder: its address stays, so that callbacks on other threads and samplers may look at any time,
 * whatever is opened or closed meanwhile.
 *
 *     wait_hot.c     the thread's place; a wait that is over becomes an event or part of a sum; sums are reported
 *     remote_hot.c     waits that other threads begin and end
 *     lock_hot.c     who held a lock meanwhile
 *     stack_hot.c    the stack of the calling thread
 *     waits.c        what the collector, start, stop and fork do about it */
#ifndef WEFT_WAIT_INSIDE_H
#define WEFT_WAIT_INSIDE_H

#include "base/atomic.h"
#include "record/source.h"
#include "weft/wait.h"

#define WAIT_THREADS 4096 /* places; a power of two */
#define WAIT_PROBES 64    /* a thread is within so many places of where it belongs */
#define WAIT_REMOTE_SUMS 8

struct weft_ring;

extern const struct weft__source weft__wait_source;

/* A wait that another thread began. `since` is also its lock: REMOTE_BUSY while somebody fills or takes it. */
#define REMOTE_FREE 0
#define REMOTE_BUSY 1
struct weft__wait_remote {
	struct weft_wait_slot slot;
	uint64_t until; /* tick of its end; 0: it lasts */
};

struct weft__wait_thread {
	struct weft_waits mine; /* the thread itself; `due` is set to 0 by those who left something for it */
	struct weft__wait_remote remote[WEFT_WAITS_MAX]; /* any thread */
	struct weft_wait_sum remote_sums[WAIT_REMOTE_SUMS + 1];
};

extern struct weft__wait_thread weft__wait_threads[WAIT_THREADS];
extern uint32_t weft__wait_tids[WAIT_THREADS]; /* whose place it is; 0: nobody's */
extern uint32_t weft__waits_used;              /* 1: some thread has had a place */
extern struct weft_waits weft__waits_none;     /* of a thread that has no place yet */

/* HOT. The place of a thread, or NULL. */
struct weft__wait_thread *weft__wait_find(uint32_t tid);

/* What a thread waits for, as samplers see it. */
struct weft__wait_now {
	uint32_t what, name;
	uint64_t object;
	uint32_t holder;
	uint64_t since; /* tick */
};
/* HOT, of any thread. Its pending waits, the innermost last; answers how many. The first WEFT_WAITS_MAX are its own. */
#define WAIT_NOW_MAX (2 * WEFT_WAITS_MAX)
uint32_t weft__wait_pending(uint32_t tid, struct weft__wait_now *out, uint32_t max);

/* HOT. A wait that is over, as an event. With `ring` NULL on the calling thread's own; its stack is taken when
 * `from`, the return address in the caller that is to be its leaf, is not 0. */
struct weft__waited {
	uint64_t key, object, holder, since, tick;
	uint64_t from;
	int lasts;                 /* it is not over */
	uint64_t cpu_ns, ready_ns; /* WEFT_NOT_MEASURED: not known */
};
void weft__wait_emit(struct weft_waits *waits, struct weft_ring *ring, const struct weft__waited *waited);

/* A lock was held: from when to when, and how long of that. */
struct weft__hold {
	uint32_t tid;
	uint64_t begin, end, ticks;
};
#define WAIT_HOLDS_MAX 8
/* HOT. Who held the lock of a wait, the longest holds, in no order; answers how many. */
uint32_t weft__lock_holds(const struct weft__waited *waited, struct weft__hold out[WAIT_HOLDS_MAX]);
/* HOT. The same as events `held`, on a ring as above. Answers the last holder, 0: not known. */
uint64_t weft__lock_report(struct weft_ring *ring, const struct weft__waited *waited);
/* A wait of that kind is recorded while it lasts, from this age on (wall/pending.c). */
#define WAIT_PENDING_NS UINT64_C(1000000000)
static inline int weft__wait_is_watched(uint32_t what)
{
	return what == WEFT_WAIT_LOCK || what == WEFT_WAIT_RWLOCK || what == WEFT_WAIT_RUNTIME ||
	       what == WEFT_WAIT_GC || what == WEFT_WAIT_PAUSE;
}
/* HOT. Who has the lock of a wait, or had it last; 0: not known. */
uint32_t weft__lock_holder(const struct weft__waited *waited);
/* CALLER, in the child of a fork. */
void weft__locks_forked(void);
/* HOT. The same as a wait of the calling thread's, reported or summed by its length. */
void weft__wait_over(struct weft_waits *waits, struct weft__waited *waited);
/* HOT. Adds to a sum of `n` places, and one more for what has none. `own`: nobody but this thread adds there. */
void weft__wait_sum_add(struct weft_wait_sum *sums, uint32_t n, uint64_t key, uint64_t ticks, int own);
/* HOT. The next sum that has something to report, from *at on, as the fields of a wait_sum, and marks it as reported;
 * 0: there is none. */
int weft__wait_sum_next(struct weft__wait_thread *thread, uint32_t *at, uint64_t *fields);
/* HOT. The thread reports what is unreported of it, its sums and the waits that others ended. */
void weft__wait_report(struct weft__wait_thread *thread, uint64_t tick);
/* HOT. Takes a wait of the thread that somebody else ended before `before`; 0: there is none. */
int weft__wait_ended(struct weft__wait_thread *thread, uint64_t before, struct weft__waited *ret);
/* HOT. A wait with that holder has been reported: its lock is marked no longer, if it was. */
void weft__wait_unmark(uint64_t holder, uint64_t object);
/* The thread of a wait has ended, and nobody will end the wait. */
void weft__wait_drop(struct weft__wait_remote *wait);
/* HOT. How a runtime waits for its own lock is no wait beside that one, which it reports (weft_wait_begin_of). */
int weft__wait_is_inside(const struct weft_waits *waits, const struct weft__waited *waited);

/* HOT. The calling thread's stack without the frames up to the one that returns to `from`. Answers the number of
 * frames; *ret points into memory that weft__wait_stack_give gives back. */
uint32_t weft__wait_stack(struct weft_waits *waits, uint64_t from, const uint64_t **ret, uint32_t *flags, int *buffer);
void weft__wait_stack_give(int buffer);
/* Any context. CPU time that waits which were reported one by one have cost so far, in ns. */
uint64_t weft__waits_cost(void);

/* COLLECTOR. How many of a thread's long waits are reported one by one, of 1024; but for the first few of a worker,
 * which always are, and twice as many of those that are twice as long as they must be, and so on. */
#define WAIT_LEVEL_FULL SOURCE_FULL
void weft__waits_limit(uint32_t level);
#endif
