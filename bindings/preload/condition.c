/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions. A wait for one is two waits: for somebody who says that it holds, and then for the lock, which the C
 * library takes again before it returns. The second shows itself by two things: when the condition was signalled,
 * and that others had the lock since. So who signals notes the time, and marks the lock for each thread that is
 * about to take it; with the mark, those who have the lock leave a note (weft/wait.h), and the thread that waited
 * reads it. */
#include <threads.h>
#include <time.h>

#include "lock.h"

#define CONDITIONS 1024  /* with threads that wait; a power of two */
#define COUNT_MOST 255   /* of threads that wait for one */
#define RELOCK_SHARE 16u /* part of a long wait from which on one for the lock is distinguished */

/* `state` is the condition's address << 16 | threads that wait << 8 | those of them that were signalled, 0: free. */
struct condition {
	uint64_t state;
	uint64_t mutex;
	uint64_t tick; /* of the first signal to threads that have not returned yet */
};

static struct condition conditions[CONDITIONS];

static struct condition *condition_of(const void *cond)
{
	return &conditions[weft_wait_hash(OBJECT(cond)) >> 54];
}

static bool is_of(uint64_t state, const void *cond)
{
	return state >> 16 == (OBJECT(cond) & UINT64_MAX >> 16);
}

/* A wait that is known to those who signal. */
struct relock {
	const void *cond;
	uint64_t mutex; /* 0: it is not known to them */
};

