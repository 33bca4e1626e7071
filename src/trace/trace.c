/* SPDX-License-Identifier: Apache-2.0 */
/* Reads events until there is a row. What one event resolves may be many rows, or none for a long time. */
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/inside.h"
#include "trace/summary.h"

#define SLACK_NS UINT64_C(5000000000) /* what is known late of a row that ended comes within this time */
#define PROGRESS_EVENTS (1u << 20)
#define RUN_EVENTS 64

int weft__set_init(struct weft__set *set, struct weft__recordings *list, bool no_symbols)
{
	*set = (struct weft__set){.list = list, .no_symbols = no_symbols};
	set->named = weft__calloc(list->n + 1, sizeof(*set->named));
	return set->named ? 0 : -ENOMEM;
}

void weft__set_fini(struct weft__set *set)
{
	weft__free(set->named);
	weft__texts_fini(&set->texts);
	memset(set, 0, sizeof(*set));
}

int weft__rows_grow(struct weft__scan *t)
{
	char *grown = weft__grow(t->rows, &t->cap, t->cap, t->stride);

	if (!grown)
		return -ENOMEM;
	t->rows = grown;
	return 0;
}

bool weft__holds(const struct weft__filter *filter, enum weft__column_type type, union weft__value value)
{
	if (type == WEFT__TEXT)
		return strcmp(value.text, filter->value.text) == 0;
	switch (filter->op) {
	case WEFT__EQ:
		return value.i == filter->value.i;
	case WEFT__LT:
		return value.i < filter->value.i;
	case WEFT__LE:
		return value.i <= filter->value.i;
	case WEFT__GT:
		return value.i > filter->value.i;
	default:
		return value.i >= filter->value.i;
	}
}

static bool row_holds(const struct weft__scan *t, const struct weft__row *row, const struct weft__filter *filter)
{
	return weft__row_has(row, filter->column) &&
	       weft__holds(filter, t->table->columns[filter->column].type, row->at[filter->column]);
}

void weft__row_give(struct weft__scan *t, struct weft__row *row)
{
	size_t i;

	for (i = 0; i < t->opts.n_filters; i++)
		if (!row_holds(t, row, &t->opts.filters[i])) {
			free(row->own);
			return;
		}
	t->n++;
}

int weft__scan_open(struct weft__scan **ret, struct weft__set *set, const struct weft__scan_opts *opts)
{
	struct weft__scan *t = weft__calloc(1, sizeof(*t));
	size_t i;

	if (!t)
		return -ENOMEM;
	t->set = set;
	t->opts = *opts;
	t->table = &weft__tables[opts->table];
	if (!t->opts.columns)
		t->opts.columns = UINT64_MAX;
	for (i = 0; i < opts->n_filters; i++)
		t->opts.columns |= UINT64_C(1) << opts->filters[i].column;
	t->stride = sizeof(struct weft__row) + t->table->n_columns * sizeof(union weft__value);
	weft__resolved_init(t);
	*ret = t;
	return 0;
}

/* Where reading may stop. */
static uint64_t last_ns(const struct weft__scan *t)
{
	uint64_t to_ns = UINT64_MAX, ns;
	size_t i;

	if (t->opts.until_ns)
		to_ns = weft__recording_time(t->rec, t->opts.until_ns + 1 + SLACK_NS);
	for (i = 0; i < t->opts.n_filters; i++) {
		const struct weft__filter *filter = &t->opts.filters[i];

		if (!(t->table->columns[filter->column].flags & WEFT__COLUMN_END) || filter->op == WEFT__GT ||
		    filter->op == WEFT__GE)
			continue;
		ns = weft__recording_time(t->rec, (filter->value.i > 0 ? (uint64_t)filter->value.i : 0) + 1 + SLACK_NS);
		if (ns < to_ns)
			to_ns = ns;
	}
	return to_ns;
}

static bool is_fact(const struct weft__recording *rec, const char *key, const char *value)
{
	const char *fact = weft__names_fact(&rec->names, key);

	return fact && strcmp(fact, value) == 0;
}

static int name_functions(struct weft__scan *t, const struct weft__naming *naming)
{
	size_t i;

	for (i = 0; i < t->rec->frames.n_stacks; i++)
		weft__frames_want(&t->rec->frames, t->rec->frames.stacks[i].id);
	return weft__frames_name(&t->rec->frames, naming);
}

/* Which ones there are is known only after all events were read. */
static int name_objects(struct weft__scan *t, const struct weft__naming *naming)
{
	int rc = naming->no_symbols ? 0 : weft__recording_want_objects(t->rec);

	return rc < 0 ? rc : weft__frames_name_data(&t->rec->frames, naming);
}

