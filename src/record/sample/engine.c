/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the engine. CALLER, but for tend.
 *
 * The lock is for tend and stop, which the collector and a caller may be in at the same time. */
#include "record/sample/engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/late.h"
#include "base/place.h"
#include "record/sample/guard.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"
#include "record/sample/state.h"
#include "unwind/modules.h"
#include "weft/event.h"

#define SCAN_NS UINT64_C(100000000)      /* between two looks at the threads while they come and go */
#define SCAN_CALM_NS UINT64_C(250000000) /* and while they do not */
#define DRAW_NS UINT64_C(1000000000)     /* between two drawings of an interval */
#define NET_CALM_NS UINT64_C(3000000000) /* after the last thread came or went, the net is taken in */
#define LOOK_NS UINT64_C(20000000)       /* between two looks at the modules */
#define INSIDE_TURNS 20000
#define ASTRAY_MOST 4
#define ASTRAY_NS UINT64_C(10000000000)
#define NET_BACK_NS UINT64_C(60000000000)

pthread_mutex_t weft__engine_mutex FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int want_signal;
	uint32_t max_threads;
	sigset_t blocked; /* in the thread that started it */
	uint32_t starter; /* that thread */
	uint64_t drawn_ns;
	uint64_t looked_ns;            /* at the modules */
	uint64_t maybe_ns, changed_ns; /* when threads may have come and gone, and when they did */
	uint64_t astray_ns;            /* since when its signals that went astray are counted */
	uint64_t net_off_ns;           /* the net stays in until then */
	uint64_t net_back_ns;          /* and for how long the next time */
	uint32_t churn_seen, astray_seen, uncovered, uncovered_told;
	uint64_t due_ns, pace_ns; /* of the next turn, and how long after the last one that is */
	uint64_t uncovered_lost;  /* threads, as told */
	int unblocked;            /* the collector has let it through */
	int running;
} chosen;

static int engine_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	const char *event = opts->sample_event && *opts->sample_event ? opts->sample_event : "cpu-clock";
	int is_clock = 1;

	memset(&chosen, 0, sizeof(chosen));
	weft__engine.ops = NULL;
	weft__engine.samples = weft__engine.uncovered = 0;
	weft__engine.unhit = weft__engine.unhit_ns = 0;
	weft__engine.signals = weft__engine.spent_ns = 0;
	weft__engine.uncovered_why = 0;
	weft__engine.churn = weft__engine.net_astray = 0;
	weft__tables_open();
	weft__guard_open();
	weft__meter_open();
	weft__unwinding.depth = opts->sample_depth;
	weft__unwinding.first = weft__meter_try;
	if (opts->sample_hz == WEFT_OFF)
		return 0;
	if (weft__perf_event_find(event, &is_clock) < 0)
		return weft__fail(
			err, -WEFT_E_OPTION,
			"sample_event is \"%s\", which is not known; \"cpu-clock\" is the usual one, and perf "
			"list(1) shows others",
			event);
	chosen.want_signal = opts->sample_signal;
	chosen.max_threads = opts->max_threads;
	weft__engine.hz = (uint32_t)opts->sample_hz;
	weft__engine.chosen_ns = weft__engine.period_ns = 1000000000u / opts->sample_hz;
	weft__engine.jiffy_ns = 1000000000u / weft__machine_tick_hz();
	weft__engine.has_rdtscp = weft__machine_rdtscp();
	weft__choice_make(opts, event, is_clock);
	if (weft__engine.ops)
		weft__tables_want();
	return 0;
}

static void engine_facts(struct weft__defs *defs)
{
	pthread_mutex_lock(&weft__engine_mutex);
	weft__choice_facts(defs);
	pthread_mutex_unlock(&weft__engine_mutex);
}

/* 0: there is still one inside; then nothing that it may touch can go. */
static int wait_outside(void)
{
	for (int i = 0; i < INSIDE_TURNS; i++) {
		if (!load_seq_cst(&weft__engine.inside))
			return 1;
		if (i < 100)
			sched_yield();
		else
			usleep(100);
	}
	return 0;
}

