/* SPDX-License-Identifier: Apache-2.0 */
/* Polls in the modes slow and caught (record/ring/polls.h), and polls that are all recorded and timed besides. HOT. */
#include "record/event/poll.h"

#include <errno.h>

#include "record/event/account.h"
#include "record/event/park.h"
#include "record/event/wakes.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"
#include "record/trigger.h"
#include "weft/event.h"

#define BLOCKED_NS UINT64_C(10000000)

/* The calling thread's, which may be the ring of no thread. */
static inline struct polls *own_polls(void)
{
	return &((struct ring_page *)(void *)weft_ring_self)->polls;
}

static inline void poll_set(struct poll_open *open, uint64_t arg, uint64_t tick, uint32_t on)
{
	store_relaxed(&open->timed, on & WEFT_GATE_TIMED);
	store_relaxed(&open->arg, arg);
	store_release(&open->tick, tick);
}

/* Leaves a poll's length to be counted, and counts the one before it. */
static inline void poll_over(struct polls *polls, struct poll_open *open, uint32_t bucket)
{
	uint32_t before = open->over;

	store_release(&open->over, bucket + 1);
	fence_signal();
	weft__polls_count(polls, before);
}

struct ring_page *weft__polls_ready(uint32_t on, uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	struct polls *polls;

	if (!ring && weft_slow_ring(1, tick))
		ring = weft__ring_mine();
	if (!ring)
		return NULL;
	polls = &ring->polls;
	if ((polls->on ^ on) & ~GATE_CHANGES) {
		store_relaxed(&polls->level, 0u);
		weft__polls_untimed_add(polls, load_relaxed(&polls->untimed) & 1);
		fence_signal();
	}
	polls->on = on;
	return ring;
}

/* Polls that are open as events from the time when all polls were: they are around those that are in `polls`. */
static uint32_t open_as_events(const struct ring_page *ring)
{
	return load_relaxed(&weft_gate.poll_mixed) ? (uint32_t)(load_relaxed(&ring->hot.poll) & 0xff) : 0;
}

/* For a poll that begins or ends with WEFT_GATE_UNTIMED: whether one with a clock is open here. Then it is as if that
 * bit were not there, and the next operation asks again. */
static int timed_is_open(struct ring_page *ring)
{
	if (!load_relaxed(&ring->polls.level) && !open_as_events(ring))
		return 0;
	ring->polls.on &= ~WEFT_GATE_UNTIMED;
	return 1;
}

int weft__poll_under_cap(struct ring_page *ring, uint64_t tick)
{
	struct polls *polls = &ring->polls;

	if (tick - polls->second >= load_relaxed(&weft_gate.second_ticks)) {
		polls->second = tick;
		polls->reported = 0;
	}
	if (polls->reported < load_relaxed(&weft_gate.poll_cap)) {
		polls->reported++;
		return 1;
	}
	if (ring->capped == load_relaxed(&ring->capped_seen))
		store_relaxed(&ring->capped_from, tick);
	store_relaxed(&ring->capped_to, tick);
	store_release(&ring->capped, ring->capped + 1);
	return 0;
}

/* A poll without a clock ends, if one is open; 0: none was. `tick` 0: not read yet. */
static inline int untimed_end(struct polls *polls, uint64_t tick, uint32_t on)
{
	if (!(load_relaxed(&polls->untimed) & 1))
		return 0;
	if (WEFT_UNLIKELY(load_relaxed(&weft_gate.step) - load_relaxed(&polls->untimed_step) >= 2))
		weft__untimed_report(polls, tick ? tick : weft_tick(on));
	weft__polls_untimed_add(polls, 1);
	return 1;
}

/* One ends and the next begins. */
static inline void untimed_next(struct polls *polls, uint64_t arg, uint64_t tick, uint32_t on)
{
	untimed_end(polls, tick, on);
	weft__polls_untimed_begin(polls, arg, load_relaxed(&weft_gate.step));
}