static void enter(struct relock *wait, const void *cond, const void *mutex)
{
	struct condition *at = condition_of(cond);
	uint64_t state = __atomic_load_n(&at->state, __ATOMIC_RELAXED);

	do {
		if (state && (!is_of(state, cond) || (state >> 8 & COUNT_MOST) == COUNT_MOST))
			return;
	} while (!__atomic_compare_exchange_n(&at->state, &state, (state ? state : OBJECT(cond) << 16) + (1 << 8),
					      false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	__atomic_store_n(&at->mutex, OBJECT(mutex), __ATOMIC_RELAXED);
	*wait = (struct relock){cond, OBJECT(mutex)};
}

/* Answers when it was signalled, and leaves the lock marked; 0: it was not, or nobody knows. */
static uint64_t leave(struct relock *wait)
{
	struct condition *at = condition_of(wait->cond);
	uint64_t state = __atomic_load_n(&at->state, __ATOMIC_RELAXED), next, tick;

	do {
		if (!is_of(state, wait->cond) || !(state >> 8 & COUNT_MOST))
			return 0;
		tick = state & COUNT_MOST ? __atomic_load_n(&at->tick, __ATOMIC_RELAXED) : 0;
		next = state - (1 << 8) - (state & COUNT_MOST ? 1 : 0);
		if (!(next >> 8 & COUNT_MOST))
			next = 0;
	} while (!__atomic_compare_exchange_n(&at->state, &state, next, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return tick;
}

/* Runs when the thread is cancelled. Not by `-fexceptions`: that needs libgcc_s.so, whose constructor asks the CPU
 * for its features, which takes every small process of a virtual machine 0.15 ms. */
static void left(void *arg)
{
	struct relock *wait = arg;

	if (wait->mutex && leave(wait))
		weft_slow_lock_unmark(wait->mutex);
	wait->mutex = 0;
}

static void signalled(const void *cond, bool all)
{
	struct condition *at = condition_of(cond);
	uint64_t state = __atomic_load_n(&at->state, __ATOMIC_RELAXED), waiting, before, now;
	uint32_t on = weft_gate_on();

	do {
		waiting = state >> 8 & COUNT_MOST;
		before = state & COUNT_MOST;
		if (!on || !is_of(state, cond) || before >= waiting)
			return;
		now = all ? waiting : before + 1;
		if (!before)
			__atomic_store_n(&at->tick, weft_tick(on), __ATOMIC_RELAXED);
	} while (!__atomic_compare_exchange_n(&at->state, &state, state - before + now, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	for (; before < now; before++)
		weft_slow_lock_mark(__atomic_load_n(&at->mutex, __ATOMIC_RELAXED));
}

/* The end of the calling thread's wait. Inline, so that its stack ends in the function that stands for the program's
 * call. */
__attribute__((always_inline)) static inline void wait_end(struct relock *wait, const void *cond, uint32_t lock_name)
{
	struct weft_waits *waits = weft_waits_self;
	uint32_t on = weft_gate_on(), depth = waits->depth;
	struct weft_wait_slot *slot = &waits->own[depth ? depth - 1 : 0];
	uint64_t key = slot->key, since = slot->since, mutex = wait->mutex, now = on ? weft_tick(on) : 0;
	uint64_t tick = mutex ? leave(wait) : 0;

	wait->mutex = 0;
	if (!tick || !on || !depth || slot->object != OBJECT(cond) || tick <= since || now <= tick ||
	    now - tick < __atomic_load_n(&weft_gate.wait_ticks, __ATOMIC_RELAXED) / RELOCK_SHARE ||
	    2 * weft_slow_lock_ticks(mutex, tick, now) < now - tick) {
		weft_wait_end(WEFT_WAIT_CONDITION, OBJECT(cond));
	} else {
		__atomic_store_n(&slot->since, 0, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&waits->depth, depth - 1, __ATOMIC_RELAXED);
		weft_wait_settle(key, OBJECT(cond), 0, since, tick);
		/* The detector knows of the first only. */
		weft_slow_wait_done(weft_wait_key(WEFT_WAIT_LOCK, lock_name), mutex, 0, tick, now);
	}
	if (tick)
		weft_slow_lock_unmark(mutex);
}

/* The lock is given back while the condition is waited for. */
static inline void given(const void *lock)
{
	if (is_waited(OBJECT(lock)) && gives_back(lock))
		weft_slow_lock_given(OBJECT(lock), 0);
}

/* Always a wait, as far as can be seen from here. */
#define COND(name, lock, find, args, pass)                                                                             \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = find(real, #name);                                                                   \
		struct relock wait = {NULL, 0};                                                                        \
		int r;                                                                                                 \
                                                                                                                       \
		given(m);                                                                                              \
		weft_wait_begin_held(WEFT_WAIT_CONDITION, weft__preload_names[PRELOAD_NAME_##name], OBJECT(cond), 0);  \
		if (weft_recording())                                                                                  \
			enter(&wait, cond, m);                                                                         \
		pthread_cleanup_push(left, &wait);                                                                     \
		r = call pass;                                                                                         \
		pthread_cleanup_pop(0);                                                                                \
		wait_end(&wait, cond, weft__preload_names[PRELOAD_NAME_##lock]);                                       \
		taken(m, 0, 0);                                                                                        \
		return r;                                                                                              \
	}

COND(pthread_cond_wait, pthread_mutex_lock, COND_REAL, (pthread_cond_t * cond, pthread_mutex_t *m), (cond, m))
COND(pthread_cond_timedwait, pthread_mutex_lock, COND_REAL, (pthread_cond_t * cond, pthread_mutex_t *m, TIME),
     (cond, m, until))
COND(pthread_cond_clockwait, pthread_mutex_lock, PRELOAD_REAL,
     (pthread_cond_t * cond, pthread_mutex_t *m, clockid_t clock, TIME), (cond, m, clock, until))

COND(cnd_wait, mtx_lock, PRELOAD_REAL, (cnd_t * cond, mtx_t *m), (cond, m))
COND(cnd_timedwait, mtx_lock, PRELOAD_REAL, (cnd_t * cond, mtx_t *m, TIME), (cond, m, until))

#define SIGNAL(name, type, find, all)                                                                                  \
	PRELOAD_API int name(type *cond);                                                                              \
	PRELOAD_API int name(type *cond)                                                                               \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int (*call)(type *) = find(real, #name);                                                               \
                                                                                                                       \
		if (__atomic_load_n(&weft__preload_on, __ATOMIC_RELAXED) &&                                            \
		    __atomic_load_n(&condition_of(cond)->state, __ATOMIC_RELAXED))                                     \
			signalled(cond, all);                                                                          \
		return call(cond);                                                                                     \
	}

SIGNAL(pthread_cond_signal, pthread_cond_t, COND_REAL, false)
SIGNAL(pthread_cond_broadcast, pthread_cond_t, COND_REAL, true)
SIGNAL(cnd_signal, cnd_t, PRELOAD_REAL, false)
SIGNAL(cnd_broadcast, cnd_t, PRELOAD_REAL, true)
