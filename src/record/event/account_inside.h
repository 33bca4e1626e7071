/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the account share; account_hot.c says how it works. HOT, on the thread itself. */
#ifndef WEFT_EVENT_ACCOUNT_INSIDE_H
#define WEFT_EVENT_ACCOUNT_INSIDE_H

#include <errno.h>

#include "base/atomic.h"
#include "record/event/account.h"
#include "record/event/detector.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define ACCOUNT_PACE_NS 250000               /* between two readings that something unforeseen asks for */
#define ACCOUNT_UNSURE_PACE_NS 1000000       /* ... when something is unsure */
#define ACCOUNT_CROWDED_PARK_PACE_NS 2000000 /* ... when threads wait for CPUs */
#define ACCOUNT_SHORT_NS 50000               /* a poll or wait below this is not worth a reading */
#define ACCOUNT_COUNT_NS 1000000             /* from here on it is worth the scheduler's counts, too */
#define ACCOUNT_SURE_NS 50000                /* an error that does not matter */
#define OFF_CPU_FIRST_NS 3000
#define ACCOUNT_LATE_NS 20000 /* nothing here takes as long: the thread was preempted */
#define ACCOUNT_READ_NS 1000  /* from a tick to the clock's reading, else */
#define ACCOUNT_KEEP_NS 25    /* what keeping the account takes, besides readings; see docs/decisions/015-account.md */

/* The CPU clock. */
int weft__account_clock(struct account *account);
/* What the scheduler counts. */
void weft__account_counts(struct account *account, struct ring_page *ring, enum weft__sched_use use);
void weft__account_count(struct account *account, struct ring_page *ring, enum weft__sched_use use);
/* Of `off_ns` off the CPU since then, how long it was ready. Between the reading of the counts and that begin were
 * parks and short waits, of which it is not known how long they were ready, nor whether each was voluntary: one that
 * finds something to do at once and is preempted is not. When there were as many voluntary switches as these, all
 * were. Else what may have been theirs is added to `unsure_ns`. */
uint64_t weft__account_ready(const struct account *account, uint64_t tick, uint64_t off_ns,
			     const struct account_begin *begin, uint64_t *unsure_ns);
/* The CPU time at the begin is at most what `begin` says, and less by what was unsure then at most. The thread has
 * used no more than `cpu1_ns` since: so, of what was unsure, only as much can be part of the poll or wait that ends. */
uint64_t weft__account_unsure(const struct account_begin *begin, uint64_t cpu1_ns, uint64_t span_ns, uint64_t cpu_ns);
/* From the CPU time at begin and end. When the first is not known, no more than all that the thread has used. */
void weft__account_split(uint64_t span_ns, uint64_t cpu0_ns, uint64_t cpu1_ns, struct weft__cpu_split *ret);
/* The thread was off the CPU for some of the time since the last operation, it is not known how long. Outside of a
 * wait (`since` 0) it was ready for that time, as a rule: when it was long, the scheduler's counts are read, so that
 * it is not part of what comes. */
void weft__account_unforeseen(struct account *account, struct ring_page *ring, uint64_t tick, uint64_t since);

/* Whether there is CPU time for a reading that what follows could do without: then it is less sure. */
static inline int account_affords(void)
{
	return load_relaxed(&weft__account_credit.ns) > 0;
}

static inline uint64_t at_most(uint64_t ns, uint64_t most)
{
	return ns < most ? ns : most;
}

/* A reading was begun at that tick. */
static inline void account_charge(uint64_t began)
{
	uint64_t ns;

	if (load_relaxed(&weft__account_credit.ns) == WEFT__ACCOUNT_FREE)
		return;
	ns = weft_tick_ns(weft_tick(load_relaxed(&weft_gate.on)) - began);
	__atomic_fetch_sub(&weft__account_credit.ns, (int64_t)at_most(ns, ACCOUNT_LATE_NS), __ATOMIC_RELAXED);
}

/* What weft itself took here. Ticks of operations come from the program, which may have worked since. */
static inline void account_spend(struct account *account, uint64_t ticks)
{
	uint64_t most = load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_LATE_NS);

	store_relaxed(&account->spent, account->spent + at_most(ticks, most));
}

/* As it has to be, with the poll that is open. */
static inline void detector_set(const struct account *account)
{
	weft__detector_arm(load_relaxed(&weft_gate.rseq_armed) +
			   (account && account->polls[0].tick ? WEFT_RSEQ_OFF : 0));
}

static inline int account_enter(struct account *account)
{
	if (load_relaxed(&account->busy))
		return 0;
	store_relaxed(&account->busy, 1u);
	fence_signal();
	if (account->generation != load_relaxed(&weft_gate.generation)) {
		account->generation = load_relaxed(&weft_gate.generation);
		account->tick = account->polls[0].tick = account->off_ticks = account->unsure_ticks = 0;
		account->offs = account->offs_counted = 0;
		account->counted_off_ticks = 0;
		account->spared = 0;
		account->spared_ticks = 0;
		account->off_cpu_ns = OFF_CPU_FIRST_NS;
		account->off_ready_ns = 0;
		account->ready_ns = account->ready_before_ns = WEFT_NOT_MEASURED;
		account->voluntary = WEFT_NOT_MEASURED;
	}
	return 1;
}

