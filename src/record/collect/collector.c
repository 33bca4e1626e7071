/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's life: what is due when, a full disk, and what callers ask of it. */
#include "record/collect/collector.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "record/engine/engine.h"
#include "record/event/registry.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define TEND_NS UINT64_C(1000000000)
#define RETAIN_NS UINT64_C(10000000000) /* for age; size is looked at when a segment is sealed */
#define RETRY_NS UINT64_C(100000000)
#define CPU_READ_NS UINT64_C(100000000)
#define CROWDED_NS UINT64_C(5000000) /* between two rounds when stacks come faster than they can be written */
#define NEWS_BYTES 16384
#define SLICE_NS 200000 /* of CPU, so that the scheduler runs the collector soon when it wakes */

int weft__collector_init(struct weft__collector *c)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&c->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->done, &attr);
	pthread_condattr_destroy(&attr);
	weft__batch_init(&c->batch, c->region->head->quantum_ns);
	c->notes = weft__calloc(c->region->head->max_rings, sizeof(*c->notes));
	/* News are made after the events that need them have left their ring: there must be no want of memory then. */
	return c->notes && weft__buf_room(&c->news.out, NEWS_BYTES) && weft__buf_room(&c->news.one, NEWS_BYTES)
		       ? 0
		       : -ENOMEM;
}

void weft__collector_fini(struct weft__collector *c)
{
	weft__segments_fini(&c->segments);
	weft__encoder_close(c->encoder);
	weft__batch_fini(&c->batch);
	weft__stack_ids_fini(&c->stacks);
	weft__buf_free(&c->payload);
	weft__defs_fini(&c->facts);
	weft__defs_fini(&c->defs);
	weft__defs_fini(&c->news);
	weft__free(c->notes);
	c->encoder = NULL;
	c->notes = NULL;
}

static void gate_set(uint32_t on)
{
	store_seq_cst(&weft_gate.on, on);
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

static int tell_pauses(struct weft__collector *c)
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
	gate_set(0);
	store_relaxed(&c->stuck_ns, weft__clock_mono());
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
	c->stuck_err = 0;
	gate_set(c->want_on);
	pthread_mutex_unlock(&c->mutex);
}

/* Asks each runtime for the length of its global queue. True when there was one to ask. */
static int sample_queues(struct weft__collector *c)
{
	uint32_t n = load_acquire(&weft__hot.n_runtimes);
	uint64_t now;
	uint32_t i;
	int asked = 0;

	for (i = 0; i < n; i++) {
		struct weft__runtime *runtime = &weft__runtimes[i];
		weft_queue_fn *fn;

		__atomic_fetch_add(&runtime->asking, 1, __ATOMIC_SEQ_CST);
		fn = load_seq_cst(&runtime->queue);
		if (fn) {
			weft_queue_depth((int)i, fn(load_relaxed(&runtime->data)));
			asked = 1;
		}
		__atomic_fetch_sub(&runtime->asking, 1, __ATOMIC_SEQ_CST);
	}
	now = weft__clock_mono();
	c->queued_ns = now - now % c->queue_ns; /* on a grid, so that drains can fall together with it */
	return asked;
}

/* What the engine has counted. */
static int count_samples(struct weft__collector *c, uint64_t now)
{
	struct weft__engine_counts counts = weft__engine_counts();
	struct weft_loss loss = {WEFT_LOSS_UNCOVERED, 0, counts.uncovered - c->uncovered_seen, now, now};

	c->stats.samples = counts.samples;
	c->stats.uncovered = counts.uncovered;
	if (counts.uncovered <= c->uncovered_seen)
		return 0;
	weft__defs_loss(&c->news, &loss);
	c->uncovered_seen = counts.uncovered;
	return weft__stage_news(c);
}

/* Sampling: threads that came, modules that changed, and what could not be covered. */
static int tend_engine(struct weft__collector *c, uint64_t now)
{
	int err = 0;

	if (now >= c->engine_due_ns || weft__engine_pressing(now)) {
		c->engine_due_ns = weft__engine_tend(now);
		err = weft__stack_ids_modules(c);
	}
	return err ? err : count_samples(c, now);
}

static int tend(struct weft__collector *c, uint64_t now)
{
	int crowded = weft__stack_ids_crowded(c);
	int err = 0;

	if (crowded || now >= c->drain_due_ns || weft__drain_pressing(c)) {
		err = weft__drain(c);
		if (!err && crowded)
			err = weft__flush(c);
		if (!err)
			weft__stack_ids_step(c);
	}
	if (!err)
		err = tend_engine(c, now);
	if (!err)
		err = tell_pauses(c);
	if (!err && now >= c->tended_ns + TEND_NS) {
		weft__drain_tend(c);
		c->tended_ns = now;
	}
	if (!err && now >= c->retained_ns + RETAIN_NS) {
		weft__segments_retain(&c->segments);
		c->retained_ns = now;
	}
	if (!err && c->staged_ns && now >= c->staged_ns + c->flush_ns)
		err = weft__flush(c);
	if (!err && (weft__segments_due(&c->segments, now) || weft__stack_ids_full(c)))
		err = weft__flush_seal(c);
	return err;
}

