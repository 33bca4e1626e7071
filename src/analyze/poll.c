/* SPDX-License-Identifier: Apache-2.0 */
/* Polls: the stack of open ones of each thread, and what is known of one when it ends. */
#include <errno.h>
#include <string.h>

#include "analyze/state.h"

static bool wanted(const struct weft__analysis_opts *opts, const struct weft__thread *s, const struct weft__lane *lane,
		   const struct weft__location *location, const struct weft__poll *poll)
{
	return s->asked && (!opts->worker || lane->match) && (!opts->location || location->match) &&
	       (!opts->by_context || poll->in_context);
}

/* Lane and location of a poll that may have begun on another worker than the thread is now. */
static int rows_of(struct weft__lanes *lanes, const struct weft__poll *poll, struct weft__lane **lane,
		   struct weft__location **location)
{
	struct weft__location *found;
	int rc = weft__location_get(lanes, poll->location, &found);

	if (rc < 0)
		return rc;
	*lane = &lanes->result->lanes[poll->lane];
	*location = found;
	return 0;
}

/* What the worker did instead of polling the task that waited for it. A long wait is mostly one poll, and that one
 * is among the last. */
static void find_behind(const struct weft__thread *s, struct weft__poll *poll)
{
	const struct weft__recent *best = NULL;
	uint64_t most_ns = poll->behind.held_ns;
	uint32_t i, n = s->n_recent < RECENT_POLLS ? s->n_recent : RECENT_POLLS;

	for (i = 1; i <= n; i++) {
		const struct weft__recent *recent = &s->recent[(s->n_recent - i) % RECENT_POLLS];
		uint64_t from_ns = recent->begin_ns > poll->wake.time_ns ? recent->begin_ns : poll->wake.time_ns;
		/* With a context this is asked when the poll has ended, and it is among them itself. */
		uint64_t to_ns = recent->end_ns < poll->begin_ns ? recent->end_ns : poll->begin_ns;
		uint64_t held_ns = weft__since(to_ns, from_ns);

		if (recent->end_ns <= poll->wake.time_ns) /* and so did those before it */
			break;
		if (held_ns > most_ns || (best && held_ns == most_ns && recent < best)) {
			best = recent;
			most_ns = held_ns;
		}
	}
	if (best)
		poll->behind = (struct weft__behind){most_ns, best->serial, best->task,
						     weft__since(best->end_ns, best->begin_ns), best->location};
}

static int add_delay(struct weft__analysis *a, const struct weft__thread *s, struct weft__poll *poll)
{
	struct weft__lane *lane;
	struct weft__location *location;
	bool takes;
	int rc;

	if (!poll->wake.known || poll->begin_ns < a->opts.from_ns || poll->reported)
		return 0;
	if (a->opts.rows_only) {
		poll->wake.measured = !weft__gaps_between(&a->gaps, poll->wake.time_ns, poll->begin_ns);
		if (poll->wake.measured && a->opts.rows->behind)
			find_behind(s, poll);
		return 0;
	}
	rc = rows_of(&a->lanes, poll, &lane, &location);
	if (rc < 0 || !wanted(&a->opts, s, lane, location, poll))
		return rc;
	if (weft__gaps_between(&a->gaps, poll->wake.time_ns, poll->begin_ns)) {
		a->result.poll.delays_cut++;
		return 0;
	}
	poll->wake.measured = true;
	poll->rank_ns = weft__since(poll->begin_ns, poll->wake.time_ns);
	takes = weft__top_takes(&a->polls.delayed, poll);
	if (takes || (a->opts.rows && a->opts.rows->behind))
		find_behind(s, poll);
	if (takes)
		weft__top_add(&a->polls.delayed, poll);
	if (!a->opts.rows)
		poll->behind.held_ns = 0;
	rc = weft__hist_add(&lane->delays, &a->lanes.arena, poll->rank_ns);
	return rc < 0 ? rc : weft__hist_add(&location->delays, &a->lanes.arena, poll->rank_ns);
}