static int name(struct weft__scan *t)
{
	struct weft__named *named = &t->set->named[t->number];
	struct weft__naming naming;
	int rc = 0;

	weft__recording_naming(t->rec, t->set->no_symbols, &naming);
	if (!named->functions && weft__needs_functions(t)) {
		rc = name_functions(t, &naming);
		named->functions = rc == 0;
	}
	if (rc == 0 && !named->objects && weft__needs_objects(t)) {
		rc = name_objects(t, &naming);
		named->objects = rc == 0;
	}
	return rc;
}

int weft__scan_recording(struct weft__scan *t, size_t number)
{
	const char *engine;

	t->number = number;
	t->rec = &t->set->list->all[number];
	memset(t->whos, 0, sizeof(t->whos));
	memset(t->locations, 0, sizeof(t->locations));
	engine = weft__names_fact(&t->rec->names, "sample.engine");
	t->sampling = engine && engine[0] && strcmp(engine, "off") != 0 && strcmp(engine, "none") != 0;
	t->polls_reported = is_fact(t->rec, "poll.mode", "slow") || is_fact(t->rec, "poll.mode", "caught");
	t->waits_off = is_fact(t->rec, "wait.ns", "off");
	return name(t);
}

static int begin(struct weft__scan *t)
{
	bool summary = weft__is_summary(t->opts.table);
	struct weft__analysis_opts aopts = {
		.rows = summary ? NULL : &t->sink, .rows_only = !summary, .top = summary ? 1000 : 1};
	int rc = weft__scan_recording(t, t->next++);

	if (rc < 0)
		return rc;
	if (!weft__is_resolved(t->opts.table) && !weft__is_plain(t->opts.table) && !summary)
		return weft__definitions(t);
	aopts.names = &t->rec->names;
	aopts.start_ns = t->rec->start_ns;
	if (weft__is_resolved(t->opts.table) || summary)
		rc = weft__analysis_open(&t->analysis, &aopts);
	else
		rc = weft__plain_begin(t);
	return rc < 0 ? rc : weft__merge_open(&t->merge, t->rec, 0, last_ns(t));
}

static int end(struct weft__scan *t)
{
	const struct weft__result *result;
	int rc = weft__merge_close(t->merge);

	t->merge = NULL;
	t->run = t->run_end = NULL;
	if (rc == 0 && t->analysis)
		rc = weft__analysis_finish(t->analysis, t->rec->last_ns, &result);
	if (rc == 0 && t->analysis && weft__is_summary(t->opts.table))
		rc = weft__summary_rows(t, result);
	if (rc == 0 && !t->analysis)
		rc = weft__plain_end(t);
	weft__analysis_close(t->analysis);
	t->analysis = NULL;
	return rc;
}

/* Some events: what becomes of them are few rows. */
static int step(struct weft__scan *t)
{
	const struct weft__record *first;
	int rc = t->run < t->run_end ? 1 : weft__merge_next(t->merge, &t->run, &t->run_end);

	if (rc <= 0)
		return rc < 0 ? rc : end(t);
	first = t->run;
	t->run += (size_t)(t->run_end - first) < RUN_EVENTS ? t->run_end - first : RUN_EVENTS;
	if ((t->n_events + (size_t)(t->run - first)) / PROGRESS_EVENTS > t->n_events / PROGRESS_EVENTS &&
	    t->opts.progress)
		t->opts.progress(t->opts.progress_data, t->n_events, t->rec->n_events);
	t->n_events += (size_t)(t->run - first);
	if (t->analysis)
		return weft__analysis_push_run(t->analysis, first, t->run);
	for (rc = 0; rc == 0 && first < t->run; first++) {
		struct weft__event ev = weft__event_of_record(first);

		rc = weft__plain_event(t, &ev);
	}
	return rc;
}

void weft__scan_pop(struct weft__scan *t)
{
	char *own = weft__row_at(t, t->first)->own;

	if (own)
		free(own);
	t->first++;
	if (--t->n == 0)
		t->first = 0;
}

/* Reads on until there are some: 1, or 0 at the end. */
static __attribute__((noinline)) int find_rows(struct weft__scan *t)
{
	int rc = 0;

	while (t->n == 0 && rc == 0) {
		if (!t->merge && t->next == t->set->list->n)
			return 0;
		rc = t->merge ? step(t) : begin(t);
	}
	return rc < 0 ? rc : 1;
}

int weft__scan_next(struct weft__scan *t, const struct weft__row **ret)
{
	int rc;

	if (t->given)
		weft__scan_pop(t);
	t->given = false;
	rc = t->n ? 1 : find_rows(t);
	if (rc <= 0)
		return rc;
	*ret = weft__row_at(t, t->first);
	t->given = true;
	return 1;
}

void weft__scan_close(struct weft__scan *t)
{
	if (!t)
		return;
	while (t->n > 0)
		weft__scan_pop(t);
	(void)weft__merge_close(t->merge);
	weft__analysis_close(t->analysis);
	weft__plain_fini(t);
	weft__free(t->lines.at);
	weft__free(t->rows);
	weft__free(t);
}
