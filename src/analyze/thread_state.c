/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector reports of threads: when they were off the CPU, what they waited in when a wall sample was
 * taken, polls that are stuck, and what weft itself costs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/state.h"

#define LATE_NS 500000000u /* breakdown.c: its poll may be settled */

static struct weft__thread *thread_at(struct weft__threads *threads, uint32_t id)
{
	uint32_t at = id ? weft__map_get(&threads->by_id, id) : WEFT__MAP_NONE;

	return at == WEFT__MAP_NONE ? NULL : &threads->at[at];
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* A thread that emits nothing has no name here. */
static bool tid_asked(const struct weft__analysis_opts *opts, uint32_t tid)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", tid);
	return !opts->thread || strcmp(opts->thread, text) == 0;
}

/* Whether the thread was asked for. Where only some polls are, by location or context, it must be in one. */
static int asked(struct weft__lanes *lanes, const struct weft__thread *s, const struct weft__thread_timeline *timeline,
		 bool *ret)
{
	uint32_t thread_id = timeline->thread_id;
	struct weft__location *location;
	bool in = false;
	size_t i;

	*ret = (thread_id ? weft__thread_asked(lanes->opts, thread_id) : tid_asked(lanes->opts, timeline->tid)) &&
	       weft__worker_asked(lanes->opts, s ? s->worker : WEFT_WORKER_NONE, thread_id) &&
	       weft__context_asked(lanes->opts, s);
	for (i = 0; lanes->opts->location && s && i < s->n_open && !in; i++) {
		if (weft__location_get(lanes, s->open[i].location, &location) < 0)
			return -ENOMEM;
		in = location->match;
	}
	if (lanes->opts->location && !in)
		*ret = false;
	return 0;
}

