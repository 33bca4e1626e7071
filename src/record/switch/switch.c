/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the switch source. CALLER, but for what says otherwise.
 *
 * Stopping leaves what the kernel wrote where it is: the collector reads it at its next turn, up to the moment of
 * the stop. So there may be a few sets of events, of which the last one runs. The lock is for the collector and a
 * caller. */
#include "record/switch/switch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/own.h"
#include "base/place.h"
#include "base/private_fds.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"
#include "record/switch/state.h"
#include "record/thread/thread.h"

#define STOPPED_MOST 4 /* sets that the collector has not read yet */
#define SWITCH_NS 1500 /* about: see switch_open.c */
#define STACK_NS 3700
#define OPENING_SHARE 2000 /* of the time between two openings, opening may take the part one by this */
#define GAP_NS UINT64_C(1000000000)
#define WATCH_NS UINT64_C(250000000) /* between two looks at how many switches there are, when there are too many */

struct weft__switch weft__switch FORK_DATA = {.lock = PTHREAD_MUTEX_INITIALIZER, .due_ns = UINT64_MAX};

static void sets_enter(void)
{
	pthread_mutex_lock(&weft__switch.lock);
	weft__switch.busy = 1;
}

static void sets_leave(void)
{
	weft__switch.busy = 0;
	pthread_mutex_unlock(&weft__switch.lock);
}

void weft__switch_degrade(const char *text)
{
	size_t n = strlen(weft__switch.degraded);

	if (strstr(weft__switch.degraded, text))
		return;
	snprintf(weft__switch.degraded + n, sizeof(weft__switch.degraded) - n, "%s%s", n ? "; " : "", text);
	weft__source_changed();
}

static void switch_refuse(const char *what, int err)
{
	char text[SWITCH_WHY_BYTES / 2];

	if (err == -EACCES || err == -EPERM || err == -ENOSYS)
		snprintf(text, sizeof(text),
			 "%s: perf events are not allowed (%s); kernel.perf_event_paranoid=%d, CAP_PERFMON or the "
			 "container's seccomp profile decides",
			 what, weft_strerror(err), weft__switch.mode == SWITCH_MODE_STACKS ? 1 : 2);
	else if (err == -EMFILE || err == -ENFILE)
		snprintf(text, sizeof(text), "%s: too few open files (%s); ulimit -n decides", what,
			 weft_strerror(err));
	else
		snprintf(text, sizeof(text), "%s: %s", what, weft_strerror(err));
	weft__switch_degrade(text);
}

static int switch_open(const struct weft_recorder_opts *opts, struct weft_error *ret)
{
	int sampling = opts->sample_hz != WEFT_OFF, err;

	(void)ret;
	sets_enter();
	memset(&weft__switch.counts, 0, sizeof(weft__switch.counts));
	memset(&weft__switch.spent, 0, sizeof(weft__switch.spent));
	weft__switch.degraded[0] = 0;
	store_relaxed(&weft__switch.n_losses, 0u);
	store_relaxed(&weft__switch.mode, SWITCH_MODE_OFF);
	weft__switch.pid = (uint32_t)getpid();
	weft__switch.by_itself = opts->switches == WEFT_SWITCH_AUTO && opts->budget_ppm != WEFT_OFF;
	if (opts->switches == WEFT_SWITCH_STACKS && sampling) {
		store_relaxed(&weft__switch.mode, SWITCH_MODE_STACKS);
		err = weft__switch_probe(1);
		if (err) {
			switch_refuse("no stacks of context switches", err);
			store_relaxed(&weft__switch.mode, SWITCH_MODE_OFF);
		}
	} else if (opts->switches == WEFT_SWITCH_STACKS) {
		weft__switch_degrade("no stacks of context switches without samples, whose unwind tables they need");
	}
	if (weft__switch.mode == SWITCH_MODE_OFF && opts->switches != WEFT_SWITCH_OFF &&
	    (opts->switches != WEFT_SWITCH_AUTO || sampling)) {
		store_relaxed(&weft__switch.mode, SWITCH_MODE_INTERVALS);
		err = weft__switch_probe(0);
		if (err) {
			switch_refuse("no record of context switches", err);
			store_relaxed(&weft__switch.mode, SWITCH_MODE_OFF);
		}
	}
	sets_leave();
	return 0;
}

