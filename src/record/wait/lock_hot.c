/* SPDX-License-Identifier: Apache-2.0 */
/* Who held a lock while others waited for it. HOT.
 *
 * A thread that begins to wait for a lock marks it (weft_lock_marks). Whoever takes or gives back a lock looks at the
 * mark, which is one load, and leaves a note in the lock's log when there is one: who had it, from when to when. The
 * one that waited reads the log when its wait was long enough to be an event, and emits an event `held` for each
 * holder right before its `wait`.
 *
 * The mark is the lock's hash without the bits that chose its place, so no other lock has the same, and below it the
 * number of threads that wait. A log is used by one lock at a time: the first that is marked in its place. Holders of
 * another lock in that place are not known then, as those of locks that are given back without weft_lock_released.
 *
 * Who gives back a lock that only one thread can have writes the log alone; readers of a rwlock write at the same
 * time. A note that was torn is one with a wrong time, and readers of the log check that times are in order. */
#include <errno.h>

#include "base/place.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"
#include "record/wait/wait.h"

#define COUNT_BITS 12 /* of a mark */
#define COUNT_MAX ((UINT64_C(1) << COUNT_BITS) - 1)
#define HOLDS 8       /* of each length that a log keeps */
#define TAKERS 4      /* threads that have a lock at one time, as readers do */
#define LONG_SHARE 4  /* a hold is long from this part of a long wait on */
#define MERGE_SHARE 8 /* holds of one thread are one, when the time in between is below this part of a long wait */

/* A thread that took the lock while it was marked, and has it. */
struct taker {
	uint32_t tid; /* 0: none */
	uint32_t shared;
	uint64_t tick;
};

struct lock_log {
	uint64_t since;    /* marked */
	uint64_t released; /* last, by one that had it alone */
	struct taker takers[TAKERS];
	struct weft__hold now; /* the last, which may go on */
	uint32_t n_long, n_short;
	struct weft__hold longs[HOLDS], shorts[HOLDS];
};

uint64_t weft_lock_marks[WEFT_LOCKS];
static struct lock_log lock_logs[WEFT_LOCKS] LARGE_TABLE;

static struct lock_log *log_of(uint64_t object)
{
	return &lock_logs[weft_wait_hash(object) >> 52];
}

uint64_t weft_slow_lock_mark(uint64_t object)
{
	uint64_t hash = weft_wait_hash(object), tag = hash << COUNT_BITS, *mark = &weft_lock_marks[hash >> 52];
	uint64_t word = load_relaxed(mark);
	struct lock_log *log = log_of(object);
	uint32_t on = weft_gate_on();

	do {
		if (word && ((word ^ tag) > COUNT_MAX || (word & COUNT_MAX) == COUNT_MAX))
			return 0;
		/* Nobody's log. Others may be at the same point, and write the same. */
		for (uint32_t i = 0; !word && i < TAKERS; i++)
			store_relaxed(&log->takers[i].tid, 0u);
		if (!word)
			store_relaxed(&log->since, on ? weft_tick(on) : 0);
	} while (!cas_acq_rel(mark, &word, word ? word + 1 : tag | 1));
	return WEFT_HOLDER_MARKED;
}

void weft_slow_lock_unmark(uint64_t object)
{
	uint64_t hash = weft_wait_hash(object), tag = hash << COUNT_BITS, *mark = &weft_lock_marks[hash >> 52];
	uint64_t word = load_relaxed(mark);

	do {
		if (!word || (word ^ tag) > COUNT_MAX || !(word & COUNT_MAX))
			return;
	} while (!cas_acq_rel(mark, &word, (word & COUNT_MAX) == 1 ? 0 : word - 1));
}

void weft_lock_watch(uint64_t object)
{
	weft_slow_lock_mark(object);
}

void weft_lock_unwatch(uint64_t object)
{
	weft_slow_lock_unmark(object);
}

void weft__locks_forked(void)
{
	for (uint32_t at = 0; at < WEFT_LOCKS; at++) {
		if (load_relaxed(&weft_locks[at]))
			store_relaxed(&weft_locks[at], 0);
		if (load_relaxed(&weft_lock_marks[at]))
			store_relaxed(&weft_lock_marks[at], 0);
	}
}

static uint32_t own_tid(void)
{
	struct weft_waits *waits = weft_waits_self;

	if (!waits->tid)
		waits = weft_slow_waits();
	return waits ? waits->tid : 0;
}

static struct taker *taker_of(struct lock_log *log, uint32_t tid)
{
	for (uint32_t i = 0; i < TAKERS; i++)
		if (load_relaxed(&log->takers[i].tid) == tid)
			return &log->takers[i];
	return NULL;
}

