/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: which worker each is, when it is parked, what its CPU time says, and what gaps do to all that. */
#include <errno.h>
#include <string.h>

#include "analyze/state.h"

static int new_slot(struct weft__threads *threads, uint32_t *ret)
{
	struct weft__thread *grown;

	if (threads->free != WEFT__MAP_NONE) {
		*ret = threads->free;
		threads->free = threads->at[*ret].next_free;
		return 0;
	}
	grown = weft__arena_grow(&threads->arena, threads->at, &threads->cap, threads->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	threads->at = grown;
	*ret = (uint32_t)threads->n++;
	memset(&grown[*ret], 0, sizeof(grown[*ret]));
	return 0;
}

int weft__thread_get(struct weft__threads *threads, struct weft__lanes *lanes, struct weft__gaps *gaps, uint32_t id,
		     uint64_t now_ns, struct weft__thread **ret)
{
	uint32_t at = weft__near_get(&threads->near, id);
	const struct weft_thread *thread;
	struct weft__lane *lane;
	struct weft__thread *s;
	int rc;

	*ret = NULL;
	if (at == WEFT__MAP_NONE) {
		at = weft__map_get(&threads->by_id, id);
		if (at != WEFT__MAP_NONE)
			weft__near_put(&threads->near, id, at);
	}
	if (at != WEFT__MAP_NONE) {
		*ret = &threads->at[at];
		return 0;
	}
	if (threads->by_id.n >= threads->opts->max_threads) {
		threads->result->untracked.events++;
		return 0;
	}
	rc = new_slot(threads, &at);
	if (rc < 0)
		return rc;
	s = &threads->at[at];
	memset(s, 0, sizeof(*s));
	s->id = id;
	s->lane = NO_LANE;
	s->worker = WEFT_WORKER_NONE;
	s->row = NO_ROW;
	s->timeline = NO_TIMELINE;
	s->asked = weft__thread_asked(threads->opts, id);
	s->since_ns = now_ns;
	rc = weft__map_put(&threads->by_id, id, at);
	if (rc < 0)
		return rc;
	weft__gap_cursor_init(&s->gaps, gaps, id);
	thread = weft__names_thread(threads->opts->names, id);
	if (thread)
		s->worker = thread->worker;
	threads->result->works |= s->worker != WEFT_WORKER_NONE;
	s->last_worker = s->worker;
	if (thread && thread->first_ns && thread->first_ns < threads->opts->start_ns &&
	    threads->opts->start_ns < now_ns)
		s->since_ns = threads->opts->start_ns;
	s->gaps.done_ns = s->since_ns;
	*ret = s;
	return s->worker == WEFT_WORKER_NONE ? 0 : weft__thread_lane(lanes, s, &lane);
}

/* Books the time since the last booking. A thread without a lane keeps its time until it has one. */
void weft__thread_settle(const struct weft__analysis_opts *opts, struct weft__lane_result *result,
			 struct weft__thread *s, uint64_t now_ns)
{
	uint64_t span_ns = weft__window_ns(opts, s->since_ns, now_ns);
	struct weft__lane *lane;

	if (s->lane == NO_LANE || now_ns <= s->since_ns)
		return;
	lane = &result->lanes[s->lane];
	s->since_ns = now_ns;
	if (s->state == THREAD_GUESS)
		return;
	lane->observed_ns += span_ns;
	if (s->state == THREAD_PARKED)
		lane->parked_ns += span_ns;
}

static void cross_gaps(struct weft__sampling *samples, struct weft__gaps *gaps, struct weft__thread *s, uint64_t now_ns)
{
	struct weft__gap gap;
	bool inside;

	s->in_gap = false;
	if (now_ns < s->gaps.quiet_ns)
		return;
	while (weft__gap_next(&s->gaps, gaps, now_ns, &gap, &inside)) {
		weft__thread_settle(samples->opts, &samples->result->lane, s, gap.from_ns);
		weft__poll_cut(samples, s, gap.from_ns);
		s->state = THREAD_GUESS;
		if (gap.to_ns > s->since_ns)
			s->since_ns = gap.to_ns;
		s->in_gap = inside;
		s->after_gap = true;
		s->unmeasured_cut = true;
		if (inside)
			break;
	}
}

/* What the thread must have been doing until this event, where that was not known. */
static int guess(struct weft__lanes *lanes, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__lane *lane;
	int rc;

	if (!weft__kind_active(ev->kind))
		return 0;
	switch (ev->kind) {
	case WEFT_KIND_UNPARK:
		s->state = THREAD_PARKED;
		return 0;
	case WEFT_KIND_POLL_END:
		rc = weft__thread_lane(lanes, s, &lane);
		if (rc < 0)
			return rc;
		lane->busy_ns += weft__window_ns(lanes->opts, s->since_ns, ev->time_ns);
		break;
	default:
		break;
	}
	s->state = THREAD_ACTIVE;
	return 0;
}

int weft__thread_catch_up(struct weft__lanes *lanes, struct weft__sampling *samples, struct weft__gaps *gaps,
			  struct weft__thread *s, const struct weft__event *ev)
{
	cross_gaps(samples, gaps, s, ev->time_ns);
	return s->state == THREAD_GUESS && !s->in_gap ? guess(lanes, s, ev) : 0;
}

int weft__thread_worker(struct weft__lanes *lanes, bool *works, struct weft__thread *s, uint32_t worker,
			uint64_t now_ns)
{
	struct weft__lane *lane;

	if (worker == s->worker)
		return 0;
	weft__thread_settle(lanes->opts, lanes->result, s, now_ns);
	s->since_ns = now_ns > s->since_ns ? now_ns : s->since_ns;
	s->last_worker = worker == WEFT_WORKER_NONE ? s->worker : worker;
	s->worker = worker;
	*works |= worker != WEFT_WORKER_NONE;
	s->lane = NO_LANE;
	s->row = NO_ROW;
	s->has_sched = false;
	return worker == WEFT_WORKER_NONE ? 0 : weft__thread_lane(lanes, s, &lane);
}

static void set_parked(struct weft__thread *s, bool park)
{
	if (s->in_gap)
		return;
	s->state = park ? THREAD_PARKED : THREAD_ACTIVE;
	if (park)
		s->after_gap = false;
}

int weft__thread_park(struct weft__lanes *lanes, struct weft__thread *s, const struct weft__event *ev)
{
	bool park = ev->kind == WEFT_KIND_PARK;
	struct weft__lane *lane;

	if (lanes->opts->rows_only) {
		set_parked(s, park);
		return 0;
	}
	if (weft__thread_lane(lanes, s, &lane) < 0)
		return -ENOMEM;
	weft__thread_settle(lanes->opts, lanes->result, s, ev->time_ns);
	set_parked(s, park);
	if (s->in_gap || ev->time_ns < lanes->opts->from_ns)
		return 0;
	lane->n_park_events++;
	return park && WEFT_FIELD(ev, PARK, DEPTH) < WEFT_DEPTH_UNKNOWN
		       ? weft__hist_add(&lane->depths, &lanes->arena, WEFT_FIELD(ev, PARK, DEPTH))
		       : 0;
}

void weft__thread_known(struct weft__sampling *samples, struct weft__gaps *gaps, struct weft__thread *s,
			uint64_t now_ns)
{
	cross_gaps(samples, gaps, s, now_ns);
	if (s->state == THREAD_GUESS && !s->in_gap)
		s->state = THREAD_ACTIVE;
	weft__thread_settle(samples->opts, &samples->result->lane, s, now_ns);
}

int weft__thread_sched(struct weft__sampling *samples, struct weft__thread *s, const struct weft__event *ev)
{
	bool follows = s->has_sched && ev->time_ns > s->sched_ns && WEFT_FIELD(ev, SCHED, CPU) >= s->cpu_ns &&
		       WEFT_FIELD(ev, SCHED, RUNQUEUE) >= s->runqueue_ns;
	struct weft__lane *lane;
	int rc;

	if (ev->time_ns < samples->opts->from_ns)
		return 0;
	rc = weft__sample_measured(samples, s, follows ? WEFT_FIELD(ev, SCHED, CPU) - s->cpu_ns : 0,
				   follows ? ev->time_ns - s->sched_ns : 0);
	if (rc < 0)
		return rc;
	if (follows && s->lane != NO_LANE) {
		lane = &samples->result->lane.lanes[s->lane];
		lane->sched_ns += ev->time_ns - s->sched_ns;
		lane->cpu_ns += WEFT_FIELD(ev, SCHED, CPU) - s->cpu_ns;
		lane->runqueue_ns += WEFT_FIELD(ev, SCHED, RUNQUEUE) - s->runqueue_ns;
	}
	s->has_sched = true;
	s->sched_ns = ev->time_ns;
	s->cpu_ns = WEFT_FIELD(ev, SCHED, CPU);
	s->runqueue_ns = WEFT_FIELD(ev, SCHED, RUNQUEUE);
	return 0;
}

/* Closes the books of a thread and gives its slot back. */
int weft__thread_end(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns, bool thread_ended)
{
	uint32_t at = (uint32_t)(s - a->threads.at);
	struct weft__thread_timeline *timeline;
	int rc;

	cross_gaps(&a->samples, &a->gaps, s, now_ns);
	weft__thread_settle(&a->opts, &a->result.lane, s, now_ns);
	rc = weft__poll_leave(a, s, now_ns, thread_ended);
	timeline = weft__thread_timeline_find(&a->timelines, weft__thread_timeline_key(&a->opts, s));
	if (timeline && thread_ended && timeline->thread_id == s->id)
		timeline->ended_ns = now_ns ? now_ns : 1;
	weft__log_clear(&a->samples, s);
	weft__arena_del(&a->threads.arena, s->log);
	weft__arena_del(&a->threads.arena, s->open);
	weft__arena_del(&a->threads.arena, s->past_contexts);
	weft__map_del(&a->threads.by_id, s->id);
	weft__near_del(&a->threads.near, s->id);
	memset(s, 0, sizeof(*s));
	s->next_free = a->threads.free;
	a->threads.free = at;
	return rc;
}

void weft__threads_fini(struct weft__threads *threads)
{
	weft__map_fini(&threads->by_id);
	weft__arena_fini(&threads->arena);
}