static void poll_open(struct ring_page *ring, uint64_t arg, uint64_t tick, uint32_t on)
{
	struct polls *polls = &ring->polls;
	uint32_t level = load_relaxed(&polls->level);

	store_relaxed(&polls->level, level + 1);
	fence_signal();
	if (level < POLLS_NEST)
		poll_set(&polls->open[level], arg, tick, on);
	if (level + open_as_events(ring) > 0)
		weft__account_nested(ring, level + open_as_events(ring), tick);
}

/* While wakes are only counted: the one that the poll was for. */
static void report_woken(const struct poll_open *poll, uint64_t tick)
{
	struct weft__woken woken;
	uint64_t fields[WEFT_FIELDS_OF_WOKEN];

	if (!(weft_gate_on() & WEFT_GATE_COUNTED) || !weft__wakes_find(poll->arg & WEFT_TASK_MASK, poll->tick, &woken))
		return;
	fields[WEFT_FIELD_WOKEN_TID] = woken.tid;
	fields[WEFT_FIELD_WOKEN_BY] = woken.by;
	fields[WEFT_FIELD_WOKEN_AGO] = weft_tick_ns(poll->tick - woken.tick);
	fields[WEFT_FIELD_WOKEN_ALONE] = weft_tick_ns(poll->tick - woken.no_other);
	weft__wide_emit(WEFT_KIND_WOKEN, tick, fields);
}

static void poll_report(struct ring_page *ring, const struct poll_open *poll, uint64_t tick, uint64_t ns,
			uint32_t level, uint32_t why, const struct weft__cpu_split *split)
{
	uint64_t fields[WEFT_FIELDS_OF_POLL] = {poll->arg & WEFT_TASK_MASK, poll->arg >> WEFT_TASK_BITS, ns,
						level + open_as_events(ring), why};

	if (!weft__poll_under_cap(ring, tick))
		return;
	weft__context_passed(poll->tick, tick);
	report_woken(poll, tick);
	if (split)
		weft__wide_emit(WEFT_KIND_POLL_CPU, tick, WEFT__SPLIT_FIELDS(*split));
	weft__wide_emit(WEFT_KIND_POLL, tick, fields);
}

/* What the poll that ends was on the CPU, or NULL when it was all the time. */
static const struct weft__cpu_split *poll_split(struct ring_page *ring, const struct poll_open *poll, uint64_t tick,
						uint32_t level, uint32_t on, struct weft__cpu_split *split)
{
	int saved = errno, known;

	*split = WEFT__SPLIT_UNKNOWN;
	if (!(on & WEFT_GATE_RSEQ) || weft_stayed())
		return NULL;
	known = weft__account_poll(ring, level + open_as_events(ring), poll->tick, tick, split);
	errno = saved;
	return known ? split : NULL;
}

/* For as long as between two samples, or more: it would have had one if those were of all its time. */
static int is_blocked(const struct weft__cpu_split *split, uint64_t ns)
{
	if (split->cpu_ns == WEFT_NOT_MEASURED || split->ready_ns == WEFT_NOT_MEASURED)
		return 0;
	return ns >= BLOCKED_NS + split->cpu_ns + split->ready_ns + split->unsure_ns;
}

static uint32_t bucket_of(uint64_t ns)
{
	return ns >> POLLS_OCTAVES ? POLLS_LONGER : weft__polls_bucket(ns);
}

/* A poll that is short, and that no sample fell into: it is not recorded, whatever it was spent on. */
static void poll_count(struct ring_page *ring, struct poll_open *poll, uint64_t tick, uint64_t ns, uint32_t level,
		       uint32_t on)
{
	int saved = errno;

	if (on & WEFT_GATE_RSEQ && !weft_stayed())
		weft__account_counted(ring, level + open_as_events(ring), poll->tick, tick);
	errno = saved;
	poll_over(&ring->polls, poll, bucket_of(ns));
}

