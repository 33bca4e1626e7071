/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/timeline.h"

#include <errno.h>
#include <string.h>

#include "analyze/state.h"

#define KEEP_NS 1000000000u /* longer than any poll waits for its breakdown */
#define LOG_MAX 65536u      /* intervals of one thread */
#define SWEEP_TIMELINES 1024u
#define TIMELINES_MORE 4096u /* than threads that emit: those that emit nothing, or have ended lately */
#define LATE_MAX 4096u       /* places that an interval may come too late */

void *weft__ring_grow(struct weft__thread_timelines *timelines, void *ring, size_t *cap, uint64_t first, uint64_t n,
		      size_t item_bytes)
{
	size_t more = *cap ? 2 * *cap : 64;
	char *grown;

	grown = weft__arena_new(&timelines->arena, more, item_bytes);
	if (!grown)
		return NULL;
	for (; first < n; first++)
		memcpy(grown + (first & (more - 1)) * item_bytes, (char *)ring + (first & (*cap - 1)) * item_bytes,
		       item_bytes);
	weft__arena_del(&timelines->arena, ring);
	*cap = more;
	return grown;
}

const struct weft__thread *weft__thread_timeline_owner(const struct weft__threads *threads,
						       const struct weft__thread_timeline *timeline)
{
	uint32_t at = timeline->thread_id ? weft__map_get(&threads->by_id, timeline->thread_id) : WEFT__MAP_NONE;

	return at == WEFT__MAP_NONE ? NULL : &threads->at[at];
}

/* Gives back the timelines of threads that ended long ago. */
static int sweep(struct weft__analysis *a)
{
	size_t i;
	int rc;

	for (i = 0; i < a->timelines.n; i++) {
		struct weft__thread_timeline *timeline = &a->timelines.at[i];

		if (!timeline->used || !timeline->ended_ns || weft__since(a->now_ns, timeline->ended_ns) < 2 * KEEP_NS)
			continue;
		rc = weft__breakdown_settle(a, timeline, UINT64_MAX);
		if (rc == 0)
			rc = weft__times_run(&a->gaps, &a->samples, timeline, UINT64_MAX);
		if (rc == 0 && a->opts.rows)
			rc = weft__rows_samples(&a->samples, timeline, timeline->n_log);
		if (rc < 0)
			return rc;
		weft__map_del(&a->timelines.by_tid, timeline->tid);
		a->timelines.n_intervals -= timeline->n_log;
		weft__thread_timeline_fini(&a->timelines, timeline);
		timeline->next_free = a->timelines.free;
		a->timelines.free = (uint32_t)i;
	}
	return 0;
}