void weft__switch_lose(uint64_t count, uint64_t from_ns, uint64_t to_ns)
{
	struct weft_loss loss = {WEFT_LOSS_SWITCH, 0, count, from_ns, to_ns};
	uint32_t most = sizeof(weft__switch.losses) / sizeof(weft__switch.losses[0]);
	struct weft_loss *last = &weft__switch.losses[most - 1];

	add_relaxed(&weft__switch.counts.lost, count);
	if (weft__switch.n_losses < most) {
		weft__switch.losses[weft__switch.n_losses] = loss;
		store_relaxed(&weft__switch.n_losses, weft__switch.n_losses + 1);
		return;
	}
	last->count += count;
	last->from_ns = from_ns < last->from_ns ? from_ns : last->from_ns;
	last->to_ns = to_ns > last->to_ns ? to_ns : last->to_ns;
}

static enum weft__source_loss switch_loss(struct weft_loss *ret, uint64_t now_ns)
{
	enum weft__source_loss one = SOURCE_NO_LOSS;

	(void)now_ns;
	if (!load_relaxed(&weft__switch.n_losses))
		return one;
	sets_enter();
	if (weft__switch.n_losses) {
		store_relaxed(&weft__switch.n_losses, weft__switch.n_losses - 1);
		*ret = weft__switch.losses[weft__switch.n_losses];
		one = SOURCE_LOST_EVENTS;
	}
	sets_leave();
	return one;
}

/* A collector that has not come round for that long cannot have all of it. */
static void drop_oldest(void)
{
	struct weft__switch_set *set = weft__switch.stopped;

	weft__switch.stopped = set->next;
	weft__switch_lose(1, set->last_ns ? set->last_ns : set->start_ns, set->stop_ns);
	weft__switch_set_free(set, 0);
}

void weft__switch_retire(uint64_t now_ns)
{
	struct weft__switch_set *set = weft__switch.running, **end = &weft__switch.stopped;
	int n = 1;

	if (!set)
		return;
	weft__switch_set_stop(set);
	weft__switch.running = NULL;
	for (; *end; end = &(*end)->next)
		n++;
	*end = set;
	if (n > STOPPED_MOST)
		drop_oldest();
	store_relaxed(&weft__switch.due_ns, now_ns);
}

int weft__switch_begin(void)
{
	char text[128];
	uint64_t begin = weft__clock_mono();
	int err = weft__switch_set_open(&weft__switch.running);

	weft__switch.private_fds = weft__private_fds;
	weft__switch.opening_ns = weft__clock_mono() - begin;
	if (err) {
		switch_refuse("no record of context switches any more", err);
		return err;
	}
	if (weft__switch.running->refused) {
		snprintf(text, sizeof(text), "no record of context switches of some threads: %s; ulimit -n, ulimit -l",
			 weft_strerror(weft__switch.running->refused_why));
		weft__switch_degrade(text);
	}
	store_relaxed(&weft__switch.due_ns, 0);
	return 0;
}

/* A program that switches very often is to have no records at all, so they begin when that is known. */
static void wait_first(uint64_t now_ns)
{
	weft__switch.first_ns = now_ns + SWITCH_LOOK_NS;
	weft__switch.let_go = 1;
	store_relaxed(&weft__switch.held_ns, now_ns);
	store_relaxed(&weft__switch.due_ns, weft__switch.first_ns);
}

/* The collector and the other threads of ours are left out. */
static void switch_attach(pthread_t collector)
{
	uint64_t now = weft__clock_mono();

	sets_enter();
	weft__switch.wanted = 1;
	store_relaxed(&weft__switch.held_ns, 0);
	weft__switch.collector_tid = weft__tls_tid(collector);
	weft__switch_watch_begin(now);
	if (weft__switch.mode != SWITCH_MODE_OFF && !weft__switch.running && weft__switch.by_itself)
		wait_first(now);
	else if (weft__switch.mode != SWITCH_MODE_OFF && !weft__switch.running)
		weft__switch_begin();
	sets_leave();
	weft__collector_wake();
}

