/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's life: what is due when, and a full disk. */
#include "record/collect/collector.h"
#include "record/collect/staging.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/private_fds.h"
#include "record/collect/poll_counts.h"
#include "record/event/poll.h"
#include "record/last.h"
#include "record/ring/ring.h"
#include "record/ship.h"
#include "record/source.h"
#include "record/symbolize.h"
#include "weft/event.h"

#define TEND_NS UINT64_C(1000000000)
#define RETAIN_NS UINT64_C(10000000000) /* for age; size is looked at when a segment is sealed */
#define RETRY_NS UINT64_C(100000000)
#define CPU_READ_NS UINT64_C(500000000)
#define CROWDED_NS UINT64_C(5000000)     /* between two rounds when stacks come faster than they can be written */
#define FAST_FOR_NS UINT64_C(1000000000) /* after a ring was seen that fills fast */
#define NEWS_BYTES 16384

int weft__collector_init(struct weft__collector *c)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&c->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->done, &attr);
	pthread_condattr_destroy(&attr);
	c->notes = weft__calloc(FOUND_RING(c->region->head, FOUND_LANES), sizeof(*c->notes));
	/* News are made after the events that need them have left their ring: there must be no want of memory then. */
	return c->notes && weft__flush_init(c) && weft__buf_room(&c->news.out, NEWS_BYTES) &&
			       weft__buf_room(&c->news.one, NEWS_BYTES)
		       ? 0
		       : -ENOMEM;
}

void weft__collector_fini(struct weft__collector *c)
{
	weft__segments_fini(&c->segments);
	weft__encoder_close(c->encoder);
	weft__flush_fini(c);
	weft__stack_ids_fini(&c->stacks);
	weft__buf_free(&c->payload);
	weft__defs_fini(&c->facts);
	weft__defs_fini(&c->defs);
	weft__defs_fini(&c->news);
	weft__free(c->notes);
	c->encoder = NULL;
	c->notes = NULL;
}

static uint32_t gate_epoch;  /* of polls, as the gate has it */
static uint32_t gate_last;   /* its last value when it was open, while it is closed */
static uint64_t gate_closed; /* tick at which it was closed */

/* Under the mutex. What is wanted, with the mode that was chosen since. */
static uint32_t with_mode(const struct weft__collector *c, uint32_t on)
{
	return on && c->coarse_on ? (on & ~WEFT_GATE_MODES) | c->coarse_on : on;
}

/* Under the mutex. Polls that are open when recording ends are not known when it begins again: their epoch is over. */
static void gate_set(const struct weft__collector *c, uint32_t want)
{
	uint32_t on = with_mode(c, want);

	if (!on && load_relaxed(&weft_gate.on)) {
		gate_last = load_relaxed(&weft_gate.on);
		gate_closed = weft__clock_tick(c->timeline.source);
	}
	weft__sources_gate(on);
	if (on & WEFT_GATE_COUNTED)
		store_relaxed(&weft_gate.wakes_from, weft__clock_tick(c->timeline.source));
	store_seq_cst(&weft_gate.on, on & WEFT_GATE_MODES ? on + ++gate_epoch * WEFT_GATE_EPOCH : on);
}

uint32_t weft__collector_gate_last(struct weft__collector *c, uint64_t *tick)
{
	uint32_t on;

	pthread_mutex_lock(&c->mutex);
	on = load_relaxed(&weft_gate.on);
	if (!on) {
		on = gate_last;
		*tick = gate_closed;
	}
	pthread_mutex_unlock(&c->mutex);
	return on;
}

/* From all polls without any such bit it goes to another level and back to all polls timed: the functions that see
 * to modes then still know of each open poll how it began. */
void weft__collector_coarse(struct weft__collector *c, uint32_t level)
{
	static const uint32_t bits[] = {WEFT_GATE_TIMED, WEFT_GATE_SLOW, WEFT_GATE_SLOW | WEFT_GATE_PARKS,
					WEFT_GATE_SLOW | WEFT_GATE_PARKS | WEFT_GATE_COUNTED,
					WEFT_GATE_SLOW | WEFT_GATE_PARKS | WEFT_GATE_COUNTED | WEFT_GATE_UNTIMED};
	uint32_t now, on;

	pthread_mutex_lock(&c->mutex);
	now = load_relaxed(&weft_gate.on);
	c->coarse_on = bits[level];
	store_relaxed(&c->counts_polls, 1);
	on = with_mode(c, c->want_on);
	if (now && on) {
		if (!(now & WEFT_GATE_MODES)) {
			store_seq_cst(&weft_gate.poll_mixed, 1u);
			gate_epoch++;
		}
		if (on & ~now & WEFT_GATE_UNTIMED)
			weft__polls_step(weft__clock_tick(c->timeline.source));
		/* Wakes without a clock are not remembered. */
		if (on & ~now & WEFT_GATE_COUNTED || now & ~on & WEFT_GATE_UNTIMED)
			store_relaxed(&weft_gate.wakes_from, weft__clock_tick(c->timeline.source));
		store_seq_cst(&weft_gate.on, on + gate_epoch * WEFT_GATE_EPOCH);
	}
	pthread_mutex_unlock(&c->mutex);
}

