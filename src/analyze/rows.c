/* SPDX-License-Identifier: Apache-2.0 */
/* Single polls, slices, waits, samples and times off the CPU, to who wants to hear of them. */
#include "analyze/rows.h"

#include <errno.h>

#include "analyze/slices.h"

static int keep_context(struct weft__analysis *a, struct weft__thread_timeline *timeline,
			const struct weft__context *context)
{
	struct weft__context *ring =
		weft__ring_room(a, timeline->kept_contexts, &timeline->cap_kept_contexts, timeline->first_kept_context,
				timeline->n_kept_contexts, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	timeline->kept_contexts = ring;
	ring[timeline->n_kept_contexts++ & (timeline->cap_kept_contexts - 1)] = *context;
	return 0;
}

int weft__rows_keep(struct weft__analysis *a, struct weft__thread_timeline *timeline, const struct weft__poll *poll,
		    bool *kept)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__kept *one;

	*kept = (rows->poll || rows->slice) && (!rows->wants || rows->wants(rows->data, poll));
	if (!*kept)
		return 0;
	one = weft__ring_room(a, timeline->kept, &timeline->cap_kept, timeline->first_kept, timeline->n_kept,
			      sizeof(*one));
	if (!one)
		return -ENOMEM;
	timeline->kept = one;
	if (poll->has_context && keep_context(a, timeline, &poll->context) < 0)
		return -ENOMEM;
	one += timeline->n_kept++ & (timeline->cap_kept - 1);
	one->wake = poll->wake;
	one->behind_ns = poll->behind.held_ns;
	one->behind_serial = poll->behind.serial;
	one->n_samples = poll->sampled.n;
	one->depth = poll->depth;
	one->level = poll->level;
	one->n_wakes = poll->n_wakes;
	one->reported = poll->reported;
	one->has_context = poll->has_context;
	return 0;
}

/* A poll as it was, from what was kept of it. */
static const struct weft__poll *hear(struct weft__analysis *a, struct weft__thread_timeline *timeline,
				     const struct weft__closed *closed)
{
	const struct weft__kept *kept = &timeline->kept[timeline->first_kept++ & (timeline->cap_kept - 1)];
	struct weft__poll *poll = &a->breakdowns.heard;

	poll->rank_ns = weft__since(closed->end_ns, closed->begin_ns);
	poll->task = closed->task;
	poll->begin_ns = closed->begin_ns;
	poll->end_ns = closed->running ? 0 : closed->end_ns;
	poll->serial = closed->serial;
	poll->thread_id = closed->thread_id;
	poll->worker = closed->worker;
	poll->location = closed->location;
	poll->depth = kept->depth;
	poll->level = kept->level;
	poll->n_wakes = kept->n_wakes;
	poll->wake = kept->wake;
	poll->sampled.n = kept->n_samples;
	poll->sampled.ns = closed->sampled_ns;
	poll->behind.held_ns = kept->behind_ns;
	poll->behind.serial = kept->behind_serial;
	poll->lane = closed->lane;
	poll->reported = kept->reported;
	poll->has_context = kept->has_context;
	if (kept->has_context)
		poll->context =
			timeline->kept_contexts[timeline->first_kept_context++ & (timeline->cap_kept_contexts - 1)];
	return poll;
}

/* No more than is left of the part: intervals are made to fit in sum, not one by one. */
static int give_view(struct weft__analysis *a, struct weft__slice_view *view, enum weft__part part, uint64_t ns,
		     uint64_t *left)
{
	view->part = part;
	view->ns = weft__least(ns, left[part]);
	left[part] -= view->ns;
	return view->ns ? a->opts.rows->slice(a->opts.rows->data, view) : 0;
}

static int give_slice(struct weft__analysis *a, const struct weft__poll *poll, const struct weft__slice *slice,
		      uint64_t *left)
{
	const struct weft__interval *interval = slice->interval;
	bool wait = interval->kind == INTERVAL_WAIT;
	struct weft__slice_view view = {
		.poll = poll,
		.begin_ns = slice->begin_ns,
		.end_ns = slice->end_ns,
		.what = wait ? interval->what : 0,
		.call = interval->kind == INTERVAL_WALL ? interval->what : 0,
		.name = wait ? interval->name : 0,
		.object = wait ? interval->object : 0,
		.stack = interval->stack,
		.kernel = interval->kernel,
	};
	int rc = give_view(a, &view, weft__part_of(interval), slice->off_ns, left);

	if (rc == 0)
		rc = give_view(a, &view, WEFT__PREEMPTED, slice->ready_ns, left);
	return rc == 0 ? give_view(a, &view, WEFT__ON_CPU, slice->cpu_ns, left) : rc;
}

