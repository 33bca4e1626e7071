/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/error.h"
#include "segment/reader.h"
#include "ship/url.h"

#define SECOND UINT64_C(1000000000)
#define BUSY_NS (5 * SECOND)   /* until it is looked again whether the other process still sends */
#define NAMES_NS (60 * SECOND) /* that a segment waits for names of functions, when its process puts them there */
#define LOOK_NS (30 * SECOND)  /* segments of other processes are noticed so soon */

int weft__worker_open(struct weft__worker *w, const struct weft__worker_opts *opts, struct weft_error *err)
{
	int r;

	memset(w, 0, sizeof(*w));
	w->opts = *opts;
	r = weft__target_open(&w->target, &opts->target, err);
	if (r)
		return r;
	weft__spool_init(&w->spool, opts->dir, w->target.tag);
	w->spool.age_ns = opts->age_ns;
	w->spool.again = opts->again;
	w->backoff.random = weft__clock_mono() ^ (uint64_t)getpid() << 32;
	for (; opts->delete &&opts->all_urls[w->n_tags] && w->n_tags < WORKER_TARGETS; w->n_tags++)
		weft__url_tag(opts->all_urls[w->n_tags], w->tags[w->n_tags]);
	return 0;
}

void weft__worker_close(struct weft__worker *w)
{
	weft__spool_fini(&w->spool);
	weft__target_close(&w->target);
}

static int is_stopping(const struct weft__worker *w)
{
	return w->opts.target.stop && load_relaxed(w->opts.target.stop);
}

/* Whether the process that made it is about to put names into it. */
static int awaits_names(const struct weft__spooled *one, struct weft_segment *segment)
{
	const char *wanted = weft_segment_fact(segment, "symbolize");
	uint64_t now = weft__clock_real();
	size_t symbols, stacks;

	weft_segment_symbols(segment, &symbols);
	weft_segment_stacks(segment, &stacks);
	if (!wanted || strcmp(wanted, "wanted") != 0 || symbols || !stacks)
		return 0;
	return now < one->time_ns + NAMES_NS && one->time_ns < now + NAMES_NS; /* unless the clock was set */
}

/* 1: later. */
static int give(struct weft__worker *w, int dir, const struct weft__spooled *one, struct weft__verdict *v)
{
	char path[PATH_MAX];
	struct weft__parcel parcel = {.fd = weft__dir_file(dir, one->name, O_RDONLY), .name = one->name, .path = path};
	struct weft_error err = {0};
	struct stat st;
	int later = 0;

	if (parcel.fd < 0) { /* retention has deleted it */
		weft__verdict(v, PARCEL_REFUSED, "%s", weft_strerror(parcel.fd));
		return 1;
	}
	snprintf(path, sizeof(path), "%s/%s", w->opts.dir, one->name);
	if (fstat(parcel.fd, &st) == 0)
		parcel.bytes = (uint64_t)st.st_size;
	if (weft__segment_open_at(&parcel.segment, dir, one->name, path, &err) < 0)
		weft__verdict(v, PARCEL_REFUSED, "%s", err.msg);
	else if (awaits_names(one, parcel.segment))
		later = 1;
	else
		weft__target_send(&w->target, &parcel, v);
	if (v->outcome == PARCEL_SENT && !later)
		w->state.bytes += parcel.bytes;
	weft_segment_close(parcel.segment);
	close(parcel.fd);
	return later;
}

static void delete_if_all_have_it(const struct weft__worker *w, int dir, const char *name)
{
	uint32_t i;

	for (i = 0; i < w->n_tags; i++)
		if (!weft__spool_has(dir, name, w->tags[i]))
			return;
	if (w->n_tags)
		weft__spool_remove(dir, name);
}

static void note_sent(struct weft__worker *w, int dir, const struct weft__spooled *one)
{
	int r = weft__spool_sent(&w->spool, dir, one->name);

	w->state.sent++;
	w->state.waiting -= w->state.waiting > 0;
	w->state.sent_real_ns = weft__clock_real();
	w->state.failing = w->state.broken = 0;
	w->state.reached = 1;
	w->state.why[0] = 0;
	weft__backoff_good(&w->backoff);
	if (r) /* it will be sent again, under the same name */
		weft__log(WEFT_LOG_WARN, "ship: %s was sent to %s, which cannot be noted: %s", one->name,
			  w->target.shown, weft_strerror(r));
	else if (w->opts.delete)
		delete_if_all_have_it(w, dir, one->name);
}