static void log_take(struct lock_log *log, uint32_t tid, uint32_t shared, uint64_t tick)
{
	struct taker *taker = shared ? taker_of(log, tid) : &log->takers[0];

	/* One that takes it alone is alone: others gave it back unseen. */
	for (uint32_t i = 1; !shared && i < TAKERS; i++)
		store_relaxed(&log->takers[i].tid, 0u);
	if (!taker)
		taker = taker_of(log, 0);
	if (!taker)
		taker = &log->takers[tid % TAKERS];
	store_relaxed(&taker->tid, 0u);
	store_relaxed(&taker->tick, tick);
	store_relaxed(&taker->shared, shared);
	store_release(&taker->tid, tid);
}

void weft_slow_lock_taken(uint64_t object, uint32_t shared)
{
	uint32_t on = weft_gate_on(), tid;
	int saved = errno;

	tid = on ? own_tid() : 0;
	if (tid)
		log_take(log_of(object), tid, shared, weft_tick(on));
	errno = saved;
}

void weft_slow_lock_seen(uint64_t object, uint32_t tid)
{
	struct lock_log *log = log_of(object);
	uint64_t since = load_relaxed(&log->since), released = load_relaxed(&log->released);

	if (tid && weft_lock_waited(object) && !taker_of(log, tid))
		log_take(log, tid, 0, released > since ? released : since);
}

void weft_slow_lock_missed(uint64_t object)
{
	struct taker *taker = weft_waits_self->tid ? taker_of(log_of(object), weft_waits_self->tid) : NULL;

	if (taker)
		store_relaxed(&taker->tid, 0u);
}

static void hold_copy(struct weft__hold *to, const struct weft__hold *from)
{
	store_relaxed(&to->tid, load_relaxed(&from->tid));
	store_relaxed(&to->begin, load_relaxed(&from->begin));
	store_relaxed(&to->end, load_relaxed(&from->end));
	store_relaxed(&to->ticks, load_relaxed(&from->ticks));
}

static void hold_keep(struct lock_log *log, const struct weft__hold *hold)
{
	int is_long = hold->ticks >= load_relaxed(&weft_gate.wait_ticks) / LONG_SHARE;
	uint32_t at = add_relaxed(is_long ? &log->n_long : &log->n_short, 1u) % HOLDS;

	if (hold->tid)
		hold_copy(is_long ? &log->longs[at] : &log->shorts[at], hold);
}

static void hold_add(struct lock_log *log, const struct weft__hold *hold, uint32_t shared)
{
	struct weft__hold *now = &log->now;
	uint64_t gap = load_relaxed(&weft_gate.wait_ticks) / MERGE_SHARE;

	if (shared) {
		hold_keep(log, hold);
	} else if (now->tid == hold->tid && hold->begin >= now->end && hold->begin - now->end <= gap) {
		store_relaxed(&now->ticks, now->ticks + hold->ticks);
		store_relaxed(&now->end, hold->end);
	} else {
		hold_keep(log, now);
		hold_copy(now, hold);
	}
}

void weft_slow_lock_given(uint64_t object, uint32_t shared)
{
	uint32_t on = weft_gate_on(), tid;
	struct lock_log *log = log_of(object);
	uint64_t since = load_relaxed(&log->since), released = load_relaxed(&log->released), now;
	struct weft__hold hold;
	struct taker *taker;
	int saved = errno;

	tid = on ? own_tid() : 0;
	errno = saved;
	if (!tid)
		return;
	taker = taker_of(log, tid);
	now = weft_tick(on);
	hold = (struct weft__hold){.tid = tid, .begin = since, .end = now};
	if (taker)
		hold.begin = load_relaxed(&taker->tick);
	else if (!shared && released > since)
		hold.begin = released;
	if (taker)
		store_relaxed(&taker->tid, 0u);
	if (!shared)
		store_relaxed(&log->released, now);
	if (hold.begin > now)
		hold.begin = now;
	hold.ticks = hold.end - hold.begin;
	hold_add(log, &hold, shared);
}

/* What the wait saw of a hold. 0: nothing. */
static int hold_clip(const struct weft__waited *waited, const struct weft__hold *hold, struct weft__hold *ret)
{
	uint64_t span;

	hold_copy(ret, hold);
	if (!ret->tid || ret->begin > ret->end || ret->end <= waited->since || ret->begin >= waited->tick)
		return 0;
	span = ret->end - ret->begin;
	if (ret->begin < waited->since)
		ret->begin = waited->since;
	if (ret->end > waited->tick)
		ret->end = waited->tick;
	/* Of several holds in one, as much as is in this part of the time. */
	if (span > ret->end - ret->begin && ret->ticks > ret->end - ret->begin)
		ret->ticks = (uint64_t)((double)ret->ticks * (double)(ret->end - ret->begin) / (double)span);
	if (ret->ticks > ret->end - ret->begin)
		ret->ticks = ret->end - ret->begin;
	return ret->ticks > 0;
}

