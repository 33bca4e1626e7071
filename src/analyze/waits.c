/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: those that were reported one by one, and the sums of the others. waits_rank.c has the longest, and those of
 * threads that are no workers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/state.h"

static int row_get(struct weft__waits *waits, uint32_t what, uint32_t name, struct weft__wait_row **ret)
{
	struct weft__wait_result *r = waits->result;
	uint64_t key = (uint64_t)what << 32 | name;
	uint32_t at = weft__map_get(&waits->by_key, key);
	struct weft__wait_row *grown;

	if (at == WEFT__MAP_NONE && r->n_rows >= waits->opts->max_rows && (what || name))
		return row_get(waits, 0, 0, ret);
	if (at == WEFT__MAP_NONE) {
		grown = weft__arena_grow(&waits->arena, r->rows, &waits->cap, r->n_rows, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->rows = grown;
		at = (uint32_t)r->n_rows;
		if (weft__map_put(&waits->by_key, key, at) < 0)
			return -ENOMEM;
		grown[r->n_rows++] = (struct weft__wait_row){.what = what, .name = name};
	}
	*ret = &r->rows[at];
	return 0;
}

static int add_to_row(struct weft__waits *waits, const struct weft__thread *s, const struct weft__wait_row *more,
		      uint32_t stack, struct weft__wait_row **ret)
{
	int rc = row_get(waits, more->what, more->name, ret);

	if (rc < 0)
		return rc;
	(*ret)->n = weft__sum((*ret)->n, more->n);
	(*ret)->ns = weft__sum((*ret)->ns, more->ns);
	if (more->longest_ns > (*ret)->longest_ns)
		(*ret)->longest_ns = more->longest_ns;
	if (!weft__thread_works(s))
		return weft__wait_of_thread(waits, s, more, stack);
	(*ret)->worker_ns = weft__sum((*ret)->worker_ns, more->ns);
	return 0;
}

/* It may be of what was asked for, or not. */
static void leave_out(struct weft__wait_result *result, uint64_t n, uint64_t ns)
{
	result->n_mixed = weft__sum(result->n_mixed, n);
	result->mixed_ns = weft__sum(result->mixed_ns, ns);
}

static bool of_threads(const struct weft__analysis_opts *opts, const struct weft__thread *s)
{
	return s->asked && weft__worker_asked(opts, s->worker, s->id);
}

/* Whether what a thread does now counts, and the innermost poll that it does it in. */
static int asked(struct weft__lanes *lanes, const struct weft__thread *s, const struct weft__poll **poll, bool *ret)
{
	struct weft__location *location;
	size_t i;

	*poll = NULL;
	*ret = of_threads(lanes->opts, s) && weft__context_asked(lanes->opts, s);
	for (i = s->n_open; i-- > 0 && !*poll;) {
		if (weft__location_get(lanes, s->open[i].location, &location) < 0)
			return -ENOMEM;
		if (!lanes->opts->location || location->match)
			*poll = &s->open[i];
	}
	if (lanes->opts->location && !*poll)
		*ret = false;
	return 0;
}

static void add_object(struct weft__wait_row *row, uint64_t object)
{
	if (row->n_reported++ == 0)
		row->object = object;
	row->objects |= row->object != object;
}

/* Different objects may share a key, which makes more rows of one, never one of two. */
static int object_get(struct weft__waits *waits, const struct weft__wait *wait, struct weft__wait_object **ret)
{
	struct weft__wait_result *r = waits->result;
	uint64_t key = wait->object ^ ((uint64_t)wait->what << 32 | wait->name) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = weft__map_get(&waits->object_by_key, key);
	struct weft__wait_object *row = at == WEFT__MAP_NONE ? NULL : &r->objects[at], *grown;

	*ret = row;
	if (row && row->what == wait->what && row->name == wait->name && row->object == wait->object)
		return 0;
	*ret = NULL;
	if (r->n_objects >= waits->opts->max_rows) {
		r->objects_beyond++;
		return 0;
	}
	grown = weft__arena_grow(&waits->arena, r->objects, &waits->cap_objects, r->n_objects, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->objects = grown;
	if (weft__map_put(&waits->object_by_key, key, (uint32_t)r->n_objects) < 0)
		return -ENOMEM;
	*ret = &grown[r->n_objects++];
	**ret = (struct weft__wait_object){.what = wait->what, .name = wait->name, .object = wait->object};
	return 0;
}

static int add_to_object(struct weft__analysis *a, const struct weft__thread *s, const struct weft__wait *wait,
			 const struct weft__interval *interval)
{
	struct weft__wait_object *row;
	int rc;

	if (weft__wait_is_call(wait->what) || wait->object == 0)
		return 0;
	rc = object_get(&a->waits, wait, &row);
	if (rc < 0 || !row)
		return rc;
	row->n++;
	row->ns = weft__sum(row->ns, wait->rank_ns);
	if (weft__thread_works(s))
		row->worker_ns = weft__sum(row->worker_ns, wait->rank_ns);
	if (wait->rank_ns > row->longest_ns)
		row->longest_ns = wait->rank_ns;
	if ((interval->holder || interval->holds) && wait->rank_ns >= row->held_ns) {
		row->held_ns = wait->rank_ns;
		weft__holder_find(&a->holders, &a->threads, &a->timelines, interval, &row->holder);
	}
	return 0;
}

/* A thread that collects garbage is on the CPU for most of the wait that says so. */
static void add_cpu(struct weft__wait_row *row, const struct weft__interval *interval)
{
	uint64_t ns = interval->end_ns - interval->begin_ns;

	if (interval->cpu_ns == WEFT_NOT_MEASURED)
		return;
	row->n_cpu++;
	row->cpu_of_ns = weft__sum(row->cpu_of_ns, ns);
	row->cpu_ns = weft__sum(row->cpu_ns, interval->cpu_ns < ns ? interval->cpu_ns : ns);
}

/* How long it waited: of a call not what it was on the CPU, nor what it was ready without one. A lock that is spun
 * for is waited for all the same. */
static uint64_t waited_ns(const struct weft__event *ev)
{
	uint64_t ns = WEFT_FIELD(ev, WAIT, DURATION);

	if (!weft__wait_is_call((uint32_t)WEFT_FIELD(ev, WAIT, WHAT)))
		return ns;
	for (uint32_t i = 6; i < 8 && i < ev->n_fields; i++)
		if (ev->fields[i] != WEFT_NOT_MEASURED)
			ns = weft__since(ns, ev->fields[i]);
	return ns;
}

/* Into the figures of the window. */
static int book(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev,
		const struct weft__interval *interval)
{
	struct weft__wait wait = {
		.rank_ns = waited_ns(ev),
		.end_ns = ev->time_ns,
		.thread_id = s->id,
		.worker = s->worker,
		.what = (uint32_t)WEFT_FIELD(ev, WAIT, WHAT),
		.name = (uint32_t)WEFT_FIELD(ev, WAIT, NAME),
		.object = WEFT_FIELD(ev, WAIT, OBJECT),
		.stack = (uint32_t)WEFT_FIELD(ev, WAIT, STACK),
		.context = s->context,
	};
	struct weft__wait_row more = {
		.what = wait.what, .name = wait.name, .n = 1, .ns = wait.rank_ns, .longest_ns = wait.rank_ns};
	const struct weft__poll *poll;
	struct weft__wait_row *row;
	bool counts;
	int rc = asked(&a->lanes, s, &poll, &counts);

	/* A poll that is reported as a whole, at its end, is not open yet. */
	if (rc == 0 && !counts && a->opts.location && a->opts.polls_reported && of_threads(&a->opts, s) &&
	    weft__context_asked(&a->opts, s))
		leave_out(&a->result.wait, 1, wait.rank_ns);
	if (rc < 0 || !counts || wait.rank_ns == 0)
		return rc;
	rc = add_to_row(&a->waits, s, &more, wait.stack, &row);
	if (rc < 0)
		return rc;
	add_object(row, wait.object);
	add_cpu(row, interval);
	wait.in_poll = poll != NULL;
	wait.location = poll ? poll->location : 0;
	wait.task = poll ? poll->task : 0;
	rc = add_to_object(a, s, &wait, interval);
	if (rc == 0)
		rc = weft__wait_rank(a, s, &wait, interval);
	return rc == 0 && a->opts.rows ? weft__rows_wait(&a->threads, &a->timelines, &a->holders, &wait, interval, poll)
				       : rc;
}

/* Where somebody else reports it for the thread, polls and context are those of the thread's own events. */
static struct weft__thread *own_thread(struct weft__threads *threads, struct weft__thread *s,
				       const struct weft__thread_timeline *timeline)
{
	uint32_t at = timeline && timeline->thread_id != s->id ? weft__map_get(&threads->by_id, timeline->thread_id)
							       : WEFT__MAP_NONE;

	return at != WEFT__MAP_NONE ? &threads->at[at] : s;
}

int weft__wait_add(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__interval interval = {
		.kind = INTERVAL_WAIT,
		.begin_ns = weft__since(ev->time_ns, WEFT_FIELD(ev, WAIT, DURATION)),
		.end_ns = ev->time_ns,
		.what = (uint32_t)WEFT_FIELD(ev, WAIT, WHAT),
		.name = (uint32_t)WEFT_FIELD(ev, WAIT, NAME),
		.object = WEFT_FIELD(ev, WAIT, OBJECT),
		.holder = (uint32_t)WEFT_FIELD(ev, WAIT, HOLDER),
		.stack = (uint32_t)WEFT_FIELD(ev, WAIT, STACK),
		.holds = weft__held_take(s, ev->time_ns, WEFT_FIELD(ev, WAIT, OBJECT)),
		.cpu_ns = ev->n_fields > WEFT_FIELD_WAIT_CPU ? WEFT_FIELD(ev, WAIT, CPU) : WEFT_NOT_MEASURED,
		.ready_ns = ev->n_fields > WEFT_FIELD_WAIT_READY ? WEFT_FIELD(ev, WAIT, READY) : WEFT_NOT_MEASURED,
	};
	struct weft__thread_timeline *timeline;
	int rc = weft__thread_timeline_of(a, s, &timeline);

	if (rc == 0)
		rc = weft__context_keep(&a->samples, own_thread(&a->threads, s, timeline), interval.begin_ns,
					&interval.context);
	weft__pending_end(&a->result.wait, weft__thread_timeline_key(&a->opts, s), &interval);
	if (rc == 0 && timeline)
		rc = weft__thread_timeline_add(a, timeline, &interval);
	return rc < 0 || ev->time_ns < a->opts.from_ns ? rc
						       : book(a, own_thread(&a->threads, s, timeline), ev, &interval);
}

/* How much of the time over which waits were summed was spent on what was asked for. */
enum share { SHARE_NONE, SHARE_SOME, SHARE_ALL };

static enum share context_share(const struct weft__analysis_opts *opts, const struct weft__thread *s)
{
	if (!opts->by_context)
		return SHARE_ALL;
	if (s->in_context_ns > s->sums_from_ns)
		return SHARE_SOME;
	return s->in_context ? SHARE_ALL : SHARE_NONE;
}

static int place_share(struct weft__lanes *lanes, const struct weft__thread *s, enum share *ret)
{
	struct weft__location *location;
	size_t i;

	*ret = SHARE_ALL;
	if (!lanes->opts->location)
		return 0;
	*ret = lanes->opts->polls_reported || s->location_ns > s->sums_from_ns ? SHARE_SOME : SHARE_NONE;
	for (i = s->n_open; i-- > 0;) {
		if (weft__location_get(lanes, s->open[i].location, &location) < 0)
			return -ENOMEM;
		if (location->match)
			*ret = s->open[i].begin_ns <= s->sums_from_ns ? SHARE_ALL : SHARE_SOME;
	}
	return 0;
}

/* A sum may be of several requests and polls of the thread: it counts for one only when the thread was with that one
 * all the time. */
int weft__wait_sum(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__wait_row more = {.what = (uint32_t)WEFT_FIELD(ev, WAIT_SUM, WHAT),
				      .name = (uint32_t)WEFT_FIELD(ev, WAIT_SUM, NAME),
				      .n = WEFT_FIELD(ev, WAIT_SUM, COUNT),
				      .ns = WEFT_FIELD(ev, WAIT_SUM, TOTAL),
				      .longest_ns = WEFT_FIELD(ev, WAIT_SUM, LONGEST)};
	enum share context, location;
	struct weft__wait_row *row;
	struct weft__thread_timeline *timeline;
	int rc = weft__thread_timeline_of(a, s, &timeline);

	if (rc < 0)
		return rc;
	s = own_thread(&a->threads, s, timeline);
	if (ev->time_ns != s->sums_ns) {
		s->sums_from_ns = s->sums_ns;
		s->sums_ns = ev->time_ns;
	}
	/* Calls that never left the CPU were counted, and took no time that was waited. */
	if (ev->time_ns < a->opts.from_ns || WEFT_FIELD(ev, WAIT_SUM, COUNT) == 0 ||
	    WEFT_FIELD(ev, WAIT_SUM, TOTAL) == 0 || !of_threads(&a->opts, s))
		return 0;
	context = context_share(&a->opts, s);
	rc = place_share(&a->lanes, s, &location);
	if (rc < 0 || context == SHARE_NONE || location == SHARE_NONE)
		return rc;
	if (context == SHARE_SOME || location == SHARE_SOME) {
		leave_out(&a->result.wait, WEFT_FIELD(ev, WAIT_SUM, COUNT), WEFT_FIELD(ev, WAIT_SUM, TOTAL));
		return 0;
	}
	rc = add_to_row(&a->waits, s, &more, 0, &row);
	return rc == 0 && a->opts.rows ? weft__rows_wait_sum(&a->opts, s, &more, ev->time_ns) : rc;
}

static int most_first(const void *left, const void *right)
{
	const struct weft__wait_row *a = left, *b = right;

	if (a->worker_ns != b->worker_ns)
		return a->worker_ns > b->worker_ns ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int most_time_first(const void *left, const void *right)
{
	const struct weft__wait_object *a = left, *b = right;
	uint64_t a_ns = weft__wait_matters(a->what) ? a->ns : a->worker_ns;
	uint64_t b_ns = weft__wait_matters(b->what) ? b->ns : b->worker_ns;

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->object < b->object ? -1 : a->object > b->object;
}

void weft__waits_settle(struct weft__waits *waits, bool works)
{
	struct weft__wait_result *r = waits->result;

	if (r->n_rows)
		qsort(r->rows, r->n_rows, sizeof(*r->rows), most_first);
	if (r->n_objects)
		qsort(r->objects, r->n_objects, sizeof(*r->objects), most_time_first);
	weft__wait_ranks_settle(waits, works);
}

void weft__waits_fini(struct weft__waits *waits)
{
	weft__arena_fini(&waits->arena);
	weft__map_fini(&waits->by_key);
	weft__map_fini(&waits->object_by_key);
	weft__map_fini(&waits->thread_by_key);
}
