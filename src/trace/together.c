/* SPDX-License-Identifier: Apache-2.0 */
/* Several tables out of one reading of the events: who shows all of a trace would else read it once for each. */
#include <errno.h>
#include <string.h>

#include "trace/inside.h"

#define RUN_EVENTS 256
#define PROGRESS_EVENTS (1u << 18)

struct together {
	const struct weft__together *of;
	struct weft__scan *by_table[WEFT__N_TABLES];
	struct weft__row_sink sink;
	struct weft__analysis *analysis;
	struct weft__merge *merge;
	uint64_t n_events, drained;
	uint64_t wants[WEFT_KIND_BUILTIN_END + 1]; /* a bit for each scan that a kind of event says something to */
};

static struct weft__scan *scan_of(void *data, enum weft__table_id table)
{
	return ((struct together *)data)->by_table[table];
}

static int give_poll(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown)
{
	struct weft__scan *polls = scan_of(data, WEFT__TABLE_POLL), *wakes = scan_of(data, WEFT__TABLE_WAKE);
	int rc = polls ? polls->sink.poll(polls, poll, breakdown) : 0;

	return rc == 0 && wakes ? wakes->sink.poll(wakes, poll, breakdown) : rc;
}

static int give_slice(void *data, const struct weft__slice_view *slice)
{
	struct weft__scan *t = scan_of(data, WEFT__TABLE_SLICE);

	return t->sink.slice(t, slice);
}

static int give_wait(void *data, const struct weft__wait_view *wait)
{
	struct weft__scan *t = scan_of(data, WEFT__TABLE_WAIT);

	return t->sink.wait(t, wait);
}

static int give_wait_sum(void *data, const struct weft__wait_sum_view *sum)
{
	struct weft__scan *t = scan_of(data, WEFT__TABLE_WAIT_SUM);

	return t->sink.wait_sum(t, sum);
}

static int give_sample(void *data, const struct weft__sample_one *sample)
{
	struct weft__scan *t = scan_of(data, WEFT__TABLE_SAMPLE);

	return t->sink.sample(t, sample);
}

static int give_off(void *data, const struct weft__off_view *off)
{
	struct weft__scan *t = scan_of(data, WEFT__TABLE_OFFCPU);

	return t->sink.off(t, off);
}

static int init(struct together *t)
{
	size_t i;
	uint32_t kind;

	for (i = 0; i < t->of->n; i++) {
		struct weft__scan *scan = t->of->scans[i];

		if (!weft__is_resolved(scan->opts.table) && !weft__is_plain(scan->opts.table))
			return -EINVAL;
		t->by_table[scan->opts.table] = scan;
		for (kind = 0; kind <= WEFT_KIND_BUILTIN_END && weft__is_plain(scan->opts.table); kind++)
			t->wants[kind] |= (uint64_t)weft__plain_wants(scan->opts.table, kind) << i;
	}
	t->sink = (struct weft__row_sink){
		.poll = t->by_table[WEFT__TABLE_POLL] || t->by_table[WEFT__TABLE_WAKE] ? give_poll : NULL,
		.slice = t->by_table[WEFT__TABLE_SLICE] ? give_slice : NULL,
		.wait = t->by_table[WEFT__TABLE_WAIT] ? give_wait : NULL,
		.wait_sum = t->by_table[WEFT__TABLE_WAIT_SUM] ? give_wait_sum : NULL,
		.sample = t->by_table[WEFT__TABLE_SAMPLE] ? give_sample : NULL,
		.off = t->by_table[WEFT__TABLE_OFFCPU] ? give_off : NULL,
		.data = t,
		.behind = t->by_table[WEFT__TABLE_POLL] && t->by_table[WEFT__TABLE_POLL]->sink.behind,
	};
	return 0;
}

static int drain(struct together *t)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < t->of->n && rc >= 0; i++) {
		struct weft__scan *scan = t->of->scans[i];

		while (scan->n > 0 && rc >= 0) {
			rc = t->of->row(t->of->data, i, weft__row_at(scan, scan->first));
			weft__scan_pop(scan);
		}
	}
	return rc < 0 ? rc : 0;
}

