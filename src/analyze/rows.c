/* SPDX-License-Identifier: Apache-2.0 */
/* Single polls, slices, waits, samples and times off the CPU, to who wants to hear of them. */
#include "analyze/rows.h"

#include <errno.h>
#include <string.h>

#include "analyze/pieces.h"
#include "base/alloc.h"

/* Only what each poll has. What few have is zero in the ring, but for a context. */
static void copy_poll(struct weft__poll *to, const struct weft__poll *poll)
{
	if (to->has_scope || poll->has_scope)
		to->scope = poll->scope;
	memcpy(to, poll, offsetof(struct weft__poll, why));
}

int weft__rows_keep(struct weft__analysis *a, struct weft__track *track, const struct weft__poll *poll, bool *kept)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__poll *ring;

	*kept = (rows->poll || rows->slice) && (!rows->wants || rows->wants(rows->data, poll));
	if (!*kept)
		return 0;
	ring = weft__ring_room(track->kept, &track->cap_kept, track->first_kept, track->n_kept, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	track->kept = ring;
	copy_poll(&ring[track->n_kept++ & (track->cap_kept - 1)], poll);
	return 0;
}

/* No more than is left of the part: intervals are made to fit in sum, not one by one. */
static int give_slice(struct weft__analysis *a, struct weft__slice *slice, enum weft__part part, uint64_t ns,
		      uint64_t *left)
{
	slice->part = part;
	slice->ns = weft__least(ns, left[part]);
	left[part] -= slice->ns;
	return slice->ns ? a->opts.rows->slice(a->opts.rows->data, slice) : 0;
}

static int give_piece(struct weft__analysis *a, const struct weft__poll *poll, const struct weft__piece *piece,
		      uint64_t *left)
{
	const struct weft__stretch *stretch = piece->stretch;
	bool wait = stretch->kind == STRETCH_WAIT;
	struct weft__slice slice = {
		.poll = poll,
		.begin_ns = piece->begin_ns,
		.end_ns = piece->end_ns,
		.what = wait ? stretch->what : 0,
		.call = stretch->kind == STRETCH_LOOK ? stretch->what : 0,
		.name = wait ? stretch->name : 0,
		.object = wait ? stretch->object : 0,
		.stack = stretch->stack,
		.kernel = stretch->kernel,
	};
	int rc = give_slice(a, &slice, weft__part_of(stretch), piece->off_ns, left);

	if (rc == 0)
		rc = give_slice(a, &slice, WEFT__PREEMPTED, piece->ready_ns, left);
	return rc == 0 ? give_slice(a, &slice, WEFT__ON_CPU, piece->cpu_ns, left) : rc;
}

static int give_slices(struct weft__analysis *a, const struct weft__poll *poll, const struct weft__split *split)
{
	struct weft__slice rest = {.poll = poll};
	uint64_t left[WEFT__N_PARTS];
	size_t i;
	int rc = 0;

	for (i = 0; i < WEFT__N_PARTS; i++)
		left[i] = split->ns[i];
	for (i = 0; i < a->stories.n_pieces && rc == 0; i++)
		if (a->stories.pieces[i].stretch->kind != STRETCH_SAMPLE)
			rc = give_piece(a, poll, &a->stories.pieces[i], left);
	for (i = 0; i < WEFT__N_PARTS && rc == 0; i++)
		rc = give_slice(a, &rest, (enum weft__part)i, left[i], left);
	return rc;
}

int weft__rows_poll(struct weft__analysis *a, struct weft__track *track, const struct weft__story *story)
{
	const struct weft__row_sink *rows = a->opts.rows;
	const struct weft__poll *poll = &track->kept[track->first_kept++ & (track->cap_kept - 1)];
	int rc = rows->poll ? rows->poll(rows->data, poll, story) : 0;

	return rc == 0 && rows->slice ? give_slices(a, poll, &story->split) : rc;
}

int weft__rows_wait(struct weft__analysis *a, struct weft__wait *wait, const struct weft__stretch *stretch,
		    const struct weft__poll *poll)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__wait_view view = {wait, stretch->begin_ns, stretch->cpu_ns, poll ? poll->serial : 0};

	if (!rows->wait)
		return 0;
	wait->holder = (struct weft__holder){.worker = WEFT_WORKER_NONE};
	if (stretch->holder || stretch->holds)
		weft__holder_main(a, stretch, &wait->holder);
	return rows->wait(rows->data, &view);
}

int weft__rows_wait_sum(struct weft__analysis *a, const struct weft__stream *s, const struct weft__wait_row *sum,
			uint64_t time_ns)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__wait_sum_view view = {
		.time_ns = time_ns,
		.n = sum->n,
		.ns = sum->ns,
		.longest_ns = sum->longest_ns,
		.stream = s->id,
		.worker = s->worker,
		.what = sum->what,
		.name = sum->name,
	};

	return rows->wait_sum ? rows->wait_sum(rows->data, &view) : 0;
}

int weft__rows_off(struct weft__analysis *a, const struct weft__off_row *row, uint32_t worker,
		   const struct weft__stretch *stretch)
{
	const struct weft__row_sink *rows = a->opts.rows;
	struct weft__off_view view = {
		.begin_ns = stretch->begin_ns,
		.end_ns = stretch->end_ns,
		.count = row->n,
		.tid = row->tid,
		.stream = row->stream,
		.worker = worker,
		.what = row->what,
		.stack = row->stack,
		.kernel = row->kernel,
	};

	return rows->off ? rows->off(rows->data, &view) : 0;
}

int weft__rows_sample(struct weft__analysis *a, const struct weft__stretch *mark)
{
	const struct weft__row_sink *rows = a->opts.rows;
	const struct weft__sampled_thread *thread;
	struct weft__sample_one one;

	if (mark->kind != STRETCH_SAMPLE || !mark->booked || mark->given || !rows->sample)
		return 0;
	thread = &a->result.samples.threads[mark->name];
	one = (struct weft__sample_one){
		.time_ns = mark->begin_ns,
		.ns = mark->ns,
		.poll = mark->object,
		.place = (uint32_t)mark->ready_ns,
		.stack = mark->stack,
		.kernel = mark->kernel,
		.stream = thread->stream,
		.worker = thread->worker,
		.cpu = mark->cpu_ns < UINT32_MAX ? (uint32_t)mark->cpu_ns : UINT32_MAX,
		.engine = mark->holder,
		.where = (enum weft__where)mark->what,
	};
	return rows->sample(rows->data, &one);
}

int weft__rows_samples(struct weft__analysis *a, struct weft__track *track, size_t n)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		rc = weft__rows_sample(a, &track->log[i]);
		track->log[i].given = true;
	}
	return rc;
}

int weft__rows_settle(struct weft__analysis *a)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < a->tracks.n && rc == 0; i++)
		if (a->tracks.at[i].used)
			rc = weft__rows_samples(a, &a->tracks.at[i], a->tracks.at[i].n_log);
	return rc;
}