static int signal_take(void)
{
	int want = weft__engine.ops == &weft__perf_ops ? SIGTRAP : chosen.want_signal;
	int signal = want ? want : weft__signal_choose(SIGPROF, &chosen.blocked);
	int err;

	if (!signal)
		return -EBUSY;
	weft__engine.signal = signal;
	weft__engine.net_signal = 0;
	err = weft__signal_take(signal, 0);
	if (!err && weft__choice_net()) {
		sigset_t not_these = chosen.blocked;
		int net;

		sigaddset(&not_these, signal);
		net = weft__signal_choose(0, &not_these);
		if (net && weft__signal_take(net, signal) == 0)
			weft__engine.net_signal = net;
	}
	return err;
}

static int signals_are_ours(void)
{
	return weft__signal_ours(weft__engine.signal) &&
	       (!weft__engine.net_signal || weft__signal_ours(weft__engine.net_signal));
}

static void engine_undo(void)
{
	int all_out;

	store_seq_cst(&weft__engine.on, 0u);
	weft__guard_run(0);
	weft__tables_let(0);
	all_out = wait_outside();
	weft__threads_drop();
	weft__net_close(0);
	if (weft__engine.ops->stop)
		weft__engine.ops->stop();
	/* The SIGTRAP of a perf event waits for its thread to come out of the kernel, where it may have been
	 * preempted or sleep, and would kill the process if nobody took it then. So that handler stays; what is not
	 * ours it passes on. A timer that was deleted sends nothing. */
	if (weft__engine.net_signal)
		weft__signal_give(weft__engine.net_signal);
	if (weft__engine.signal != SIGTRAP)
		weft__signal_give(weft__engine.signal);
	if (all_out)
		weft__slots_free();
	else
		weft__engine.slots = NULL;
	chosen.running = 0;
}

/* Signal, table, threads. */
static int engine_begin(void)
{
	int err = weft__slots_make(chosen.max_threads);

	if (err)
		return err;
	weft__engine.generation++;
	err = signal_take();
	if (err) {
		weft__slots_free();
		return err;
	}
	chosen.running = 1;
	if (weft__engine.ops->start)
		weft__engine.ops->start();
	store_seq_cst(&weft__engine.on, 1u);
	weft__net_open();
	if (weft__engine.net >= 0)
		weft__tables_let(weft__engine.net_signal);
	weft__threads_scan(1);
	weft__threads_scan(1); /* those that came meanwhile */
	if (weft__engine.ops->started)
		weft__engine.ops->started();
	weft__precise_start();
	weft__guard_run(1);
	weft__guard_good();
	chosen.drawn_ns = chosen.maybe_ns = chosen.changed_ns = 0;
	chosen.unblocked = 0;
	return err;
}

/* Whether not even the thread that started it could be covered, or got no `timer` beside its event: what worked at
 * open does not work any more. */
static int self_is_refused(int timer)
{
	struct weft__slot *slot = weft__slot_find(chosen.starter, NULL);

	if (timer)
		return weft__engine.tick_ns && slot && load_relaxed(&slot->timer) < 0;
	return slot && load_acquire(&slot->state) == SLOT_UNCOVERED;
}

/* Who blocks them all does so for a moment, such as around a fork, in whose child this may be. */
static int blocks_all(const sigset_t *blocked)
{
	int signal = SIGRTMIN;

	while (signal <= SIGRTMAX && sigismember(blocked, signal) == 1)
		signal++;
	return signal > SIGRTMAX && sigismember(blocked, SIGPROF) == 1;
}