static int thread_row(struct weft__thread_state *state, struct weft__thread_timeline *timeline,
		      const struct weft__thread *s, struct weft__off_thread **ret)
{
	struct weft__off_result *r = state->result;
	struct weft__off_thread *grown;

	*ret = NULL;
	if (timeline->off_row == NO_ROW && r->n_threads >= state->opts->max_rows)
		return 0;
	if (timeline->off_row == NO_ROW) {
		grown = weft__arena_grow(&state->arena, r->threads, &state->cap_threads, r->n_threads, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->threads = grown;
		timeline->off_row = (uint32_t)r->n_threads++;
		grown[timeline->off_row] = (struct weft__off_thread){.tid = timeline->tid, .worker = WEFT_WORKER_NONE};
	}
	*ret = &r->threads[timeline->off_row];
	(*ret)->thread_id = timeline->thread_id;
	if (s)
		(*ret)->worker = s->worker;
	return 0;
}

struct rows {
	struct weft__off_row **at;
	size_t *n, *cap;
	struct weft__map *by_key;
	uint64_t *beyond_ns;
};

/* By thread, what and stacks. Different ones may share a key, which makes more rows of one kind, never one of two. */
static int add_row(struct weft__thread_state *state, const struct rows *rows, const struct weft__off_row *add)
{
	uint64_t key = ((uint64_t)add->stack << 32 | add->kernel) ^
		       (((uint64_t)add->tid << 8) + add->what) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = weft__map_get(rows->by_key, key);
	struct weft__off_row *row = at == WEFT__MAP_NONE ? NULL : &(*rows->at)[at], *grown;

	if (!row || row->tid != add->tid || row->what != add->what || row->stack != add->stack ||
	    row->kernel != add->kernel) {
		if (*rows->n >= state->opts->max_sample_rows) {
			*rows->beyond_ns = sum(*rows->beyond_ns, add->ns);
			return 0;
		}
		grown = weft__arena_grow(&state->arena, *rows->at, rows->cap, *rows->n, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		*rows->at = grown;
		if (weft__map_put(rows->by_key, key, (uint32_t)*rows->n) < 0)
			return -ENOMEM;
		grown[(*rows->n)++] = *add;
		return 0;
	}
	row->n = sum(row->n, add->n);
	row->ns = sum(row->ns, add->ns);
	row->samples = sum(row->samples, add->samples);
	return 0;
}

static int book_off(struct weft__thread_state *state, const struct weft__sampling *sampling,
		    struct weft__threads *threads, struct weft__lanes *lanes, struct weft__thread_timeline *timeline,
		    const struct weft__interval *interval, uint64_t count, uint64_t samples)
{
	const struct weft__thread *s = thread_at(threads, timeline->thread_id);
	struct rows rows = {&state->result->rows, &state->result->n_rows, &state->cap_rows, &state->row_by_key,
			    &state->result->beyond_ns};
	uint64_t ns = times(interval->end_ns - interval->begin_ns, count);
	struct weft__off_row row = {.tid = timeline->tid,
				    .thread_id = timeline->thread_id,
				    .what = interval->what,
				    .stack = interval->stack,
				    .kernel = interval->kernel,
				    .n = count,
				    .ns = ns,
				    .samples = samples};
	struct weft__off_thread *thread;
	bool counts;
	int rc = asked(lanes, s, timeline, &counts);

	if (rc < 0 || !counts)
		return rc;
	rc = thread_row(state, timeline, s, &thread);
	if (rc == 0 && thread && interval->what == WEFT_OFFCPU_PREEMPTED) {
		thread->n_preempted = sum(thread->n_preempted, count);
		thread->preempted_ns = sum(thread->preempted_ns, ns);
	} else if (rc == 0 && thread) {
		thread->n_blocked = sum(thread->n_blocked, count);
		thread->blocked_ns = sum(thread->blocked_ns, ns);
	}
	if (rc == 0 && thread) {
		thread->samples = sum(thread->samples, samples);
		if (interval->end_ns - interval->begin_ns > thread->longest_ns)
			thread->longest_ns = interval->end_ns - interval->begin_ns;
	}
	if (rc == 0)
		rc = add_row(state, &rows, &row);
	return rc == 0 && state->opts->rows ? weft__rows_off(sampling, &row, s ? s->worker : WEFT_WORKER_NONE, interval)
					    : rc;
}

int weft__off_add(struct weft__analysis *a, const struct weft__event *ev)
{
	uint64_t begin_ns = WEFT_FIELD(ev, OFFCPU, BEGIN) ? WEFT_FIELD(ev, OFFCPU, BEGIN)
							  : weft__since(ev->time_ns, WEFT_FIELD(ev, OFFCPU, DURATION));
	struct weft__interval interval = {
		.kind = INTERVAL_OFF,
		.begin_ns = begin_ns,
		.end_ns = sum(begin_ns, WEFT_FIELD(ev, OFFCPU, DURATION)),
		.what = (uint32_t)WEFT_FIELD(ev, OFFCPU, REASON),
		.stack = (uint32_t)WEFT_FIELD(ev, OFFCPU, STACK),
		.kernel = (uint32_t)WEFT_FIELD(ev, OFFCPU, KERNEL),
	};
	uint64_t count = WEFT_FIELD(ev, OFFCPU, COUNT) ? WEFT_FIELD(ev, OFFCPU, COUNT) : 1;
	struct weft__offcpu_group group = {0};
	struct weft__thread_timeline *timeline;
	int rc = weft__thread_timeline_get(a, (uint32_t)WEFT_FIELD(ev, OFFCPU, TID), &timeline);

	if (rc < 0 || !timeline)
		return rc;
	timeline->n_off++;
	timeline->off_sampled |= count > 1;
	if (weft__since(a->now_ns, interval.end_ns) > LATE_NS)
		a->result.untracked.intervals_late++;
	rc = weft__context_keep(&a->samples, thread_at(&a->threads, timeline->thread_id), begin_ns, &interval.context);
	if (rc == 0)
		rc = weft__thread_timeline_add(a, timeline, &interval);
	if (rc < 0)
		return rc;
	timeline->sampler.interval_ns = a->opts.period_ns;
	weft__offcpu_out(&timeline->sampler, interval.begin_ns);
	if (!weft__offcpu_in(&timeline->sampler, interval.end_ns, &group))
		group.count = 0;
	weft__excess_off(timeline, &interval, count);
	if (interval.end_ns >= a->opts.from_ns)
		rc = book_off(&a->thread_state, &a->samples, &a->threads, &a->lanes, timeline, &interval, count,
			      times(group.count, count));
	if (rc == 0 && interval.what == WEFT_OFFCPU_PREEMPTED && a->throttled.n)
		weft__throttled_late(&a->throttled, timeline, interval.end_ns);
	return rc;
}

int weft__wall_add(struct weft__analysis *a, const struct weft__event *ev)
{
	struct rows rows = {&a->result.off.walls, &a->result.off.n_walls, &a->thread_state.cap_wall_rows,
			    &a->thread_state.wall_by_key, &a->result.off.walls_beyond_ns};
	struct weft__interval interval = {
		.kind = INTERVAL_WALL,
		.begin_ns = weft__since(ev->time_ns, WEFT_FIELD(ev, WALL, WEIGHT)),
		.end_ns = ev->time_ns,
		.ns = WEFT_FIELD(ev, WALL, WEIGHT),
		.object =
			WEFT_FIELD(ev, WALL, WEIGHT) / (WEFT_FIELD(ev, WALL, COUNT) ? WEFT_FIELD(ev, WALL, COUNT) : 1),
		.what = (uint32_t)WEFT_FIELD(ev, WALL, CALL),
		.stack = (uint32_t)WEFT_FIELD(ev, WALL, STACK),
	};
	struct weft__off_row row = {.tid = (uint32_t)WEFT_FIELD(ev, WALL, TID),
				    .what = interval.what,
				    .stack = interval.stack,
				    .n = WEFT_FIELD(ev, WALL, COUNT) ? WEFT_FIELD(ev, WALL, COUNT) : 1,
				    .ns = interval.ns};
	struct weft__thread_timeline *timeline;
	bool counts = false;
	int rc = weft__thread_timeline_get(a, row.tid, &timeline);

	if (rc < 0 || !timeline)
		return rc;
	interval.object = interval.object > a->thread_state.wall_ns ? interval.object : a->thread_state.wall_ns;
	interval.object = interval.object < UINT64_MAX / 8 ? interval.object : UINT64_MAX / 8;
	rc = weft__thread_timeline_add(a, timeline, &interval);
	row.thread_id = timeline->thread_id;
	if (rc == 0)
		rc = asked(&a->lanes, thread_at(&a->threads, timeline->thread_id), timeline, &counts);
	return rc < 0 || !counts || ev->time_ns < a->opts.from_ns ? rc : add_row(&a->thread_state, &rows, &row);
}

/* A poll is reported again and again while it is stuck: it is the same while it would have begun at the same time. */
static struct weft__stuck *same_stuck(struct weft__off_result *r, const struct weft__event *ev)
{
	uint64_t begin_ns = weft__since(ev->time_ns, WEFT_FIELD(ev, STUCK, AGE)), other_ns;
	size_t i;

	for (i = r->n_stucks; i-- > 0;) {
		other_ns = weft__since(r->stucks[i].time_ns, r->stucks[i].rank_ns);
		if (r->stucks[i].tid == WEFT_FIELD(ev, STUCK, TID) &&
		    r->stucks[i].task == WEFT_FIELD(ev, STUCK, TASK) &&
		    (other_ns > begin_ns ? other_ns - begin_ns : begin_ns - other_ns) < LATE_NS)
			return &r->stucks[i];
	}
	return NULL;
}

static int new_stuck(struct weft__thread_state *state, uint64_t age_ns, struct weft__stuck **ret)
{
	struct weft__off_result *r = state->result;
	size_t i;

	*ret = NULL;
	if (!r->stucks)
		r->stucks = weft__arena_new(&state->arena, state->opts->top, sizeof(*r->stucks));
	if (!r->stucks)
		return -ENOMEM;
	if (r->n_stucks < state->opts->top) {
		*ret = &r->stucks[r->n_stucks++];
		return 0;
	}
	for (i = 0; i < r->n_stucks; i++)
		if (r->stucks[i].rank_ns < (*ret ? (*ret)->rank_ns : age_ns))
			*ret = &r->stucks[i];
	return 0;
}

int weft__stuck_add(struct weft__analysis *a, const struct weft__event *ev)
{
	/* A moment in which it waited: it has no length. */
	struct weft__interval wall = {.kind = INTERVAL_WALL,
				      .begin_ns = ev->time_ns,
				      .end_ns = ev->time_ns,
				      .stack = (uint32_t)WEFT_FIELD(ev, STUCK, STACK)};
	struct weft__stuck *stuck = same_stuck(&a->result.off, ev);
	const struct weft__thread *s;
	struct weft__thread_timeline *timeline;
	bool counts;
	int rc = weft__thread_timeline_get(a, (uint32_t)WEFT_FIELD(ev, STUCK, TID), &timeline);

	if (rc == 0 && timeline && wall.stack)
		rc = weft__thread_timeline_add(a, timeline, &wall);
	if (rc < 0 || !timeline || ev->time_ns < a->opts.from_ns)
		return rc;
	s = thread_at(&a->threads, timeline->thread_id);
	rc = asked(&a->lanes, s, timeline, &counts);
	if (rc == 0 && counts && !stuck) {
		rc = new_stuck(&a->thread_state, WEFT_FIELD(ev, STUCK, AGE), &stuck);
		if (rc == 0 && stuck)
			*stuck = (struct weft__stuck){.tid = timeline->tid, .task = WEFT_FIELD(ev, STUCK, TASK)};
	}
	if (rc < 0 || !counts || !stuck)
		return rc;
	stuck->rank_ns = WEFT_FIELD(ev, STUCK, AGE) > stuck->rank_ns ? WEFT_FIELD(ev, STUCK, AGE) : stuck->rank_ns;
	stuck->time_ns = ev->time_ns;
	stuck->thread_id = timeline->thread_id;
	stuck->worker = s ? s->worker : WEFT_WORKER_NONE;
	stuck->location = weft__task_location(&a->tasks, stuck->task);
	if (WEFT_FIELD(ev, STUCK, STACK))
		stuck->stack = (uint32_t)WEFT_FIELD(ev, STUCK, STACK);
	stuck->n_reports++;
	return 0;
}

void weft__cost_add(const struct weft__analysis_opts *opts, struct weft__result *result, const struct weft__event *ev)
{
	struct weft__cost *cost =
		&result->off.costs[WEFT_FIELD(ev, COST, WHAT) < WEFT__COSTS ? WEFT_FIELD(ev, COST, WHAT)
									    : WEFT__COSTS - 1];

	if (ev->time_ns < opts->from_ns)
		return;
	cost->n++;
	cost->cpu_ns = sum(cost->cpu_ns, WEFT_FIELD(ev, COST, TIME));
	cost->span_ns = sum(cost->span_ns, WEFT_FIELD(ev, COST, SPAN));
	cost->rate = WEFT_FIELD(ev, COST, RATE);
	if (WEFT_FIELD(ev, COST, WHAT) == WEFT_COST_SAMPLES && WEFT_FIELD(ev, COST, RATE) &&
	    WEFT_FIELD(ev, COST, RATE) < 1000000000 &&
	    1000000000 / WEFT_FIELD(ev, COST, RATE) > result->samples.longest_period_ns)
		result->samples.longest_period_ns = 1000000000 / WEFT_FIELD(ev, COST, RATE);
}

static int thread_order(const void *left, const void *right)
{
	const struct weft__off_thread *a = left, *b = right;
	uint64_t a_ns = sum(a->blocked_ns, a->preempted_ns), b_ns = sum(b->blocked_ns, b->preempted_ns);

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int row_order(const void *left, const void *right)
{
	const struct weft__off_row *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static int stuck_order(const void *left, const void *right)
{
	const struct weft__stuck *a = left, *b = right;

	if (a->rank_ns != b->rank_ns)
		return a->rank_ns > b->rank_ns ? -1 : 1;
	return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

void weft__thread_state_settle(struct weft__gaps *gaps, const struct weft__analysis_opts *opts,
			       struct weft__off_result *r, uint64_t end_ns)
{
	uint64_t from_ns = opts->from_ns > opts->start_ns ? opts->from_ns : opts->start_ns;

	weft__excess_settle(r);
	r->switch_span_ns = weft__since(end_ns, from_ns);
	r->switch_missing_ns = weft__gaps_switches_ns(gaps, from_ns, end_ns);
	if (r->n_threads)
		qsort(r->threads, r->n_threads, sizeof(*r->threads), thread_order);
	if (r->n_rows)
		qsort(r->rows, r->n_rows, sizeof(*r->rows), row_order);
	if (r->n_walls)
		qsort(r->walls, r->n_walls, sizeof(*r->walls), row_order);
	if (r->n_stucks)
		qsort(r->stucks, r->n_stucks, sizeof(*r->stucks), stuck_order);
}

void weft__thread_state_fini(struct weft__thread_state *thread_state)
{
	weft__arena_fini(&thread_state->arena);
	weft__map_fini(&thread_state->row_by_key);
	weft__map_fini(&thread_state->wall_by_key);
}
