/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: a thread stands still until something else happens. Whoever makes it wait says so, before and after:
 *
 *     static uint32_t name;                                      once: name = weft_string("cache_lock");
 *     if (try_lock(&cache) != 0) {
 *             weft_wait_begin(WEFT_WAIT_LOCK, name, (uintptr_t)&cache);
 *             lock(&cache);
 *             weft_wait_end(WEFT_WAIT_LOCK, (uintptr_t)&cache);
 *     }
 *     weft_lock_held((uintptr_t)&cache);                         optional: waits then know who has it
 *     ...
 *     weft_lock_released((uintptr_t)&cache);
 *     unlock(&cache);
 *
 * A wait that took the recorder's wait_ns or longer (10 ms by default) is an event `wait` of its own, with its
 * stack, taken as it ended. (Stacks need unwind tables. Those are there where CPU samples are taken; else they are
 * made when the first long wait has ended, and until then only the caller is in the stack.) The others are summed
 * for each thread by what and name, and the sums are recorded as events `wait_sum`, at most every 100 ms, when the
 * thread ends and when recording stops. (When weft's budget of CPU time is used up, long waits may be in the sums,
 * too, but for the first ten in 100 ms of a worker; the longer one is, the likelier it is recorded.) So the time of all
 * waits together is exact, however short each was; only what a killed process had not recorded yet is lost.
 *
 * A wait splits the time of its thread in two: what was before it, which may have used the CPU, and the wait, which
 * did not. CPU samples are taken by a clock that stands still in a wait, so they and their weights lie before it,
 * where the CPU time was used; `wait` is the second part, and its CPU time is zero. On threads that park (event.h) an
 * event `sched` comes with it, at most every 10 ms, and gives the thread's CPU time so far: its difference to the one
 * before is all the CPU time of what was before the wait. (A wait that spins uses the CPU, and has samples that say
 * so.)
 *
 * While it lasts, a wait can be seen from outside of its thread, by samplers and watchdogs inside weft; for readers
 * a wait goes before whatever else was seen of the thread meanwhile. Up to WEFT_WAITS_MAX may be pending on a
 * thread, one inside the other. The end of an outer one ends those inside it, should they have been left by longjmp;
 * when all are taken, the old ones are forgotten. A long one that still lasts when recording stops is recorded with
 * its length so far.
 *
 * Every function here may be called from any thread and from signal handlers, takes no lock, allocates nothing and
 * never waits. When nothing records, each is one load and one branch. A short wait costs its two readings of the
 * clock and a few ns. The functions with WEFT_EMIT are inline, as in event.h. */
#ifndef WEFT_WAIT_H
#define WEFT_WAIT_H

#include "event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is waited for, and what `object` is then. In a wait_sum, 0 stands for what had no place in the table of its
 * thread. */
enum weft_wait {
	WEFT_WAIT_CALL = 1,      /* a call of the system: its file descriptor, all ones when it has none; in events with
				  * the id of a string above it that says what that was, if it is known */
	WEFT_WAIT_LOCK = 2,      /* a mutex: its address */
	WEFT_WAIT_RWLOCK = 3,    /* its address */
	WEFT_WAIT_CONDITION = 4, /* its address */
	WEFT_WAIT_SEMAPHORE = 5, /* its address */
	WEFT_WAIT_RUNTIME = 6,   /* a lock of the whole runtime, such as Ruby's GVL or Python's GIL */
	WEFT_WAIT_GC = 7,        /* garbage collection */
	WEFT_WAIT_PAUSE = 8,     /* stopped by the runtime for another reason */
	WEFT_WAIT_THREAD = 9,    /* the end of another thread */
	WEFT_WAIT_OTHER = 10,
};

#define WEFT_WAIT_ABOUT_AT 32 /* bit from which the object of a call has that string */

#define WEFT_WAITS_MAX 4  /* pending on a thread, by itself; as many again by others (weft_wait_begin_of) */
#define WEFT_WAIT_SUMS 32 /* sums of a thread, one for each what and name; a power of two */

/* A wait that lasts. What others may read of it is whole while `since` is the same before and after. Not promised,
 * like all structs here. */
struct weft_wait_slot {
	uint64_t since; /* tick at which it began; 0: none */
	uint64_t key;   /* enum weft_wait << 32 | name */
	uint64_t object;
	uint64_t holder; /* thread id as it began, 0: not known; WEFT_HOLDER_MARKED: the lock is marked */
};

