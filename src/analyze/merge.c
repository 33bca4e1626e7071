/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a recording in order of time. A thread's last events before a rotation may be younger than another's
 * first after it, so neighbouring segments overlap a little: a segment is opened as soon as time reaches its first
 * event, and closed when it has no more. Mostly one is open, at times two. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/recording.h"
#include "base/alloc.h"
#include "segment/reader.h"

#define PROGRESS_EVENTS (1u << 20)

struct source {
	struct weft__file *file;
	struct weft_segment *seg;
	struct weft_cursor *cursor;
	const struct weft__record *at, *end; /* the next events */
};

struct waiting {
	struct weft__file *file;
};

struct weft__merge {
	struct source *open;
	size_t n_open, cap_open;
	struct waiting *waiting; /* by first event */
	size_t n_waiting, next_waiting;
	uint64_t from_ns, to_ns;
	struct source *given; /* whose events the caller has; NULL: none */
};

static int waiting_order(const void *left, const void *right)
{
	const struct weft__file *a = ((const struct waiting *)left)->file, *b = ((const struct waiting *)right)->file;

	if (a->info.first_ns != b->info.first_ns)
		return a->info.first_ns < b->info.first_ns ? -1 : 1;
	return a->info.sequence < b->info.sequence ? -1 : a->info.sequence > b->info.sequence;
}

static int note_damage(struct source *source)
{
	struct weft_damage damage = weft_segment_damage(source->seg);

	source->file->damaged_places = damage.places;
	source->file->missing_bytes = damage.missing_bytes;
	if (damage.places == 0 || source->file->damage)
		return 0;
	source->file->damage = weft__strdup(damage.text);
	return source->file->damage ? 0 : -ENOMEM;
}

static int source_close(struct source *source)
{
	int rc = source->seg ? note_damage(source) : 0;

	weft_cursor_close(source->cursor);
	weft_segment_close(source->seg);
	return rc;
}

/* The recorder seals a segment by renaming it, perhaps since it was listed. */
static int reopen(struct weft__file *file, struct weft_segment **seg)
{
	static const char active[] = ".active";
	size_t n = strlen(file->path), m = sizeof(active) - 1;
	int rc = weft_segment_open(seg, file->path, NULL);

	if (rc != -ENOENT || n <= m || strcmp(file->path + n - m, active) != 0)
		return rc;
	file->path[n - m] = 0;
	return weft_segment_open(seg, file->path, NULL);
}

static int source_open(struct weft__merge *merge, struct weft__file *file)
{
	struct source *grown = weft__grow(merge->open, &merge->cap_open, merge->n_open, sizeof(*grown)), source = {0};
	int rc;

	if (!grown)
		return -ENOMEM;
	merge->open = grown;
	source.file = file;
	rc = reopen(file, &source.seg);
	if (rc == 0)
		rc = weft_cursor_open(&source.cursor, source.seg, WEFT_ORDER_TIME, merge->from_ns, merge->to_ns, NULL);
	if (rc == 0)
		rc = weft__cursor_run(source.cursor, &source.at, &source.end);
	if (rc > 0) {
		merge->open[merge->n_open++] = source;
		return 0;
	}
	if (rc < 0 && rc != -ENOMEM) {
		file->status = rc;
		rc = 0;
	}
	return source_close(&source) < 0 ? -ENOMEM : rc;
}

static bool comes_before(const struct source *a, const struct source *b)
{
	if (a->at->time_ns != b->at->time_ns)
		return a->at->time_ns < b->at->time_ns;
	if (a->at->thread != b->at->thread)
		return a->at->thread < b->at->thread;
	return a->file->info.sequence < b->file->info.sequence;
}

/* The source of the next event, NULL at the end. */
static int next_source(struct weft__merge *merge, struct source **ret)
{
	for (;;) {
		struct source *best = NULL;
		size_t i;
		int rc;

		for (i = 0; i < merge->n_open; i++)
			if (!best || comes_before(&merge->open[i], best))
				best = &merge->open[i];
		if (merge->next_waiting == merge->n_waiting ||
		    (best && merge->waiting[merge->next_waiting].file->info.first_ns > best->at->time_ns)) {
			*ret = best;
			return 0;
		}
		rc = source_open(merge, merge->waiting[merge->next_waiting++].file);
		if (rc < 0)
			return rc;
	}
}

int weft__merge_open(struct weft__merge **ret, struct weft__recording *rec, uint64_t from_ns, uint64_t to_ns)
{
	struct weft__merge *merge = weft__calloc(1, sizeof(*merge));
	size_t i;

	if (!merge)
		return -ENOMEM;
	merge->from_ns = from_ns;
	merge->to_ns = to_ns;
	merge->waiting = weft__calloc(rec->n_files, sizeof(*merge->waiting));
	if (!merge->waiting) {
		weft__free(merge);
		return -ENOMEM;
	}
	for (i = 0; i < rec->n_files; i++)
		merge->waiting[merge->n_waiting++].file = &rec->files[i];
	if (merge->n_waiting)
		qsort(merge->waiting, merge->n_waiting, sizeof(*merge->waiting), waiting_order);
	*ret = merge;
	return 0;
}

