/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an analysis: open books are closed, rows are put in order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/loss.h"
#include "analyze/state.h"

static int lost_order(const void *left, const void *right)
{
	const struct weft__lost *a = left, *b = right;

	if (a->reason != b->reason)
		return a->reason < b->reason ? -1 : 1;
	if (a->thread_id != b->thread_id)
		return a->thread_id < b->thread_id ? -1 : 1;
	return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

/* Sums the loss records that touch the window by reason and thread. */
static int add_up_losses(struct weft__arena *arena, const struct weft__analysis_opts *opts, struct weft__result *r)
{
	const struct weft__names *names = opts->names;
	struct weft__lost *lost;
	uint64_t sums[WEFT__LOST_COUNTS] = {0};
	size_t i, n = 0, rows = 0;

	if (names->n_losses == 0)
		return 0;
	lost = weft__arena_new(arena, names->n_losses, sizeof(*lost));
	if (!lost)
		return -ENOMEM;
	for (i = 0; i < names->n_losses; i++) {
		const struct weft_loss *loss = &names->losses[i];
		uint64_t to_ns = loss->to_ns < loss->from_ns ? loss->from_ns : loss->to_ns;

		if (to_ns < opts->from_ns || loss->from_ns >= opts->to_ns)
			continue;
		lost[n++] = (struct weft__lost){.reason = loss->reason,
						.thread_id = loss->thread,
						.records = 1,
						.count = loss->count,
						.span_ns = to_ns - loss->from_ns,
						.from_ns = loss->from_ns,
						.to_ns = to_ns};
		sums[weft__loss_reason(loss->reason)->counts] += loss->count;
	}
	r->loss.events = sums[WEFT__LOST_EVENTS];
	r->loss.polls = sums[WEFT__LOST_POLLS];
	r->loss.samples = sums[WEFT__LOST_SAMPLES];
	r->loss.missed_samples = sums[WEFT__LOST_MISSED];
	r->loss.uncovered = sums[WEFT__LOST_THREADS];
	r->loss.switches = sums[WEFT__LOST_SWITCHES];
	if (n)
		qsort(lost, n, sizeof(*lost), lost_order);
	for (i = 0; i < n; i++) {
		struct weft__lost *row = rows ? &lost[rows - 1] : NULL;

		if (!row || row->reason != lost[i].reason || row->thread_id != lost[i].thread_id) {
			lost[rows++] = lost[i];
			continue;
		}
		row->records++;
		row->count += lost[i].count;
		row->span_ns += lost[i].span_ns;
		row->to_ns = lost[i].to_ns > row->to_ns ? lost[i].to_ns : row->to_ns;
	}
	r->loss.rows = lost;
	r->loss.n_rows = rows;
	return 0;
}

static int count_alive(struct weft__tasks *tasks, struct weft__lanes *lanes)
{
	struct weft__location *location;
	size_t i;

	for (i = 0; i < tasks->n; i++) {
		if (!tasks->at[i].live || !tasks->at[i].seen)
			continue;
		if (weft__location_get(lanes, tasks->at[i].location, &location) < 0)
			return -ENOMEM;
		location->alive++;
	}
	return 0;
}

/* Workers by runtime and index, then those that nothing defines, threads, and what is left. */
static uint64_t lane_rank(const struct weft__names *names, const struct weft__lane *lane)
{
	const struct weft_worker *worker = weft__names_worker(names, lane->worker);

	if (lane->worker == WEFT__LANE_OTHER)
		return UINT64_MAX;
	if (lane->worker == WEFT_WORKER_NONE)
		return UINT64_C(2) << 60 | lane->thread_id;
	return worker ? (uint64_t)(worker->runtime & 0xffffff) << 32 | worker->index : UINT64_C(1) << 60 | lane->worker;
}

static int lane_order(const void *left, const void *right)
{
	const struct weft__lane *a = left, *b = right;

	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int location_order(const void *left, const void *right)
{
	const struct weft__location *a = left, *b = right;

	if (a->polls.sum != b->polls.sum)
		return a->polls.sum > b->polls.sum ? -1 : 1;
	if (a->spawned != b->spawned)
		return a->spawned > b->spawned ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static int queue_order(const void *left, const void *right)
{
	const struct weft__queue *a = left, *b = right;

	return a->runtime < b->runtime ? -1 : a->runtime > b->runtime;
}

static int custom_order(const void *left, const void *right)
{
	const struct weft__custom *a = left, *b = right;

	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static bool is_empty(const struct weft__location *location)
{
	return location->polls.n + location->delays.n + location->spawned + location->ended + location->alive +
		       location->sampled.n ==
	       0;
}

/* Rows that the user did not ask for, and rows of which nothing falls into the window, go. */
static void hide_rows(struct weft__result *r)
{
	size_t i, kept = 0;

	for (i = 0; i < r->lane.n_lanes; i++)
		if (r->lane.lanes[i].match)
			r->lane.lanes[kept++] = r->lane.lanes[i];
	r->lane.n_lanes = kept;
	for (i = 0, kept = 0; i < r->lane.n_locations; i++)
		if (r->lane.locations[i].match && !is_empty(&r->lane.locations[i]))
			r->lane.locations[kept++] = r->lane.locations[i];
	r->lane.n_locations = kept;
}

static void order_rows(struct weft__polls *polls, struct weft__result *r)
{
	size_t i;

	hide_rows(r);
	for (i = 0; i < r->lane.n_lanes; i++)
		r->lane.lanes[i].rank = lane_rank(polls->opts->names, &r->lane.lanes[i]);
	if (r->lane.n_lanes)
		qsort(r->lane.lanes, r->lane.n_lanes, sizeof(*r->lane.lanes), lane_order);
	if (r->lane.n_locations)
		qsort(r->lane.locations, r->lane.n_locations, sizeof(*r->lane.locations), location_order);
	if (r->custom.n_queues)
		qsort(r->custom.queues, r->custom.n_queues, sizeof(*r->custom.queues), queue_order);
	if (r->custom.n_kinds)
		qsort(r->custom.kinds, r->custom.n_kinds, sizeof(*r->custom.kinds), custom_order);
	weft__top_sort(&polls->longest);
	weft__top_sort(&polls->running);
	weft__top_sort(&polls->delayed);
	r->poll.longest = polls->longest.polls;
	r->poll.n_longest = polls->longest.n;
	r->poll.running = polls->running.polls;
	r->poll.n_running = polls->running.n;
	r->poll.delayed = polls->delayed.polls;
	r->poll.n_delayed = polls->delayed.n;
}

int weft__finish(struct weft__analysis *a, uint64_t end_ns)
{
	size_t i;
	int rc = weft__pending_settle(a, end_ns);

	if (rc < 0)
		return rc;
	weft__deadlocks_find(&a->result.wait);
	rc = weft__waiting_find(&a->tasks, &a->threads, a->result.n_kind[WEFT_KIND_POLL_COUNT] == 0, end_ns);
	if (rc < 0)
		return rc;
	for (i = 0; i < a->threads.n; i++) {
		struct weft__thread *s = &a->threads.at[i];

		if (weft__map_get(&a->threads.by_id, s->id) != i)
			continue;
		rc = weft__thread_end(a, s, end_ns, false);
		if (rc < 0)
			return rc;
	}
	rc = weft__breakdown_settle_all(a);
	if (rc == 0 && a->opts.rows)
		rc = weft__rows_settle(&a->samples, &a->timelines);
	if (rc == 0)
		rc = weft__times_settle(&a->timelines, &a->gaps, &a->samples);
	if (rc == 0)
		rc = weft__reported_settle(&a->lanes, &a->result);
	if (rc == 0)
		rc = count_alive(&a->tasks, &a->lanes);
	if (rc == 0)
		rc = weft__samples_settle(&a->result.samples);
	weft__waits_settle(&a->waits, a->result.works);
	weft__thread_state_settle(&a->gaps, &a->opts, &a->result.off, end_ns);
	if (rc == 0)
		rc = add_up_losses(&a->arena, &a->opts, &a->result);
	if (rc == 0)
		order_rows(&a->polls, &a->result);
	return rc;
}