/* Times in which it was held, several in a row as one. */
static void report_gap(uint64_t now_ns, int last)
{
	if (weft__switch.held_ns) {
		if (!weft__switch.gap_from_ns)
			weft__switch.gap_from_ns = weft__switch.held_ns;
		weft__switch.gap_to_ns = now_ns;
	}
	if (!weft__switch.gap_from_ns || (!last && now_ns < weft__switch.gap_from_ns + GAP_NS))
		return;
	weft__switch_lose(0, weft__switch.gap_from_ns, weft__switch.gap_to_ns);
	weft__switch.gap_from_ns = 0;
}

static void switch_detach(void)
{
	sets_enter();
	weft__switch.wanted = 0;
	report_gap(weft__clock_mono(), 1);
	store_relaxed(&weft__switch.held_ns, 0);
	weft__switch_retire(weft__clock_mono());
	sets_leave();
	weft__collector_wake();
}

static void switch_late(uint64_t from_ns, uint64_t to_ns)
{
	sets_enter();
	if (weft__switch.running)
		weft__switch_lose(0, from_ns, to_ns);
	sets_leave();
}

static void switch_close(struct weft__collector *c)
{
	(void)c;
	sets_enter();
	weft__switch_set_free(weft__switch.running, 0);
	weft__switch.running = NULL;
	while (weft__switch.stopped) {
		struct weft__switch_set *set = weft__switch.stopped;

		weft__switch.stopped = set->next;
		weft__switch_set_free(set, 0);
	}
	store_relaxed(&weft__switch.mode, SWITCH_MODE_OFF);
	weft__switch.wanted = 0;
	store_relaxed(&weft__switch.n_losses, 0u);
	store_relaxed(&weft__switch.due_ns, UINT64_MAX);
	sets_leave();
}

void weft__switch_resume(uint64_t now_ns)
{
	uint64_t due = weft__switch.first_ns ? weft__switch.first_ns
					     : weft__switch.held_ns + weft__switch.opening_ns * OPENING_SHARE;

	if (!weft__switch.let_go || !weft__switch.held_ns || !weft__switch.wanted)
		return;
	if (now_ns >= due && weft__switch.by_itself && weft__switch_watch_many(now_ns))
		due = now_ns + WATCH_NS;
	if (now_ns < due) {
		store_relaxed(&weft__switch.due_ns, due);
		return;
	}
	weft__switch.first_ns = 0;
	report_gap(now_ns, 0);
	weft__switch_begin();
	store_relaxed(&weft__switch.held_ns, 0);
}

void weft__switch_pause(uint64_t now_ns)
{
	store_relaxed(&weft__switch.held_ns, now_ns);
	weft__switch_retire(now_ns);
}

void weft__switch_hold(int hold)
{
	uint64_t now = weft__clock_mono();

	sets_enter();
	weft__switch.let_go = !hold;
	if (hold && weft__switch.running)
		weft__switch_pause(now);
	weft__switch_resume(now);
	sets_leave();
}

/* The files are the parent's too, unless they are in a table of their own, and its events stay as they are. When
 * somebody was at the sets their memory is left alone. */
static void set_forget(struct weft__switch_set *set)
{
	for (size_t i = 0; i < set->n_fds && !weft__switch.private_fds; i++)
		weft__own_perf_leave(set->fds[i].fd);
	for (size_t i = 0; i < set->n_rings && !weft__switch.private_fds; i++)
		if (set->rings[i].tid)
			weft__own_perf_leave(set->rings[i].fd);
	set->n_fds = 0;
	set->stop_ns = 1;
	if (!weft__switch.busy)
		weft__switch_set_free(set, 1);
}

