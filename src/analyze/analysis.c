/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/state.h"
#include "base/alloc.h"

/* That an event must have. The last fields of these two came later than the kind. */
#define LEAST_FIELDS(kind, n_fields)                                                                                   \
	((kind) == WEFT_KIND_WAIT       ? WEFT_FIELD_WAIT_CPU                                                          \
	 : (kind) == WEFT_KIND_POLL_CPU ? WEFT_FIELD_POLL_CPU_WAITING                                                  \
					: (n_fields))

static const uint8_t least_fields[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, ...) [number] = LEAST_FIELDS(number, WEFT_FIELDS_OF_##NAME),
	WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
};

static uint64_t period_of(const struct weft__names *names)
{
	const char *ns = weft__names_fact(names, "sample.period_ns"), *hz = weft__names_fact(names, "sample.hz");
	double period = ns ? strtod(ns, NULL) : 0, rate = hz ? strtod(hz, NULL) : 0;

	if (!(period >= 1) && rate > 0)
		period = 1e9 / rate;
	return period >= 1 && period <= 1e15 ? (uint64_t)(period + 0.5) : 0;
}

/* What parts are asked for, and where they put what they find. */
static void connect(struct weft__analysis *a)
{
	a->threads.opts = &a->opts;
	a->threads.result = &a->result;
	a->tasks.opts = &a->opts;
	a->tasks.result = &a->result.task;
	a->tasks.detail = &a->result.detail;
	a->lanes.opts = &a->opts;
	a->lanes.result = &a->result.lane;
	a->polls.opts = &a->opts;
	a->samples.opts = &a->opts;
	a->samples.result = &a->result;
	a->timelines.opts = &a->opts;
	a->timelines.result = &a->result.off;
	a->breakdowns.opts = &a->opts;
	a->throttled.opts = &a->opts;
	a->throttled.result = &a->result;
	a->waits.opts = &a->opts;
	a->waits.result = &a->result.wait;
	a->thread_state.opts = &a->opts;
	a->thread_state.result = &a->result.off;
	a->customs.opts = &a->opts;
	a->customs.result = &a->result.custom;
}

