/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a poll, cut into parts. */
#include "analyze/breakdown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/slices.h"

#define CLOSED_KEPT 256u /* whose breakdown is made: what the thread did when another waited for it */
#define PAST 16u         /* intervals behind a poll among which one may be that reaches back into it */
#define OVER_MAX 64u     /* intervals at one moment */

/* A wall sample is reported when the thread has been seen to run, or after a second, and some of its time may have
 * been in waits before. */
#define WALL_BEGIN(wall) ((wall)->object + (wall)->object / 4)
#define WALL_END(wall) (2 * WALL_BEGIN(wall))

static int gather_one(struct weft__breakdowns *breakdowns, const struct weft__interval *interval, uint64_t begin_ns,
		      uint64_t end_ns)
{
	struct weft__slice *grown = weft__arena_grow(&breakdowns->arena, breakdowns->slices, &breakdowns->cap_slices,
						     breakdowns->n_slices, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	breakdowns->slices = grown;
	grown[breakdowns->n_slices++] =
		(struct weft__slice){.interval = interval, .begin_ns = begin_ns, .end_ns = end_ns};
	return 0;
}

/* The first interval that ends behind `ns`. Polls are settled in order, and there are many between two intervals. */
static size_t first_after(struct weft__thread_timeline *timeline, uint64_t ns)
{
	size_t at = timeline->settled, n = timeline->n_log, i;

	if (at <= n && timeline->settled_changes == timeline->n_changes &&
	    (at == 0 || timeline->log[at - 1].end_ns <= ns) && (at == n || timeline->log[at].end_ns > ns))
		return at;
	at = weft__thread_timeline_after(timeline, ns);
	timeline->nearest_ns = UINT64_MAX;
	for (i = at; i < n && i - at < PAST; i++)
		if (timeline->log[i].begin_ns < timeline->nearest_ns)
			timeline->nearest_ns = timeline->log[i].begin_ns;
	timeline->settled = at;
	timeline->settled_changes = timeline->n_changes;
	return at;
}

/* Samples are moments; the one at the begin of a poll still belongs to it. Of wall samples, the part is taken that
 * they are sure of; where switches are known (`whole`), all of it, to see which interval they belong to. */
static int gather(struct weft__breakdowns *breakdowns, struct weft__thread_timeline *timeline,
		  const struct weft__closed *poll, bool whole)
{
	size_t i = first_after(timeline, poll->begin_ns ? poll->begin_ns - 1 : 0), past = 0;

	breakdowns->n_slices = 0;
	if (poll->end_ns < timeline->nearest_ns)
		return 0;
	for (; i < timeline->n_log && past < PAST; i++) {
		const struct weft__interval *interval = &timeline->log[i];
		bool sure = interval->kind == INTERVAL_WALL && !whole;
		uint64_t begin_ns = interval->begin_ns + (sure ? WALL_BEGIN(interval) : 0);
		uint64_t end_ns = sure ? weft__since(interval->end_ns, WALL_END(interval)) : interval->end_ns;

		past = interval->begin_ns > poll->end_ns ? past + 1 : 0;
		begin_ns = begin_ns > poll->begin_ns ? begin_ns : poll->begin_ns;
		end_ns = end_ns < poll->end_ns ? end_ns : poll->end_ns;
		if (interval->kind == INTERVAL_SAMPLE ? interval->end_ns > poll->end_ns : begin_ns >= end_ns)
			continue;
		if (gather_one(breakdowns, interval, begin_ns, end_ns) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int slice_order(const void *left, const void *right)
{
	const struct weft__slice *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return a->interval < b->interval ? -1 : a->interval > b->interval;
}

/* Waits before switches before wall samples; of two waits the one that began last: it is inside of the other. */
static struct weft__slice *owner(struct weft__slice **over, size_t n)
{
	struct weft__slice *best = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		if (!best || over[i]->interval->kind >= best->interval->kind)
			best = over[i];
	return best;
}

static size_t forget_ended(struct weft__slice **over, size_t n, uint64_t now_ns)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (over[i]->end_ns > now_ns)
			over[kept++] = over[i];
	return kept;
}

static uint64_t next_end(struct weft__slice **over, size_t n, uint64_t at_most_ns)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (over[i]->end_ns < at_most_ns)
			at_most_ns = over[i]->end_ns;
	return at_most_ns;
}

/* Gives each moment of the poll to one interval at most, wall samples among them unless the whole of switches is
 * known. Answers how much was given. Samples that fall into what was given are taken out: their `end_ns` becomes 0. */
static uint64_t give_out(struct weft__breakdowns *breakdowns, bool whole)
{
	struct weft__slice *over[OVER_MAX], *mine;
	uint64_t now_ns = 0, until_ns, given_ns = 0;
	size_t i = 0, n = 0;

	if (breakdowns->n_slices)
		qsort(breakdowns->slices, breakdowns->n_slices, sizeof(*breakdowns->slices), slice_order);
	while (i < breakdowns->n_slices || n > 0) {
		if (n == 0)
			now_ns = breakdowns->slices[i].begin_ns;
		n = forget_ended(over, n, now_ns);
		for (; i < breakdowns->n_slices && breakdowns->slices[i].begin_ns <= now_ns; i++) {
			struct weft__slice *slice = &breakdowns->slices[i];

			if (slice->interval->kind == INTERVAL_SAMPLE)
				slice->end_ns = n > 0 && slice->begin_ns > over[0]->begin_ns ? 0 : slice->end_ns;
			else if (n < OVER_MAX && !(whole && slice->interval->kind == INTERVAL_WALL))
				over[n++] = slice;
		}
		mine = owner(over, n);
		if (!mine)
			continue;
		until_ns = next_end(over, n, i < breakdowns->n_slices ? breakdowns->slices[i].begin_ns : UINT64_MAX);
		mine->own_ns += until_ns - now_ns;
		given_ns += until_ns - now_ns;
		now_ns = until_ns;
	}
	return given_ns;
}

static enum weft__switches switches_in(const struct weft__gaps *gaps, const struct weft__thread_timeline *timeline,
				       const struct weft__closed *poll)
{
	if (timeline->n_off == 0)
		return WEFT__SWITCHES_NONE;
	if (timeline->off_sampled || (timeline->cut_ns && poll->begin_ns < timeline->cut_ns) ||
	    weft__gaps_switches(gaps, poll->begin_ns, poll->end_ns))
		return WEFT__SWITCHES_SOME;
	return WEFT__SWITCHES_ALL;
}

/* A thread reports a switch when it runs again. So of one whose poll has not ended it is not known what it does
 * since it was last known to run: how long that is. When a wall sample has found it waiting meanwhile, it still does:
 * `*ret` is that wall sample, or NULL. */
static uint64_t unknown_end(const struct weft__breakdowns *breakdowns, const struct weft__thread_timeline *timeline,
			    const struct weft__closed *poll, const struct weft__interval **ret)
{
	uint64_t seen_ns = breakdowns->extra.seen_ns, ran_ns;
	size_t i;

	*ret = NULL;
	if (!poll->running)
		return 0;
	ran_ns = seen_ns > poll->begin_ns ? seen_ns : poll->begin_ns;
	for (i = timeline->n_log; i-- > 0 && timeline->log[i].end_ns > ran_ns;) {
		const struct weft__interval *interval = &timeline->log[i];

		if (interval->kind != INTERVAL_WALL)
			ran_ns = interval->end_ns;
		else if (!*ret && interval->end_ns <= poll->end_ns)
			*ret = interval;
	}
	if (*ret && (*ret)->end_ns <= ran_ns)
		*ret = NULL;
	return weft__since(poll->end_ns, ran_ns);
}

/* The same as an interval of its own. */
static int add_unknown_end(struct weft__breakdowns *breakdowns, const struct weft__closed *poll,
			   const struct weft__interval *wall, uint64_t ns, struct weft__split *split)
{
	ns = weft__least(ns, split->ns[WEFT__NOT_MEASURED]);
	if (!wall || ns == 0)
		return 0;
	split->ns[WEFT__NOT_MEASURED] -= ns;
	split->ns[WEFT__BLOCKED] += ns;
	if (gather_one(breakdowns, wall, poll->end_ns - ns, poll->end_ns) < 0)
		return -ENOMEM;
	breakdowns->slices[breakdowns->n_slices - 1].own_ns = breakdowns->slices[breakdowns->n_slices - 1].off_ns = ns;
	return 0;
}

static struct weft__poll *in_list(struct weft__top *top, uint64_t serial)
{
	size_t i;

	for (i = 0; i < top->n; i++)
		if (top->polls[i].serial == serial)
			return &top->polls[i];
	return NULL;
}

static void add_split(struct weft__split *to, const struct weft__split *split)
{
	size_t i;

	to->n += split->n;
	for (i = 0; i < WEFT__N_PARTS; i++)
		if (split->ns[i])
			to->ns[i] += weft__least(split->ns[i], UINT64_MAX - to->ns[i]);
	to->throttled_ns += weft__least(split->throttled_ns, UINT64_MAX - to->throttled_ns);
}

/* A poll that was reported while it was stuck has come to its end. */
static void end_stuck(struct weft__off_result *r, const struct weft__closed *closed)
{
	size_t i;

	for (i = 0; i < r->n_stucks && !closed->running; i++)
		if (r->stucks[i].thread_id == closed->thread_id && r->stucks[i].task == closed->task &&
		    r->stucks[i].time_ns >= closed->begin_ns && r->stucks[i].time_ns <= closed->end_ns) {
			r->stucks[i].ended = true;
			r->stucks[i].duration_ns = closed->end_ns - closed->begin_ns;
		}
}

static void add_on_cpu(struct weft__split *to, uint64_t ns)
{
	to->n++;
	to->ns[WEFT__ON_CPU] = weft__sum(to->ns[WEFT__ON_CPU], ns);
}

/* Most polls: it ended, was on the CPU all the time, nothing else is known of that time, and no list has it. */
static bool is_plain(const struct weft__off_result *off, struct weft__thread_timeline *timeline,
		     const struct weft__closed *closed)
{
	if (closed->cpu != WEFT__CPU_ALL || closed->running || closed->listed || off->n_stucks)
		return false;
	(void)first_after(timeline, closed->begin_ns ? closed->begin_ns - 1 : 0);
	return closed->end_ns < timeline->nearest_ns;
}

static int settle_plain(struct weft__analysis *a, struct weft__thread_timeline *timeline,
			const struct weft__closed *closed)
{
	uint64_t ns = weft__since(closed->end_ns, closed->begin_ns);
	struct weft__location *location;
	struct weft__breakdown breakdown;
	size_t i;

	if (!a->opts.rows_only) {
		if (weft__location_get(&a->lanes, closed->location, &location) < 0)
			return -ENOMEM;
		add_on_cpu(&a->result.split, ns);
		add_on_cpu(&a->result.lane.lanes[closed->lane].split, ns);
		add_on_cpu(&location->split, ns);
	}
	if (!closed->kept)
		return 0;
	a->breakdowns.n_slices = 0;
	breakdown.known = true;
	breakdown.cpu = WEFT__CPU_ALL;
	breakdown.switches = switches_in(&a->gaps, timeline, closed);
	breakdown.split.n = 1;
	for (i = 0; i < WEFT__N_PARTS; i++)
		breakdown.split.ns[i] = 0;
	breakdown.split.ns[WEFT__ON_CPU] = ns;
	breakdown.split.throttled_ns = 0;
	breakdown.causes = NULL;
	breakdown.n_causes = 0;
	return weft__rows_poll(&a->breakdowns, timeline, closed, &breakdown);
}

static int settle_one(struct weft__analysis *a, struct weft__thread_timeline *timeline,
		      const struct weft__closed *closed)
{
	struct weft__poll *poll = closed->listed ? in_list(&a->polls.longest, closed->serial) : NULL;
	struct weft__breakdown breakdown = {.known = true};
	const struct weft__interval *wall;
	struct weft__location *location = NULL;
	uint64_t unknown_ns = unknown_end(&a->breakdowns, timeline, closed, &wall);
	bool whole;
	int rc;

	end_stuck(&a->result.off, closed);
	if (closed->listed && !poll)
		poll = in_list(&a->polls.running, closed->serial);
	breakdown.switches = switches_in(&a->gaps, timeline, closed);
	breakdown.cpu = closed->cpu;
	whole = breakdown.switches == WEFT__SWITCHES_ALL && !closed->running;
	if (gather(&a->breakdowns, timeline, closed, whole) < 0 ||
	    (!a->opts.rows_only && weft__location_get(&a->lanes, closed->location, &location) < 0))
		return -ENOMEM;
	a->breakdowns.settling = timeline;
	weft__parts_divide(&a->breakdowns, &a->throttled, closed, breakdown.switches, give_out(&a->breakdowns, whole),
			   &breakdown.split);
	if (add_unknown_end(&a->breakdowns, closed, wall, unknown_ns, &breakdown.split) < 0)
		return -ENOMEM;
	if (!closed->running && !a->opts.rows_only) {
		add_split(&a->result.split, &breakdown.split);
		add_split(&a->result.lane.lanes[closed->lane].split, &breakdown.split);
		add_split(&location->split, &breakdown.split);
	}
	rc = closed->kept ? weft__rows_poll(&a->breakdowns, timeline, closed, &breakdown) : 0;
	if (rc < 0 || !poll)
		return rc;
	if (weft__causes_find(a, &breakdown) < 0)
		return -ENOMEM;
	weft__arena_del(&a->polls.arena, poll->breakdown.causes);
	poll->breakdown = breakdown;
	return 0;
}

int weft__breakdown_settle(struct weft__analysis *a, struct weft__thread_timeline *timeline, uint64_t now_ns)
{
	int rc = 0;

	while (rc == 0 && timeline->first_closed < timeline->n_closed) {
		const struct weft__closed *closed = weft__closed_at(timeline, timeline->first_closed);

		if (now_ns != UINT64_MAX && weft__since(now_ns, closed->end_ns) < a->breakdowns.grace_ns &&
		    timeline->n_closed - timeline->first_closed < a->breakdowns.max_closed)
			break;
		if (closed->cpu == WEFT__CPU_SPLIT || closed->running)
			a->breakdowns.extra = timeline->extras[timeline->first_extra++ & (timeline->cap_extras - 1)];
		if (!closed->asked || (a->opts.rows_only && !closed->kept && !a->throttled.quota))
			rc = 0;
		else if (is_plain(&a->result.off, timeline, closed))
			rc = settle_plain(a, timeline, closed);
		else
			rc = settle_one(a, timeline, closed);
		timeline->first_closed++;
	}
	return rc;
}

int weft__breakdown_settle_all(struct weft__analysis *a)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < a->timelines.n && rc == 0; i++)
		if (a->timelines.at[i].used)
			rc = weft__breakdown_settle(a, &a->timelines.at[i], UINT64_MAX);
	return rc;
}

