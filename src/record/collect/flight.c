/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/flight.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "record/collect/dump.h"
#include "record/ring/ring.h"
#include "record/trigger.h"

#define SLICES 8
#define SLICE_MIN_NS UINT64_C(1000000000)
#define SLICE_MAX_NS UINT64_C(10000000000)
#define SLICE_MIN_BYTES 4096
#define DUMP_RETRY_NS UINT64_C(1000000000)

/* Makes `c->segments` keep slices in memory. */
static void flight_setup(struct weft__collector *c, const struct weft__timeline *line,
			 const struct weft_recorder_opts *o)
{
	struct weft__flight *f = &c->flight;
	uint64_t slice = o->flight_ns / SLICES;

	(void)line;
	f->draft.fd = -1;
	if (!o->flight_ns)
		return;
	f->dir = o->dir;
	f->span_ns = o->flight_ns;
	f->quiet_ns = o->trigger_quiet_ns;
	f->forward_ns = o->trigger_forward_ns;
	f->keep_bytes = o->keep_bytes;
	f->keep_ns = o->keep_ns;
	c->segments.dir = NULL;
	c->segments.segment_ns = slice < SLICE_MIN_NS ? SLICE_MIN_NS : slice > SLICE_MAX_NS ? SLICE_MAX_NS : slice;
	c->segments.segment_bytes =
		o->segment_bytes / SLICES > SLICE_MIN_BYTES ? o->segment_bytes / SLICES : SLICE_MIN_BYTES;
	c->segments.keep_bytes = o->segment_bytes;
	c->segments.keep_ns = f->span_ns;
}

/* Slices that somebody has asked for stay until it is written. */
static void keep_slices(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__flight *f = &c->flight;
	uint64_t oldest = now_ns - f->span_ns;
	const struct weft__dump *dump;

	if (f->trigger.until_ns && f->trigger.from_ns < oldest)
		oldest = f->trigger.from_ns;
	pthread_mutex_lock(&c->mutex);
	for (dump = f->asked; dump; dump = dump->next)
		if (dump->from_ns < oldest)
			oldest = dump->from_ns;
	pthread_mutex_unlock(&c->mutex);
	c->segments.keep_ns = now_ns - oldest;
}

static void hear(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__flight *f = &c->flight;
	struct weft__dump *dump = &f->trigger;
	struct weft__triggered what;
	uint32_t n;
	enum weft__trigger why = weft__trigger_take(&what, &n);

	if (why == WEFT__TRIGGER_NONE)
		return;
	if (dump->until_ns || now_ns < f->quiet_until_ns) {
		f->unheard += n;
		return;
	}
	f->unheard += n - 1;
	dump->from_ns = now_ns > f->span_ns ? now_ns - f->span_ns : 0;
	dump->until_ns = now_ns + f->forward_ns;
	if (why == WEFT__TRIGGER_SIGNAL)
		snprintf(dump->why, sizeof(dump->why), "signal %d", what.signal);
	else
		snprintf(dump->why, sizeof(dump->why), "poll of task %llu in thread %u took %.3f ms",
			 (unsigned long long)what.task, what.tid, (double)what.ns / 1e6);
}

/* The first that callers wait for and that is due. */
static struct weft__dump *asked_and_due(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__dump *dump;

	pthread_mutex_lock(&c->mutex);
	for (dump = c->flight.asked; dump && dump->until_ns > now_ns; dump = dump->next)
		;
	pthread_mutex_unlock(&c->mutex);
	return dump;
}

static int trigger_due(const struct weft__flight *f, uint64_t now_ns)
{
	return f->trigger.until_ns && f->trigger.until_ns <= now_ns && now_ns >= f->retry_ns;
}

/* One that is not over, and of which something is to be on the disk. */
static struct weft__dump *draft_due(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__flight *f = &c->flight;
	struct weft__dump *dump;

	if (f->draft.of || now_ns < f->draft_ns)
		return NULL;
	if (f->trigger.until_ns > now_ns)
		return &f->trigger;
	pthread_mutex_lock(&c->mutex);
	for (dump = f->asked; dump && dump->until_ns <= now_ns; dump = dump->next)
		;
	pthread_mutex_unlock(&c->mutex);
	return dump;
}

/* Whether a dump is to be written now. Hears triggers. */
static int dump_due(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__flight *f = &c->flight;

	hear(c, now_ns);
	keep_slices(c, now_ns);
	return trigger_due(f, now_ns) || asked_and_due(c, now_ns) || draft_due(c, now_ns);
}

static void write_dump(struct weft__collector *c, struct weft__dump *dump, int err, int last)
{
	struct weft__flight *f = &c->flight;
	uint64_t now = weft__clock_mono();

	if (err && !(last && f->draft.of == dump)) /* what came after the draft is lost, the draft is not */
		dump->err = err;
	else
		dump->err = weft__dump_write(c, dump);
	if (dump->err)
		return;
	f->n_dumps++;
	f->unheard = 0;
	f->quiet_until_ns = f->quiet_ns < UINT64_MAX - now ? now + f->quiet_ns : UINT64_MAX;
}

/* Of a dump that could not be written. */
static void end_draft(struct weft__collector *c, const struct weft__dump *dump)
{
	if (c->flight.draft.of == dump)
		weft__draft_discard(c);
}