/* Keeps the longest. */
static void keep_longest(struct weft__hold *out, uint32_t *n, const struct weft__hold *hold)
{
	uint32_t shortest = 0;

	if (*n < WAIT_HOLDS_MAX) {
		out[(*n)++] = *hold;
		return;
	}
	for (uint32_t i = 1; i < *n; i++)
		if (out[i].ticks < out[shortest].ticks)
			shortest = i;
	if (hold->ticks > out[shortest].ticks)
		out[shortest] = *hold;
}

uint32_t weft__lock_holds(const struct weft__waited *waited, struct weft__hold out[WAIT_HOLDS_MAX])
{
	struct lock_log *log = log_of(waited->object);
	struct weft__hold hold;
	uint32_t i, n = 0, own = waited->lasts ? 0 : weft_waits_self->tid; /* who has it now, since the wait is over */

	if (waited->key >> 32 == WEFT_WAIT_CALL || !weft_lock_waited(waited->object))
		return 0;
	for (i = 0; i < HOLDS; i++)
		if (hold_clip(waited, &log->longs[i], &hold))
			keep_longest(out, &n, &hold);
	for (i = 0; i < HOLDS; i++)
		if (hold_clip(waited, &log->shorts[i], &hold))
			keep_longest(out, &n, &hold);
	if (hold_clip(waited, &log->now, &hold))
		keep_longest(out, &n, &hold);
	for (i = 0; i < TAKERS; i++) {
		struct weft__hold has = {.tid = load_acquire(&log->takers[i].tid),
					 .begin = load_relaxed(&log->takers[i].tick),
					 .end = waited->tick};

		has.ticks = has.end > has.begin ? has.end - has.begin : 0;
		if (has.tid && has.tid != own && hold_clip(waited, &has, &hold))
			keep_longest(out, &n, &hold);
	}
	/* Whoever had it then has not given it back. */
	if (n == 0 && waited->lasts && (uint32_t)waited->holder)
		out[n++] = (struct weft__hold){(uint32_t)waited->holder, waited->since, waited->tick,
					       waited->tick - waited->since};
	return n;
}

/* The holder whose hold ended last. */
static uint64_t last_holder(const struct weft__hold *holds, uint32_t n)
{
	uint32_t i, last = 0;

	for (i = 1; i < n; i++)
		if (holds[i].end > holds[last].end)
			last = i;
	return holds[last].tid;
}

uint32_t weft__lock_holder(const struct weft__waited *waited)
{
	struct weft__hold holds[WAIT_HOLDS_MAX];
	uint32_t n = weft__lock_holds(waited, holds);

	return n ? (uint32_t)last_holder(holds, n) : (uint32_t)waited->holder;
}

uint64_t weft__lock_report(struct weft_ring *ring, const struct weft__waited *waited)
{
	struct weft__hold holds[WAIT_HOLDS_MAX];
	uint32_t i, n = weft__lock_holds(waited, holds);

	for (i = 0; i < n; i++) {
		uint64_t fields[WEFT_FIELDS_OF_HELD] = {holds[i].tid, waited->object,
							weft_tick_ns(waited->tick - holds[i].end),
							weft_tick_ns(holds[i].end - holds[i].begin),
							weft_tick_ns(holds[i].ticks)};

		if (ring)
			weft__wide_emit_in(ring, WEFT_KIND_HELD, waited->tick, fields, NULL, 0);
		else
			weft__wide_emit(WEFT_KIND_HELD, waited->tick, fields);
	}
	return n ? last_holder(holds, n) : (uint32_t)waited->holder;
}

uint64_t weft_slow_lock_ticks(uint64_t object, uint64_t since, uint64_t until)
{
	struct weft__waited waited = {
		.key = weft_wait_key(WEFT_WAIT_LOCK, 0), .object = object, .since = since, .tick = until};
	struct weft__hold holds[WAIT_HOLDS_MAX];
	uint32_t i, n = weft__lock_holds(&waited, holds);
	uint64_t ticks = 0;

	for (i = 0; i < n; i++)
		ticks += holds[i].tid != weft_waits_self->tid ? holds[i].ticks : 0;
	return ticks;
}