static void poll_judge(struct ring_page *ring, struct poll_open *poll, uint64_t tick, uint32_t level, uint32_t on)
{
	uint64_t took = (int64_t)(tick - poll->tick) > 0 ? tick - poll->tick : 0;
	uint64_t ns = weft_tick_ns(took);
	uint32_t why = ns >= load_relaxed(&weft_gate.poll_slow_ns) ? WEFT_POLL_SLOW : 0;
	uint32_t reports = on & WEFT_GATE_CAUGHT ? WEFT_POLL_CAUGHT : WEFT_POLL_SLOW;
	struct weft__cpu_split split;
	const struct weft__cpu_split *known;

	if (load_relaxed(&poll->sampled) - poll->tick - 1 < took)
		why |= WEFT_POLL_CAUGHT;
	if (!poll->timed && !(why & reports) && ns < BLOCKED_NS && ns < load_relaxed(&weft_gate.poll_trigger_ns)) {
		poll_count(ring, poll, tick, ns, level, on);
		return;
	}
	known = poll_split(ring, poll, tick, level, on, &split);
	if (known && poll->timed)
		weft__wide_emit(WEFT_KIND_POLL_CPU, tick, WEFT__SPLIT_FIELDS(split));
	if (known && is_blocked(known, ns))
		why |= WEFT_POLL_CAUGHT;
	if (!poll->timed)
		poll_over(&ring->polls, poll, bucket_of(ns));
	if (!poll->timed && why & reports)
		poll_report(ring, poll, tick, ns, level, why, known);
	if (ns >= load_relaxed(&weft_gate.poll_trigger_ns))
		weft__trigger_poll(poll->arg & WEFT_TASK_MASK, ns, ring->owner);
}

/* Ends the innermost poll. True: an event has to say that it ends. One that began before this time of recording is
 * not known here. */
static int poll_close(struct ring_page *ring, uint64_t tick, uint32_t on)
{
	struct polls *polls = &ring->polls;
	uint32_t level = load_relaxed(&polls->level) - 1;
	int timed = (on & WEFT_GATE_TIMED) != 0;

	if (level == UINT32_MAX) {
		if (!open_as_events(ring)) {
			untimed_end(polls, tick, on); /* it began before the level was another */
			return timed;
		}
		if (on & WEFT_GATE_RSEQ && !weft_stayed())
			weft_slow_poll_off(tick);
		weft_poll_mark_end();
		return 1;
	}
	if (level >= POLLS_NEST) {
		if (!timed)
			weft__polls_count(polls, 1 + POLLS_UNTIMED);
	} else {
		timed = polls->open[level].timed != 0;
		if (polls->open[level].tick)
			poll_judge(ring, &polls->open[level], tick, level, on);
		store_relaxed(&polls->open[level].tick, 0);
	}
	fence_signal();
	store_relaxed(&polls->level, level);
	return timed;
}

/* All polls are recorded, and not timed. */
static int only_events(uint32_t on)
{
	return on && !(on & WEFT_GATE_MODES);
}

static __attribute__((noinline)) void begin_slowly(uint64_t arg, uint64_t tick)
{
	uint32_t on = weft_gate_on();
	struct ring_page *ring = on & WEFT_GATE_MODES ? weft__polls_ready(on, tick) : NULL;

	if (ring && on & WEFT_GATE_UNTIMED && !timed_is_open(ring))
		weft__polls_untimed_begin(&ring->polls, arg, load_relaxed(&weft_gate.step));
	else if (ring)
		poll_open(ring, arg, tick, on);
	if (ring && on & WEFT_GATE_TIMED)
		weft_emit(WEFT_KIND_POLL_BEGIN, arg, tick);
	else if (only_events(on))
		weft_emit_poll(WEFT_KIND_POLL_BEGIN, arg, tick);
}