/* Written by the thread itself. What was reported is written by who reports, which may be the collector. */
struct weft_wait_sum {
	uint64_t key; /* as above; 0: free */
	uint64_t count;
	uint64_t ticks;
	uint64_t longest; /* since it was reported */
	uint64_t reported_count;
	uint64_t reported_ticks;
};

/* The waits of a thread, at an address that stays what it is. */
struct weft_waits {
	uint32_t tid;   /* 0: nobody's */
	uint32_t depth; /* of `own` */
	uint32_t most;  /* depth from which the slow path is asked */
	uint32_t generation;
	uint64_t due; /* tick from which sums are to be recorded */
	uint64_t stack_low;
	uint64_t stack_high; /* of the thread's own stack; 0: not known */
	uint32_t recorded;   /* one by one, since sums were recorded */
	uint32_t credit;     /* towards the next, when the budget allows only some */
	struct weft_wait_slot own[WEFT_WAITS_MAX];
	struct weft_wait_sum sums[WEFT_WAIT_SUMS + 1]; /* the last one is for what has no place */
};

#define WEFT_LOCKS 4096 /* places for holders of locks; a power of two */

extern WEFT_API __thread struct weft_waits *weft_waits_self WEFT_LAYOUT_OF(weft_waits_self)
	__attribute__((tls_model("initial-exec")));
/* Bits of the object << 32 | thread id. */
extern WEFT_API uint64_t weft_locks[WEFT_LOCKS] WEFT_LAYOUT_OF(weft_locks);
/* Locks that somebody waits for: bits of the object << 12 | how many wait. */
extern WEFT_API uint64_t weft_lock_marks[WEFT_LOCKS] WEFT_LAYOUT_OF(weft_lock_marks);

#define WEFT_HOLDER_MARKED (UINT64_C(1) << 32)
#define WEFT_HOLDER_ASK 0x80000000u

/* Slow paths, out of line: the calling thread's waits with room for one more, or NULL; a wait that is over and is
 * long, or whose sum has no place yet, or with which sums are due; the end of a wait that is not the innermost. */
WEFT_API struct weft_waits *weft_slow_waits(void);
WEFT_API void weft_slow_wait_done(uint64_t key, uint64_t object, uint64_t holder, uint64_t since, uint64_t tick);
WEFT_API void weft_slow_wait_end(uint32_t what, uint64_t object, uint64_t tick);
/* The calling thread begins to wait for a lock: WEFT_HOLDER_MARKED, or 0 when another lock has its place; the wait
 * is over. And of a lock that is marked: the calling thread has taken it, with others or alone; is about to give it
 * back; has seen, after giving up, that another has it; or did not take it after all. */
WEFT_API uint64_t weft_slow_lock_mark(uint64_t object);
WEFT_API void weft_slow_lock_unmark(uint64_t object);
WEFT_API void weft_slow_lock_taken(uint64_t object, uint32_t shared);
WEFT_API void weft_slow_lock_given(uint64_t object, uint32_t shared);
WEFT_API void weft_slow_lock_seen(uint64_t object, uint32_t tid);
WEFT_API void weft_slow_lock_missed(uint64_t object);
/* For how many ticks between two others had it, as far as they said so. */
WEFT_API uint64_t weft_slow_lock_ticks(uint64_t object, uint64_t since, uint64_t until);

static inline uint64_t weft_wait_key(uint32_t what, uint32_t name)
{
	return (uint64_t)(what ? what : (uint32_t)WEFT_WAIT_OTHER) << 32 | name;
}

static inline uint64_t weft_wait_hash(uint64_t word)
{
	return word * UINT64_C(0x9e3779b97f4a7c15);
}

/* Adds in a way that a signal on this thread cannot split; no other thread writes there. */
static inline void weft_wait_add(uint64_t *to, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("addq %1, %0" : "+m"(*to) : "er"(n) : "cc");
#else
	__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
#endif
}

/* A short wait ended in which the thread was off the CPU: for how many ticks. */
WEFT_API uint64_t weft_slow_waited(uint64_t since, uint64_t tick, uint64_t key);

/* The tick at which a wait begins. Was the thread off the CPU before it? */
static inline uint64_t weft_wait_tick(uint32_t on)
{
	uint64_t tick = weft_tick(on);

	if ((on & WEFT_GATE_RSEQ) && WEFT_UNLIKELY(!weft_stayed_since()))
		weft_slow_off(tick);
	return tick;
}

/* A wait of the calling thread is over: into its sum, or to the slow path. A call that never left the CPU took no time
 * that was waited. */
