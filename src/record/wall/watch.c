/* SPDX-License-Identifier: Apache-2.0 */
/* Of polls within polls it is the outermost that is reported: the loop gets nothing else done until that one ends. A
 * poll is reported when it is as old as the threshold, and again each time that it is twice as old as the time before.
 * */
#include "record/wall/watch.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "record/event/poll.h"
#include "record/event/wide.h"
#include "record/found.h"
#include "record/ring/ring.h"
#include "record/tables/tables.h"
#include "record/wall/remote.h"
#include "record/wall/state.h"
#include "weft/event.h"

#define TURN_LEAST_NS UINT64_C(2000000)
#define TURN_MOST_NS UINT64_C(250000000)
#define TICK_LOW ((UINT64_C(1) << TICK_BITS) - 1)

/* What was reported of the poll that is open in a ring. */
struct watched {
	uint64_t tick; /* at which it began, as far as a mark keeps it */
	uint64_t next_ns;
};

static struct {
	uint64_t stuck_ns; /* 0: nobody watches */
	uint64_t due_ns;
	uint64_t since;   /* tick; CALLER or COLLECTOR, whoever opens the gate */
	uint64_t shut_ns; /* the same */
	uint32_t opened;
	struct watched *rings;
	uint32_t n;
} watch;

static void watch_close(struct weft__collector *c)
{
	(void)c;
	weft__free(watch.rings);
	memset(&watch, 0, sizeof(watch));
}

static int watch_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	(void)err;
	watch_close(NULL);
	if (opts->stuck_ns == WEFT_OFF)
		return 0;
	watch.rings = weft__calloc(opts->max_threads, sizeof(*watch.rings));
	if (!watch.rings)
		return -ENOMEM;
	watch.n = opts->max_threads;
	watch.stuck_ns = opts->stuck_ns;
	return 0;
}

/* Polls that began before it was opened are not known to be open still. */
static void watch_gate(uint32_t on)
{
	if (on) {
		store_relaxed(&watch.since, weft_tick(on) & TICK_LOW);
		add_relaxed(&watch.opened, 1);
	} else {
		store_relaxed(&watch.shut_ns, weft__clock_mono());
	}
}

uint64_t weft__watch_shut_ns(void)
{
	return load_relaxed(&watch.shut_ns);
}

uint32_t weft__watch_opened(void)
{
	return load_relaxed(&watch.opened);
}

/* Ticks from `from` to `to`, of which the low bits are known; negative when `to` is before. */
static int64_t ticks_between(uint64_t from, uint64_t to)
{
	return (int64_t)((to - from) << (64 - TICK_BITS)) >> (64 - TICK_BITS);
}

/* One that began without a clock: the time by which it had. */
static int untimed_of(const struct polls *polls, uint64_t *tick, uint64_t *task)
{
	uint64_t mark = load_acquire(&polls->untimed), step = load_acquire(&polls->untimed_step);
	uint64_t arg = load_acquire(&polls->open[0].arg);

	if (!(mark & 1) || load_relaxed(&polls->untimed) != mark)
		return 0;
	*tick = weft__polls_step_after(step) & TICK_LOW;
	*task = arg & WEFT_TASK_MASK;
	return ticks_between(load_relaxed(&watch.since), *tick) >= 0;
}

/* The outermost open poll: 1, and when it began and its task. */
static int poll_of(struct ring_page *ring, uint32_t on, uint64_t *tick, uint64_t *task)
{
	struct poll_open *open = &ring->polls.open[0];
	uint64_t mark, arg;
	int known;

	if (on & WEFT_GATE_MODES && !(load_relaxed(&weft_gate.poll_mixed) && load_relaxed(&ring->hot.poll) & 0xff)) {
		if (!load_relaxed(&ring->polls.level))
			return untimed_of(&ring->polls, tick, task);
		mark = load_acquire(&open->tick);
		arg = load_acquire(&open->arg);
		if (!mark || load_relaxed(&open->tick) != mark)
			return 0;
		*tick = mark & TICK_LOW;
		*task = arg & WEFT_TASK_MASK;
		return ticks_between(load_relaxed(&watch.since), *tick) >= 0;
	}
	mark = load_acquire(&ring->hot.poll);
	arg = load_acquire(&ring->hot.poll_arg);
	if (!(mark & 0xff) || load_relaxed(&ring->hot.poll) >> 8 != mark >> 8)
		return 0;
	*tick = mark >> 8;
	*task = arg & WEFT_TASK_MASK;
	known = ticks_between(load_relaxed(&watch.since), *tick) >= 0;
	/* One whose end fell into a time when nothing was recorded has left its mark. The thread may write at the same
	 * time, and bring it back: then it goes the next time. */
	if (!known)
		cas_relaxed(&ring->hot.poll, &mark, 0);
	return known;
}