/* With the lock. What does not work any more is done without. */
static int engine_run(void)
{
	char text[160];
	int err = engine_begin();

	if (!err && weft__engine.ops == &weft__perf_ops && self_is_refused(0)) {
		snprintf(text, sizeof(text), "perf events, which could be had at open, could not at start: %s",
			 weft_strerror(weft__engine.uncovered_why));
		weft__log(WEFT_LOG_WARN, "%s; the timer samples instead", text);
		engine_undo();
		store_relaxed(&weft__engine.uncovered, 0);
		weft__choice_fall_back("perf events could not be had at start", text);
		err = engine_begin();
	} else if (!err && self_is_refused(1)) {
		engine_undo();
		weft__choice_walk("CPU-time timers, which could be had at open, could not at start: all samples are of "
				  "perf events");
		err = engine_begin();
	}
	if (err) {
		snprintf(text, sizeof(text), "no CPU samples: %s", weft_strerror(err));
		weft__choice_degrade(text);
	}
	return err;
}

/* Perf events begin in engine_attach, on the thread that has weft's files. */
static int engine_start(pthread_t collector)
{
	int err = 0;

	if (!load_relaxed(&weft__unwinding.wanted) || chosen.running)
		return 0;
	pthread_mutex_lock(&weft__engine_mutex);
	weft__tables_start();
	if (weft__engine.ops) {
		store_relaxed(&weft__own_threads.collector, weft__tls_tid(collector));
		store_relaxed(&weft__engine.tid_at, weft__tls_find(collector));
		chosen.starter = (uint32_t)syscall(SYS_gettid);
		sigemptyset(&chosen.blocked);
		pthread_sigmask(SIG_SETMASK, NULL, &chosen.blocked);
		if (blocks_all(&chosen.blocked))
			sigemptyset(&chosen.blocked);
		if (weft__engine.ops != &weft__perf_ops)
			err = engine_run();
	}
	pthread_mutex_unlock(&weft__engine_mutex);
	return err;
}

static void engine_attach(pthread_t collector)
{
	int err = 0;

	(void)collector;
	pthread_mutex_lock(&weft__engine_mutex);
	if (weft__engine.ops == &weft__perf_ops && !chosen.running)
		err = engine_run();
	pthread_mutex_unlock(&weft__engine_mutex);
	if (err)
		weft__log(WEFT_LOG_WARN, "no CPU samples: %s", weft_strerror(err));
}

static void engine_pause(void)
{
	pthread_mutex_lock(&weft__engine_mutex);
	if (chosen.running && !signals_are_ours())
		weft__guard_lost();
	if (chosen.running)
		engine_undo();
	pthread_mutex_unlock(&weft__engine_mutex);
}

/* On the thread that has weft's files: nothing of the sampling has one open then. */
static void engine_detach(void)
{
	if (weft__engine.ops == &weft__perf_ops)
		engine_pause();
	else
		weft__precise_stop();
}

/* At a pause, unwind tables that are being compiled are finished meanwhile. */
static void engine_stop(enum weft__source_end end)
{
	engine_pause();
	if (end == SOURCE_STOP)
		weft__tables_stop();
}

static void engine_close(struct weft__collector *c)
{
	(void)c;
	engine_stop(SOURCE_STOP);
	weft__modules_stop();
	weft__engine.ops = NULL;
}

static void engine_lock(void)
{
	pthread_mutex_lock(&weft__engine_mutex);
	weft__tables_lock();
}

static void engine_unlock(void)
{
	weft__tables_unlock();
	pthread_mutex_unlock(&weft__engine_mutex);
}

/* Nothing of the parent's is there any more, but the handler, which goes too. */
static void engine_forked(void)
{
	pthread_mutex_init(&weft__engine_mutex, NULL);
	store_seq_cst(&weft__engine.on, 0u);
	store_seq_cst(&weft__engine.inside, 0u);
	weft__tables_forked();
	weft__guard_run(0);
	weft__signal_give(SIGTRAP);
	if (!chosen.running)
		return;
	weft__net_close(1);
	weft__precise_forked();
	if (weft__engine.ops->forked)
		weft__engine.ops->forked();
	if (weft__engine.net_signal)
		weft__signal_give(weft__engine.net_signal);
	weft__signal_give(weft__engine.signal);
	weft__slots_free();
	chosen.running = 0;
}

