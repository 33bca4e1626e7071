/* SPDX-License-Identifier: Apache-2.0 */
/* Polls in the modes in which not all are reported one by one: those that are come as a whole, at their end, and all of
 * them are counted by duration. The samples in such a poll came before it, when it was not known that there was one,
 * so they are moved. */
#include <errno.h>

#include "analyze/state.h"
#include "base/alloc.h"

static int take_samples(struct weft__threads *threads, struct weft__lanes *lanes, struct weft__sampling *samples,
			struct weft__thread *s, struct weft__thread_timeline *timeline, const struct weft__poll *poll)
{
	size_t i = weft__thread_timeline_after(timeline, poll->begin_ns ? poll->begin_ns - 1 : 0);
	int rc = 0;

	for (; i < timeline->n_log && timeline->log[i].end_ns <= poll->end_ns && rc == 0; i++)
		if (timeline->log[i].kind == INTERVAL_SAMPLE)
			rc = weft__sample_found(samples, threads, lanes, s, &timeline->log[i]);
	return rc;
}

int weft__poll_reported(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__thread_timeline *timeline;
	struct weft__poll *poll;
	struct weft__lane *lane;

	if (weft__thread_lane(&a->lanes, s, &lane) < 0 || weft__poll_add(&a->threads, s, &poll) < 0)
		return -ENOMEM;
	poll->task = WEFT_FIELD(ev, POLL, TASK);
	poll->begin_ns = weft__since(ev->time_ns, WEFT_FIELD(ev, POLL, DURATION));
	poll->end_ns = ev->time_ns;
	poll->depth = WEFT_FIELD(ev, POLL, DEPTH) < WEFT_DEPTH_UNKNOWN ? (uint32_t)WEFT_FIELD(ev, POLL, DEPTH)
								       : WEFT_DEPTH_UNKNOWN;
	poll->level = WEFT_FIELD(ev, POLL, LEVEL) < UINT32_MAX ? (uint32_t)WEFT_FIELD(ev, POLL, LEVEL) : UINT32_MAX;
	poll->serial = ++a->polls.n;
	poll->reported = true;
	poll->why = (uint32_t)WEFT_FIELD(ev, POLL, WHY);
	if (weft__task_reported(&a->tasks, &a->threads, &a->gaps, s, poll) < 0)
		return -ENOMEM;
	weft__thread_polls(&a->result, s);
	if (ev->time_ns >= a->opts.from_ns)
		lane->n_poll_events++;
	if (s->n_open >= POLL_LEVELS_MAX) {
		a->result.poll.too_deep++;
		return 0;
	}
	weft__context_poll(s, poll);
	s->n_open++;
	if (weft__thread_timeline_of(a, s, &timeline) < 0 ||
	    (timeline && take_samples(&a->threads, &a->lanes, &a->samples, s, timeline, poll) < 0))
		return -ENOMEM;
	return weft__poll_finish(a, s, ev->time_ns);
}

/* Counts may come when the thread has left its worker. */
static uint32_t worker_of(const struct weft__threads *threads, uint32_t thread_id)
{
	uint32_t at = weft__map_get(&threads->by_id, thread_id);
	const struct weft_thread *thread = weft__names_thread(threads->opts->names, thread_id);

	if (at != WEFT__MAP_NONE)
		return threads->at[at].last_worker;
	return thread ? thread->worker : WEFT_WORKER_NONE;
}

int weft__poll_count(struct weft__threads *threads, struct weft__lanes *lanes, struct weft__result *result,
		     const struct weft__event *ev)
{
	uint32_t thread_id = (uint32_t)WEFT_FIELD(ev, POLL_COUNT, THREAD), at;
	uint64_t from_ns = WEFT_FIELD(ev, POLL_COUNT, FROM), below_ns = WEFT_FIELD(ev, POLL_COUNT, BELOW),
		 middle_ns = from_ns;
	struct weft__lane *lane;
	int rc;

	if (ev->time_ns < lanes->opts->from_ns || WEFT_FIELD(ev, POLL_COUNT, COUNT) == 0)
		return 0;
	if (below_ns > from_ns && below_ns != UINT64_MAX)
		middle_ns = from_ns + (below_ns - from_ns) / 2;
	rc = weft__lane_get(lanes, worker_of(threads, thread_id), thread_id, &at);
	if (rc < 0)
		return rc;
	lane = &lanes->result->lanes[at];
	if (!lane->match || lanes->opts->location || lanes->opts->by_context)
		return 0;
	result->counted = lane->counted = true;
	if (below_ns == UINT64_MAX && from_ns == 0) {
		result->detail.polls_untimed =
			weft__sum(result->detail.polls_untimed, WEFT_FIELD(ev, POLL_COUNT, COUNT));
		return 0;
	}
	return weft__hist_add_n(&lane->polls, &lanes->arena, middle_ns, WEFT_FIELD(ev, POLL_COUNT, COUNT));
}