/* Under the mutex. Remembers a time in which nothing was recorded; when there are too many, the last grows. */
static void add_pause(struct weft__collector *c, uint32_t reason, uint64_t from)
{
	struct weft_loss pause = {.reason = reason, .from_ns = from, .to_ns = weft__clock_mono()};
	uint32_t most = sizeof(c->pauses) / sizeof(c->pauses[0]);

	if (c->n_pauses < most)
		c->pauses[c->n_pauses++] = pause;
	else
		c->pauses[most - 1].to_ns = pause.to_ns;
}

static int report_pauses(struct weft__collector *c)
{
	uint32_t i;

	pthread_mutex_lock(&c->mutex);
	for (i = 0; i < c->n_pauses; i++)
		weft__defs_loss(&c->news, &c->pauses[i]);
	c->n_pauses = 0;
	pthread_mutex_unlock(&c->mutex);
	return weft__stage_news(c);
}

static void stick(struct weft__collector *c, int err)
{
	if (err == -ENOMEM) {
		c->starved = 1;
		return; /* rings hold on, and drop with a count when they are full */
	}
	c->stuck_err = err;
	if (c->stuck_ns)
		return;
	pthread_mutex_lock(&c->mutex);
	gate_set(c, 0);
	store_relaxed(&c->stuck_ns, weft__clock_mono());
	c->region->head->stuck_ns = c->stuck_ns;
	c->shown.pauses = ++c->stats.pauses;
	pthread_mutex_unlock(&c->mutex);
	weft__log(WEFT_LOG_WARN, "%s: %s; recording pauses until there is room",
		  c->segments.dir ? c->segments.dir : "memory", weft_strerror(err));
}

/* A full disk: tries again, and goes on where it was. */
static void unstick(struct weft__collector *c)
{
	int err;

	if (!weft__segments_room(&c->segments))
		return;
	err = weft__flush(c);
	if (!err)
		err = weft__drain(c); /* the rings are as full as they were */
	if (err)
		return;
	weft__log(WEFT_LOG_INFO, "there is room again: recording goes on");
	pthread_mutex_lock(&c->mutex);
	add_pause(c, WEFT_LOSS_DISK_FULL, c->stuck_ns);
	store_relaxed(&c->stuck_ns, 0);
	c->region->head->stuck_ns = 0;
	c->stuck_err = 0;
	gate_set(c, c->want_on);
	pthread_mutex_unlock(&c->mutex);
}

/* What was staged in a drain is due shortly after one: it goes with that. */
static uint64_t flush_early(const struct weft__collector *c)
{
	return c->drain_ns < c->flush_ns ? c->drain_ns : c->flush_ns;
}

static int tend(struct weft__collector *c, uint64_t now)
{
	int crowded = weft__stack_ids_crowded(c);
	int err = weft__round_sources(c, SOURCE_EARLY, now, 0);

	if (err)
		return err;
	if (crowded || weft__nearly_due(now, c->drain_due_ns, c->drain_ns) || weft__drain_worthwhile(c)) {
		err = weft__drain(c);
		if (!err && crowded)
			err = weft__flush(c);
		if (!err)
			weft__stack_ids_step(c);
	}
	if (!err)
		err = weft__round_sources(c, SOURCE_USUAL, now, 0);
	if (!err)
		err = weft__round_news(c, now);
	if (!err)
		err = weft__costs_tend(c, now);
	if (!err)
		err = weft__throttled_tend(c, now);
	weft__cputime_tend(c, now);
	weft__check_tend(c);
	if (!err)
		err = report_pauses(c);
	if (!err && now >= c->tended_ns + TEND_NS) {
		weft__drain_tend(c);
		c->tended_ns = now;
	}
	if (!err && now >= c->retained_ns + RETAIN_NS) {
		weft__segments_retain(&c->segments);
		c->retained_ns = now;
	}
	if (!err)
		err = weft__poll_counts_tend(c, now);
	if (!err && c->pending_ns)
		err = weft__flush_turn(c, now);
	if (!err && c->staged_ns && weft__nearly_due(now, c->staged_ns + c->flush_ns, flush_early(c)))
		err = weft__flush_soon(c);
	if (!err && (weft__segments_due(&c->segments, now) || weft__stack_ids_full(c))) {
		weft__throttled_report(c);
		weft__cputime_report(c);
		err = weft__costs_report(c);
		if (!err)
			err = load_relaxed(&c->counts_polls) ? weft__poll_counts_report(c) : weft__drain(c);
		if (!err)
			err = weft__flush_seal(c);
		if (err && c->segments.pinned && !weft__segments_due(&c->segments, now) && !weft__stack_ids_full(c)) {
			weft__log(WEFT_LOG_INFO, "%s: %s; going on in the same segment", c->segments.dir,
				  weft_strerror(err));
			err = 0;
		}
	}
	return err;
}