static void engine_fork(enum weft__source_fork when, struct weft__collector *c)
{
	if (when == SOURCE_LOCK)
		engine_lock();
	if (when == SOURCE_UNLOCK)
		engine_unlock();
	if (when == SOURCE_CHILD && c)
		engine_forked();
}

/* The net is out while threads come and go, with wide meshes when that may be those of other programs, and for as
 * long as there are threads that have no timer. When its signals wake threads that sleep it is taken in, for longer
 * each time. */
static void net_tend(uint64_t now_ns, int news)
{
	uint32_t churn = load_relaxed(&weft__engine.churn), astray = load_relaxed(&weft__engine.net_astray);
	uint32_t interval = 0;

	if (churn != chosen.churn_seen || news & THREADS_CHANGED || !chosen.changed_ns)
		chosen.changed_ns = now_ns;
	if (news)
		chosen.maybe_ns = now_ns;
	if (now_ns - chosen.astray_ns >= ASTRAY_NS) {
		chosen.astray_ns = now_ns;
		chosen.astray_seen = astray;
	} else if (astray - chosen.astray_seen >= ASTRAY_MOST) {
		chosen.astray_seen = astray;
		chosen.net_back_ns = chosen.net_back_ns ? 2 * chosen.net_back_ns : NET_BACK_NS;
		chosen.net_off_ns = now_ns + chosen.net_back_ns;
	}
	chosen.churn_seen = churn;
	if (now_ns < chosen.net_off_ns)
		interval = 0;
	else if (chosen.uncovered || now_ns - chosen.changed_ns < NET_CALM_NS)
		interval = weft__engine.period_ns;
	else if (now_ns - chosen.maybe_ns < NET_CALM_NS)
		interval = weft__engine.period_ns < UINT32_MAX / 4 ? 4 * weft__engine.period_ns : UINT32_MAX;
	weft__net_set(interval);
}

/* The collector lets the signal through while there is a net: for what the net catches in the collector itself the
 * kernel would look for another thread, which may sleep. */