/* Past the events that were given last. */
static int pass(struct weft__merge *merge)
{
	struct source *source = merge->given;
	int rc;

	merge->given = NULL;
	if (!source || source->at < source->end)
		return 0;
	rc = weft__cursor_run(source->cursor, &source->at, &source->end);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = source_close(source);
	*source = merge->open[--merge->n_open];
	return rc;
}

/* The end of those events of a source that come before all events of other sources. The first one does. */
static const struct weft__record *end_of_run(const struct weft__merge *merge, const struct source *source)
{
	const struct weft__record *end = source->at + 1;
	uint64_t below_ns = UINT64_MAX;
	size_t i;

	if (merge->next_waiting < merge->n_waiting)
		below_ns = merge->waiting[merge->next_waiting].file->info.first_ns;
	for (i = 0; i < merge->n_open; i++)
		if (&merge->open[i] != source && merge->open[i].at->time_ns < below_ns)
			below_ns = merge->open[i].at->time_ns;
	if (source->end[-1].time_ns < below_ns)
		return source->end;
	while (end < source->end && end->time_ns < below_ns)
		end++;
	return end;
}

int weft__merge_next(struct weft__merge *merge, const struct weft__record **ret, const struct weft__record **end)
{
	struct source *source = NULL;
	int rc = pass(merge);

	if (rc == 0)
		rc = next_source(merge, &source);
	if (rc < 0 || !source)
		return rc;
	merge->given = source;
	*ret = source->at;
	*end = source->at = end_of_run(merge, source);
	return 1;
}

int weft__merge_close(struct weft__merge *merge)
{
	size_t i;
	int rc = 0;

	if (!merge)
		return 0;
	for (i = 0; i < merge->n_open; i++)
		if (source_close(&merge->open[i]) < 0)
			rc = -ENOMEM;
	weft__free(merge->open);
	weft__free(merge->waiting);
	weft__free(merge);
	return rc;
}

static int want_objects(struct weft__frames *frames, struct weft_segment *seg)
{
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	int rc = weft_cursor_open(&cursor, seg, WEFT_ORDER_STORED, 0, UINT64_MAX, NULL);

	while (rc >= 0 && (rc = weft_cursor_next(cursor, &ev)) > 0) {
		if (ev.kind == WEFT_KIND_WAIT && ev.n_fields > WEFT_FIELD_WAIT_OBJECT)
			weft__frames_want_object(frames, (uint32_t)ev.fields[WEFT_FIELD_WAIT_WHAT],
						 ev.fields[WEFT_FIELD_WAIT_OBJECT]);
		else if (ev.kind == WEFT_KIND_PENDING && ev.n_fields > WEFT_FIELD_PENDING_OBJECT)
			weft__frames_want_object(frames, (uint32_t)ev.fields[WEFT_FIELD_PENDING_WHAT],
						 ev.fields[WEFT_FIELD_PENDING_OBJECT]);
	}
	weft_cursor_close(cursor);
	return rc;
}

int weft__recording_want_objects(struct weft__recording *rec)
{
	struct weft_segment *seg;
	size_t i;
	int rc;

	for (i = 0; i < rec->n_files; i++) {
		if (reopen(&rec->files[i], &seg) < 0)
			continue; /* who reads its events says why */
		rc = want_objects(&rec->frames, seg);
		weft_segment_close(seg);
		if (rc == -ENOMEM)
			return rc;
	}
	return 0;
}

static int each(const struct weft__events_ops *ops, const struct weft__record *at, const struct weft__record *end)
{
	int rc = 0;

	for (; at < end && rc >= 0; at++) {
		struct weft__event ev = weft__event_of_record(at);

		rc = ops->event(ops->data, &ev);
	}
	return rc;
}

int weft__recording_events(struct weft__recording *rec, uint64_t from_ns, uint64_t to_ns,
			   const struct weft__events_ops *ops)
{
	const struct weft__record *at = NULL, *end = NULL;
	struct weft__merge *merge;
	uint64_t n_events = 0, before;
	int rc = weft__merge_open(&merge, rec, from_ns, to_ns), closed;

	if (rc < 0)
		return rc;
	while (rc >= 0 && (rc = weft__merge_next(merge, &at, &end)) > 0) {
		rc = ops->run ? ops->run(ops->data, at, end) : each(ops, at, end);
		before = n_events;
		n_events += (size_t)(end - at);
		if (rc >= 0 && ops->progress && before / PROGRESS_EVENTS != n_events / PROGRESS_EVENTS)
			ops->progress(ops->data, n_events);
	}
	closed = weft__merge_close(merge);
	return rc < 0 ? rc : closed;
}