/* What of a time that is spread over the span before `to_ns` lies in the window. */
static uint64_t share_ns(const struct weft__analysis_opts *opts, uint64_t ns, uint64_t span_ns, uint64_t to_ns)
{
	uint64_t inside = weft__window_ns(opts, weft__since(to_ns, span_ns), to_ns);

	if (span_ns == 0 || inside >= span_ns)
		return ns;
	return (uint64_t)((unsigned __int128)ns * inside / span_ns);
}

/* While parks are counted their thread is active for all that its own events say. */
int weft__park_count(struct weft__analysis *a, const struct weft__event *ev)
{
	uint32_t thread_id = (uint32_t)WEFT_FIELD(ev, PARK_COUNT, THREAD), at;
	struct weft__thread *s;
	struct weft__lane *lane;
	int rc = weft__thread_get(&a->threads, &a->lanes, &a->gaps, thread_id,
				  weft__since(ev->time_ns, WEFT_FIELD(ev, PARK_COUNT, SPAN)), &s);

	if (rc < 0 || !s)
		return rc;
	if (s->worker == s->last_worker)
		rc = weft__thread_lane(&a->lanes, s, &lane);
	weft__thread_known(&a->samples, &a->gaps, s, ev->time_ns);
	if (rc == 0)
		rc = weft__lane_get(&a->lanes, worker_of(&a->threads, thread_id), thread_id, &at);
	if (rc != 0 || ev->time_ns < a->opts.from_ns)
		return rc;
	lane = &a->result.lane.lanes[at];
	lane->parked_ns = weft__sum(lane->parked_ns, share_ns(&a->opts, WEFT_FIELD(ev, PARK_COUNT, TIME),
							      WEFT_FIELD(ev, PARK_COUNT, SPAN), ev->time_ns));
	lane->n_park_events = weft__sum(lane->n_park_events, WEFT_FIELD(ev, PARK_COUNT, COUNT));
	a->result.detail.parks = weft__sum(a->result.detail.parks, WEFT_FIELD(ev, PARK_COUNT, COUNT));
	return 0;
}

/* Reported polls are among those that were counted; where nothing was counted, they are all there is. */
static int merge(struct weft__lanes *lanes, struct weft__hist *polls, const struct weft__hist *reported, bool counted)
{
	if (!counted)
		return weft__hist_merge(polls, &lanes->arena, reported);
	if (reported->n && reported->max > polls->max)
		polls->max = reported->max;
	return 0;
}

/* Each poll is counted with its lane; all of them together are the sum. */
static int add_lanes(struct weft__lanes *lanes, struct weft__result *r)
{
	int rc = 0;
	size_t i;

	for (i = 0; i < r->lane.n_lanes && rc == 0; i++) {
		rc = weft__hist_merge(&r->polls, &lanes->arena, &r->lane.lanes[i].polls);
		if (rc == 0)
			rc = weft__hist_merge(&r->reported, &lanes->arena, &r->lane.lanes[i].reported);
		if (rc == 0)
			rc = weft__hist_merge(&r->delays, &lanes->arena, &r->lane.lanes[i].delays);
	}
	return rc;
}

int weft__reported_settle(struct weft__lanes *lanes, struct weft__result *r)
{
	int rc = add_lanes(lanes, r);
	size_t i;

	if (rc == 0)
		rc = merge(lanes, &r->polls, &r->reported, r->counted);
	for (i = 0; i < r->lane.n_lanes; i++) /* time in a gap is not observed, and parks in it may be counted */
		if (r->lane.lanes[i].parked_ns > r->lane.lanes[i].observed_ns)
			r->lane.lanes[i].parked_ns = r->lane.lanes[i].observed_ns;
	for (i = 0; i < r->lane.n_lanes && rc == 0; i++)
		rc = merge(lanes, &r->lane.lanes[i].polls, &r->lane.lanes[i].reported, r->lane.lanes[i].counted);
	return rc;
}