static void watch_report(const struct weft__turn *turn, uint32_t tid, uint64_t task, uint64_t age_ns, uint64_t ns)
{
	uint64_t fields[WEFT_FIELDS_OF_STUCK] = {tid, task, age_ns, 0};
	struct weft__remote seen;
	struct weft__wide_stack stack;

	weft__remote_look(tid, load_relaxed(&weft__wall_choice.brief), &seen);
	stack = (struct weft__wide_stack){seen.frames, seen.state == REMOTE_WAITS ? seen.n : 0, seen.flags,
					  WEFT_FIELD_STUCK_STACK};
	weft__found_add(turn->collector, FOUND_NOW, &(struct weft__found){ns, WEFT_KIND_STUCK, fields, &stack, 1});
}

/* 1: it was reported. *next_ns: in how much time it is to be reported, if that is sooner. */
static int watch_look(const struct weft__turn *turn, struct ring_page *ring, struct watched *watched, uint32_t on,
		      uint64_t now, uint64_t *next_ns)
{
	uint32_t tid = load_acquire(&ring->owner);
	uint64_t tick, task, age_ns;

	if (!tid || tid == OWNER_LEAVING || !poll_of(ring, on, &tick, &task))
		return 0;
	if (ticks_between(tick, now & TICK_LOW) <= 0)
		return 0;
	age_ns = weft_tick_ns((uint64_t)ticks_between(tick, now & TICK_LOW));
	if (watched->tick != tick)
		*watched = (struct watched){tick, watch.stuck_ns};
	if (age_ns < watched->next_ns) {
		*next_ns = watched->next_ns - age_ns < *next_ns ? watched->next_ns - age_ns : *next_ns;
		return 0;
	}
	watch_report(turn, tid, task, age_ns, weft__timeline_mono(turn->timeline, now));
	weft__poll_seen(ring, now, 1);
	watched->next_ns = 2 * age_ns;
	/* Without tables there was not much of a stack; soon there will be. */
	if (!load_relaxed(&weft__unwinding.wanted)) {
		watched->next_ns = age_ns + watch.stuck_ns;
		store_relaxed(&weft__unwinding.stale, 1u);
	}
	weft__tables_want();
	*next_ns = watched->next_ns - age_ns < *next_ns ? watched->next_ns - age_ns : *next_ns;
	return 1;
}

static uint64_t watch_pace(void)
{
	uint64_t pace = watch.stuck_ns / 4;

	return pace < TURN_LEAST_NS ? TURN_LEAST_NS : pace > TURN_MOST_NS ? TURN_MOST_NS : pace;
}

static uint64_t watch_due(const struct weft__turn *turn)
{
	return watch.stuck_ns && weft_gate_on() ? weft__turn_due(turn, watch.due_ns, watch_pace()) : UINT64_MAX;
}

/* Looks at all rings. A poll that begins from now on is not to be reported before it is as old as the threshold. */
static int watch_turn(const struct weft__turn *turn)
{
	uint32_t on = weft_gate_on(), n = load_acquire(&weft__hot.head->n_rings), reported = 0;
	uint64_t now, next_ns = watch.stuck_ns;

	if (!on)
		return SOURCE_NOTHING;
	now = weft_tick(on);
	for (uint32_t i = 0; i < n && i < watch.n; i++)
		reported +=
			(uint32_t)watch_look(turn, ring_page_at(&weft__hot.map, i), &watch.rings[i], on, now, &next_ns);
	watch.due_ns = weft__grid_from(turn->now_ns + next_ns, watch_pace());
	return reported ? SOURCE_SOON : SOURCE_NOTHING;
}

const struct weft__source weft__stuck_source = {
	.name = "stuck",
	.what = "watchdog of polls that do not end",
	.open = watch_open,
	.close = watch_close,
	.gate = watch_gate,
	.due = watch_due,
	.turn = watch_turn,
};
