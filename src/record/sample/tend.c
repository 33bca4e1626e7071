/* SPDX-License-Identifier: Apache-2.0 */
/* The engine while it runs: threads that came and went, the net, the signal that another handler took, modules that
 * are to be looked at again. COLLECTOR. */
#include <pthread.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/sample/guard.h"
#include "record/sample/life.h"
#include "record/sample/precise.h"
#include "weft/event.h"

#define SCAN_NS UINT64_C(100000000)        /* between two looks at the threads while they come and go */
#define SCAN_CALM_NS UINT64_C(250000000)   /* and while they do not */
#define SCAN_AFTER_NS UINT64_C(1000000000) /* they come and go, for so long after the start and the last of them */
#define DRAW_NS UINT64_C(1000000000)       /* between two drawings of an interval */
#define NET_CALM_NS UINT64_C(3000000000)   /* after the last thread came or went, the net is taken in */
#define LOOK_NS UINT64_C(20000000)         /* between two looks at the modules */
#define ASTRAY_MOST 4
#define ASTRAY_NS UINT64_C(10000000000)
#define NET_BACK_NS UINT64_C(60000000000)
#define RAN_LEAST_NS 1000000              /* that the program used: less is no reason to look at its threads, */
#define SCAN_REST_NS UINT64_C(5000000000) /* for so long */

/* The net is out for as long as there are threads that have no timer, and while threads come and go, with wide meshes
 * when that may be those of other programs. When its signals wake threads that sleep it is taken in, for longer each
 * time. While the program is calm the net costs nothing, as it goes by CPU time: so it is out, and a thread that comes
 * is found by what it uses, not at the next look. Where threads are announced, each gets its timer when it begins, and
 * no signal may wake another. */
static void net_tend(uint64_t now_ns, int news, int calm)
{
	uint32_t churn = load_relaxed(&weft__engine.churn), astray = load_relaxed(&weft__engine.net_astray);
	uint32_t interval = 0;

	if (churn != weft__engine_life.churn_seen || news & THREADS_CHANGED || !weft__engine_life.changed_ns)
		weft__engine_life.changed_ns = now_ns;
	if (news)
		weft__engine_life.maybe_ns = now_ns;
	if (now_ns - weft__engine_life.astray_ns >= ASTRAY_NS) {
		weft__engine_life.astray_ns = now_ns;
		weft__engine_life.astray_seen = astray;
	} else if (astray - weft__engine_life.astray_seen >= ASTRAY_MOST) {
		weft__engine_life.astray_seen = astray;
		weft__engine_life.net_back_ns =
			weft__engine_life.net_back_ns ? 2 * weft__engine_life.net_back_ns : NET_BACK_NS;
		weft__engine_life.net_off_ns = now_ns + weft__engine_life.net_back_ns;
	}
	weft__engine_life.churn_seen = churn;
	if (load_relaxed(&weft__engine.cramped))
		weft__choice_degrade(
			"a thread that lives for milliseconds may have no samples: a signal stack of the program "
			"has no room for two handlers");
	if (load_relaxed(&weft__engine.cramped) || now_ns < weft__engine_life.net_off_ns ||
	    (weft__threads_announced && !weft__engine_life.uncovered))
		interval = 0;
	else if (weft__engine_life.uncovered || now_ns - weft__engine_life.changed_ns < NET_CALM_NS)
		interval = weft__engine.period_ns;
	else if (now_ns - weft__engine_life.maybe_ns < NET_CALM_NS)
		interval = weft__engine.period_ns < UINT32_MAX / 4 ? 4 * weft__engine.period_ns : UINT32_MAX;
	else if (calm)
		interval = weft__engine.period_ns < UINT32_MAX / 2 ? 2 * weft__engine.period_ns : UINT32_MAX;
	if (interval && weft__engine.net >= 0 && !load_relaxed(&weft__engine.net_ns))
		weft__threads_await();
	weft__net_set(interval);
	if (!interval)
		weft__threads_meet();
}

/* The collector lets the signal through while there is a net: for what the net catches in the collector itself the
 * kernel would look for another thread, which may sleep. */