static __attribute__((noinline)) void end_slowly(uint64_t tick)
{
	uint32_t on = weft_gate_on();
	struct ring_page *ring = on & WEFT_GATE_MODES ? weft__polls_ready(on, tick) : NULL;

	if (ring && on & WEFT_GATE_UNTIMED && !timed_is_open(ring))
		untimed_end(&ring->polls, tick, on);
	else if (ring && poll_close(ring, tick, on))
		weft_emit(WEFT_KIND_POLL_END, 0, tick);
	else if (only_events(on))
		weft_emit_poll(WEFT_KIND_POLL_END, 0, tick);
}

static __attribute__((noinline)) void next_slowly(uint64_t arg, uint64_t tick)
{
	uint32_t on = weft_gate_on();
	struct ring_page *ring = on & WEFT_GATE_MODES ? weft__polls_ready(on, tick) : NULL;

	if (ring && on & WEFT_GATE_UNTIMED && !timed_is_open(ring)) {
		untimed_next(&ring->polls, arg, tick, on);
	} else if (ring) {
		int ends = poll_close(ring, tick, on), begins = (on & WEFT_GATE_TIMED) != 0;

		if (ends || begins)
			weft_emit(!begins ? WEFT_KIND_POLL_END
				  : ends  ? WEFT_KIND_POLL_NEXT
					  : WEFT_KIND_POLL_BEGIN,
				  begins ? arg : 0, tick);
		poll_open(ring, arg, tick, on);
	} else if (only_events(on)) {
		weft_emit_poll(WEFT_KIND_POLL_NEXT, arg, tick);
	}
}

/* The innermost poll when it ends here uneventfully, and then its length is taken; else NULL. */
static inline struct poll_open *ends_quietly(struct polls *polls, uint32_t level, uint64_t tick, uint32_t on)
{
	struct poll_open *open;
	uint64_t begin, took;

	if (WEFT_UNLIKELY(polls->on != on || level >= POLLS_NEST))
		return NULL;
	open = &polls->open[level];
	if (WEFT_UNLIKELY(open->timed != (on & WEFT_GATE_TIMED)))
		return NULL; /* it began in another mode */
	begin = load_relaxed(&open->tick);
	took = tick - begin;
	/* A sample in (begin, tick]. */
	if (WEFT_UNLIKELY(took >= load_relaxed(&weft_gate.poll_ticks) ||
			  load_relaxed(&open->sampled) - begin - 1 < took || (on & WEFT_GATE_RSEQ && !weft_stayed())))
		return NULL;
	if (WEFT_LIKELY(!(on & WEFT_GATE_TIMED)))
		poll_over(polls, open, weft__polls_bucket(weft_tick_ns(took)));
	return open;
}

static __attribute__((noinline)) void begin_nested(uint32_t level, uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();

	if (ring)
		weft__account_nested(ring, level + open_as_events(ring), tick);
}

/* The polls of the calling thread when this one is only counted, without a clock; else NULL. */
static inline struct polls *counts_untimed(uint32_t on)
{
	struct polls *polls = own_polls();

	return on & WEFT_GATE_UNTIMED && WEFT_LIKELY(polls->on == on && !load_relaxed(&polls->level)) ? polls : NULL;
}

void weft_slow_poll_begin_at(uint64_t arg, uint64_t tick, uint32_t on)
{
	struct polls *polls = own_polls();
	uint32_t level = load_relaxed(&polls->level);

	if (counts_untimed(on)) {
		weft__polls_untimed_begin(polls, arg, load_relaxed(&weft_gate.step));
		return;
	}
	if (on & WEFT_GATE_RSEQ && !weft_stayed())
		weft_slow_off(tick);
	if (WEFT_UNLIKELY(polls->on != on || level >= POLLS_NEST)) {
		begin_slowly(arg, tick);
		return;
	}
	store_relaxed(&polls->level, level + 1);
	fence_signal();
	poll_set(&polls->open[level], arg, tick, on);
	if (WEFT_UNLIKELY(level > 0))
		begin_nested(level, tick);
	if (on & WEFT_GATE_TIMED)
		weft_emit(WEFT_KIND_POLL_BEGIN, arg, tick);
}

