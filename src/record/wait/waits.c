/* SPDX-License-Identifier: Apache-2.0 */
/* Waits, seen from outside of the threads that wait. What is reported for a thread that does not come by goes to a ring
 * that begins and ends there and then with that thread's id: to readers it is one more stream of the same thread.
 * CALLER and COLLECTOR. */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/late.h"
#include "record/event/registry.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"
#include "record/wait/wait.h"
#include "segment/defs.h"
#include "weft/recorder.h"

#define WAITS_REPORT_NS UINT64_C(1000000000)
#define REMOTE_SCHEDS 100 /* how long a wait that another thread ended waits for its own: a second, see REPORT_SCHEDS */

static uint64_t waits_reported_ns; /* COLLECTOR: when threads that have not come by were reported for */
static uint64_t waits_long_ns;     /* CALLER, at open: waits from here on are reported one by one */

static void waits_setup(struct weft__collector *c, const struct weft__timeline *line,
			const struct weft_recorder_opts *opts)
{
	(void)c;
	waits_long_ns = opts->wait_ns;
	store_relaxed(&weft_gate.wait_ticks, opts->wait_ns == WEFT_OFF
						     ? UINT64_MAX >> 1
						     : (uint64_t)((double)opts->wait_ns / line->ns_per_tick));
}

static void waits_facts(struct weft__defs *facts)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)waits_long_ns);
	weft__defs_fact(facts, "wait.ns", waits_long_ns == WEFT_OFF ? "off" : text);
}

uint64_t weft_wait_self(void)
{
	struct weft_waits *waits = weft_waits_self;
	struct weft__wait_thread *thread;

	weft__threads_init();
	if (waits == &weft__waits_none)
		waits = weft_slow_waits();
	thread = (struct weft__wait_thread *)(void *)waits;
	return waits ? (uint64_t)waits->generation << 32 | (uint64_t)(thread - weft__wait_threads + 1) : 0;
}

/* A thread that does not come by, and the ring in which it is reported. */
struct absent {
	struct weft__wait_thread *thread;
	uint32_t tid;
	uint64_t tick;
	struct weft_ring *ring;
};

static void waits_report_one(struct absent *who, const struct weft__waited *waited)
{
	uint32_t slots = weft__kind_slots(WEFT_KIND_WAIT) + WAIT_HOLDS_MAX * weft__kind_slots(WEFT_KIND_HELD);
	struct weft_ring *room = weft__ring_foreign(&who->ring, who->tid, slots, who->tick);

	if (room)
		weft__wait_emit(&who->thread->mine, room, waited);
}

/* Behind the wait, so that readers know that it had not ended. */
static void waits_report_lasting(struct absent *who, const struct weft__waited *waited)
{
	uint64_t fields[WEFT_FIELDS_OF_PENDING] = {who->tid,
						   waited->key >> 32,
						   (uint32_t)waited->key,
						   waited->object,
						   weft__lock_holder(waited),
						   weft_tick_ns(waited->tick - waited->since),
						   0,
						   0};

	weft__wide_emit_in(weft__ring_foreign(&who->ring, who->tid, weft__kind_slots(WEFT_KIND_PENDING), who->tick),
			   WEFT_KIND_PENDING, who->tick, fields, NULL, 0);
}

/* Waits that last, as long as they have lasted. */
static void waits_report_pending(struct absent *who)
{
	struct weft__wait_now now[WAIT_NOW_MAX];
	uint32_t i, n = weft__wait_pending(who->tid, now, WAIT_NOW_MAX);

	for (i = 0; i < n; i++) {
		struct weft__waited waited = {(uint64_t)now[i].what << 32 | now[i].name,
					      now[i].object,
					      now[i].holder,
					      now[i].since,
					      who->tick,
					      0,
					      1,
					      WEFT_NOT_MEASURED,
					      WEFT_NOT_MEASURED};

		if (waited.tick > waited.since && waited.tick - waited.since >= load_relaxed(&weft_gate.wait_ticks))
			waits_report_one(who, &waited);
		if (weft__wait_is_watched(now[i].what) && waited.tick > waited.since &&
		    weft_tick_ns(waited.tick - waited.since) >= WAIT_PENDING_NS)
			waits_report_lasting(who, &waited);
	}
}

