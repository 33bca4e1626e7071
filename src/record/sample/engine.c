/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the engine: open, start, stop, fork. CALLER, but for what says otherwise.
 *
 * The lock is for tend.c and stop, which the collector and a caller may be in at the same time. */
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
#include "record/sample/life.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"
#include "record/sample/state.h"
#include "unwind/modules.h"
#include "unwind/stack.h"
#include "weft/event.h"

#define INSIDE_TURNS 20000

pthread_mutex_t weft__engine_mutex FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
struct weft__engine_life weft__engine_life;

static int engine_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	const char *event = opts->sample_event && *opts->sample_event ? opts->sample_event : "cpu-clock";
	int is_clock = 1;

	memset(&weft__engine_life, 0, sizeof(weft__engine_life));
	weft__engine.ops = NULL;
	weft__engine.samples = weft__engine.uncovered = 0;
	weft__engine.unhit = weft__engine.unhit_ns = 0;
	weft__engine.signals = weft__engine.spent_ns = 0;
	weft__engine.uncovered_why = 0;
	weft__engine.churn = weft__engine.net_astray = 0;
	weft__tables_open();
	weft__guard_open();
	weft__meter_open();
	weft__rate_open();
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
	weft__engine_life.want_signal = opts->sample_signal;
	weft__engine_life.max_threads = opts->max_threads;
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
	int want = weft__engine.ops == &weft__perf_ops ? SIGTRAP : weft__engine_life.want_signal;
	int signal = want ? want : weft__signal_choose(SIGPROF, &weft__engine_life.blocked);
	sigset_t not_these = weft__engine_life.blocked;
	int trap, net = 0, err;

	if (!signal)
		return -EBUSY;
	sigaddset(&not_these, signal);
	if (weft__choice_net())
		net = weft__signal_choose(0, &not_these);
	weft__engine.signal = signal;
	weft__engine.net_signal = 0;
	/* One handler at a time, also on a signal stack of 8 KiB. Before 5.18 a perf event whose signal is held back
	 * ends the process. The net's signal is not held back here: the kernel would give it to another thread, whose
	 * wait would end with EINTR. The handler holds it back on small stacks. */
	trap = signal != SIGTRAP && weft__machine_kernel(5, 18) ? SIGTRAP : 0;
	err = weft__signal_take(signal, 0, trap);
	if (!err && net && weft__signal_take(net, signal, trap) == 0)
		weft__engine.net_signal = net;
	return err;
}

int weft__engine_signals_are_ours(void)
{
	return weft__signal_ours(weft__engine.signal) &&
	       (!weft__engine.net_signal || weft__signal_ours(weft__engine.net_signal));
}

void weft__engine_undo(void)
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
	weft__engine_life.running = 0;
}

/* The thread that starts weft below weft run is one of weft's own. What the net catches in it stays there: for a
 * thread that blocks the signal the kernel would wake another one, whose call would end with EINTR. */
