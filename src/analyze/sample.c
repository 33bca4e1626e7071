/* SPDX-License-Identifier: Apache-2.0 */
/* Samples. One stands among the events of its thread, so it belongs to the polls that are open there at that moment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/state.h"

#define TRACES_MAX ((size_t)1 << 22) /* different stacks */

/* NO_ROW when there are too many. */
static int trace_get(struct weft__analysis *a, uint32_t stack, uint32_t kernel, uint32_t *ret)
{
	uint64_t key = (uint64_t)kernel << 32 | stack;
	struct weft__trace *grown;

	*ret = weft__map_get(&a->samples.trace_by_ids, key);
	if (*ret != WEFT__MAP_NONE || a->samples.n_traces >= TRACES_MAX)
		return 0;
	grown = weft__arena_grow(&a->samples.arena, a->samples.traces, &a->samples.cap_traces, a->samples.n_traces,
				 sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	a->samples.traces = grown;
	if (weft__map_put(&a->samples.trace_by_ids, key, (uint32_t)a->samples.n_traces) < 0)
		return -ENOMEM;
	grown[a->samples.n_traces] = (struct weft__trace){stack, kernel};
	*ret = (uint32_t)a->samples.n_traces++;
	return 0;
}

static int sampled_get(struct weft__analysis *a, uint32_t worker, uint32_t thread_id, uint32_t *ret)
{
	struct weft__samples *r = &a->result.samples;
	uint64_t key = (uint64_t)worker << 32 | thread_id;
	struct weft__sampled_thread *grown;

	*ret = weft__map_get(&a->samples.thread_by_key, key);
	if (*ret != WEFT__MAP_NONE)
		return 0;
	if (r->n_threads >= a->opts.max_rows && worker != WEFT__LANE_OTHER)
		return sampled_get(a, WEFT__LANE_OTHER, 0, ret);
	grown = weft__arena_grow(&a->samples.arena, r->threads, &a->samples.cap_threads, r->n_threads, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->threads = grown;
	if (weft__map_put(&a->samples.thread_by_key, key, (uint32_t)r->n_threads) < 0)
		return -ENOMEM;
	memset(&grown[r->n_threads], 0, sizeof(*grown));
	grown[r->n_threads].worker = worker;
	grown[r->n_threads].thread_id = thread_id;
	grown[r->n_threads].match = weft__worker_asked(a, worker, thread_id) &&
				    (worker == WEFT__LANE_OTHER || weft__thread_asked(a, thread_id));
	*ret = (uint32_t)r->n_threads++;
	return 0;
}

static int thread_of(struct weft__analysis *a, struct weft__thread *s, struct weft__sampled_thread **ret)
{
	int rc = s->row == NO_ROW ? sampled_get(a, s->worker, s->id, &s->row) : 0;

	if (rc < 0)
		return rc;
	*ret = &a->result.samples.threads[s->row];
	(*ret)->polls |= s->polls;
	return 0;
}

static enum weft__where where_is(const struct weft__analysis *a, const struct weft__thread *s)
{
	if (s->n_open > 0)
		return WEFT__IN_POLL;
	if (s->in_gap || s->state == THREAD_GUESS || (a->polls_reported && s->state != THREAD_PARKED))
		return WEFT__WHERE_UNKNOWN;
	return s->state == THREAD_PARKED ? WEFT__PARKED : WEFT__BETWEEN_POLLS;
}

/* The innermost open poll that was asked for; NULL when the sample was not. `*location` is that poll's. */
static int poll_of(struct weft__analysis *a, struct weft__thread *s, const struct weft__poll **ret,
		   struct weft__location **location)
{
	size_t i;

	*ret = NULL;
	for (i = s->n_open; i-- > 0;) {
		if (weft__location_get(a, s->open[i].location, location) < 0)
			return -ENOMEM;
		if (a->opts.location && !(*location)->match)
			continue;
		*ret = &s->open[i];
		return 0;
	}
	return 0;
}

static int context_get(struct weft__analysis *a, uint32_t thread, enum weft__where where, uint32_t location,
		       uint32_t *ret)
{
	uint64_t key = (uint64_t)where << 60 | (uint64_t)thread << 32 | location;

	*ret = weft__map_get(&a->samples.context_by_key, key);
	if (*ret != WEFT__MAP_NONE)
		return 0;
	*ret = (uint32_t)a->samples.n_contexts++;
	return weft__map_put(&a->samples.context_by_key, key, *ret);
}

static int add_to_row(struct weft__analysis *a, uint32_t trace, const struct weft__sample_row *sample)
{
	struct weft__samples *r = &a->result.samples;
	struct weft__sample_row *grown;
	uint32_t context, at;
	uint64_t key;

	if (context_get(a, sample->thread, sample->where, sample->location, &context) < 0)
		return -ENOMEM;
	key = (uint64_t)trace << 32 | context;
	at = trace == NO_ROW ? WEFT__MAP_NONE : weft__map_get(&a->samples.row_by_key, key);
	if (at != WEFT__MAP_NONE) {
		weft__weight_add(&r->rows[at].weight, 1, sample->weight.ns);
		return 0;
	}
	if (trace == NO_ROW || r->n_rows >= a->opts.max_sample_rows) {
		weft__weight_add(&r->beyond_rows, 1, sample->weight.ns);
		return 0;
	}
	grown = weft__arena_grow(&a->samples.arena, r->rows, &a->samples.cap_rows, r->n_rows, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->rows = grown;
	if (weft__map_put(&a->samples.row_by_key, key, (uint32_t)r->n_rows) < 0)
		return -ENOMEM;
	grown[r->n_rows++] = *sample;
	return 0;
}

static int tell(struct weft__analysis *a, const struct weft__thread *s, const struct weft__event *ev,
		enum weft__where where)
{
	struct weft__sample_view view = {
		.time_ns = ev->time_ns,
		.weight_ns = WEFT_FIELD(ev, SAMPLE, WEIGHT),
		.stack = (uint32_t)WEFT_FIELD(ev, SAMPLE, STACK),
		.kernel = (uint32_t)WEFT_FIELD(ev, SAMPLE, KERNEL),
		.thread_id = s->id,
		.worker = s->worker,
		.cpu = WEFT_FIELD(ev, SAMPLE, CPU) < UINT32_MAX ? (uint32_t)WEFT_FIELD(ev, SAMPLE, CPU) : UINT32_MAX,
		.engine = (uint32_t)WEFT_FIELD(ev, SAMPLE, ENGINE),
		.where = where,
		.polls = s->open,
		.n_polls = s->n_open,
	};

	return a->opts.sample ? a->opts.sample(a->opts.sample_data, &view) : 0;
}

/* Into the sums of the window. `mark` remembers where. */
static int book(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev, uint32_t trace,
		struct weft__interval *mark)
{
	struct weft__samples *r = &a->result.samples;
	uint64_t ns = WEFT_FIELD(ev, SAMPLE, WEIGHT), engine = WEFT_FIELD(ev, SAMPLE, ENGINE);
	struct weft__sample_row row = {(uint32_t)WEFT_FIELD(ev, SAMPLE, STACK),
				       (uint32_t)WEFT_FIELD(ev, SAMPLE, KERNEL),
				       0,
				       0,
				       where_is(a, s),
				       {1, ns}};
	struct weft__sampled_thread *thread;
	const struct weft__poll *poll;
	struct weft__location *location;

	if (thread_of(a, s, &thread) < 0 || poll_of(a, s, &poll, &location) < 0)
		return -ENOMEM;
	mark->name = s->row;
	mark->what = row.where;
	mark->asked = thread->match && weft__context_asked(a, s);
	mark->booked = mark->asked && (!a->opts.location || poll);
	mark->object = poll ? poll->serial : 0;
	mark->ready_ns = poll ? poll->location : 0;
	if (!mark->booked) {
		weft__weight_add(&r->left_out, 1, ns);
		return 0;
	}
	weft__weight_add(&r->all, 1, ns);
	weft__weight_add(&r->where[row.where], 1, ns);
	weft__weight_add(&r->engines[engine < WEFT__ENGINES ? engine : WEFT__ENGINES - 1], 1, ns);
	weft__weight_add(&thread->all, 1, ns);
	weft__weight_add(&thread->where[row.where], 1, ns);
	if (poll) {
		weft__weight_add(&location->sampled, 1, ns);
		row.location = poll->location;
	}
	row.thread = s->row;
	if (add_to_row(a, trace, &row) < 0)
		return -ENOMEM;
	return tell(a, s, ev, row.where);
}

static void weight_sub(struct weft__weight *from, uint64_t ns)
{
	from->n -= from->n > 0;
	from->ns -= from->ns > ns ? ns : from->ns;
}

/* Takes a sample out of the row in which it is. */
static int sub_from_row(struct weft__analysis *a, uint32_t trace, const struct weft__interval *mark)
{
	uint32_t context, at;

	if (context_get(a, mark->name, (enum weft__where)mark->what, 0, &context) < 0)
		return -ENOMEM;
	at = trace == NO_ROW ? WEFT__MAP_NONE : weft__map_get(&a->samples.row_by_key, (uint64_t)trace << 32 | context);
	weight_sub(at == WEFT__MAP_NONE ? &a->result.samples.beyond_rows : &a->result.samples.rows[at].weight,
		   mark->ns);
	return 0;
}

/* A sample turns out to be in a poll. */
static int move_into(struct weft__analysis *a, uint32_t place_id, uint64_t serial, uint32_t trace,
		     struct weft__interval *mark)
{
	struct weft__samples *r = &a->result.samples;
	struct weft__sampled_thread *thread = &r->threads[mark->name];
	struct weft__sample_row row = {mark->stack, mark->kernel, mark->name, place_id, WEFT__IN_POLL, {1, mark->ns}};
	struct weft__location *location;

	if (weft__location_get(a, place_id, &location) < 0)
		return -ENOMEM;
	if (a->opts.location && !location->match)
		return 0;
	if (mark->booked) {
		if (sub_from_row(a, trace, mark) < 0)
			return -ENOMEM;
		weight_sub(&r->where[mark->what], mark->ns);
		weight_sub(&thread->where[mark->what], mark->ns);
	} else {
		weight_sub(&r->left_out, mark->ns);
		weft__weight_add(&r->all, 1, mark->ns);
		weft__weight_add(&thread->all, 1, mark->ns);
		weft__weight_add(&r->engines[mark->holder < WEFT__ENGINES ? mark->holder : WEFT__ENGINES - 1], 1,
				 mark->ns);
	}
	weft__weight_add(&r->where[WEFT__IN_POLL], 1, mark->ns);
	weft__weight_add(&thread->where[WEFT__IN_POLL], 1, mark->ns);
	weft__weight_add(&location->sampled, 1, mark->ns);
	mark->booked = true;
	mark->what = WEFT__IN_POLL;
	mark->object = serial;
	mark->ready_ns = place_id;
	return add_to_row(a, trace, &row);
}

int weft__sample_found(struct weft__analysis *a, struct weft__thread *s, struct weft__interval *mark)
{
	struct weft__poll *poll = &s->open[s->n_open - 1];
	uint32_t trace;

	if (trace_get(a, mark->stack, mark->kernel, &trace) < 0)
		return -ENOMEM;
	weft__weight_add(&poll->sampled, 1, mark->ns);
	if (weft__log_add(a, s, trace, mark->ns) < 0)
		return -ENOMEM;
	if (!mark->asked || (mark->booked && mark->what == WEFT__IN_POLL))
		return 0;
	return move_into(a, poll->location, poll->serial, trace, mark);
}

int weft__sample_add(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	uint64_t ns = WEFT_FIELD(ev, SAMPLE, WEIGHT);
	struct weft__interval mark = {
		.kind = INTERVAL_SAMPLE,
		.begin_ns = ev->time_ns,
		.end_ns = ev->time_ns,
		.ns = ns,
		.stack = (uint32_t)WEFT_FIELD(ev, SAMPLE, STACK),
		.kernel = (uint32_t)WEFT_FIELD(ev, SAMPLE, KERNEL),
		.cpu_ns = WEFT_FIELD(ev, SAMPLE, CPU),
		.holder = WEFT_FIELD(ev, SAMPLE, ENGINE) < UINT32_MAX ? (uint32_t)WEFT_FIELD(ev, SAMPLE, ENGINE)
								      : UINT32_MAX,
	};
	struct weft__thread_timeline *timeline = NULL;
	uint32_t trace;
	int rc = 0;

	if (trace_get(a, (uint32_t)WEFT_FIELD(ev, SAMPLE, STACK), (uint32_t)WEFT_FIELD(ev, SAMPLE, KERNEL), &trace) < 0)
		return -ENOMEM;
	if (weft__context_keep(a, s, ev->time_ns, &mark.context) < 0)
		return -ENOMEM;
	s->unmeasured_ns += ns;
	if (s->n_open > 0) {
		weft__weight_add(&s->open[s->n_open - 1].sampled, 1, ns);
		if (weft__log_add(a, s, trace, ns) < 0)
			return -ENOMEM;
	}
	if (ev->time_ns >= a->opts.from_ns) {
		weft__beat_sample(a, s, ns, WEFT_FIELD(ev, SAMPLE, ENGINE));
		rc = book(a, s, ev, trace, &mark);
	}
	if (rc == 0)
		rc = weft__thread_timeline_of(a, s, &timeline);
	if (rc == 0 && a->opts.rows && (!timeline || !a->polls_reported || mark.what == WEFT__IN_POLL)) {
		rc = weft__rows_sample(a, &mark);
		mark.given = mark.booked;
	}
	return rc < 0 || !timeline ? rc : weft__thread_timeline_add(a, timeline, &mark);
}

int weft__sample_measured(struct weft__analysis *a, struct weft__thread *s, uint64_t cpu_ns, uint64_t span_ns)
{
	uint64_t sampled_ns = s->unmeasured_ns;
	struct weft__sampled_thread *thread;
	bool cut = s->unmeasured_cut;

	s->unmeasured_ns = 0;
	s->unmeasured_cut = false;
	if (span_ns == 0 || cut || a->opts.period_ns == 0)
		return 0;
	if (thread_of(a, s, &thread) < 0)
		return -ENOMEM;
	thread->measured_ns += cpu_ns;
	thread->measured_span_ns += span_ns;
	thread->measured_sampled_ns += sampled_ns;
	return 0;
}