/* The begin of the outermost poll that is open; 0: none is. */
static inline uint64_t poll_began(const struct ring_page *ring)
{
	uint64_t mark = load_relaxed(&ring->hot.poll);

	if (load_relaxed(&weft_gate.poll_mixed) && mark & 0xff)
		return mark >> 8; /* the mode changed since */
	if (load_relaxed(&weft_gate.on) & WEFT_GATE_MODES)
		return load_relaxed(&ring->polls.level) ? load_relaxed(&ring->polls.open[0].tick) : 0;
	return mark & 0xff ? mark >> 8 : 0;
}

/* The thread's CPU time at a tick, as far as is known. */
static inline uint64_t account_cpu(const struct account *account, uint64_t tick)
{
	uint64_t span, off;

	if ((int64_t)(tick - account->tick) < 0) {
		uint64_t watched = (int64_t)(account->watched - tick) > 0 ? account->watched : tick;

		span = weft_tick_ns(watched - tick);
		if (span > ACCOUNT_LATE_NS) /* it was preempted before the clock was read */
			span = ACCOUNT_READ_NS;
		span += weft_tick_ns(account->tick - watched); /* there it was not, however long that took */
		return account->cpu_ns > span ? account->cpu_ns - span : 0;
	}
	span = weft_tick_ns(tick - account->tick);
	off = weft_tick_ns(account->off_ticks);
	return account->cpu_ns + (span > off ? span - off : 0) + (uint64_t)account->offs * account->off_cpu_ns;
}

/* Whether it knows of that begin of a wait. A reading just behind is that of the begin (weft_wait_tick); one further
 * on came with the ring, or from a handler. */
static inline int account_knows(const struct account *account, uint64_t since)
{
	return account->tick && (account->tick <= since || weft_tick_ns(account->tick - since) <= ACCOUNT_LATE_NS);
}

/* What the scheduler had counted at the tick of what is under way. When it was read long after that, the thread was
 * preempted in between: it was ready then. Where the detector says that it stayed on the CPU, an interrupt or the
 * hypervisor took that time, and the count has nothing of it. */
static inline uint64_t account_ready_at(const struct account *account, uint64_t tick)
{
	uint64_t ready_ns = account->ready_ns, before_ns = account->ready_before_ns, late_ns;

	if (ready_ns == WEFT_NOT_MEASURED || before_ns == WEFT_NOT_MEASURED ||
	    (int64_t)(account->counted_from - tick) <= 0)
		return ready_ns;
	late_ns = weft_tick_ns(account->counted_from - tick);
	if (late_ns <= ACCOUNT_LATE_NS || before_ns >= ready_ns)
		return ready_ns;
	return ready_ns - at_most(late_ns, ready_ns - before_ns);
}

static inline struct account_begin account_at(const struct account *account, uint64_t tick)
{
	return (struct account_begin){
		.tick = tick,
		.cpu_ns = account->tick ? account_cpu(account, tick) : WEFT_NOT_MEASURED,
		.ready_ns = account_ready_at(account, tick),
		.voluntary = account->voluntary,
		.offs = account->offs_counted,
		.counted = account->counted,
		.counted_off_ticks = account->counted_off_ticks,
		.spared_ticks = account->spared_ticks,
		.unsure_ticks = account->unsure_ticks,
		.spared = account->spared,
	};
}

/* Before anything that changes the account: what it says of the begin of the poll that is open, or is about to begin
 * at `tick`. */
static inline void account_keep_begin(struct account *account, const struct ring_page *ring, uint64_t tick)
{
	uint64_t began = poll_began(ring);

	if (account->polls[0].tick == began || (!began && account->polls[0].tick == tick))
		return;
	if (began)
		account->polls[0] = account_at(account, began);
	else
		account->polls[0].tick = 0;
}

/* `tick` is long ago: the thread was preempted since, or the program read it early. A poll that begins with it may have
 * been off the CPU. Nothing is read: the end of that poll does it if it is worth it, and its begin is known. */
static inline void account_late(struct account *account, uint64_t tick, uint64_t now)
{
	uint64_t from =
		(int64_t)(account->tick - tick) > 0 ? account->tick : tick; /* the clock may have been read since */

	if (!account->polls[0].tick)
		account->polls[0] = account_at(account, tick);
	if (now - from <= load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_LATE_NS) || weft_stayed_since())
		return;
	account->unsure_ticks += now - from;
	account->spared_ticks += now - from;
}

static inline void account_leave(struct account *account, uint64_t tick)
{
	uint64_t now = weft_tick(load_relaxed(&weft_gate.on));

	account_spend(account, load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_KEEP_NS));
	if (WEFT_UNLIKELY(now - tick > load_relaxed(&weft_gate.ms_ticks) / (1000000 / ACCOUNT_LATE_NS)) &&
	    account->tick)
		account_late(account, tick, now);
	account->checked = tick;
	account->armed = now;
	detector_set(account);
	fence_signal();
	store_relaxed(&account->busy, 0u);
}

#endif