static uint64_t sooner(uint64_t now, uint64_t at, uint64_t due)
{
	uint64_t left = at > now ? at - now : 0;

	return left < due ? left : due;
}

/* Sleeps until something is due or a ring is half full. */
static void nap(struct weft__collector *c, uint64_t now)
{
	int idle = c->stuck_ns || c->starved;
	uint64_t due = idle ? RETRY_NS : sooner(now, c->drain_due_ns, c->drain_ns);
	struct timespec timeout;

	if (!idle && c->staged_ns)
		due = sooner(now, c->staged_ns + c->flush_ns, due);
	if (!idle && weft_gate_on())
		due = sooner(now, c->engine_due_ns, due);
	if (!idle && weft__stack_ids_crowded(c))
		due = due < CROWDED_NS ? due : CROWDED_NS;
	if (!idle && c->has_queues && weft_gate_on())
		due = sooner(now, c->queued_ns + c->queue_ns, due);
	timeout.tv_sec = (time_t)(due / 1000000000);
	timeout.tv_nsec = (long)(due % 1000000000);
	store_seq_cst(&weft__hot.asleep, 1u);
	/* What became half full while the collector worked did not wake it. */
	if ((idle || !weft__drain_pressing(c)) && load_acquire(&c->ask) == ASK_NOTHING)
		syscall(SYS_futex, &weft__hot.asleep, FUTEX_WAIT_PRIVATE, 1, &timeout, NULL, 0);
	store_seq_cst(&weft__hot.asleep, 0u);
}

static int finish(struct weft__collector *c)
{
	int err = weft__drain(c);

	if (!err) {
		pthread_mutex_lock(&c->mutex);
		if (c->paused_ns) {
			add_pause(c, WEFT_LOSS_PAUSED, c->paused_ns);
			c->paused_ns = weft__clock_mono();
		}
		pthread_mutex_unlock(&c->mutex);
		err = tell_pauses(c);
	}
	if (!err)
		err = count_samples(c, weft__clock_mono());
	if (!err && (c->segments.fd >= 0 || c->region->head->staging_used))
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
	c->stats.bytes = c->segments.total_bytes + (c->segments.fd >= 0 ? c->segments.writer.offset : 0);
	pthread_mutex_lock(&c->mutex);
	c->shown = c->stats;
	pthread_mutex_unlock(&c->mutex);
}

/* A short slice makes the scheduler run a thread soon after it wakes; it asks for no more CPU than any other. */
static void ask_for_short_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr;

	memset(&attr, 0, sizeof(attr));
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 || attr.policy != 0)
		return;
	attr.size = sizeof(attr);
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *collector_main(void *data)
{
	struct weft__collector *c = data;

	pthread_setname_np(pthread_self(), "weft-collector");
	ask_for_short_slice();
	c->has_queues = 1;
	for (;;) {
		uint64_t now = weft__clock_mono();
		enum weft__ask ask = load_acquire(&c->ask);
		int err = 0;

		c->starved = 0;
		if (ask != ASK_NOTHING) {
			err = finish(c);
			if (err)
				stick(c, err);
			c->cpu_read_ns = 0;
			show_stats(c, now);
			answer(c, err);
			if (ask == ASK_STOP)
				return NULL;
		} else if (c->stuck_ns) {
			unstick(c);
		} else {
			if (weft_gate_on() && now >= c->queued_ns + c->queue_ns)
				c->has_queues = sample_queues(c);
			err = tend(c, now);
			if (err)
				stick(c, err);
		}
		show_stats(c, now);
		nap(c, weft__clock_mono());
	}
}

int weft__collector_start(struct weft__collector *c)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	c->ask = ASK_NOTHING;
	err = pthread_create(&c->thread, NULL, collector_main, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		c->running = 1;
	return -err;
}

int weft__collector_ask(struct weft__collector *c, enum weft__ask what, char *path, size_t path_bytes)
{
	int err;

	pthread_mutex_lock(&c->mutex);
	store_release(&c->ask, what);
	weft__collector_wake();
	while (c->ask != ASK_NOTHING)
		pthread_cond_wait(&c->done, &c->mutex);
	err = c->answer;
	if (path && path_bytes)
		snprintf(path, path_bytes, "%s", c->answer_path);
	pthread_mutex_unlock(&c->mutex);
	if (what == ASK_STOP) {
		pthread_join(c->thread, NULL);
		c->running = 0;
	}
	return err;
}

void weft__collector_gate(struct weft__collector *c, uint32_t on, int pause)
{
	pthread_mutex_lock(&c->mutex);
	if (c->paused_ns && on) {
		add_pause(c, WEFT_LOSS_PAUSED, c->paused_ns);
		c->paused_ns = 0;
	}
	if (pause && c->want_on)
		c->paused_ns = weft__clock_mono();
	c->want_on = on;
	if (!on || !load_relaxed(&c->stuck_ns))
		gate_set(on);
	pthread_mutex_unlock(&c->mutex);
	if (on)
		weft__collector_wake(); /* it slept as one that has no queues to ask */
}