static void unblock_here(void)
{
	sigset_t set;

	if (weft__engine_life.unblocked || weft__engine.net < 0)
		return;
	sigemptyset(&set);
	sigaddset(&set, weft__engine.net_signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	weft__engine_life.unblocked = 1;
}

/* Somebody took the signal after us: it is theirs, and we look for another one. */
static void move_on(void)
{
	int lost = weft__engine.signal;
	sigset_t let;

	sigemptyset(&let);
	if (weft__engine.net_signal)
		sigaddset(&let, weft__engine.net_signal);
	pthread_sigmask(SIG_BLOCK, &let, NULL); /* the handler may be the program's, which has no business here */
	weft__engine_undo();
	weft__engine_life.want_signal = 0;
	if (weft__engine.ops == &weft__perf_ops)
		weft__choice_fall_back("another handler was installed over the one for perf events",
				       "perf events: their signal was taken by another handler");
	if (weft__engine_begin() < 0) {
		weft__log(WEFT_LOG_WARN, "no CPU samples any more: signal %d was taken, and no other is free", lost);
		weft__choice_degrade("no CPU samples any more: the signal was taken, and no other is free");
	} else {
		weft__log(WEFT_LOG_WARN, "signal %d was taken by another handler; samples come by signal %d", lost,
			  weft__engine.signal);
	}
}

static void guard_signals(uint64_t program_ns)
{
	if (weft__engine_signals_are_ours()) {
		weft__guard_good(program_ns);
		return;
	}
	weft__guard_lost();
	move_on();
}

static void tend_slowly(uint64_t now_ns)
{
	if (!weft__engine_life.running)
		return;
	weft__engine_life.uncovered = weft__threads_tend();
	if (weft__engine_life.uncovered > weft__engine_life.uncovered_reported) {
		weft__engine_life.uncovered_reported = weft__engine_life.uncovered;
		weft__log(WEFT_LOG_WARN, "%u threads have no %s of their own: %s", weft__engine_life.uncovered,
			  weft__engine.ops->name, weft_strerror(load_relaxed(&weft__engine.uncovered_why)));
	}
	weft__engine_life.drawn_ns = now_ns;
}

/* Code without a file never gets into the set: then this comes again with every sample, but not more often than
 * that. */
static int engine_pressing(uint64_t now_ns)
{
	return load_relaxed(&weft__unwinding.stale) && now_ns >= weft__engine_life.looked_ns + LOOK_NS;
}

/* Who has just made threads makes more of them, and those that were made begin to work. */
static int threads_are_new(uint64_t now_ns)
{
	return now_ns < weft__engine_life.changed_ns + SCAN_AFTER_NS;
}

/* Whether the program ran since the last look. Who used next to nothing has made no thread that needs a timer, and
 * missed no signal that somebody else took. */
static int has_run(uint64_t now_ns, uint64_t program_ns)
{
	struct weft__engine_life *life = &weft__engine_life;

	return program_ns >= life->ran_ns + RAN_LEAST_NS || now_ns >= life->scanned_ns + SCAN_REST_NS ||
	       threads_are_new(now_ns) || life->uncovered || load_relaxed(&weft__unwinding.stale) ||
	       load_relaxed(&weft__engine.churn) != life->churn_seen;
}

/* Answers when it wants to be called next. */
static uint64_t look_at_threads(uint64_t now_ns, uint64_t program_ns, int begun, int calm)
{
	int news = weft__threads_scan(0), slow = !begun && now_ns >= weft__engine_life.drawn_ns + DRAW_NS;
	uint64_t next, look;

	weft__engine_life.ran_ns = program_ns;
	weft__engine_life.scanned_ns = now_ns;
	unblock_here();
	net_tend(now_ns, news, calm);
	if (slow || load_relaxed(&weft__unwinding.stale)) {
		store_relaxed(&weft__unwinding.stale, 0u);
		weft__engine_life.looked_ns = now_ns;
		weft__tables_look();
	}
	guard_signals(program_ns);
	if (slow) {
		weft__tables_forget();
		tend_slowly(now_ns);
	}
	next = threads_are_new(now_ns) ? now_ns + SCAN_NS : weft__grid_next(now_ns, SCAN_CALM_NS);
	look = weft__precise_look(now_ns);
	return look < next ? look : next;
}

/* Threads that came and went, intervals drawn anew, modules looked at again. Answers when it wants to be called
 * next. */
static uint64_t engine_tend(uint64_t now_ns, int calm)
{
	uint64_t next = weft__grid_next(now_ns, SCAN_CALM_NS);
	int begun;

	pthread_mutex_lock(&weft__engine_mutex);
	begun = (int)load_relaxed(&weft__engine_life.begun);
	store_relaxed(&weft__engine_life.begun, 0u);
	if (weft__engine_life.running) {
		uint64_t program_ns = weft__guard_program_about(now_ns);

		if (begun || has_run(now_ns, program_ns))
			next = look_at_threads(now_ns, program_ns, begun, calm);
		else
			net_tend(now_ns, 0, calm);
	} else if (load_relaxed(&weft__unwinding.wanted) &&
		   (now_ns >= weft__engine_life.looked_ns + DRAW_NS || load_relaxed(&weft__unwinding.stale))) {
		store_relaxed(&weft__unwinding.stale, 0u);
		weft__engine_life.looked_ns = now_ns;
		weft__tables_look();
	}
	pthread_mutex_unlock(&weft__engine_mutex);
	return next;
}

/* Sooner when a sample was in code that the unwinder does not know. */
static uint64_t tend_due(const struct weft__turn *turn)
{
	if (load_relaxed(&weft__engine_life.begun) && weft_gate_on())
		return 0; /* the net is out only when the collector lets its signal through */
	if (!turn->awake)
		return weft_gate_on() && !turn->calm ? weft__engine_life.due_ns : UINT64_MAX;
	return engine_pressing(turn->now_ns)
		       ? 0
		       : weft__turn_due(turn, weft__engine_life.due_ns, weft__engine_life.pace_ns);
}

uint64_t weft__engine_due(const struct weft__turn *turn)
{
	uint64_t due = tend_due(turn), rate = weft_gate_on() ? weft__rate_due(turn->awake) : UINT64_MAX;

	return due < rate ? due : rate;
}

int weft__engine_tend(const struct weft__turn *turn)
{
	if (weft_gate_on() && turn->now_ns >= weft__rate_due(1))
		weft__rate_turn(turn->now_ns);
	if (turn->now_ns < tend_due(turn))
		return SOURCE_NOTHING;
	weft__engine_life.due_ns = engine_tend(turn->now_ns, turn->calm);
	weft__engine_life.pace_ns =
		weft__engine_life.due_ns > turn->now_ns ? weft__engine_life.due_ns - turn->now_ns : 0;
	return weft__engine_life.scanned_ns == turn->now_ns || weft__engine_life.looked_ns == turn->now_ns
		       ? SOURCE_MODULES
		       : SOURCE_NOTHING;
}