static void unblock_here(void)
{
	sigset_t set;

	if (chosen.unblocked || weft__engine.net < 0)
		return;
	sigemptyset(&set);
	sigaddset(&set, weft__engine.net_signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	chosen.unblocked = 1;
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
	engine_undo();
	chosen.want_signal = 0;
	if (weft__engine.ops == &weft__perf_ops)
		weft__choice_fall_back("another handler was installed over the one for perf events",
				       "perf events: their signal was taken by another handler");
	if (engine_begin() < 0) {
		weft__log(WEFT_LOG_WARN, "no CPU samples any more: signal %d was taken, and no other is free", lost);
		weft__choice_degrade("no CPU samples any more: the signal was taken, and no other is free");
	} else {
		weft__log(WEFT_LOG_WARN, "signal %d was taken by another handler; samples come by signal %d", lost,
			  weft__engine.signal);
	}
}

static void guard_signals(void)
{
	if (signals_are_ours()) {
		weft__guard_good();
		return;
	}
	weft__guard_lost();
	move_on();
}

static void tend_slowly(uint64_t now_ns)
{
	if (!chosen.running)
		return;
	chosen.uncovered = weft__threads_tend();
	if (chosen.uncovered > chosen.uncovered_told) {
		chosen.uncovered_told = chosen.uncovered;
		weft__log(WEFT_LOG_WARN, "%u threads have no %s of their own: %s", chosen.uncovered,
			  weft__engine.ops->name, weft_strerror(load_relaxed(&weft__engine.uncovered_why)));
	}
	chosen.drawn_ns = now_ns;
}

/* Code without a file never gets into the set: then this comes again with every sample, but not more often than
 * that. */
static int engine_pressing(uint64_t now_ns)
{
	return load_relaxed(&weft__unwinding.stale) && now_ns >= chosen.looked_ns + LOOK_NS;
}

/* Threads that came and went, intervals drawn anew, modules looked at again. Answers when it wants to be called
 * next. */
static uint64_t engine_tend(uint64_t now_ns)
{
	uint64_t next = now_ns + SCAN_CALM_NS;

	pthread_mutex_lock(&weft__engine_mutex);
	if (chosen.running) {
		int news = weft__threads_scan(0), slow = now_ns >= chosen.drawn_ns + DRAW_NS;
		uint64_t look;

		unblock_here();
		net_tend(now_ns, news);
		if (slow || load_relaxed(&weft__unwinding.stale)) {
			store_relaxed(&weft__unwinding.stale, 0u);
			chosen.looked_ns = now_ns;
			weft__tables_look();
		}
		guard_signals();
		if (slow) {
			weft__tables_forget();
			tend_slowly(now_ns);
		}
		next = now_ns + (news & THREADS_CHANGED ? SCAN_NS : SCAN_CALM_NS);
		look = weft__precise_look(now_ns);
		next = look < next ? look : next;
	} else if (load_relaxed(&weft__unwinding.wanted) &&
		   (now_ns >= chosen.looked_ns + DRAW_NS || load_relaxed(&weft__unwinding.stale))) {
		store_relaxed(&weft__unwinding.stale, 0u);
		chosen.looked_ns = now_ns;
		weft__tables_look();
	}
	pthread_mutex_unlock(&weft__engine_mutex);
	return next;
}

/* Sooner when a sample was in code that the unwinder does not know. */
static uint64_t engine_due(const struct weft__turn *turn)
{
	if (!turn->awake)
		return weft_gate_on() ? chosen.due_ns : UINT64_MAX;
	return engine_pressing(turn->now_ns) ? 0 : weft__turn_due(turn, chosen.due_ns, chosen.pace_ns);
}

static int engine_turn(const struct weft__turn *turn)
{
	chosen.due_ns = engine_tend(turn->now_ns);
	chosen.pace_ns = chosen.due_ns > turn->now_ns ? chosen.due_ns - turn->now_ns : 0;
	return SOURCE_MODULES;
}

static void engine_stats(struct weft_recorder_stats *stats)
{
	struct weft__engine_counts counts = weft__engine_counts();

	stats->samples = counts.samples;
	stats->uncovered = counts.uncovered;
}

int weft__engine_give_up(void)
{
	int gave_up = 0;

	pthread_mutex_lock(&weft__engine_mutex);
	if (chosen.running && weft__engine.ops == &weft__perf_ops && weft__perf_holds()) {
		engine_undo();
		weft__choice_fall_back("perf events cost too much at context switches",
				       "perf events: what they add to context switches is more than the budget allows");
		gave_up = engine_begin() == 0;
	}
	pthread_mutex_unlock(&weft__engine_mutex);
	return gave_up;
}

static enum weft__source_loss engine_loss(struct weft_loss *ret, uint64_t now_ns)
{
	uint64_t uncovered = weft__engine_counts().uncovered;
	int one;

	if (uncovered > chosen.uncovered_lost) {
		*ret = (struct weft_loss){WEFT_LOSS_UNCOVERED, 0, uncovered - chosen.uncovered_lost, now_ns, now_ns};
		chosen.uncovered_lost = uncovered;
		return SOURCE_LOSS;
	}
	chosen.uncovered_lost = uncovered;
	if (!weft__guard_any())
		return SOURCE_NO_LOSS;
	pthread_mutex_lock(&weft__engine_mutex);
	one = weft__guard_loss(ret);
	pthread_mutex_unlock(&weft__engine_mutex);
	return one ? SOURCE_LOSS : SOURCE_NO_LOSS;
}

const struct weft__source weft__sample_source = {
	.name = "sampling",
	.what = "CPU samples",
	.facts_change = 1,
	.open = engine_open,
	.start = engine_start,
	.attach = engine_attach,
	.detach = engine_detach,
	.stop = engine_stop,
	.close = engine_close,
	.fork = engine_fork,
	.shares_files = weft__engine_shares_files,
	.facts = engine_facts,
	.due = engine_due,
	.turn = engine_turn,
	.loss = engine_loss,
	.stats = engine_stats,
};