int weft__analysis_open(struct weft__analysis **ret, const struct weft__analysis_opts *opts)
{
	struct weft__analysis *a = weft__calloc(1, sizeof(*a));
	const char *mode, *detector, *wall_hz;
	int rc = -ENOMEM;

	if (!a)
		return rc;
	a->opts = *opts;
	connect(a);
	if (!a->opts.to_ns)
		a->opts.to_ns = UINT64_MAX;
	if (!a->opts.top)
		a->opts.top = 10;
	if (!a->opts.max_tasks)
		a->opts.max_tasks = 1 << 20;
	if (!a->opts.max_threads)
		a->opts.max_threads = 1 << 20;
	if (!a->opts.max_rows)
		a->opts.max_rows = 4096;
	if (!a->opts.max_samples)
		a->opts.max_samples = 4 << 20;
	if (!a->opts.max_sample_rows)
		a->opts.max_sample_rows = 1 << 20;
	if (!a->opts.max_intervals)
		a->opts.max_intervals = 1 << 20;
	if (!a->opts.period_ns)
		a->opts.period_ns = period_of(opts->names);
	a->opts.tick_ns = weft__tick_of(opts->names);
	a->result.samples.period_ns = a->result.samples.longest_period_ns = a->opts.period_ns;
	a->threads.free = a->tasks.free = WEFT__MAP_NONE;
	a->timelines.free = NO_TIMELINE;
	mode = weft__names_fact(opts->names, "poll.mode");
	detector = weft__names_fact(opts->names, "detector");
	a->breakdowns.detects = detector && strcmp(detector, "rseq") == 0;
	wall_hz = weft__names_fact(opts->names, "wall.hz");
	a->thread_state.wall_ns = wall_hz && strtod(wall_hz, NULL) >= 1 ? (uint64_t)(1e9 / strtod(wall_hz, NULL)) : 0;
	a->opts.polls_reported = mode && (strcmp(mode, "slow") == 0 || strcmp(mode, "caught") == 0);
	weft__throttled_init(&a->throttled, &a->breakdowns);
	a->opts.by_context = opts->endpoint || opts->label || opts->span || opts->trace_hi || opts->trace_lo;
	rc = weft__gaps_init(&a->gaps, opts->names->losses, opts->names->n_losses);
	if (rc == 0)
		rc = weft__polls_init(&a->polls, a->opts.top);
	if (rc < 0) {
		weft__analysis_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

static int dispatch(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	switch (ev->kind) {
	case WEFT_KIND_THREAD_END:
		return weft__thread_end(a, s, ev->time_ns, true);
	case WEFT_KIND_POLL_BEGIN:
		return weft__poll_begin(a, s, ev);
	case WEFT_KIND_POLL_END:
		return weft__poll_end(a, s, ev->time_ns);
	case WEFT_KIND_POLL_NEXT:
		return weft__poll_next(a, s, ev);
	case WEFT_KIND_PARK:
	case WEFT_KIND_UNPARK:
		if (ev->kind == WEFT_KIND_UNPARK)
			weft__beat_wake(&a->opts, s, ev->time_ns);
		return weft__thread_park(&a->lanes, s, ev);
	case WEFT_KIND_PARKED:
		weft__beat_wake(&a->opts, s, ev->time_ns);
		return 0;
	case WEFT_KIND_PARK_COUNT:
		return weft__park_count(a, ev);
	case WEFT_KIND_SPAWN:
		return weft__task_spawn(&a->tasks, &a->threads, &a->lanes, ev);
	case WEFT_KIND_TASK_END:
		return weft__task_end(&a->tasks, &a->lanes, ev);
	case WEFT_KIND_WAKE:
		return weft__task_wake(a, s, ev);
	case WEFT_KIND_TASK_WAIT:
		return weft__task_waits(&a->tasks, ev);
	case WEFT_KIND_ALLOC:
		return 0; /* a row of its own */
	case WEFT_KIND_QUEUE:
		return weft__queue_add(&a->customs, ev);
	case WEFT_KIND_SCHED:
		return weft__thread_sched(&a->samples, s, ev);
	case WEFT_KIND_SAMPLE:
		return weft__sample_add(a, s, ev);
	case WEFT_KIND_WORKER:
		return weft__thread_worker(&a->lanes, &a->result.works, s, (uint32_t)WEFT_FIELD(ev, WORKER, WORKER),
					   ev->time_ns);
	case WEFT_KIND_OFFCPU:
		return weft__off_add(a, ev);
	case WEFT_KIND_WAIT:
		weft__beat_wake(&a->opts, s, ev->time_ns);
		return weft__wait_add(a, s, ev);
	case WEFT_KIND_HELD:
		weft__held_add(&a->holders, s, ev);
		return 0;
	case WEFT_KIND_WAIT_SUM:
		return weft__wait_sum(a, s, ev);
	case WEFT_KIND_CONTEXT:
		return weft__context_set(&a->threads, s, ev);
	case WEFT_KIND_POLL:
		return weft__poll_reported(a, s, ev);
	case WEFT_KIND_POLL_CPU:
		weft__poll_cpu(s, ev);
		return 0;
	case WEFT_KIND_WOKEN:
		s->woken = (struct weft__remembered){ev->time_ns, WEFT_FIELD(ev, WOKEN, TID), WEFT_FIELD(ev, WOKEN, BY),
						     WEFT_FIELD(ev, WOKEN, AGO), WEFT_FIELD(ev, WOKEN, ALONE)};
		return 0;
	case WEFT_KIND_POLL_COUNT:
		return weft__poll_count(&a->threads, &a->lanes, &a->result, ev);
	case WEFT_KIND_WALL:
		return weft__wall_add(a, ev);
	case WEFT_KIND_PENDING:
		return weft__pending_add(&a->waits, ev);
	case WEFT_KIND_STUCK:
		return weft__stuck_add(a, ev);
	case WEFT_KIND_MODE:
		weft__detail_change(&a->result.detail, ev);
		return 0;
	case WEFT_KIND_COUNTED:
		if (ev->time_ns >= a->opts.from_ns)
			weft__detail_count(&a->result.detail, ev);
		return 0;
	case WEFT_KIND_COST:
		weft__cost_add(&a->opts, &a->result, ev);
		return 0;
	case WEFT_KIND_CPU:
		weft__cpu_add(&a->opts, &a->result, ev);
		return 0;
	case WEFT_KIND_THROTTLED:
		weft__throttled_add(&a->throttled, &a->timelines, ev);
		return 0;
	case WEFT_KIND_THREAD_CPU:
		weft__excess_read(&a->timelines, &a->gaps, ev);
		return 0;
	case WEFT_KIND_THREAD_BEGIN:
		s->context = (struct weft__context){0};
		s->has_context = s->in_context = false;
		s->n_past_contexts = 0;
		return 0;
	default:
		return weft__custom_add(&a->customs, ev);
	}
}

/* Most events say that their thread ran then, and that it was neither parked nor in a gap just before. These do not. */
enum { NOT_RAN = 1, NOT_ACTIVE = 2 };
static const uint8_t silence[WEFT_KIND_BUILTIN_END] = {
	[WEFT_KIND_THREAD_BEGIN] = NOT_RAN | NOT_ACTIVE,
	[WEFT_KIND_THREAD_END] = NOT_RAN | NOT_ACTIVE,
	[WEFT_KIND_SCHED] = NOT_ACTIVE,
	[WEFT_KIND_WORKER] = NOT_ACTIVE,
	[WEFT_KIND_SAMPLE] = NOT_ACTIVE,
	[WEFT_KIND_WAIT] = NOT_ACTIVE,
	[WEFT_KIND_WAIT_SUM] = NOT_RAN | NOT_ACTIVE,
	[WEFT_KIND_CONTEXT] = NOT_RAN | NOT_ACTIVE,
	[WEFT_KIND_HELD] = NOT_RAN | NOT_ACTIVE,
	[WEFT_KIND_PENDING] = NOT_RAN,
	[WEFT_KIND_POLL_CPU] = NOT_ACTIVE,
	[WEFT_KIND_WOKEN] = NOT_ACTIVE,
	[WEFT_KIND_ALLOC] = NOT_ACTIVE,
};

bool weft__kind_active(uint32_t kind)
{
	return kind >= WEFT_KIND_BUILTIN_END || !(silence[kind] & NOT_ACTIVE);
}

static void count(struct weft__result *r, const struct weft__event *ev)
{
	if (r->n_events++ == 0)
		r->first_ns = ev->time_ns;
	if (ev->time_ns > r->last_ns)
		r->last_ns = ev->time_ns;
	if (ev->kind < WEFT_KIND_BUILTIN_END)
		r->n_kind[ev->kind]++;
}

static bool is_malformed(const struct weft__event *ev)
{
	return ev->kind < WEFT_KIND_BUILTIN_END && ev->n_fields < least_fields[ev->kind];
}

int weft__analysis_push(struct weft__analysis *a, const struct weft__event *ev)
{
	struct weft__thread *s;
	int rc;

	if (ev->time_ns >= a->opts.to_ns)
		return 0;
	if (is_malformed(ev)) {
		a->result.malformed++;
		return 0;
	}
	if (ev->time_ns > a->now_ns)
		a->now_ns = ev->time_ns;
	if (ev->time_ns >= a->opts.from_ns)
		count(&a->result, ev);
	rc = weft__thread_get(&a->threads, &a->lanes, &a->gaps, ev->thread, ev->time_ns, &s);
	if (rc < 0 || !s)
		return rc;
	rc = weft__thread_advance(&a->lanes, &a->samples, &a->gaps, s, ev);
	if (ev->kind != WEFT_KIND_WAIT_SUM) /* which may be reported for the thread */
		s->seen_ns = ev->time_ns;
	if (ev->kind >= WEFT_KIND_BUILTIN_END || !(silence[ev->kind] & NOT_RAN))
		s->ran_ns = ev->time_ns;
	return rc < 0 ? rc : dispatch(a, s, ev);
}

/* The most frequent kinds, while nothing but the event itself says anything of the thread. None of them moves the
 * thread, or ends it. */
static int push_common(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	s->in_gap = false;
	s->seen_ns = s->ran_ns = a->now_ns = a->result.last_ns = ev->time_ns;
	a->result.n_kind[ev->kind]++;
	a->result.n_events++;
	switch (ev->kind) {
	case WEFT_KIND_POLL_BEGIN:
		return weft__poll_begin(a, s, ev);
	case WEFT_KIND_POLL_END:
		return weft__poll_end(a, s, ev->time_ns);
	case WEFT_KIND_POLL_NEXT:
		return weft__poll_next(a, s, ev);
	case WEFT_KIND_WAKE:
		return weft__task_wake(a, s, ev);
	case WEFT_KIND_SPAWN:
		return weft__task_spawn(&a->tasks, &a->threads, &a->lanes, ev);
	case WEFT_KIND_TASK_END:
		return weft__task_end(&a->tasks, &a->lanes, ev);
	case WEFT_KIND_UNPARK:
		if (!a->opts.rows_only)
			weft__beat_wake(&a->opts, s, ev->time_ns);
		return weft__thread_park(&a->lanes, s, ev);
	default:
		return weft__thread_park(&a->lanes, s, ev);
	}
}

#define BIT(KIND) (UINT64_C(1) << WEFT_KIND_##KIND)
static bool is_common(uint32_t kind)
{
	return kind < 64 && (UINT64_C(1) << kind & (BIT(POLL_BEGIN) | BIT(POLL_END) | BIT(POLL_NEXT) | BIT(WAKE) |
						    BIT(PARK) | BIT(UNPARK) | BIT(SPAWN) | BIT(TASK_END)));
}
#undef BIT

/* The thread of a run, if all the checks of weft__analysis_push would pass for each of its events. */
static struct weft__thread *common_thread(struct weft__threads *threads, uint64_t now_ns, const struct weft__record *at,
					  const struct weft__record *end)
{
	uint32_t near = weft__near_get(&threads->near, at->thread);
	struct weft__thread *s = near == WEFT__MAP_NONE ? NULL : &threads->at[near];
	uint64_t last_ns = end[-1].time_ns;

	if (!s || s->state == THREAD_GUESS || last_ns >= s->gaps.quiet_ns || last_ns >= threads->opts->to_ns ||
	    at->time_ns < threads->opts->from_ns || at->time_ns < now_ns || !threads->result->n_events)
		return NULL;
	return s;
}

int weft__analysis_push_run(struct weft__analysis *a, const struct weft__record *at, const struct weft__record *end)
{
	struct weft__thread *s = NULL;
	int rc = 0;

	for (; at < end && rc == 0; at++) {
		bool common = is_common(at->kind) && at->n_fields >= least_fields[at->kind];
		struct weft__event ev;

		s = !common ? NULL : s ? s : common_thread(&a->threads, a->now_ns, at, end);
		ev = weft__event_of_record(at);
		rc = s ? push_common(a, s, &ev) : weft__analysis_push(a, &ev);
	}
	return rc;
}

int weft__analysis_finish(struct weft__analysis *a, uint64_t end_ns, const struct weft__result **ret)
{
	int rc = weft__finish(a, end_ns ? end_ns : a->now_ns);

	if (rc == 0)
		*ret = &a->result;
	return rc;
}

void weft__analysis_close(struct weft__analysis *a)
{
	if (!a)
		return;
	weft__threads_fini(&a->threads);
	weft__tasks_fini(&a->tasks);
	weft__thread_timelines_fini(&a->timelines);
	weft__holders_fini(&a->holders);
	weft__lanes_fini(&a->lanes);
	weft__customs_fini(&a->customs);
	weft__waits_fini(&a->waits);
	weft__thread_state_fini(&a->thread_state);
	weft__samples_fini(&a->samples);
	weft__polls_fini(&a->polls);
	weft__gaps_fini(&a->gaps);
	weft__arena_fini(&a->breakdowns.arena);
	weft__arena_fini(&a->arena);
	weft__free(a);
}