/* A full disk may have room again as long as there is something to write. */
static void write_triggered(struct weft__collector *c, uint64_t now_ns, int err, int last)
{
	struct weft__flight *f = &c->flight;
	struct weft__dump *dump = &f->trigger;

	write_dump(c, dump, err, last);
	if (dump->err && !last && now_ns < dump->until_ns + f->span_ns) {
		if (!f->retry_ns)
			weft__log(WEFT_LOG_WARN, "%s: cannot write a dump (%s): %s; trying again", f->dir, dump->why,
				  weft_strerror(dump->err));
		store_relaxed(&f->retry_ns, now_ns + DUMP_RETRY_NS);
		return;
	}
	if (dump->err)
		weft__log(WEFT_LOG_ERROR, "%s: no dump (%s): %s", f->dir, dump->why, weft_strerror(dump->err));
	else
		weft__log(WEFT_LOG_INFO, "%s: %s", dump->path, dump->why);
	end_draft(c, dump);
	dump->until_ns = 0;
	store_relaxed(&f->retry_ns, 0);
}

static void report_asker(struct weft__collector *c, struct weft__dump *dump)
{
	struct weft__dump **at;

	pthread_mutex_lock(&c->mutex);
	for (at = &c->flight.asked; *at != dump; at = &(*at)->next)
		;
	*at = dump->next;
	dump->done = 1;
	c->shown.dumps = c->stats.dumps = c->flight.n_dumps;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->mutex);
}

/* Writes what is due, with `err` of the sealing; `last`: all of it, since the collector ends. */
static void flight_write(struct weft__collector *c, uint64_t now_ns, int err, int last)
{
	struct weft__flight *f = &c->flight;
	struct weft__dump *dump;

	if (last && !f->trigger.until_ns)
		hear(c, now_ns);
	if (trigger_due(f, now_ns) || (last && f->trigger.until_ns))
		write_triggered(c, now_ns, err, last);
	while ((dump = asked_and_due(c, last ? UINT64_MAX : now_ns))) {
		write_dump(c, dump, err, last);
		end_draft(c, dump);
		report_asker(c, dump);
	}
	c->stats.dumps = f->n_dumps;
	dump = last ? NULL : draft_due(c, now_ns);
	if (dump && (err || weft__draft_begin(c, dump)))
		f->draft_ns = now_ns + DUMP_RETRY_NS;
}

void weft__flight_follow(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__flight *f = &c->flight;

	if (f->draft.of && now_ns >= f->draft_ns && weft__draft_more(c))
		f->draft_ns = now_ns + DUMP_RETRY_NS;
}

static void flight_fork(enum weft__source_fork when, struct weft__collector *c)
{
	if (when == SOURCE_CHILD && c && c->flight.dir)
		weft__draft_forked(&c->flight.draft);
}

/* Triggers are heard whenever the collector is awake. */
static uint64_t flight_due(const struct weft__turn *turn)
{
	struct weft__collector *c = turn->collector;
	struct weft__flight *f = &c->flight;
	uint64_t next = UINT64_MAX;
	const struct weft__dump *dump;

	if (!f->dir)
		return next;
	if (turn->awake)
		return 0;
	if (weft__trigger_waits())
		return 0;
	if (f->trigger.until_ns)
		next = f->retry_ns > f->trigger.until_ns ? f->retry_ns : f->trigger.until_ns;
	pthread_mutex_lock(&c->mutex);
	for (dump = f->asked; dump; dump = dump->next)
		if (dump->until_ns < next)
			next = dump->until_ns;
	pthread_mutex_unlock(&c->mutex);
	return next;
}

static void hold(struct weft__collector *c, struct weft__dump *dump)
{
	pthread_mutex_lock(&c->mutex);
	dump->next = c->flight.asked;
	c->flight.asked = dump;
	c->flight.n_waiting++;
	pthread_mutex_unlock(&c->mutex);
	weft__collector_wake();
}

int weft__flight_ask(struct weft__collector *c, struct weft__dump *dump, uint64_t back_ns, uint64_t forward_ns)
{
	uint64_t now = weft__clock_mono();

	if (!back_ns || back_ns > c->flight.span_ns)
		back_ns = c->flight.span_ns;
	dump->from_ns = now > back_ns ? now - back_ns : 0;
	dump->until_ns = forward_ns < UINT64_MAX - now ? now + forward_ns : UINT64_MAX - 1;
	if (c->running) {
		hold(c, dump);
		return 1;
	}
	write_dump(c, dump, 0, 0);
	c->shown.dumps = c->stats.dumps = c->flight.n_dumps;
	return dump->err;
}

int weft__flight_wait(struct weft__collector *c, struct weft__dump *dump)
{
	pthread_mutex_lock(&c->mutex);
	while (!dump->done)
		pthread_cond_wait(&c->done, &c->mutex);
	c->flight.n_waiting--;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->mutex);
	return dump->err;
}

/* What was recorded so far is sealed before it is written. */
static int flight_turn(const struct weft__turn *turn)
{
	struct weft__collector *c = turn->collector;
	int err = turn->err;

	if (!dump_due(c, turn->now_ns))
		return SOURCE_NOTHING;
	if (!err)
		err = c->stuck_ns ? c->stuck_err : weft__round_finish(c, 0);
	flight_write(c, turn->now_ns, err, 0);
	return c->stuck_ns ? SOURCE_NOTHING : err;
}

static int flight_finish(const struct weft__turn *turn)
{
	if (turn->collector->flight.dir)
		flight_write(turn->collector, turn->now_ns, turn->err, 1);
	return SOURCE_NOTHING;
}

/* Waits until nobody waits any more: after this the collector's memory may go. */
static void flight_close(struct weft__collector *c)
{
	if (!c || !c->flight.dir)
		return;
	pthread_mutex_lock(&c->mutex);
	while (c->flight.n_waiting)
		pthread_cond_wait(&c->done, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
}

const struct weft__source weft__flight_source = {
	.name = "flight",
	.what = "flight recorder",
	.stage = SOURCE_LATE,
	.setup = flight_setup,
	.close = flight_close,
	.fork = flight_fork,
	.due = flight_due,
	.turn = flight_turn,
	.finish = flight_finish,
};