static int give_slices(struct weft__analysis *a, const struct weft__poll *poll, const struct weft__split *split)
{
	struct weft__slice_view rest = {.poll = poll};
	uint64_t left[WEFT__N_PARTS];
	size_t i;
	int rc = 0;

	for (i = 0; i < WEFT__N_PARTS; i++)
		left[i] = split->ns[i];
	for (i = 0; i < a->breakdowns.n_slices && rc == 0; i++)
		if (a->breakdowns.slices[i].interval->kind != INTERVAL_SAMPLE)
			rc = give_slice(a, poll, &a->breakdowns.slices[i], left);
	for (i = 0; i < WEFT__N_PARTS && rc == 0; i++)
		rc = give_view(a, &rest, (enum weft__part)i, left[i], left);
	return rc;
}

int weft__rows_poll(struct weft__analysis *a, struct weft__thread_timeline *timeline, const struct weft__closed *closed,
		    const struct weft__breakdown *breakdown)
{
	const struct weft__row_sink *rows = a->opts.rows;
	const struct weft__poll *poll = hear(a, timeline, closed);
	int rc = rows->poll ? rows->poll(rows->data, poll, breakdown) : 0;

	return rc == 0 && rows->slice ? give_slices(a, poll, &breakdown->split) : rc;
}

int weft__rows_wait(struct weft__analysis *a, struct weft__wait *wait, const struct weft__interval *interval,
		    const struct weft__poll *poll)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__wait_view view = {wait, interval->begin_ns, interval->cpu_ns, poll ? poll->serial : 0};

	if (!rows->wait)
		return 0;
	wait->holder = (struct weft__holder){.worker = WEFT_WORKER_NONE};
	if (interval->holder || interval->holds)
		weft__holder_main(a, interval, &wait->holder);
	return rows->wait(rows->data, &view);
}

int weft__rows_wait_sum(struct weft__analysis *a, const struct weft__thread *s, const struct weft__wait_row *sum,
			uint64_t time_ns)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__wait_sum_view view = {
		.time_ns = time_ns,
		.n = sum->n,
		.ns = sum->ns,
		.longest_ns = sum->longest_ns,
		.thread_id = s->id,
		.worker = s->worker,
		.what = sum->what,
		.name = sum->name,
	};

	return rows->wait_sum ? rows->wait_sum(rows->data, &view) : 0;
}

int weft__rows_off(struct weft__analysis *a, const struct weft__off_row *row, uint32_t worker,
		   const struct weft__interval *interval)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__off_view view = {
		.begin_ns = interval->begin_ns,
		.end_ns = interval->end_ns,
		.count = row->n,
		.tid = row->tid,
		.thread_id = row->thread_id,
		.worker = worker,
		.what = row->what,
		.stack = row->stack,
		.kernel = row->kernel,
		.context = weft__context_kept(a, interval->context),
	};

	return rows->off ? rows->off(rows->data, &view) : 0;
}

int weft__rows_sample(struct weft__analysis *a, const struct weft__interval *mark)
{
	const struct weft__row_sink *rows = a->opts.rows;
	const struct weft__sampled_thread *thread;
	struct weft__sample_one one;

	if (mark->kind != INTERVAL_SAMPLE || !mark->booked || mark->given || !rows->sample)
		return 0;
	thread = &a->result.samples.threads[mark->name];
	one = (struct weft__sample_one){
		.time_ns = mark->begin_ns,
		.ns = mark->ns,
		.poll = mark->object,
		.location = (uint32_t)mark->ready_ns,
		.stack = mark->stack,
		.kernel = mark->kernel,
		.thread_id = thread->thread_id,
		.worker = thread->worker,
		.cpu = mark->cpu_ns < UINT32_MAX ? (uint32_t)mark->cpu_ns : UINT32_MAX,
		.engine = mark->holder,
		.where = (enum weft__where)mark->what,
		.context = weft__context_kept(a, mark->context),
	};
	return rows->sample(rows->data, &one);
}

int weft__rows_samples(struct weft__analysis *a, struct weft__thread_timeline *timeline, size_t n)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		rc = weft__rows_sample(a, &timeline->log[i]);
		timeline->log[i].given = true;
	}
	return rc;
}

int weft__rows_settle(struct weft__analysis *a)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < a->timelines.n && rc == 0; i++)
		if (a->timelines.at[i].used)
			rc = weft__rows_samples(a, &a->timelines.at[i], a->timelines.at[i].n_log);
	return rc;
}