static uint64_t sooner(uint64_t now, uint64_t at, uint64_t due)
{
	uint64_t left = at > now ? at - now : 0;

	return left < due ? left : due;
}

/* While polls are counted without a clock: how long until the next step of the gate, or until a window begins or
 * ends. */
static uint64_t step_due(const struct weft__collector *c)
{
	return sooner(weft__clock_mono(), weft__coarse_due(&c->coarse),
		      c->coarse.in_window ? UINT64_MAX : c->coarse.pace_ns);
}

/* Sleeps for so long, or until somebody wakes it. While polls are counted without a clock it wakes up in between, and
 * answers 1: nothing is due but the next step. */
static int sleeps_on(const struct weft__collector *c, uint64_t *due)
{
	uint64_t step = c->coarse.level == COARSE_UNTIMED ? step_due(c) : UINT64_MAX;
	int steps = *due > step;
	uint64_t ns = steps ? step : *due;
	struct timespec timeout = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	*due -= ns;
	return syscall(SYS_futex, &weft__hot.asleep, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0) < 0 && steps &&
	       errno == ETIMEDOUT;
}

/* When the collector has something to do of its own. While the program is calm, what is staged and the sources that
 * are on for a part of the time wait for the next drain. */
static uint64_t own_due(const struct weft__collector *c, uint64_t now)
{
	uint64_t longest = c->calm.on ? CALM_STRETCH * c->drain_ns : c->drain_ns;
	uint64_t due = sooner(now, c->drain_due_ns + longest - c->drain_ns, 2 * longest);

	/* Whether a block is encoded by now is looked at in each round. */
	if (!c->pending_ns && c->staged_ns && (!c->calm.on || c->flush_ns < longest))
		due = sooner(now, c->staged_ns + c->flush_ns, due);
	if (!c->calm.on)
		due = sooner(now, weft__costs_due(&c->costs), due);
	if (weft__stack_ids_crowded(c))
		due = due < CROWDED_NS ? due : CROWDED_NS;
	return due;
}

/* Sleeps until something is due or a ring is half full. */
static void nap(struct weft__collector *c, uint64_t now)
{
	int idle = c->stuck_ns || c->starved;
	uint64_t due;
	int soon = c->fast_ns && now < c->fast_ns + FAST_FOR_NS;
	struct weft__turn turn = {.collector = c, .timeline = &c->timeline, .now_ns = now};

	if (soon != c->is_soon)
		weft__collector_soon(c, soon);
	weft__calm_check(&c->calm, c->drained);
	turn.calm = c->calm.on;
	due = idle ? RETRY_NS : own_due(c, now);
	due = sooner(now, weft__sources_due(&turn, idle), sooner(now, weft__last_due(), due));
	store_seq_cst(&weft__hot.asleep, 1u);
	/* What became half full while the collector worked did not wake it. */
	if ((idle || !weft__drain_pressing(c)) && load_acquire(&c->ask) == ASK_NOTHING &&
	    weft__sources_due(&turn, 1) > now)
		while (sleeps_on(c, &due)) {
			weft__polls_step(weft__clock_tick(c->timeline.source));
			weft__coarse_window(c, weft__clock_mono());
		}
	store_seq_cst(&weft__hot.asleep, 0u);
}

int weft__round_finish(struct weft__collector *c, int last)
{
	int err = weft__round_finish_sources(c, 0, weft__clock_mono(), 0, last);

	weft__throttled_report(c);
	weft__cputime_report(c);
	if (!err)
		err = weft__costs_report(c);
	if (!err)
		err = load_relaxed(&c->counts_polls) ? weft__poll_counts_report(c) : weft__drain(c);
	if (!err) {
		pthread_mutex_lock(&c->mutex);
		if (c->paused_ns) {
			add_pause(c, WEFT_LOSS_PAUSED, c->paused_ns);
			c->paused_ns = weft__clock_mono();
		}
		pthread_mutex_unlock(&c->mutex);
		err = report_pauses(c);
	}
	if (!err)
		err = weft__round_news(c, weft__clock_mono());
	if (!err)
		err = weft__round_refused(c, 1);
	if (!err && c->segments.early && !staging_any(c->region->head))
		weft__segments_abandon(&c->segments);
	if (!err && (c->segments.fd >= 0 || staging_any(c->region->head)))
		err = weft__flush_seal(c);
	return err;
}