static int begin(struct together *t, size_t number)
{
	struct weft__recording *rec = NULL;
	bool resolved = false;
	size_t i;
	int rc = 0;

	for (i = 0; i < t->of->n && rc == 0; i++) {
		struct weft__scan *scan = t->of->scans[i];

		rc = weft__scan_recording(scan, number);
		if (rc == 0 && weft__is_plain(scan->opts.table))
			rc = weft__plain_begin(scan);
		resolved |= weft__is_resolved(scan->opts.table);
		rec = scan->rec;
	}
	if (rc == 0 && resolved) {
		struct weft__analysis_opts opts = {
			.rows = &t->sink, .rows_only = true, .top = 1, .names = &rec->names, .start_ns = rec->start_ns};

		rc = weft__analysis_open(&t->analysis, &opts);
	}
	return rc < 0 ? rc : weft__merge_open(&t->merge, rec, t->of->from_ns, t->of->to_ns ? t->of->to_ns : UINT64_MAX);
}

static int push_plain(struct together *t, const struct weft__record *first, const struct weft__record *end)
{
	int rc = 0;

	for (; first < end && rc == 0; first++) {
		uint64_t wants = t->wants[first->kind < WEFT_KIND_BUILTIN_END ? first->kind : WEFT_KIND_BUILTIN_END];
		struct weft__event ev;

		if (!wants)
			continue;
		ev = weft__event_of_record(first);
		for (; wants && rc == 0; wants &= wants - 1)
			rc = weft__plain_event(t->of->scans[__builtin_ctzll(wants)], &ev);
	}
	return rc;
}

static int push(struct together *t, const struct weft__record *first, const struct weft__record *end)
{
	uint64_t before = t->n_events;
	int rc = t->analysis ? weft__analysis_push_run(t->analysis, first, end) : 0;

	if (rc == 0)
		rc = push_plain(t, first, end);
	t->n_events += (size_t)(end - first);
	if (rc == 0 && t->n_events - t->drained >= RUN_EVENTS) { /* runs may be short */
		t->drained = t->n_events;
		rc = drain(t);
	}
	if (t->n_events / PROGRESS_EVENTS > before / PROGRESS_EVENTS && t->of->progress)
		t->of->progress(t->of->data, t->n_events);
	return rc;
}

/* A run may be long; rows are given away before there are many. */
static int push_all(struct together *t, const struct weft__record *first, const struct weft__record *end)
{
	int rc = 0;

	while (first < end && rc == 0) {
		const struct weft__record *to = end - first < RUN_EVENTS ? end : first + RUN_EVENTS;

		rc = push(t, first, to);
		first = to;
	}
	return rc;
}

static int end(struct together *t)
{
	struct weft__recording *rec = t->of->scans[0]->rec;
	const struct weft__result *result;
	size_t i;
	int rc = 0;

	if (t->analysis)
		rc = weft__analysis_finish(t->analysis, rec->last_ns, &result);
	for (i = 0; i < t->of->n && rc == 0; i++)
		if (weft__is_plain(t->of->scans[i]->opts.table))
			rc = weft__plain_end(t->of->scans[i]);
	return rc < 0 ? rc : drain(t);
}

static int one(struct together *t, size_t number)
{
	const struct weft__record *run = NULL, *run_end = NULL;
	int rc = begin(t, number), closed;

	while (rc == 0 && (rc = weft__merge_next(t->merge, &run, &run_end)) > 0)
		rc = push_all(t, run, run_end);
	closed = weft__merge_close(t->merge);
	t->merge = NULL;
	if (rc == 0)
		rc = closed;
	if (rc == 0)
		rc = end(t);
	weft__analysis_close(t->analysis);
	t->analysis = NULL;
	return rc;
}

int weft__scan_together(const struct weft__together *of)
{
	struct together t = {.of = of};
	size_t i;
	int rc = of->n && of->n <= 64 ? init(&t) : -EINVAL;

	for (i = 0; rc == 0 && i < of->scans[0]->set->list->n; i++)
		rc = one(&t, i);
	return rc;
}