static inline void weft_wait_settle(uint64_t key, uint64_t object, uint64_t holder, uint64_t since, uint64_t tick)
{
	struct weft_waits *waits = weft_waits_self;
	struct weft_wait_sum *sum = &waits->sums[weft_wait_hash(key) >> 59];
	uint64_t ticks = tick - since;

	if (WEFT_UNLIKELY(holder >= WEFT_HOLDER_MARKED) ||
	    WEFT_UNLIKELY(ticks >= __atomic_load_n(&weft_gate.wait_ticks, __ATOMIC_RELAXED)) ||
	    WEFT_UNLIKELY(__atomic_load_n(&sum->key, __ATOMIC_RELAXED) != key) ||
	    WEFT_UNLIKELY(tick >= __atomic_load_n(&waits->due, __ATOMIC_RELAXED))) {
		weft_slow_wait_done(key, object, holder, since, tick);
		return;
	}
	if (weft_gate_on() & WEFT_GATE_RSEQ) {
		uint64_t off = WEFT_UNLIKELY(!weft_stayed_since()) ? weft_slow_waited(since, tick, key) : 0;

		if (key >> 32 == WEFT_WAIT_CALL)
			ticks = off;
	}
	weft_wait_add(&sum->ticks, ticks);
	weft_wait_add(&sum->count, 1);
	if (WEFT_UNLIKELY(ticks > __atomic_load_n(&sum->longest, __ATOMIC_RELAXED)))
		__atomic_store_n(&sum->longest, ticks, __ATOMIC_RELAXED);
}

/* The place of a lock among the holders, and what stands there when `tid` has it. */
static inline uint64_t *weft_lock_at(uint64_t object)
{
	return &weft_locks[weft_wait_hash(object) >> 52];
}

static inline uint64_t weft_lock_word(uint64_t object, uint32_t tid)
{
	return weft_wait_hash(object) >> 8 << 32 | tid;
}

static inline uint32_t weft_lock_look(uint64_t object)
{
	uint64_t word = __atomic_load_n(weft_lock_at(object), __ATOMIC_RELAXED);

	return word == weft_lock_word(object, (uint32_t)word) ? (uint32_t)word : 0;
}

/* Whether somebody waits for a lock, so that who has it is of interest. */
static inline int weft_lock_waited(uint64_t object)
{
	uint64_t hash = weft_wait_hash(object);
	uint64_t mark = __atomic_load_n(&weft_lock_marks[hash >> 52], __ATOMIC_RELAXED);

	return WEFT_UNLIKELY(mark != 0) && (mark ^ hash << 12) < 4096;
}

static inline void weft_wait_push(uint32_t on, uint32_t what, uint32_t name, uint64_t object, uint32_t holder)
{
	struct weft_waits *waits = weft_waits_self;
	struct weft_wait_slot *slot;
	uint64_t marked = 0;
	uint32_t depth;

	if (WEFT_UNLIKELY(waits->depth >= waits->most)) {
		waits = weft_slow_waits();
		if (!waits)
			return;
	}
	if (WEFT_UNLIKELY(holder != 0))
		marked = weft_slow_lock_mark(object);
	/* Taken before it is filled: a handler that comes meanwhile uses the next one. */
	depth = waits->depth;
	__atomic_store_n(&waits->depth, depth + 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	slot = &waits->own[depth];
	__atomic_store_n(&slot->key, weft_wait_key(what, name), __ATOMIC_RELAXED);
	__atomic_store_n(&slot->object, object, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->holder, (holder & ~WEFT_HOLDER_ASK) | marked, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->since, weft_wait_tick(on), __ATOMIC_RELEASE);
}

/* The calling thread begins to wait for `object`; `name` (of weft_string; 0: none) is what people read. `holder` is
 * the id of the thread that has it, 0 when that is not known; without it, it is known when that thread said
 * weft_lock_held. Where a holder is known, or WEFT_HOLDER_ASK is added, those who have the lock until the wait ends
 * are recorded, too, as far as they say weft_lock_held and weft_lock_released. */
WEFT_EMIT(void weft_wait_begin_held(uint32_t what, uint32_t name, uint64_t object, uint32_t holder), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_wait_push(on, what, name, object, holder);
})
WEFT_EMIT(void weft_wait_begin(uint32_t what, uint32_t name, uint64_t object), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_wait_push(on, what, name, object, weft_lock_look(object));
})

/* The innermost wait of the calling thread for `what` and `object` is over, and so are those inside it. Nothing when
 * there is none, because recording began later. */