static void answer(struct weft__collector *c, int err)
{
	pthread_mutex_lock(&c->mutex);
	c->answer = err;
	c->answer_path[0] = 0;
	if (c->segments.dir && c->segments.sealed[0])
		snprintf(c->answer_path, sizeof(c->answer_path), "%s/%s", c->segments.dir, c->segments.sealed);
	store_release(&c->ask, ASK_NOTHING);
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->mutex);
}

static void show_stats(struct weft__collector *c, uint64_t now)
{
	struct timespec cpu;

	/* Not each time: it is a system call. */
	if (now >= c->cpu_read_ns + CPU_READ_NS && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0) {
		c->stats.collector_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
		c->cpu_read_ns = now;
	}
	weft__costs_stats(&c->costs, &c->stats);
	c->stats.bytes = c->segments.total_bytes + (c->segments.fd >= 0 ? c->segments.writer.offset : 0);
	pthread_mutex_lock(&c->mutex);
	c->shown = c->stats;
	pthread_mutex_unlock(&c->mutex);
}

/* The program's last thread ended and took no leave. What was recorded is written; then our threads end, and the
 * process with them. */
static void end_alone(struct weft__collector *c, uint64_t now)
{
	int err;

	weft__collector_gate(c, 0, 0);
	weft__sources_detach();
	weft__sources_leave();
	weft__sources_stop(SOURCE_STOP);
	err = weft__round_finish(c, 1);
	weft__round_finish_sources(c, 1, now, err, 1);
	if (c->segments.symbolize) {
		weft__symbolize_drain(c->segments.symbolize);
		weft__symbolize_close(c->segments.symbolize);
		c->segments.symbolize = NULL;
	}
	weft__ship_quit(c->segments.ship);
	weft__flush_fini(c);
	if (!err)
		weft__region_remove(c->region);
	c->running = 0; /* the C library may call what is to be done at exit on this thread */
	weft__last_end();
}

/* Waking up is a good part of what the collector costs, so there is no timer for drains short of the longest time
 * between two. Who fills a ring wakes the collector at its half, and a collector that is awake does what would be
 * due soon: it drains what is a quarter full, and asks the queues when half of their time is over. */
void weft__collector_run(struct weft__collector *c)
{
	weft__costs_thread(&c->costs);
	weft__found_begin(c);
	for (;;) {
		uint64_t now = weft__clock_mono();
		enum weft__ask ask = load_acquire(&c->ask);
		int err = 0;

		c->starved = 0;
		if (weft__last_is_gone(now)) {
			end_alone(c, now);
			return;
		}
		if (load_relaxed(&weft__ids_strayed))
			weft__ids_follow();
		if (ask == ASK_ATTACH || ask == ASK_DETACH) {
			weft__collector_attach_here(c, ask);
			answer(c, 0);
			continue;
		}
		if (ask != ASK_NOTHING) {
			err = weft__round_finish(c, ask == ASK_STOP);
			if (err)
				stick(c, err);
			if (ask == ASK_STOP)
				weft__round_finish_sources(c, 1, now, err, 1);
			c->cpu_read_ns = 0;
			show_stats(c, now);
			answer(c, err);
			if (ask == ASK_STOP)
				return;
		} else if (c->stuck_ns) {
			unstick(c);
			if (c->stuck_ns)
				weft__round_sources(c, SOURCE_LATE, now, 0);
		} else {
			err = tend(c, now);
			err = weft__round_sources(c, SOURCE_LATE, now, err);
			if (err)
				stick(c, err);
		}
		show_stats(c, now);
		nap(c, weft__clock_mono());
	}
}

void weft__collector_gate(struct weft__collector *c, uint32_t on, int pause)
{
	pthread_mutex_lock(&c->mutex);
	if (c->paused_ns && on) {
		add_pause(c, WEFT_LOSS_PAUSED, c->paused_ns);
		c->paused_ns = 0;
		c->region->head->paused_ns = 0;
	}
	if (pause && c->want_on)
		c->region->head->paused_ns = c->paused_ns = weft__clock_mono();
	c->want_on = on;
	if (!on || !load_relaxed(&c->stuck_ns))
		gate_set(c, on);
	pthread_mutex_unlock(&c->mutex);
	if (on)
		weft__collector_wake(); /* it slept as one that has no queues to ask */
}
