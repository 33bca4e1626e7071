/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/track.h"

#include <errno.h>
#include <string.h>

#include "analyze/state.h"
#include "base/alloc.h"

#define KEEP_NS 1000000000u /* longer than any poll waits for its story */
#define LOG_MAX 65536u      /* stretches of one thread */
#define SWEEP_TRACKS 1024u
#define TRACKS_MORE 4096u /* than streams: threads that emit nothing, or have ended lately */
#define LATE_MAX 4096u    /* places that a stretch may come too late */

void *weft__ring_grow(void *ring, size_t *cap, uint64_t first, uint64_t n, size_t item_bytes)
{
	size_t more = *cap ? 2 * *cap : 64;
	char *grown;

	grown = weft__calloc(more, item_bytes);
	if (!grown)
		return NULL;
	for (; first < n; first++)
		memcpy(grown + (first & (more - 1)) * item_bytes, (char *)ring + (first & (*cap - 1)) * item_bytes,
		       item_bytes);
	weft__free(ring);
	*cap = more;
	return grown;
}

const struct weft__stream *weft__track_stream(const struct weft__analysis *a, const struct weft__track *track)
{
	uint32_t at = track->stream ? weft__map_get(&a->streams.by_id, track->stream) : WEFT__MAP_NONE;

	return at == WEFT__MAP_NONE ? NULL : &a->streams.at[at];
}

/* Gives back the tracks of threads that ended long ago. */
static int sweep(struct weft__analysis *a)
{
	size_t i;
	int rc;

	for (i = 0; i < a->tracks.n; i++) {
		struct weft__track *track = &a->tracks.at[i];

		if (!track->used || !track->ended_ns || weft__since(a->now_ns, track->ended_ns) < 2 * KEEP_NS)
			continue;
		rc = weft__story_settle(a, track, UINT64_MAX);
		if (rc == 0)
			rc = weft__times_run(a, track, UINT64_MAX);
		if (rc == 0 && a->opts.rows)
			rc = weft__rows_samples(a, track, track->n_log);
		if (rc < 0)
			return rc;
		weft__map_del(&a->tracks.by_tid, track->tid);
		a->tracks.n_stretches -= track->n_log;
		weft__track_fini(track);
		track->next_free = a->tracks.free;
		a->tracks.free = (uint32_t)i;
	}
	return 0;
}