static void switch_forked(void)
{
	struct weft__switch_set *set = weft__switch.stopped, *next;

	pthread_mutex_init(&weft__switch.lock, NULL);
	for (; set; set = next) {
		next = set->next;
		set_forget(set);
	}
	if (weft__switch.running)
		set_forget(weft__switch.running);
	weft__switch.running = weft__switch.stopped = NULL;
	weft__switch.busy = weft__switch.wanted = 0;
	store_relaxed(&weft__switch.held_ns, 0);
	weft__switch.gap_from_ns = 0;
	store_relaxed(&weft__switch.n_losses, 0u);
	store_relaxed(&weft__switch.due_ns, UINT64_MAX);
}

static void switch_fork(enum weft__source_fork when, struct weft__collector *c)
{
	if (when == SOURCE_LOCK)
		pthread_mutex_lock(&weft__switch.lock);
	if (when == SOURCE_UNLOCK)
		pthread_mutex_unlock(&weft__switch.lock);
	if (when == SOURCE_CHILD && c)
		switch_forked();
}

static void switch_facts(struct weft__defs *defs)
{
	static const char *const modes[] = {"off", "intervals", "stacks"};

	sets_enter();
	weft__defs_fact(defs, "switch.mode", modes[weft__switch.mode]);
	if (weft__switch.degraded[0])
		weft__defs_fact(defs, "degraded.switch", weft__switch.degraded);
	sets_leave();
}

struct weft__switch_counts weft__switch_counts(void)
{
	struct weft__switch_counts counts = {load_relaxed(&weft__switch.counts.switches),
					     load_relaxed(&weft__switch.counts.lost),
					     load_relaxed(&weft__switch.counts.stacks)};

	return counts;
}

int weft__switch_works(void)
{
	return load_relaxed(&weft__switch.mode) != SWITCH_MODE_OFF;
}

uint32_t weft__switch_cost_ns(void)
{
	if (load_relaxed(&weft__switch.held_ns))
		return 0;
	switch (load_relaxed(&weft__switch.mode)) {
	case SWITCH_MODE_INTERVALS:
		return SWITCH_NS;
	case SWITCH_MODE_STACKS:
		return STACK_NS;
	default:
		return 0;
	}
}

/* While nothing is recorded, what was before has the price that it had. */
static void switch_cost(struct weft__source_cost *ret)
{
	struct weft__switch_spent *spent = &weft__switch.spent;
	uint64_t n = weft__switch_counts().switches;
	uint32_t price = weft__switch_cost_ns();

	spent->price_ns = price ? price : spent->price_ns;
	spent->ns += (n - spent->switches) * spent->price_ns;
	spent->switches = n;
	ret->spent_ns = spent->ns;
	ret->events = n;
	ret->slots = n * weft__kind_slots(WEFT_KIND_OFFCPU);
}

/* Thousandths of the time. */
static uint32_t switch_limit(uint32_t level)
{
	return weft__switch_works() ? level * 1000 / SOURCE_FULL : 0;
}

static int switch_hold(enum weft__source_hold what)
{
	if (what != SOURCE_ASK)
		weft__switch_hold(what == SOURCE_HOLD);
	return weft__switch_cost_ns() != 0;
}

static uint64_t switch_due(const struct weft__turn *turn)
{
	uint64_t due = load_relaxed(&weft__switch.due_ns);

	/* While the program is calm its rings do not fill. */
	return turn->calm && !turn->awake ? UINT64_MAX : due;
}

static int switch_turn(const struct weft__turn *turn)
{
	return weft__switch_drain(turn->collector) ? SOURCE_MORE : SOURCE_NOTHING;
}

const struct weft__source weft__switch_source = {
	.name = "switch",
	.what = "record of context switches",
	.stage = SOURCE_EARLY,
	.facts_change = 1,
	.open = switch_open,
	.attach = switch_attach,
	.late = switch_late,
	.detach = switch_detach,
	.close = switch_close,
	.sees_switches = weft__switch_works,
	.fork = switch_fork,
	.facts = switch_facts,
	.due = switch_due,
	.turn = switch_turn,
	.finish = switch_turn,
	.loss = switch_loss,
	.works = weft__switch_works,
	.costs = WEFT_COST_SWITCH,
	.least = SOURCE_FULL / 512,
	.cost = switch_cost,
	.limit = switch_limit,
	.hold = switch_hold,
};