void weft_slow_poll_end_at(uint64_t tick, uint32_t on)
{
	struct polls *polls = own_polls();
	uint32_t level = load_relaxed(&polls->level) - 1;
	struct poll_open *open;

	if (counts_untimed(on)) {
		untimed_end(polls, tick, on);
		return;
	}
	open = ends_quietly(polls, level, tick, on);
	if (WEFT_UNLIKELY(!open)) {
		end_slowly(tick);
		return;
	}
	store_relaxed(&open->tick, 0);
	fence_signal();
	store_relaxed(&polls->level, level);
	if (on & WEFT_GATE_TIMED)
		weft_emit(WEFT_KIND_POLL_END, 0, tick);
}

void weft_slow_poll_next_at(uint64_t arg, uint64_t tick, uint32_t on)
{
	struct polls *polls = own_polls();
	uint32_t level = load_relaxed(&polls->level) - 1;
	struct poll_open *open;

	if (counts_untimed(on)) {
		untimed_next(polls, arg, tick, on);
		return;
	}
	open = ends_quietly(polls, level, tick, on);
	if (WEFT_UNLIKELY(!open)) {
		next_slowly(arg, tick);
		return;
	}
	poll_set(open, arg, tick, on);
	if (WEFT_UNLIKELY(level > 0))
		begin_nested(level, tick);
	if (on & WEFT_GATE_TIMED)
		weft_emit(WEFT_KIND_POLL_NEXT, arg, tick);
}

void weft_slow_poll_begin(uint64_t arg, uint32_t on)
{
	struct polls *polls = counts_untimed(on);

	if (polls)
		weft__polls_untimed_begin(polls, arg, load_relaxed(&weft_gate.step));
	else
		weft_slow_poll_begin_at(arg, weft_tick(on), on);
}

void weft_slow_poll_end(uint32_t on)
{
	struct polls *polls = counts_untimed(on);

	if (polls)
		untimed_end(polls, 0, on);
	else
		weft_slow_poll_end_at(weft_tick(on), on);
}

void weft_slow_poll_next(uint64_t arg, uint32_t on)
{
	struct polls *polls = counts_untimed(on);

	if (polls)
		untimed_next(polls, arg, 0, on);
	else
		weft_slow_poll_next_at(arg, weft_tick(on), on);
}

void weft_slow_count(uint32_t which)
{
	struct ring_page *ring = weft__ring_mine();

	if (!ring && weft_slow_ring(1, weft_tick(weft_gate_on())))
		ring = weft__ring_mine();
	if (ring)
		__atomic_fetch_add(&ring->hot.counted[which], 1, __ATOMIC_RELAXED);
}

void weft__poll_counts_end(struct ring_page *ring, uint64_t tick)
{
	uint32_t slots = weft__kind_slots(WEFT_KIND_POLL_COUNT);
	uint32_t bucket;

	if (!ring->polls.on)
		return; /* it had none */
	weft__polls_fold(&ring->polls);
	for (bucket = 0; bucket < POLLS_COUNTS; bucket++) {
		uint64_t fields[WEFT_FIELDS_OF_POLL_COUNT] = {0, weft__polls_from(bucket), weft__polls_below(bucket),
							      0};

		if (!weft__ring_has_room(ring, slots))
			return; /* what is left is reported with the next thread's */
		fields[WEFT_FIELD_POLL_COUNT_COUNT] =
			weft__poll_count_take(ring, bucket, weft__polls_of(&ring->polls, bucket));
		if (fields[WEFT_FIELD_POLL_COUNT_COUNT])
			weft__wide_emit_in(&ring->hot, WEFT_KIND_POLL_COUNT, tick, fields, NULL, 0);
	}
}