static int make_room(struct weft__threads *threads, struct weft__thread *s)
{
	size_t before = s->cap_open;
	struct weft__poll *grown = weft__arena_grow(&threads->arena, s->open, &s->cap_open, before, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	s->open = grown;
	memset(grown + before, 0, (s->cap_open - before) * sizeof(*grown));
	return 0;
}

int weft__poll_add(struct weft__threads *threads, struct weft__thread *s, struct weft__poll **ret)
{
	struct weft__poll *poll;

	if (s->n_open == s->cap_open && make_room(threads, s) < 0)
		return -ENOMEM;
	poll = &s->open[s->n_open];
	poll->rank_ns = poll->end_ns = 0;
	poll->thread_id = s->id;
	poll->worker = s->worker;
	poll->lane = s->lane;
	poll->n_wakes = 0;
	poll->reported = false;
	memset(&poll->wake, 0, sizeof(poll->wake));
	memset(&poll->behind, 0, sizeof(poll->behind));
	memset(&poll->sampled, 0, sizeof(poll->sampled));
	memset(&poll->stacks_beyond, 0, sizeof(poll->stacks_beyond));
	poll->first_sample = s->n_log;
	*ret = poll;
	return 0;
}

/* Its context is none, where the last one in its place had none either. */
static void set_context(const struct weft__thread *s, struct weft__poll *poll)
{
	if (poll->has_context || s->has_context)
		poll->context = s->context;
	poll->has_context = s->has_context;
	poll->in_context = s->in_context;
}

int weft__poll_begin(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	uint64_t depth = WEFT_FIELD(ev, POLL_BEGIN, DEPTH);
	struct weft__lane *lane;
	struct weft__poll *poll;
	struct weft__thread_timeline *timeline;
	int rc = weft__thread_lane(&a->lanes, s, &lane);

	if (rc < 0)
		return rc;
	weft__thread_polls(&a->result, s);
	if (s->timeline == NO_TIMELINE && weft__thread_timeline_of(a, s, &timeline) < 0)
		return -ENOMEM;
	if (ev->time_ns >= a->opts.from_ns && !a->opts.rows_only) {
		lane->n_poll_events++;
		if (depth < WEFT_DEPTH_UNKNOWN && weft__hist_add(&lane->depths, &a->lanes.arena, depth) < 0)
			return -ENOMEM;
	}
	if (s->n_open >= POLL_LEVELS_MAX) {
		s->too_deep++;
		a->result.poll.too_deep++;
		return 0;
	}
	if (weft__poll_add(&a->threads, s, &poll) < 0)
		return -ENOMEM;
	poll->task = WEFT_FIELD(ev, POLL_BEGIN, TASK);
	poll->begin_ns = ev->time_ns;
	poll->serial = ++a->polls.n;
	poll->depth = depth < WEFT_DEPTH_UNKNOWN ? (uint32_t)depth : WEFT_DEPTH_UNKNOWN;
	poll->level = (uint32_t)s->n_open;
	poll->why = 0;
	set_context(s, poll);
	rc = weft__task_poll(&a->tasks, poll);
	if (rc < 0)
		return rc;
	/* Its context may be set in a moment: then the delay is reported at its end. */
	rc = a->opts.by_context ? 0 : add_delay(a, s, poll);
	if (rc < 0)
		return rc;
	if (s->in_gap)
		a->result.poll.cut++; /* whose end the next end is, is not known */
	else
		s->n_open++;
	return 0;
}

struct weft__poll *weft__poll_open(struct weft__threads *threads, uint32_t thread_id, uint64_t task, uint64_t begin_ns)
{
	uint32_t at = weft__map_get(&threads->by_id, thread_id);
	struct weft__thread *s = at == WEFT__MAP_NONE ? NULL : &threads->at[at];
	size_t i;

	for (i = s ? s->n_open : 0; i-- > 0;)
		if (s->open[i].task == task && s->open[i].begin_ns == begin_ns)
			return &s->open[i];
	return NULL;
}

/* A wake that comes late: the delay is none. */
int weft__poll_woken(struct weft__analysis *a, struct weft__poll *poll, const struct weft__wake *wake)
{
	uint32_t at = weft__map_get(&a->threads.by_id, poll->thread_id);

	poll->wake = *wake;
	poll->wake.time_ns = poll->begin_ns;
	return a->opts.by_context ? 0 : add_delay(a, &a->threads.at[at], poll);
}

/* The outermost poll gives the time in which the lane was busy. */
static void book_busy(const struct weft__analysis_opts *opts, struct weft__result *result,
		      const struct weft__poll *poll, uint64_t now_ns)
{
	if (poll->level == 0)
		result->lane.lanes[poll->lane].busy_ns += weft__window_ns(opts, poll->begin_ns, now_ns);
}

static int add_to_list(struct weft__polls *polls, struct weft__sampling *samples, const struct weft__thread *s,
		       struct weft__top *top, struct weft__poll *poll)
{
	int rc;

	if (!weft__top_takes(top, poll))
		return 0;
	rc = weft__log_take(samples, polls, s, poll);
	if (rc == 0)
		weft__top_add(top, poll);
	poll->stacks = NULL; /* they are the list's */
	poll->n_stacks = 0;
	return rc;
}

static void add_short(struct weft__location *location, const struct weft__poll *poll)
{
	location->n_short++;
	location->short_ns += poll->rank_ns;
	weft__weight_add(&location->short_sampled, poll->sampled.n, poll->sampled.ns);
}

static int add_poll(struct weft__analysis *a, struct weft__thread *s, struct weft__poll *poll)
{
	struct weft__lane *lane;
	struct weft__location *location;
	bool asked, listed;
	int rc;

	poll->rank_ns = weft__since(poll->end_ns, poll->begin_ns);
	if (a->opts.rows_only)
		return weft__breakdown_close(a, s, poll, 0, true, false);
	rc = rows_of(&a->lanes, poll, &lane, &location);
	if (rc < 0)
		return rc;
	asked = wanted(&a->opts, s, lane, location, poll);
	rc = asked && a->opts.by_context ? add_delay(a, s, poll) : 0;
	poll->rank_ns = weft__since(poll->end_ns, poll->begin_ns);
	listed = asked && weft__top_takes(&a->polls.longest, poll);
	if (rc == 0)
		rc = weft__breakdown_close(a, s, poll, (uint32_t)(lane - a->result.lane.lanes), asked, listed);
	if (rc < 0 || !asked)
		return rc;
	if (poll->rank_ns < a->opts.period_ns)
		add_short(location, poll);
	rc = add_to_list(&a->polls, &a->samples, s, &a->polls.longest, poll);
	if (rc == 0)
		rc = weft__hist_add(poll->reported ? &lane->reported : &lane->polls, &a->lanes.arena, poll->rank_ns);
	return rc < 0 ? rc : weft__hist_add(&location->polls, &a->lanes.arena, poll->rank_ns);
}

/* What was sampled in a nested poll was sampled in the one around it, too. */
static void add_to_outer(struct weft__thread *s, size_t level)
{
	const struct weft__poll *poll = &s->open[level];
	struct weft__poll *outer = level > 0 ? &s->open[level - 1] : NULL;

	if (!outer)
		return;
	weft__weight_add(&outer->sampled, poll->sampled.n, poll->sampled.ns);
	weft__weight_add(&outer->stacks_beyond, poll->stacks_beyond.n, poll->stacks_beyond.ns);
}

static int note_location(struct weft__lanes *lanes, struct weft__thread *s, const struct weft__poll *poll,
			 uint64_t now_ns)
{
	struct weft__location *location;

	if (weft__location_get(lanes, poll->location, &location) < 0)
		return -ENOMEM;
	if (location->match)
		s->location_ns = now_ns;
	return 0;
}

int weft__poll_finish(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns)
{
	struct weft__poll *poll = &s->open[--s->n_open];
	int rc = 0;

	poll->end_ns = now_ns;
	add_to_outer(s, s->n_open);
	if (poll->level == 0)
		s->recent[s->n_recent++ % RECENT_POLLS] =
			(struct weft__recent){poll->begin_ns, now_ns, poll->task, poll->serial, poll->location};
	if (!a->opts.rows_only)
		book_busy(&a->opts, &a->result, poll, now_ns);
	if (a->opts.location)
		rc = note_location(&a->lanes, s, poll, now_ns);
	if (rc == 0 && now_ns >= a->opts.from_ns)
		rc = add_poll(a, s, poll);
	if (s->n_open == 0)
		weft__log_clear(&a->samples, s);
	s->cpu_time_ns = 0; /* it was about this one */
	return rc;
}

void weft__poll_cpu(struct weft__thread *s, const struct weft__event *ev)
{
	s->cpu_time_ns = ev->time_ns;
	s->cpu = (struct weft__cpu){
		WEFT_FIELD(ev, POLL_CPU, CPU) == WEFT_NOT_MEASURED ? WEFT__CPU_UNKNOWN : WEFT__CPU_SPLIT,
		WEFT_FIELD(ev, POLL_CPU, CPU), WEFT_FIELD(ev, POLL_CPU, READY), WEFT_FIELD(ev, POLL_CPU, UNSURE),
		ev->n_fields > WEFT_FIELD_POLL_CPU_WAITING ? WEFT_FIELD(ev, POLL_CPU, WAITING) : 0};
}

int weft__poll_end(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns)
{
	weft__thread_polls(&a->result, s);
	if (s->in_gap)
		return 0;
	if (s->too_deep > 0) {
		s->too_deep--;
		return 0;
	}
	if (s->n_open == 0) {
		if (!s->after_gap && now_ns >= a->opts.from_ns)
			a->result.poll.began_before++;
		s->after_gap = false;
		return 0;
	}
	return weft__poll_finish(a, s, now_ns);
}

/* Whether a poll was open before what is known of the thread begins, this event does not say. */
int weft__poll_next(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	int rc = 0;

	if (s->n_open > 0)
		rc = weft__poll_end(a, s, ev->time_ns);
	else if (!s->in_gap)
		s->after_gap = false;
	return rc < 0 ? rc : weft__poll_begin(a, s, ev);
}

void weft__poll_cut(struct weft__sampling *samples, struct weft__thread *s, uint64_t now_ns)
{
	if (s->n_open > 0)
		book_busy(samples->opts, samples->result, &s->open[0], now_ns);
	samples->result->poll.cut += s->n_open;
	if (s->n_open > 0) /* of the location that was asked for, perhaps */
		s->location_ns = now_ns;
	s->n_open = 0;
	s->too_deep = 0;
	weft__log_clear(samples, s);
}

int weft__poll_leave(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns, bool thread_ended)
{
	struct weft__lane *lane;
	struct weft__location *location;
	size_t i;
	int rc;

	for (i = s->n_open; i-- > 1;)
		add_to_outer(s, i);
	for (i = 0; i < s->n_open; i++) {
		struct weft__poll *poll = &s->open[i];

		book_busy(&a->opts, &a->result, poll, now_ns);
		rc = rows_of(&a->lanes, poll, &lane, &location);
		if (rc < 0)
			return rc;
		if (!wanted(&a->opts, s, lane, location, poll))
			continue;
		if (thread_ended) {
			a->result.poll.never_ended++;
			continue;
		}
		poll->rank_ns = weft__since(now_ns, poll->begin_ns);
		a->result.poll.open++;
		rc = weft__breakdown_close(a, s, poll, (uint32_t)(lane - a->result.lane.lanes), true,
					   weft__top_takes(&a->polls.running, poll));
		if (rc == 0)
			rc = add_to_list(&a->polls, &a->samples, s, &a->polls.running, poll);
		if (rc < 0)
			return rc;
	}
	s->n_open = 0;
	return 0;
}

int weft__polls_init(struct weft__polls *polls, size_t top)
{
	int rc = weft__top_init(&polls->longest, &polls->arena, top);

	if (rc == 0)
		rc = weft__top_init(&polls->running, &polls->arena, top);
	return rc < 0 ? rc : weft__top_init(&polls->delayed, &polls->arena, top);
}

void weft__polls_fini(struct weft__polls *polls)
{
	weft__arena_fini(&polls->arena);
}
