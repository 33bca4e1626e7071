/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that come by callbacks on any thread. HOT, but for weft_wait_self.
 *
 * The number of a thread is generation << 32 | place + 1. A slot is taken by a compare-and-swap of its `since`,
 * filled, and shown by a store of the tick. Nothing here touches what the waiting thread writes without one: short
 * waits go to sums of their own. Who holds the lock meanwhile is known as it is of waits that threads begin themselves:
 * the lock is marked until the wait has been reported. */
#include <errno.h>

#include "record/wait/wait.h"

static struct weft__wait_thread *remote_thread(uint64_t number)
{
	uint32_t at = (uint32_t)number - 1;

	if (at >= WAIT_THREADS || !load_acquire(&weft__wait_tids[at]) ||
	    load_relaxed(&weft__wait_threads[at].mine.generation) != (uint32_t)(number >> 32))
		return NULL;
	return &weft__wait_threads[at];
}

/* A lock that nobody has at this moment may be taken by another before this thread gets it: it is marked all the
 * same. */
static uint64_t remote_mark(uint32_t what, uint64_t object)
{
	return what == WEFT_WAIT_LOCK || what == WEFT_WAIT_RWLOCK || what == WEFT_WAIT_RUNTIME
		       ? weft_slow_lock_mark(object)
		       : 0;
}

void weft__wait_unmark(uint64_t holder, uint64_t object)
{
	if (holder >= WEFT_HOLDER_MARKED)
		weft_slow_lock_unmark(object);
}

void weft__wait_drop(struct weft__wait_remote *wait)
{
	if (load_acquire(&wait->slot.since) > REMOTE_BUSY)
		weft__wait_unmark(load_relaxed(&wait->slot.holder), load_relaxed(&wait->slot.object));
	store_release(&wait->slot.since, REMOTE_FREE);
}

void weft_wait_begin_of(uint64_t number, uint32_t what, uint32_t name, uint64_t object)
{
	uint32_t on = weft_gate_on();
	struct weft__wait_thread *thread = on ? remote_thread(number) : NULL;

	for (uint32_t i = 0; thread && i < WEFT_WAITS_MAX; i++) {
		struct weft__wait_remote *wait = &thread->remote[i];
		uint64_t is_free = REMOTE_FREE;

		if (!cas_acq_rel(&wait->slot.since, &is_free, (uint64_t)REMOTE_BUSY))
			continue;
		store_relaxed(&wait->until, 0);
		store_relaxed(&wait->slot.key, weft_wait_key(what, name));
		store_relaxed(&wait->slot.object, object);
		store_relaxed(&wait->slot.holder, weft_lock_look(object) | remote_mark(what, object));
		/* The thread may have ended meanwhile, and its place be another's. */
		if (!remote_thread(number))
			weft__wait_unmark(wait->slot.holder, object);
		store_release(&wait->slot.since, remote_thread(number) ? weft_tick(on) : REMOTE_FREE);
		return;
	}
}

/* Takes the slot when it is a wait that lasts, for this object. Answers when it began, or 0. */
static uint64_t remote_take(struct weft__wait_remote *wait, uint32_t what, uint64_t object)
{
	uint64_t since = load_acquire(&wait->slot.since);

	if (since <= REMOTE_BUSY || load_relaxed(&wait->until) || load_relaxed(&wait->slot.key) >> 32 != what ||
	    load_relaxed(&wait->slot.object) != object)
		return 0;
	return cas_acq_rel(&wait->slot.since, &since, (uint64_t)REMOTE_BUSY) ? since : 0;
}

__attribute__((noinline)) void weft_wait_end_of(uint64_t number, uint32_t what, uint64_t object)
{
	uint64_t from = (uint64_t)(uintptr_t)__builtin_return_address(0);
	uint32_t on = weft_gate_on();
	struct weft__wait_thread *thread = remote_thread(number);
	uint64_t tick = on ? weft_tick(on) : 0;

	what = (uint32_t)(weft_wait_key(what, 0) >> 32);
	for (uint32_t i = 0; thread && i < WEFT_WAITS_MAX; i++) {
		struct weft__wait_remote *wait = &thread->remote[i];
		uint64_t since = remote_take(wait, what, object);
		struct weft__waited waited = {load_relaxed(&wait->slot.key),
					      object,
					      load_relaxed(&wait->slot.holder),
					      since,
					      tick,
					      from,
					      0,
					      WEFT_NOT_MEASURED,
					      WEFT_NOT_MEASURED};

		if (!since)
			continue;
		if (on && tick > since && tick - since >= load_relaxed(&weft_gate.wait_ticks) &&
		    weft_waits_self != &thread->mine) {
			store_relaxed(&wait->until, tick);
			store_release(&wait->slot.since, since);
			store_relaxed(&thread->mine.due, 0); /* it finds this when it next ends a wait */
			return;
		}
		store_release(&wait->slot.since, REMOTE_FREE);
		if (on && weft_waits_self == &thread->mine) {
			int saved = errno;

			weft__wait_over(&thread->mine, &waited);
			errno = saved;
		} else if (on) {
			weft__wait_sum_add(thread->remote_sums, WAIT_REMOTE_SUMS, waited.key,
					   tick > since ? tick - since : 0, 0);
		}
		weft__wait_unmark(waited.holder, object);
		return;
	}
}

int weft__wait_ended(struct weft__wait_thread *thread, uint64_t before, struct weft__waited *ret)
{
	for (uint32_t i = 0; i < WEFT_WAITS_MAX; i++) {
		struct weft__wait_remote *wait = &thread->remote[i];
		uint64_t since = load_acquire(&wait->slot.since), until = load_relaxed(&wait->until);

		if (since <= REMOTE_BUSY || !until || until >= before ||
		    !cas_acq_rel(&wait->slot.since, &since, (uint64_t)REMOTE_BUSY))
			continue;
		*ret = (struct weft__waited){load_relaxed(&wait->slot.key),
					     load_relaxed(&wait->slot.object),
					     load_relaxed(&wait->slot.holder),
					     since,
					     until,
					     0,
					     0,
					     WEFT_NOT_MEASURED,
					     WEFT_NOT_MEASURED};
		store_release(&wait->slot.since, REMOTE_FREE);
		return 1;
	}
	return 0;
}

int weft__wait_is_inside(const struct weft_waits *waits, const struct weft__waited *waited)
{
	const struct weft__wait_thread *thread = (const struct weft__wait_thread *)(const void *)waits;
	uint64_t what = waited->key >> 32;

	for (uint32_t i = 0; (what == WEFT_WAIT_CONDITION || what == WEFT_WAIT_LOCK) && i < WEFT_WAITS_MAX; i++) {
		const struct weft__wait_remote *outer = &thread->remote[i];
		uint64_t since = load_acquire(&outer->slot.since);

		if (since > REMOTE_BUSY && since <= waited->since && !load_relaxed(&outer->until) &&
		    load_relaxed(&outer->slot.key) >> 32 == WEFT_WAIT_RUNTIME)
			return 1;
	}
	return 0;
}
