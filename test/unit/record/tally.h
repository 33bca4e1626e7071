/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what the segments of a directory hold. Events of the kind "count" have the fields (source, n): each source
 * numbers its events 1, 2, 3 ..., so that one that is missing, doubled or out of order shows. Used by unit tests and
 * end-to-end programs. */
#ifndef WEFT_TEST_TALLY_H
#define WEFT_TEST_TALLY_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

#define TALLY_KINDS 4096
#define TALLY_LOSSES 4096

struct tally_source {
	uint64_t count;
	uint64_t last;
};

struct tally {
	struct tally_source *sources;
	uint64_t n_sources;
	uint64_t segments;
	uint64_t events;
	uint64_t disorder;  /* counted events whose number is not above the one before of the same source */
	uint64_t backwards; /* events older than the one before of the same thread in the same segment */
	uint64_t
		/* threads, kinds, workers, locations, strings that an event names and its segment does not define */
		undefined;
	uint64_t damaged; /* segments that do not read clean or do not open */
	uint64_t recovered;
	uint64_t lost; /* sum of the counts of loss records */
	struct weft_loss losses[TALLY_LOSSES];
	uint32_t n_losses;
	uint64_t by_kind[TALLY_KINDS];
	void (*each)(const struct weft_segment *, const struct weft_event_view *, void *); /* may be NULL */
	void *data;
};

static inline int tally_kind(void)
{
	static const struct weft_field fields[] = {{"source", WEFT_TYPE_U64, NULL}, {"n", WEFT_TYPE_U64, NULL}};

	return weft_event_define("count", fields, 2, NULL);
}

static inline void tally_emit(int kind, uint64_t source, uint64_t n)
{
	uint64_t fields[2] = {source, n};

	weft_event(kind, fields, 2);
}

static inline void tally_init(struct tally *t, uint64_t n_sources)
{
	memset(t, 0, sizeof(*t));
	t->sources = calloc(n_sources ? n_sources : 1, sizeof(*t->sources));
	t->n_sources = t->sources ? n_sources : 0;
}

static inline void tally_fini(struct tally *t)
{
	free(t->sources);
	t->sources = NULL;
}

static inline int tally_defined(const struct weft_segment *seg, uint32_t type, uint64_t value)
{
	switch (type) {
	case WEFT_TYPE_STRING:
		return !value || weft_segment_string(seg, (uint32_t)value);
	case WEFT_TYPE_WORKER: {
		const struct weft_worker *worker = weft_segment_worker(seg, (uint32_t)value);

		return value == WEFT_WORKER_NONE || (worker && weft_segment_runtime(seg, worker->runtime));
	}
	case WEFT_TYPE_STACK:
		return !value || weft_segment_stack(seg, (uint32_t)value);
	case WEFT_TYPE_LOCATION:
		return !value || weft_segment_location(seg, (uint32_t)value);
	}
	return 1;
}

static inline void tally_event(struct tally *t, const struct weft_segment *seg, const struct weft_event_view *ev,
			       uint32_t counter)
{
	const struct weft_kind_def *kind = weft_segment_kind(seg, ev->kind);
	uint32_t f;

	t->events++;
	t->by_kind[ev->kind % TALLY_KINDS]++;
	t->undefined += !weft_segment_thread(seg, ev->thread) + !kind;
	for (f = 0; kind && f < kind->n_fields; f++)
		t->undefined += !tally_defined(seg, kind->fields[f].type, ev->fields[f]);
	if (counter && ev->kind == counter && ev->fields[0] < t->n_sources) {
		struct tally_source *source = &t->sources[ev->fields[0]];

		t->disorder += ev->fields[1] <= source->last;
		source->count++;
		source->last = ev->fields[1];
	}
	if (t->each)
		t->each(seg, ev, t->data);
}

static inline uint32_t tally_counter(const struct weft_segment *seg)
{
	const struct weft_kind_def *kinds;
	size_t n, i;

	kinds = weft_segment_kinds(seg, &n);
	for (i = 0; i < n; i++)
		if (!strcmp(kinds[i].name, "count"))
			return kinds[i].id;
	return 0;
}

static inline void tally_losses(struct tally *t, const struct weft_segment *seg)
{
	const struct weft_loss *losses;
	size_t n, i;

	losses = weft_segment_losses(seg, &n);
	for (i = 0; i < n; i++) {
		if (t->n_losses < TALLY_LOSSES)
			t->losses[t->n_losses++] = losses[i];
		t->lost += losses[i].count;
		t->undefined += losses[i].thread && !weft_segment_thread(seg, losses[i].thread);
	}
}

static inline void tally_events(struct tally *t, struct weft_segment *seg)
{
	struct weft_cursor *cursor;
	struct weft_event_view ev;
	uint32_t counter = tally_counter(seg);
	uint32_t thread = 0;
	uint64_t before = 0;
	int r;

	if (weft_cursor_open(&cursor, seg, WEFT_ORDER_STORED, 0, UINT64_MAX, NULL) < 0) {
		t->damaged++;
		return;
	}
	while ((r = weft_cursor_next(cursor, &ev)) > 0) {
		t->backwards += ev.thread == thread && ev.time_ns < before;
		thread = ev.thread;
		before = ev.time_ns;
		tally_event(t, seg, &ev, counter);
	}
	weft_cursor_close(cursor);
	if (r < 0 || weft_segment_damage(seg).places) {
		fprintf(stderr, "tally: %s\n", weft_segment_damage(seg).text);
		t->damaged++;
	}
}

static inline void tally_file(struct tally *t, const char *path)
{
	struct weft_error err = {0};
	struct weft_segment *seg;

	t->segments++;
	if (weft_segment_open(&seg, path, &err) < 0) {
		fprintf(stderr, "tally: %s\n", err.msg);
		t->damaged++;
		return;
	}
	t->damaged += !weft_segment_info(seg)->sealed;
	t->recovered += weft_segment_info(seg)->recovered;
	tally_losses(t, seg);
	tally_events(t, seg);
	weft_segment_close(seg);
}

static inline int tally_is_segment(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && !strcmp(dot, ".weft");
}

/* Adds every sealed segment of `dir`, by name, which within a recording is by age. Answers how many, or -1. */
static inline int tally_dir(struct tally *t, const char *dir)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, tally_is_segment, alphasort);
	int i;

	for (i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
		tally_file(t, path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return n;
}

/* Files in `dir` whose name ends in `end`; -1 when there is no such directory. */
static inline int tally_files(const char *dir, const char *end)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int n = 0;

	if (!d)
		return -1;
	while ((entry = readdir(d))) {
		size_t length = strlen(entry->d_name), tail = strlen(end);

		n += entry->d_name[0] != '.' && length >= tail && !strcmp(entry->d_name + length - tail, end);
	}
	closedir(d);
	return n;
}

#endif