/* What the thread said of it. */
static enum weft__cpu_known cpu_of(const struct weft__breakdowns *breakdowns, const struct weft__thread *s,
				   const struct weft__poll *poll)
{
	if (poll->end_ns == 0)
		return WEFT__CPU_UNKNOWN;
	if (s->cpu_time_ns == poll->end_ns)
		return s->cpu.known;
	return breakdowns->detects ? WEFT__CPU_ALL : WEFT__CPU_UNKNOWN;
}

static int add_extra(struct weft__thread_timelines *timelines, struct weft__thread_timeline *timeline,
		     const struct weft__thread *s)
{
	struct weft__closed_extra *ring = weft__ring_room(timelines, timeline->extras, &timeline->cap_extras,
							  timeline->first_extra, timeline->n_extras, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	timeline->extras = ring;
	ring[timeline->n_extras++ & (timeline->cap_extras - 1)] = (struct weft__closed_extra){s->cpu, s->seen_ns};
	return 0;
}

int weft__breakdown_close(struct weft__analysis *a, struct weft__thread *s, const struct weft__poll *poll,
			  uint32_t lane, bool asked, bool listed)
{
	struct weft__closed *closed;
	struct weft__thread_timeline *timeline;
	uint64_t kept_from;
	int rc = weft__thread_timeline_of(a, s, &timeline);

	if (rc < 0 || !timeline)
		return rc;
	rc = weft__breakdown_settle(a, timeline, poll->end_ns ? poll->end_ns : poll->begin_ns + poll->rank_ns);
	if (rc < 0)
		return rc;
	kept_from = timeline->first_closed > CLOSED_KEPT ? timeline->first_closed - CLOSED_KEPT : 0;
	closed = weft__ring_room(&a->timelines, timeline->closed, &timeline->cap_closed, kept_from, timeline->n_closed,
				 sizeof(*closed));
	if (!closed)
		return -ENOMEM;
	timeline->closed = closed;
	closed = weft__closed_at(timeline, timeline->n_closed);
	closed->serial = poll->serial;
	closed->begin_ns = poll->begin_ns;
	closed->end_ns = poll->end_ns ? poll->end_ns : poll->begin_ns + poll->rank_ns;
	closed->task = poll->task;
	closed->sampled_ns = poll->sampled.ns;
	closed->location = poll->location;
	closed->lane = lane;
	closed->thread_id = poll->thread_id;
	closed->worker = poll->worker;
	closed->asked = asked;
	closed->listed = listed;
	closed->running = poll->end_ns == 0;
	closed->kept = false;
	closed->cpu = cpu_of(&a->breakdowns, s, poll);
	if ((closed->cpu == WEFT__CPU_SPLIT || closed->running) && add_extra(&a->timelines, timeline, s) < 0)
		return -ENOMEM;
	if (a->opts.rows && asked && weft__rows_keep(&a->timelines, timeline, poll, &closed->kept) < 0)
		return -ENOMEM;
	timeline->n_closed++;
	return 0;
}