static void note_refused(struct weft__worker *w, int dir, const struct weft__spooled *one, const char *why)
{
	weft__spool_refused(&w->spool, dir, one, why);
	w->state.retries++;
	if (one->tries + 1 == SPOOL_TRIES) {
		w->state.refused++;
		w->state.waiting -= w->state.waiting > 0;
	}
	snprintf(w->state.why, sizeof(w->state.why), "%s", why);
	weft__log(WEFT_LOG_WARN, "ship: %s refuses %s: %s", w->target.shown, one->name, why);
}

/* The first failure is logged, and then only when the circuit opens. */
static void note_failed(struct weft__worker *w, const struct weft__verdict *v, uint64_t now_ns)
{
	uint64_t until = weft__backoff_fail(&w->backoff, now_ns, v->retry_after_ns);

	w->state.retries++;
	w->state.failing = 1;
	w->state.broken = (uint32_t)weft__backoff_open(&w->backoff);
	snprintf(w->state.why, sizeof(w->state.why), "%s", v->why);
	if (w->backoff.failures == 1 || w->backoff.failures == BACKOFF_BREAKS)
		weft__log(WEFT_LOG_WARN, "ship: %s: %s; tried again in %llu s, segments wait in %s", w->target.shown,
			  v->why, (unsigned long long)((until - now_ns) / SECOND), w->opts.dir);
}

/* Says at the start what would else be known when the first segment is sealed. */
static void try_to_reach(struct weft__worker *w)
{
	struct weft_error err = {0};
	int r;

	if (!w->opts.reach || w->state.reached || !w->target.kind->reach)
		return;
	r = w->target.kind->reach(&w->target, &err);
	if (r == -ECANCELED)
		return;
	if (r && !w->state.failing)
		weft__log(WEFT_LOG_WARN, "ship: %s cannot be reached: %s; segments will wait in %s", w->target.shown,
			  err.msg, w->opts.dir);
	w->state.reached = !r;
	w->state.failing = r != 0;
	w->state.why[0] = 0;
	if (r)
		snprintf(w->state.why, sizeof(w->state.why), "cannot be reached: %.200s", err.msg);
}

/* 0, or what keeps from going on. */
static enum weft__outcome send_one(struct weft__worker *w, int dir, const struct weft__spooled *one, uint64_t now_ns)
{
	struct weft__verdict v = {.outcome = PARCEL_SENT};

	if (give(w, dir, one, &v))
		return PARCEL_SENT;
	switch (v.outcome) {
	case PARCEL_SENT:
		note_sent(w, dir, one);
		break;
	case PARCEL_REFUSED:
		note_refused(w, dir, one, v.why);
		break;
	case PARCEL_RETRY:
		note_failed(w, &v, now_ns);
		break;
	case PARCEL_STOPPED:
		return PARCEL_STOPPED;
	}
	if (w->opts.sent)
		w->opts.sent(w->opts.data, one->name, &v);
	return v.outcome == PARCEL_RETRY ? PARCEL_RETRY : PARCEL_SENT;
}

static uint64_t send_all(struct weft__worker *w, int dir, uint64_t now_ns)
{
	struct weft__spooled *all = NULL;
	struct weft_error err = {0};
	uint64_t real = weft__clock_real();
	enum weft__outcome got = PARCEL_SENT;
	size_t n = 0, i;

	if (weft__spool_list(&w->spool, dir, w->opts.only, &all, &n, &err) < 0)
		snprintf(w->state.why, sizeof(w->state.why), "%.239s", err.msg);
	w->state.waiting = n;
	if (!n)
		try_to_reach(w);
	for (i = 0; i < n && got == PARCEL_SENT && !is_stopping(w); i++)
		if (all[i].due_ns <= real)
			got = send_one(w, dir, &all[i], now_ns);
	weft__free(all);
	if (got == PARCEL_RETRY)
		return w->backoff.until_ns;
	return now_ns + (w->state.waiting ? SECOND : LOOK_NS);
}

uint64_t weft__worker_turn(struct weft__worker *w, uint64_t now_ns)
{
	struct weft_error err = {0};
	uint64_t due;
	int r, dir;

	if (now_ns < w->backoff.until_ns)
		return w->backoff.until_ns;
	r = weft__spool_lock(&w->spool, &err);
	w->state.busy = r == -WEFT_E_BUSY;
	dir = r ? r : weft__spool_dir(&w->spool, &err);
	if (dir < 0) {
		snprintf(w->state.why, sizeof(w->state.why), "%.239s", w->state.busy ? "" : err.msg);
		return now_ns + BUSY_NS;
	}
	due = send_all(w, dir, now_ns);
	close(dir);
	return due;
}