static int new_timeline(struct weft__analysis *a, uint32_t *ret)
{
	struct weft__thread_timeline *grown;
	int rc;

	if (a->timelines.n >= SWEEP_TIMELINES && (a->timelines.n & (a->timelines.n - 1)) == 0 &&
	    a->timelines.free == NO_TIMELINE) {
		rc = sweep(a);
		if (rc < 0)
			return rc;
	}
	*ret = a->timelines.free;
	if (*ret != NO_TIMELINE) {
		a->timelines.free = a->timelines.at[*ret].next_free;
		return 0;
	}
	grown = weft__arena_grow(&a->timelines.arena, a->timelines.at, &a->timelines.cap, a->timelines.n,
				 sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->timelines.at = grown;
	*ret = (uint32_t)a->timelines.n++;
	memset(&grown[*ret], 0, sizeof(grown[*ret]));
	return 0;
}

int weft__thread_timeline_get(struct weft__analysis *a, uint32_t tid, struct weft__thread_timeline **ret)
{
	uint32_t at = weft__map_get(&a->timelines.by_tid, tid);
	int rc;

	*ret = NULL;
	if (at != WEFT__MAP_NONE) {
		*ret = &a->timelines.at[at];
		return 0;
	}
	if (a->timelines.by_tid.n >= a->opts.max_threads + TIMELINES_MORE) {
		a->result.untracked.threads++;
		return 0;
	}
	rc = new_timeline(a, &at);
	if (rc < 0)
		return rc;
	memset(&a->timelines.at[at], 0, sizeof(a->timelines.at[at]));
	a->timelines.at[at].tid = tid;
	a->timelines.at[at].used = true;
	a->timelines.at[at].off_row = NO_ROW;
	a->timelines.at[at].n_changes = 1;
	a->timelines.at[at].thread_id = weft__names_thread_of(a->opts.names, tid);
	rc = weft__map_put(&a->timelines.by_tid, tid, at);
	if (rc == 0)
		*ret = &a->timelines.at[at];
	return rc;
}

struct weft__thread_timeline *weft__thread_timeline_find(struct weft__thread_timelines *timelines, uint32_t tid)
{
	uint32_t at = weft__map_get(&timelines->by_tid, tid);

	return at == WEFT__MAP_NONE ? NULL : &timelines->at[at];
}

/* A thread that nothing names has a timeline of its own, which no switch can find: tids have 22 bits. */
uint32_t weft__thread_timeline_key(const struct weft__analysis_opts *opts, const struct weft__thread *s)
{
	const struct weft_thread *thread = weft__names_thread(opts->names, s->id);

	return thread && thread->tid ? thread->tid : UINT32_C(1) << 31 | s->id;
}

int weft__thread_timeline_find_of(struct weft__analysis *a, struct weft__thread *s, struct weft__thread_timeline **ret)
{
	const struct weft__thread *main;
	int rc = weft__thread_timeline_get(a, weft__thread_timeline_key(&a->opts, s), ret);

	if (rc < 0 || !*ret)
		return rc;
	s->timeline = (uint32_t)(*ret - a->timelines.at);
	main = weft__thread_timeline_owner(&a->threads, *ret);
	if (!main || (s->polls && !main->polls)) {
		(*ret)->thread_id = s->id;
		(*ret)->ended_ns = 0;
	}
	return rc;
}

size_t weft__thread_timeline_after(const struct weft__thread_timeline *timeline, uint64_t ns)
{
	size_t low = 0, high = timeline->n_log;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (timeline->log[mid].end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int drop(struct weft__thread_timelines *timelines, struct weft__sampling *samples,
		struct weft__thread_timeline *timeline, size_t n)
{
	int rc = timelines->opts->rows ? weft__rows_samples(samples, timeline, n) : 0;

	if (n == 0)
		return rc;
	timeline->n_changes++;
	memmove(timeline->log, timeline->log + n, (timeline->n_log - n) * sizeof(*timeline->log));
	timeline->n_log -= n;
	timelines->n_intervals -= n;
	return rc;
}

/* What no poll needs any more goes. */
static int prune(struct weft__analysis *a, struct weft__thread_timeline *timeline)
{
	const struct weft__thread *s = weft__thread_timeline_owner(&a->threads, timeline);
	uint64_t keep_ns = a->now_ns > KEEP_NS ? a->now_ns - KEEP_NS : 0;
	int rc, dropped;

	if (s && s->n_open && s->open[0].begin_ns < keep_ns)
		keep_ns = s->open[0].begin_ns;
	if (timeline->first_closed < timeline->n_closed &&
	    weft__closed_at(timeline, timeline->first_closed)->begin_ns < keep_ns)
		keep_ns = weft__closed_at(timeline, timeline->first_closed)->begin_ns;
	rc = weft__times_run(&a->gaps, &a->samples, timeline, keep_ns);
	dropped = drop(&a->timelines, &a->samples, timeline, weft__thread_timeline_after(timeline, keep_ns));
	return rc < 0 ? rc : dropped;
}

static int make_room(struct weft__analysis *a, struct weft__thread_timeline *timeline)
{
	bool full = timeline->n_log >= LOG_MAX || a->timelines.n_intervals >= a->opts.max_intervals;
	struct weft__interval *grown;
	size_t half;
	int rc;

	if (timeline->n_log < timeline->cap_log && !full)
		return 0;
	rc = prune(a, timeline);
	if (rc < 0)
		return rc;
	full = timeline->n_log >= LOG_MAX || a->timelines.n_intervals >= a->opts.max_intervals;
	if (full && timeline->n_log > 0) {
		half = (timeline->n_log + 1) / 2;
		timeline->cut_ns = timeline->log[half - 1].end_ns;
		a->result.untracked.intervals_cut += half;
		rc = weft__times_run(&a->gaps, &a->samples, timeline, timeline->cut_ns);
		if (rc == 0)
			rc = drop(&a->timelines, &a->samples, timeline, half);
		if (rc < 0)
			return rc;
	}
	if (timeline->n_log < timeline->cap_log - timeline->cap_log / 4)
		return 0;
	grown = weft__arena_grow(&a->timelines.arena, timeline->log, &timeline->cap_log, timeline->cap_log,
				 sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	timeline->log = grown;
	return 0;
}

int weft__thread_timeline_add(struct weft__analysis *a, struct weft__thread_timeline *timeline,
			      const struct weft__interval *interval)
{
	int rc = make_room(a, timeline);
	size_t at;

	if (rc < 0)
		return rc;
	for (at = timeline->n_log; at > 0 && timeline->log[at - 1].end_ns > interval->end_ns; at--)
		if (timeline->n_log - at >= LATE_MAX) {
			a->result.untracked.intervals_late++;
			return a->opts.rows ? weft__rows_sample(&a->samples, interval) : 0;
		}
	if (at < timeline->n_log)
		memmove(timeline->log + at + 1, timeline->log + at, (timeline->n_log - at) * sizeof(*timeline->log));
	timeline->log[at] = *interval;
	timeline->n_changes++;
	timeline->n_log++;
	a->timelines.n_intervals++;
	return 0;
}

void weft__thread_timeline_fini(struct weft__thread_timelines *timelines, struct weft__thread_timeline *timeline)
{
	weft__arena_del(&timelines->arena, timeline->log);
	weft__arena_del(&timelines->arena, timeline->closed);
	weft__arena_del(&timelines->arena, timeline->extras);
	weft__arena_del(&timelines->arena, timeline->kept);
	weft__arena_del(&timelines->arena, timeline->kept_contexts);
	memset(timeline, 0, sizeof(*timeline));
}

void weft__thread_timelines_fini(struct weft__thread_timelines *timelines)
{
	weft__map_fini(&timelines->by_tid);
	weft__arena_fini(&timelines->arena);
}
