/* SPDX-License-Identifier: Apache-2.0 */
/* Remembering wakes that are only counted (record/event/wakes.h). HOT.
 *
 * A wake is three stores behind the last one, and reads nothing that was written long ago: to look for the task's last
 * wake here was a miss of the cache for each, three quarters of what a wake cost. Who wants to know reads backwards.
 *
 * Others read a log while its owner writes it. Each word is whole; an entry counts when its place was not taken for
 * another one by the time it was read. */
#include "record/event/wakes.h"

#include <stddef.h>

#include "base/atomic.h"
#include "base/place.h"
#include "record/event/poll.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/event.h"

struct wake_entry {
	uint64_t tick, task, by;
};

static struct wake_log {
	uint32_t owner;  /* tid; 0: free */
	uint32_t tid;    /* of the thread that has it, or had it last */
	uint64_t period; /* the gate's wakes_from of the wakes that are here */
	uint64_t from;   /* tick: what is older is of no use */
	uint64_t n;      /* wakes so far; the next one goes to n % WAKES_KEPT */
	/* A thread that wakes very often remembers nothing for a while: that would cost more than it says. */
	uint64_t resume;  /* tick from which on it remembers */
	uint64_t window;  /* tick of the wake WAKES_A_MS before, or some fewer */
	uint64_t skipped; /* tick of the last wake that was not remembered */
	uint32_t busy;    /* 1: a wake is being written; one in a handler is not remembered */
	/* Tick up to which the thread that had the log before may have woken, in the same period. */
	uint64_t forgot;
	struct wake_entry kept[WAKES_KEPT];
} wake_logs[WAKES_LOGS] __attribute__((aligned(64))) LARGE_TABLE;
static uint32_t n_wake_logs; /* that ever had an owner */
static uint64_t homeless;    /* tick of the last wake of a thread for which there was no log */

/* The calling thread's log, from here on. */
static struct wake_log *wake_log_take(struct ring_page *ring)
{
	uint32_t i, free;

	for (i = 0; i < WAKES_LOGS; i++) {
		free = 0;
		if (load_relaxed(&wake_logs[i].owner) == 0 && cas_acq_rel(&wake_logs[i].owner, &free, ring->owner))
			break;
	}
	if (i == WAKES_LOGS)
		return NULL;
	for (free = load_relaxed(&n_wake_logs); free <= i && !cas_acq_rel(&n_wake_logs, &free, i + 1);)
		;
	store_relaxed(&ring->polls.wakes, i + 1);
	return &wake_logs[i];
}

/* The log for a wake that is the first of its thread, or after a change of the mode. */
static struct wake_log *wake_log_begin(uint64_t tick, uint32_t on)
{
	struct ring_page *ring = weft__polls_ready(on, tick);
	uint32_t had = ring ? load_relaxed(&ring->polls.wakes) : 0;
	struct wake_log *log = had ? &wake_logs[had - 1] : ring ? wake_log_take(ring) : NULL;
	uint64_t period = load_relaxed(&weft_gate.wakes_from);

	if (!log) {
		store_relaxed(&homeless, tick);
		return NULL;
	}
	if (load_relaxed(&log->period) != period) {
		store_relaxed(&log->from, period);
		store_relaxed(&log->forgot, 0);
	} else if (!had) { /* what the thread before it woke is not reported as this one's */
		store_relaxed(&log->from, tick);
		store_relaxed(&log->forgot, tick);
	}
	store_relaxed(&log->busy, 0u);
	if (!had) /* who sees it sees that what is older is not its */
		store_release(&log->tid, ring->owner);
	store_release(&log->period, period);
	return log;
}

/* Whether the thread wakes too often for each to be remembered. */
static int wakes_too_often(struct wake_log *log, uint64_t n, uint64_t tick)
{
	uint64_t ms = load_relaxed(&weft_gate.ms_ticks);

	if (WEFT_UNLIKELY(tick < load_relaxed(&log->resume)) || load_relaxed(&log->busy)) {
		store_relaxed(&log->skipped, tick);
		return 1;
	}
	if (WEFT_UNLIKELY(n % WAKES_A_MS == 0)) {
		if (tick - log->window < ms)
			store_relaxed(&log->resume, tick + WAKES_PAUSE_MS * ms);
		log->window = tick;
	}
	return 0;
}

static uint64_t innermost_task(const struct polls *polls)
{
	uint32_t level = load_relaxed(&polls->level);

	return level && level <= POLLS_NEST ? load_relaxed(&polls->open[level - 1].arg) & WEFT_TASK_MASK : 0;
}