WEFT_EMIT(void weft_wait_end(uint32_t what, uint64_t object), {
	uint32_t on = weft_gate_on();
	struct weft_waits *waits = weft_waits_self;
	uint32_t depth = waits->depth;
	struct weft_wait_slot *slot = &waits->own[depth ? depth - 1 : 0];
	uint64_t key = slot->key;
	uint64_t since = slot->since;
	uint64_t holder = slot->holder;
	if (!depth)
		return;
	if (WEFT_UNLIKELY(!on || key >> 32 != weft_wait_key(what, 0) >> 32 || slot->object != object)) {
		weft_slow_wait_end(what, object, on ? weft_tick(on) : 0);
		return;
	}
	__atomic_store_n(&slot->since, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&waits->depth, depth - 1, __ATOMIC_RELAXED);
	weft_wait_settle(key, object, holder, since, weft_tick(on));
})

/* The tick for `since` of weft_waited; 0 when nothing records. */
WEFT_EMIT(uint64_t weft_wait_since(void), {
	uint32_t on = weft_gate_on();
	return on ? weft_wait_tick(on) : 0;
})

/* The same said afterwards, for a wait that need not be seen while it lasts: it began at `since` (weft_wait_since; 0:
 * nothing recorded then). One that is left by longjmp or by the end of the thread is never recorded and leaves nothing
 * behind. */
WEFT_EMIT(void weft_waited(uint32_t what, uint32_t name, uint64_t object, uint32_t holder, uint64_t since), {
	uint32_t on = weft_gate_on();
	if (on && since)
		weft_wait_settle(weft_wait_key(what, name), object, holder, since, weft_tick(on));
})

/* The calling thread has the lock `object` now, or is about to give it back. Waits for it that begin in between carry
 * this thread as their holder, and those that last meanwhile know how long it had the lock: event `held`. Only for
 * locks that are worth it; it is a load and a store each. Two locks may share a place: then the holder is not known. */
WEFT_EMIT(void weft_lock_held(uint64_t object), {
	struct weft_waits *waits = weft_waits_self;
	if (!weft_gate_on())
		return;
	if (WEFT_UNLIKELY(!waits->tid))
		waits = weft_slow_waits();
	if (waits)
		__atomic_store_n(weft_lock_at(object), weft_lock_word(object, waits->tid), __ATOMIC_RELAXED);
	if (weft_lock_waited(object))
		weft_slow_lock_taken(object, 0);
})
WEFT_EMIT(void weft_lock_released(uint64_t object), {
	uint64_t *word = weft_lock_at(object);
	if (__atomic_load_n(word, __ATOMIC_RELAXED) == weft_lock_word(object, weft_waits_self->tid))
		__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	if (weft_lock_waited(object))
		weft_slow_lock_given(object, 0);
})

/* Between these two it is recorded who has the lock, as far as they say so: for a wait that is said afterwards
 * (weft_waited), which is to be said before weft_lock_unwatch. Each of the first has one of the second. */
WEFT_API void weft_lock_watch(uint64_t object);
WEFT_API void weft_lock_unwatch(uint64_t object);

/* Who has a lock, as far as weft_lock_held was called for it: a thread id, or 0. */
WEFT_EMIT(uint32_t weft_lock_holder(uint64_t object), { return weft_lock_look(object); })

/* For runtimes that report waits by callbacks, which may come on another thread than the one that waits. A thread
 * gets its number from weft_wait_self (0: there is no place for it) and keeps it for as long as it lives, whether or
 * not anything records; after that the number means nothing and harms nobody. Not async-signal-safe, this one. */
WEFT_API uint64_t weft_wait_self(void);

/* Begins and ends a wait of the thread with that number, from any thread. They touch that thread's place and nothing
 * else. When the thread itself ends it, that is when its event is made, with the stack; when another does, the thread
 * makes it when it next ends a wait, or the collector does, a second later, without a stack. `what` and `object` tell
 * waits apart that are pending at one time. Who held a lock (WEFT_WAIT_LOCK, RWLOCK or RUNTIME) meanwhile is known as
 * far as its holders say weft_lock_held and weft_lock_released. While a wait for a runtime's lock lasts, waits of the
 * thread for a lock or a condition that begin in it are how the runtime waits: long ones are not recorded. */
WEFT_API void weft_wait_begin_of(uint64_t thread, uint32_t what, uint32_t name, uint64_t object);
WEFT_API void weft_wait_end_of(uint64_t thread, uint32_t what, uint64_t object);

#ifdef __cplusplus
}
#endif
#endif