static int new_track(struct weft__analysis *a, uint32_t *ret)
{
	struct weft__track *grown;
	int rc;

	if (a->tracks.n >= SWEEP_TRACKS && (a->tracks.n & (a->tracks.n - 1)) == 0 && a->tracks.free == NO_TRACK) {
		rc = sweep(a);
		if (rc < 0)
			return rc;
	}
	*ret = a->tracks.free;
	if (*ret != NO_TRACK) {
		a->tracks.free = a->tracks.at[*ret].next_free;
		return 0;
	}
	grown = weft__grow(a->tracks.at, &a->tracks.cap, a->tracks.n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->tracks.at = grown;
	*ret = (uint32_t)a->tracks.n++;
	memset(&grown[*ret], 0, sizeof(grown[*ret]));
	return 0;
}

int weft__track_get(struct weft__analysis *a, uint32_t tid, struct weft__track **ret)
{
	uint32_t at = weft__map_get(&a->tracks.by_tid, tid);
	int rc;

	*ret = NULL;
	if (at != WEFT__MAP_NONE) {
		*ret = &a->tracks.at[at];
		return 0;
	}
	if (a->tracks.by_tid.n >= a->opts.max_streams + TRACKS_MORE) {
		a->result.threads_untracked++;
		return 0;
	}
	rc = new_track(a, &at);
	if (rc < 0)
		return rc;
	memset(&a->tracks.at[at], 0, sizeof(a->tracks.at[at]));
	a->tracks.at[at].tid = tid;
	a->tracks.at[at].used = true;
	a->tracks.at[at].off_row = NO_ROW;
	a->tracks.at[at].n_changes = 1;
	a->tracks.at[at].stream = weft__names_stream(a->opts.names, tid);
	rc = weft__map_put(&a->tracks.by_tid, tid, at);
	if (rc == 0)
		*ret = &a->tracks.at[at];
	return rc;
}

struct weft__track *weft__track_find(struct weft__analysis *a, uint32_t tid)
{
	uint32_t at = weft__map_get(&a->tracks.by_tid, tid);

	return at == WEFT__MAP_NONE ? NULL : &a->tracks.at[at];
}

/* A stream whose thread nothing names has a track of its own, which no switch can find: tids have 22 bits. */
uint32_t weft__track_key(const struct weft__analysis *a, const struct weft__stream *s)
{
	const struct weft_thread *thread = weft__names_thread(a->opts.names, s->id);

	return thread && thread->tid ? thread->tid : UINT32_C(1) << 31 | s->id;
}

int weft__track_find_of(struct weft__analysis *a, struct weft__stream *s, struct weft__track **ret)
{
	const struct weft__stream *main;
	int rc = weft__track_get(a, weft__track_key(a, s), ret);

	if (rc < 0 || !*ret)
		return rc;
	s->track = (uint32_t)(*ret - a->tracks.at);
	main = weft__track_stream(a, *ret);
	if (!main || (s->polls && !main->polls)) {
		(*ret)->stream = s->id;
		(*ret)->ended_ns = 0;
	}
	return rc;
}

size_t weft__track_after(const struct weft__track *track, uint64_t ns)
{
	size_t low = 0, high = track->n_log;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (track->log[mid].end_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int drop(struct weft__analysis *a, struct weft__track *track, size_t n)
{
	int rc = a->opts.rows ? weft__rows_samples(a, track, n) : 0;

	if (n == 0)
		return rc;
	track->n_changes++;
	memmove(track->log, track->log + n, (track->n_log - n) * sizeof(*track->log));
	track->n_log -= n;
	a->tracks.n_stretches -= n;
	return rc;
}

/* What no poll needs any more goes. */
static int prune(struct weft__analysis *a, struct weft__track *track)
{
	const struct weft__stream *s = weft__track_stream(a, track);
	uint64_t keep_ns = a->now_ns > KEEP_NS ? a->now_ns - KEEP_NS : 0;
	int rc, dropped;

	if (s && s->n_open && s->open[0].begin_ns < keep_ns)
		keep_ns = s->open[0].begin_ns;
	if (track->first_closed < track->n_closed && weft__closed_at(track, track->first_closed)->begin_ns < keep_ns)
		keep_ns = weft__closed_at(track, track->first_closed)->begin_ns;
	rc = weft__times_run(a, track, keep_ns);
	dropped = drop(a, track, weft__track_after(track, keep_ns));
	return rc < 0 ? rc : dropped;
}

static int make_room(struct weft__analysis *a, struct weft__track *track)
{
	bool full = track->n_log >= LOG_MAX || a->tracks.n_stretches >= a->opts.max_stretches;
	struct weft__stretch *grown;
	size_t half;
	int rc;

	if (track->n_log < track->cap_log && !full)
		return 0;
	rc = prune(a, track);
	if (rc < 0)
		return rc;
	full = track->n_log >= LOG_MAX || a->tracks.n_stretches >= a->opts.max_stretches;
	if (full && track->n_log > 0) {
		half = (track->n_log + 1) / 2;
		track->cut_ns = track->log[half - 1].end_ns;
		a->result.stretches_cut += half;
		rc = weft__times_run(a, track, track->cut_ns);
		if (rc == 0)
			rc = drop(a, track, half);
		if (rc < 0)
			return rc;
	}
	if (track->n_log < track->cap_log - track->cap_log / 4)
		return 0;
	grown = weft__grow(track->log, &track->cap_log, track->cap_log, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	track->log = grown;
	return 0;
}

int weft__track_add(struct weft__analysis *a, struct weft__track *track, const struct weft__stretch *stretch)
{
	int rc = make_room(a, track);
	size_t at;

	if (rc < 0)
		return rc;
	for (at = track->n_log; at > 0 && track->log[at - 1].end_ns > stretch->end_ns; at--)
		if (track->n_log - at >= LATE_MAX) {
			a->result.stretches_late++;
			return a->opts.rows ? weft__rows_sample(a, stretch) : 0;
		}
	if (at < track->n_log)
		memmove(track->log + at + 1, track->log + at, (track->n_log - at) * sizeof(*track->log));
	track->log[at] = *stretch;
	track->n_changes++;
	track->n_log++;
	a->tracks.n_stretches++;
	return 0;
}

void weft__track_fini(struct weft__track *track)
{
	weft__free(track->log);
	weft__free(track->closed);
	weft__free(track->extras);
	weft__free(track->kept);
	memset(track, 0, sizeof(*track));
}

void weft__tracks_fini(struct weft__tracks *tracks)
{
	for (size_t i = 0; i < tracks->n; i++)
		weft__track_fini(&tracks->at[i]);
	weft__free(tracks->at);
	weft__map_fini(&tracks->by_tid);
}
