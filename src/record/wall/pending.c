/* SPDX-License-Identifier: Apache-2.0 */
/* A wait is recorded when it is a second old, then each second, and less and less often from four seconds on. Only
 * waits for locks and runtimes: threads that wait for work do so for hours. */
#include "record/wall/pending.h"

#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/place.h"
#include "record/event/wide.h"
#include "record/found.h"
#include "record/wait/wait.h"
#include "record/wall/remote.h"
#include "record/wall/state.h"
#include "unwind/unwind.h"

#define PENDING_TURN_NS UINT64_C(250000000)
#define PENDING_SLOWER 4         /* part of its age after which a wait is recorded again */
#define PENDING_REPORTED_MOST 32 /* in one turn: each reads where two threads are */

/* What was recorded of the wait of a thread, by its place. */
static struct {
	uint64_t since; /* tick at which it began */
	uint64_t next_ns;
} pending_reported[WAIT_THREADS] LARGE_TABLE;
static uint64_t pending_due_ns;
static uint32_t pending_first; /* place with which the next turn begins */

/* The stack of a thread that waits, into `frames`. */
static struct weft__wide_stack pending_stack_of(uint32_t tid, uint64_t *frames, uint32_t field)
{
	struct weft__wide_stack stack = {.frames = frames, .field = field};
	struct weft__remote seen;

	weft__remote_look(tid, load_relaxed(&weft__wall_choice.brief), &seen);
	if (seen.state != REMOTE_WAITS)
		return stack;
	memcpy(frames, seen.frames, seen.n * sizeof(*frames));
	stack.n = seen.n;
	stack.flags = seen.flags;
	return stack;
}

/* In a stream of the thread, so that it has a name, even if it never emitted anything. */
static void pending_report(const struct weft__turn *turn, uint32_t tid, const struct weft__wait_now *now, uint64_t tick)
{
	static uint64_t frames[2][WEFT__UNWIND_DEPTH_MAX];
	struct weft__waited waited = {.key = (uint64_t)now->what << 32 | now->name,
				      .object = now->object,
				      .holder = now->holder,
				      .since = now->since,
				      .tick = tick,
				      .lasts = 1};
	uint32_t holder = weft__lock_holder(&waited);
	uint64_t fields[WEFT_FIELDS_OF_PENDING] = {
		tid, now->what, now->name, now->object, holder, weft_tick_ns(tick - now->since), 0, 0};
	struct weft__wide_stack stacks[2] = {pending_stack_of(tid, frames[0], WEFT_FIELD_PENDING_STACK),
					     {.frames = frames[1], .field = WEFT_FIELD_PENDING_HOLDER_STACK}};
	struct weft__found found = {weft__timeline_mono(turn->timeline, tick), WEFT_KIND_PENDING, fields, stacks, 2};

	if (holder && holder != tid)
		stacks[1] = pending_stack_of(holder, frames[1], WEFT_FIELD_PENDING_HOLDER_STACK);
	weft__found_of(turn->collector, tid, found.ns, &found);
	if (holder && holder != tid)
		weft__found_of(turn->collector, holder, found.ns, NULL);
}

/* 1: the wait of the thread in that place was recorded. *next_ns: in how much time it is to be, if that is sooner. */
static uint32_t pending_look(const struct weft__turn *turn, uint32_t at, uint64_t tick, uint64_t *next_ns)
{
	uint32_t tid = load_acquire(&weft__wait_tids[at]), n;
	struct weft__wait_now now[WAIT_NOW_MAX];
	uint64_t age_ns, left_ns;
	int is_due;

	n = tid ? weft__wait_pending(tid, now, WAIT_NOW_MAX) : 0;
	if (!n || !weft__wait_is_watched(now[n - 1].what) || tick <= now[n - 1].since)
		return 0;
	age_ns = weft_tick_ns(tick - now[n - 1].since);
	if (pending_reported[at].since != now[n - 1].since) {
		pending_reported[at].since = now[n - 1].since;
		pending_reported[at].next_ns = WAIT_PENDING_NS;
	}
	is_due = age_ns >= pending_reported[at].next_ns;
	if (is_due) {
		pending_report(turn, tid, &now[n - 1], tick);
		left_ns = age_ns / PENDING_SLOWER > WAIT_PENDING_NS ? age_ns / PENDING_SLOWER : WAIT_PENDING_NS;
		pending_reported[at].next_ns = age_ns + left_ns;
	}
	left_ns = pending_reported[at].next_ns - age_ns;
	*next_ns = left_ns < *next_ns ? left_ns : *next_ns;
	return (uint32_t)is_due;
}

static uint64_t pending_due(const struct weft__turn *turn)
{
	if (!weft_gate_on() || !load_relaxed(&weft__waits_used))
		return UINT64_MAX;
	return weft__turn_due(turn, pending_due_ns, PENDING_TURN_NS);
}

/* Looks at all threads that wait. A wait that begins from now on is recorded when it is a second old. */
static int pending_turn(const struct weft__turn *turn)
{
	uint32_t on = weft_gate_on(), i, n = 0;
	uint64_t tick, next_ns = WAIT_PENDING_NS;

	if (!on)
		return SOURCE_NOTHING;
	tick = weft_tick(on);
	for (i = 0; i < WAIT_THREADS && n < PENDING_REPORTED_MOST; i++)
		n += pending_look(turn, (pending_first + i) % WAIT_THREADS, tick, &next_ns);
	if (i < WAIT_THREADS)
		next_ns = PENDING_TURN_NS; /* there are more */
	pending_first = (pending_first + i) % WAIT_THREADS;
	pending_due_ns = weft__grid_from(turn->now_ns + next_ns, PENDING_TURN_NS);
	return n ? SOURCE_SOON : SOURCE_NOTHING;
}

const struct weft__source weft__pending_source = {
	.name = "pending",
	.what = "waits that last",
	.due = pending_due,
	.turn = pending_turn,
};