static void let_net_here(void)
{
	sigset_t set;

	if (weft__engine.net < 0 || !weft__thread_ours((uint32_t)syscall(SYS_gettid)))
		return;
	sigemptyset(&set);
	sigaddset(&set, weft__engine.net_signal);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Signal, table, threads. */
int weft__engine_begin(void)
{
	int err = weft__slots_make(weft__engine_life.max_threads);

	if (err)
		return err;
	weft__engine.generation++;
	err = signal_take();
	if (err) {
		weft__slots_free();
		return err;
	}
	weft__engine_life.running = 1;
	if (weft__engine.ops->start)
		weft__engine.ops->start();
	store_seq_cst(&weft__engine.on, 1u);
	weft__net_open();
	if (weft__engine.net >= 0)
		weft__tables_let(weft__engine.net_signal);
	let_net_here();
	weft__threads_scan(1);
	weft__threads_scan(1); /* those that came meanwhile */
	if (weft__engine.ops->started)
		weft__engine.ops->started();
	weft__precise_start();
	weft__guard_run(1);
	weft__guard_good(weft__guard_program());
	weft__engine_life.drawn_ns = weft__engine_life.maybe_ns = weft__engine_life.changed_ns = 0;
	weft__engine_life.unblocked = 0;
	store_relaxed(&weft__engine_life.begun, 1u);
	return err;
}

/* Whether not even the thread that started it could be covered, or got no `timer` beside its event: what worked at
 * open does not work any more. */
static int self_is_refused(int timer)
{
	struct weft__slot *slot = weft__slot_find(weft__engine_life.starter, NULL);

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
	int err = weft__engine_begin();

	if (!err && weft__engine.ops == &weft__perf_ops && self_is_refused(0)) {
		snprintf(text, sizeof(text), "perf events, which could be had at open, could not at start: %s",
			 weft_strerror(weft__engine.uncovered_why));
		weft__log(WEFT_LOG_WARN, "%s; the timer samples instead", text);
		weft__engine_undo();
		store_relaxed(&weft__engine.uncovered, 0);
		weft__choice_fall_back("perf events could not be had at start", text);
		err = weft__engine_begin();
	} else if (!err && self_is_refused(1)) {
		weft__engine_undo();
		weft__choice_walk("CPU-time timers, which could be had at open, could not at start: all samples are of "
				  "perf events");
		err = weft__engine_begin();
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

	if (!load_relaxed(&weft__unwinding.wanted) || weft__engine_life.running)
		return 0;
	pthread_mutex_lock(&weft__engine_mutex);
	weft__tables_start();
	weft__stack_learn(collector);
	if (weft__engine.ops) {
		store_relaxed(&weft__own_threads.collector, weft__tls_tid(collector));
		store_relaxed(&weft__engine.tid_at, weft__tls_find(collector));
		weft__engine_life.starter = (uint32_t)syscall(SYS_gettid);
		sigemptyset(&weft__engine_life.blocked);
		pthread_sigmask(SIG_SETMASK, NULL, &weft__engine_life.blocked);
		if (blocks_all(&weft__engine_life.blocked))
			sigemptyset(&weft__engine_life.blocked);
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
	if (weft__engine.ops == &weft__perf_ops && !weft__engine_life.running)
		err = engine_run();
	pthread_mutex_unlock(&weft__engine_mutex);
	if (err)
		weft__log(WEFT_LOG_WARN, "no CPU samples: %s", weft_strerror(err));
}

static void engine_pause(void)
{
	pthread_mutex_lock(&weft__engine_mutex);
	if (weft__engine_life.running && !weft__engine_signals_are_ours())
		weft__guard_lost();
	if (weft__engine_life.running)
		weft__engine_undo();
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
	if (!weft__engine_life.running)
		return;
	weft__net_close(1);
	weft__precise_forked();
	if (weft__engine.ops->forked)
		weft__engine.ops->forked();
	if (weft__engine.net_signal)
		weft__signal_give(weft__engine.net_signal);
	weft__signal_give(weft__engine.signal);
	weft__slots_free();
	weft__engine_life.running = 0;
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

static void engine_stats(struct weft_recorder_stats *stats)
{
	struct weft__engine_counts counts = weft__engine_counts();

	stats->samples = counts.samples;
	stats->uncovered = counts.uncovered;
	stats->sample_hz = weft__rate_hz();
}

static void engine_cost(struct weft__source_cost *ret)
{
	ret->spent_ns = weft__engine_counts().spent_ns + weft__meter_ns(&ret->fixed_ns);
}

static int engine_cpu(struct weft__source_cpu *ret)
{
	int on = weft__engine_hz() != 0;

	if (on)
		*ret = weft__engine_cpu();
	return on;
}

static int engine_works(void)
{
	return weft__engine_hz() != 0;
}

/* Where perf events are there for the rate alone, and all threads have timers, too: timers sample from now on, which
 * cost nothing at context switches. */
static int engine_give_up(void)
{
	int gave_up = 0;

	pthread_mutex_lock(&weft__engine_mutex);
	if (weft__engine_life.running && weft__engine.ops == &weft__perf_ops && weft__perf_holds()) {
		weft__engine_undo();
		weft__choice_fall_back("perf events cost too much at context switches",
				       "perf events: what they add to context switches is more than the budget allows");
		gave_up = weft__engine_begin() == 0;
	}
	pthread_mutex_unlock(&weft__engine_mutex);
	if (gave_up)
		weft__log(WEFT_LOG_INFO, "perf events cost too much at context switches; timers sample instead");
	return gave_up;
}

static enum weft__source_loss engine_loss(struct weft_loss *ret, uint64_t now_ns)
{
	uint64_t uncovered = weft__engine_counts().uncovered;
	int one;

	if (uncovered > weft__engine_life.uncovered_lost) {
		*ret = (struct weft_loss){WEFT_LOSS_UNCOVERED, 0, uncovered - weft__engine_life.uncovered_lost, now_ns,
					  now_ns};
		weft__engine_life.uncovered_lost = uncovered;
		return SOURCE_LOSS;
	}
	weft__engine_life.uncovered_lost = uncovered;
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
	.due = weft__engine_due,
	.turn = weft__engine_tend,
	.loss = engine_loss,
	.stats = engine_stats,
	.works = engine_works,
	.costs = WEFT_COST_SAMPLES,
	.least = SOURCE_FULL / 10,
	.cost = engine_cost,
	.cpu = engine_cpu,
	.try_out = weft__meter_try,
	.limit = weft__rate_limit,
	.give_up = engine_give_up,
};