/* What a thread has not reported: waits that others ended before `before`, and with `all` everything. */
static void waits_report_for(struct weft__wait_thread *thread, uint32_t tid, uint64_t before, int all, uint64_t tick)
{
	struct absent who = {thread, tid, tick, NULL};
	struct weft__waited waited;
	uint64_t fields[WEFT_FIELDS_OF_WAIT_SUM];
	uint32_t at = 0;

	while (weft__wait_ended(thread, before, &waited)) {
		waits_report_one(&who, &waited);
		weft__wait_unmark(waited.holder, waited.object);
	}
	if (all)
		waits_report_pending(&who);
	while (all && weft__wait_sum_next(thread, &at, fields))
		weft__wide_emit_in(weft__ring_foreign(&who.ring, tid, weft__kind_slots(WEFT_KIND_WAIT_SUM), tick),
				   WEFT_KIND_WAIT_SUM, tick, fields, NULL, 0);
	if (who.ring)
		weft__ring_detach((struct ring_page *)(void *)who.ring, tid, tick);
}

/* The place of a thread that ended without a word. */
static void wait_place_free(uint32_t at)
{
	struct weft__wait_thread *thread = &weft__wait_threads[at];
	uint32_t i, generation = thread->mine.generation;

	for (i = 0; i < WEFT_WAITS_MAX; i++)
		if (thread->mine.own[i].since && thread->mine.own[i].holder >= WEFT_HOLDER_MARKED)
			weft_slow_lock_unmark(thread->mine.own[i].object);
	for (i = 0; i < WEFT_WAITS_MAX; i++)
		weft__wait_drop(&thread->remote[i]);
	*thread = (struct weft__wait_thread){.mine = {.generation = generation}};
	store_release(&weft__wait_tids[at], 0u);
}

/* Reports for threads that have not come by. With `all` every sum and wait, long ones that still last with their
 * length so far; else only waits that another thread ended a second ago or longer, and what dead threads left. */
static void waits_tend(int all)
{
	uint32_t on = weft_gate_on(), at, tid;
	uint64_t tick = on ? weft_tick(on) : 0;
	uint64_t before = all ? UINT64_MAX : tick - REMOTE_SCHEDS * load_relaxed(&weft_gate.sched_ticks);

	for (at = 0; on && at < WAIT_THREADS; at++) {
		tid = load_acquire(&weft__wait_tids[at]);
		if (!tid)
			continue;
		if (all && &weft__wait_threads[at].mine == weft_waits_self) {
			weft__wait_report(&weft__wait_threads[at], tick);
			continue;
		}
		if (syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH) {
			waits_report_for(&weft__wait_threads[at], tid, UINT64_MAX, 1, tick);
			wait_place_free(at);
		} else {
			waits_report_for(&weft__wait_threads[at], tid, before, all, tick);
		}
	}
	if (weft__late_tend)
		weft__late_tend();
}

static void waits_leave(void)
{
	waits_tend(1);
}

/* Not worth a wakeup; done if the collector is awake. */
static uint64_t waits_due(const struct weft__turn *turn)
{
	return turn->awake ? waits_reported_ns + WAITS_REPORT_NS : UINT64_MAX;
}

static int waits_turn(const struct weft__turn *turn)
{
	waits_tend(0);
	waits_reported_ns = turn->now_ns;
	return SOURCE_NOTHING;
}

/* Waits are there without a recorder, too. */
static void waits_fork(enum weft__source_fork when, struct weft__collector *c)
{
	uint32_t at;

	(void)c;
	if (when != SOURCE_CHILD)
		return;
	weft_waits_self = &weft__waits_none;
	if (!load_relaxed(&weft__waits_used))
		return;
	for (at = 0; at < WAIT_THREADS; at++)
		if (load_relaxed(&weft__wait_tids[at]))
			wait_place_free(at);
	weft__locks_forked();
	store_relaxed(&weft__waits_used, 0u);
}

static void waits_cost(struct weft__source_cost *ret)
{
	ret->spent_ns = weft__waits_cost();
}

static uint32_t waits_limit(uint32_t level)
{
	weft__waits_limit(level);
	return 0;
}

const struct weft__source weft__wait_source = {
	.name = "wait",
	.what = "waits",
	.setup = waits_setup,
	.leave = waits_leave,
	.fork = waits_fork,
	.facts = waits_facts,
	.due = waits_due,
	.turn = waits_turn,
	.costs = WEFT_COST_WAITS,
	.least = SOURCE_FULL / 512,
	.cost = waits_cost,
	.limit = waits_limit,
};