void weft_slow_wake(uint64_t task, uint64_t tick, uint32_t on)
{
	struct ring_page *ring = (struct ring_page *)(void *)weft_ring_self; /* which may be the ring of no thread */
	uint32_t had = load_relaxed(&ring->polls.wakes);
	struct wake_log *log = had ? &wake_logs[had - 1] : NULL;
	struct wake_entry *entry;
	uint64_t n;

	if (WEFT_UNLIKELY(!log || ring->polls.on != on ||
			  load_relaxed(&log->period) != load_relaxed(&weft_gate.wakes_from)))
		log = wake_log_begin(tick, on);
	n = log ? load_relaxed(&log->n) : 0;
	if (WEFT_UNLIKELY(!log || wakes_too_often(log, n, tick)))
		return;
	ring = (struct ring_page *)(void *)weft_ring_self;
	entry = &log->kept[n % WAKES_KEPT];
	store_relaxed(&log->busy, 1u);
	fence_signal();
	store_release(&entry->tick, tick); /* who sees one of these sees `n`, by which the place is this one's */
	store_release(&entry->task, task & WEFT_TASK_MASK);
	store_release(&entry->by, innermost_task(&ring->polls));
	store_release(&log->n, n + 1);
	fence_signal();
	store_relaxed(&log->busy, 0u);
}

/* A wake that is before the poll, or may be. */
static void consider(struct weft__woken *best, uint32_t tid, uint64_t tick, uint64_t by)
{
	if (tick > best->tick) {
		if (best->tick > best->no_other)
			best->no_other = best->tick;
		best->tick = tick;
		best->tid = tid;
		best->by = by;
	} else if (tick > best->no_other) {
		best->no_other = tick;
	}
}

/* What one thread remembers of the task, from the last wake on backwards. Raises `forgot` to the tick up to which a wake
 * of it may be forgotten. */
static void look_in(const struct wake_log *log, uint64_t task, uint64_t begin, uint64_t *forgot,
		    struct weft__woken *best)
{
	uint32_t tid = load_acquire(&log->tid);
	uint64_t from = load_relaxed(&log->from), lost = load_relaxed(&log->forgot), n = load_acquire(&log->n), i = n;
	uint32_t older = 0; /* than the wake that was found */
	struct wake_entry entry = {begin, 0, 0};

	if (lost < load_relaxed(&log->skipped))
		lost = load_relaxed(&log->skipped);
	for (;; i--) {
		if (i == 0 || entry.tick < from)
			break;
		if (n - i == WAKES_KEPT - 1 || older == WAKES_BEFORE) {
			if (older == WAKES_BEFORE && entry.tick > best->no_other)
				best->no_other = entry.tick;
			else if (older < WAKES_BEFORE && entry.tick > lost)
				lost = entry.tick;
			break;
		}
		entry.tick = load_acquire(&log->kept[(i - 1) % WAKES_KEPT].tick);
		entry.task = load_acquire(&log->kept[(i - 1) % WAKES_KEPT].task);
		entry.by = load_acquire(&log->kept[(i - 1) % WAKES_KEPT].by);
		if (load_relaxed(&log->n) - (i - 1) >= WAKES_KEPT) { /* the owner is at it */
			lost = begin;
			break;
		}
		if (entry.task == task && entry.tick >= from && entry.tick <= begin)
			consider(best, tid, entry.tick, entry.by);
		older += best->tick && entry.tick < best->tick;
	}
	if (lost >= from && lost > *forgot)
		*forgot = lost;
}

int weft__wakes_find(uint64_t task, uint64_t begin, struct weft__woken *ret)
{
	uint64_t period = load_relaxed(&weft_gate.wakes_from), forgot = load_relaxed(&homeless);
	uint32_t i, n = load_acquire(&n_wake_logs);

	*ret = (struct weft__woken){0, 0, 0, forgot < begin ? forgot : begin};
	for (i = 0; i < n; i++)
		if (load_acquire(&wake_logs[i].period) == period)
			look_in(&wake_logs[i], task, begin, &forgot, ret);
	if (forgot > ret->no_other && forgot < begin)
		ret->no_other = forgot;
	return ret->tick && ret->tick > forgot;
}

void weft__wakes_leave(struct ring_page *ring)
{
	uint32_t had = load_relaxed(&ring->polls.wakes);

	if (!had)
		return;
	store_relaxed(&ring->polls.wakes, 0u);
	store_release(&wake_logs[had - 1].owner, 0u);
}

void weft__wakes_reset(void)
{
	uint32_t i;

	store_relaxed(&homeless, 0);
	for (i = 0; i < load_relaxed(&n_wake_logs); i++) {
		store_relaxed(&wake_logs[i].period, 0);
		store_relaxed(&wake_logs[i].owner, 0u);
	}
}
