/* SPDX-License-Identifier: Apache-2.0 */
/* One recording, read once, into the sums: each sample, wait, interval off the CPU and slice of a poll is one addition.
 * The analysis has the filters, but for the length of polls. With that there is a reading before, which finds the
 * polls that are long enough: a sample comes before the end of its poll. */
#include <errno.h>
#include <string.h>

#include "analyze/label.h"
#include "analyze/state.h"
#include "export/aggregate.h"
#include "weft/wait.h"

#define LONG_POLLS_MAX ((size_t)1 << 22)
#define ROOTS_MAX ((size_t)1 << 20)

static const char *const where_names[WEFT__N_WHERE] = {
	[WEFT__IN_POLL] = "in_polls",        [WEFT__BETWEEN_POLLS] = "between_polls", [WEFT__PARKED] = "parked",
	[WEFT__NEVER_POLLS] = "never_polls", [WEFT__WHERE_UNKNOWN] = "unknown",
};
static const char *const part_names[WEFT__N_PARTS] = {
	[WEFT__ON_CPU] = "on cpu",       [WEFT__BLOCKED] = "blocked",           [WEFT__WAITING] = "waiting",
	[WEFT__PREEMPTED] = "preempted", [WEFT__NOT_MEASURED] = "not measured",
};
static const char *const time_names[WEFT__TIME_STATES] = {
	[WEFT__TIME_CPU] = "on cpu",
	[WEFT__TIME_WAITING] = "waiting",
	[WEFT__TIME_BLOCKED] = "blocked",
	[WEFT__TIME_PREEMPTED] = "preempted",
};

/* One row to add, as far as it is known. */
struct adding {
	struct weft__row_labels labels;
	struct weft__stack_key stack;
	int64_t values[WEFT__N_VALUES];
};

static int64_t amount(uint64_t v)
{
	return v < INT64_MAX ? (int64_t)v : INT64_MAX;
}

static int text(struct weft__aggregate *agg, const char *of, uint32_t *ret)
{
	*ret = 0;
	return of && of[0] ? weft__keys_text(&agg->texts, of, ret) : 0;
}

static int label_thread(struct weft__aggregate *agg, uint32_t thread_id, uint32_t tid, uint32_t worker,
			struct weft__row_labels *to)
{
	const struct weft_thread *thread = thread_id ? weft__names_thread(&agg->rec->names, thread_id) : NULL;
	char label[WEFT__LABEL_BYTES];

	to->pid = agg->pid;
	to->tid = thread && thread->tid ? thread->tid : tid;
	if (thread && text(agg, thread->name, &to->thread) < 0)
		return -ENOMEM;
	if (worker == WEFT_WORKER_NONE || worker == WEFT__LANE_OTHER)
		return 0;
	return text(agg, weft__label_lane(&agg->rec->names, worker, thread_id, label, sizeof(label)), &to->worker);
}

static int label_context(struct weft__aggregate *agg, const struct weft__context *context, struct weft__row_labels *to)
{
	if (!context || agg->opts->no_contexts || !weft__context_is_set(context))
		return 0;
	to->span = context->span;
	to->root = context->root;
	to->trace_hi = context->trace_hi;
	to->trace_lo = context->trace_lo;
	if (text(agg, weft__names_string(&agg->rec->names, context->labels), &to->labels) < 0)
		return -ENOMEM;
	return text(agg, weft__names_string(&agg->rec->names, context->endpoint), &to->endpoint);
}

static int label_wait(struct weft__aggregate *agg, uint32_t what, uint32_t name, struct weft__row_labels *to)
{
	if (!what)
		return 0;
	if (text(agg, weft__names_string(&agg->rec->names, name), &to->wait_for) < 0)
		return -ENOMEM;
	return text(agg, weft__label_wait(what), &to->wait);
}

static int label_location(struct weft__aggregate *agg, uint32_t location, struct weft__row_labels *to)
{
	return text(agg, weft__label_location(&agg->rec->names, location), &to->location);
}

static int add(struct weft__aggregate *agg, struct adding *row)
{
	uint32_t stack, labels;
	size_t i;

	row->stack.recording = agg->number;
	if (weft__aggregate_stack(agg, &row->stack, &stack) < 0 ||
	    weft__sums_labels(&agg->sums, &row->labels, sizeof(row->labels), &labels) < 0)
		return -ENOMEM;
	for (i = 0; i < WEFT__N_VALUES; i++) {
		agg->n_rows_of[i] += row->values[i] != 0;
		agg->totals[i] += (uint64_t)row->values[i];
	}
	return weft__sums_add(&agg->sums, stack, labels, row->values);
}

/* With a limit of length, only what is in polls that reach it. */
static bool is_long(const struct weft__aggregate *agg, uint64_t serial)
{
	return !agg->opts->min_poll_ns ||
	       (serial && weft__keys_find(&agg->long_polls, &serial, sizeof(serial)) != WEFT__MAP_NONE);
}

static int add_sample(void *data, const struct weft__sample_one *sample)
{
	struct weft__aggregate *agg = data;
	struct adding row = {.stack = {.stack = sample->stack, .kernel = sample->kernel}};

	if (!is_long(agg, sample->poll))
		return 0;
	if (label_thread(agg, sample->thread_id, 0, sample->worker, &row.labels) < 0 ||
	    label_context(agg, sample->context, &row.labels) < 0 ||
	    text(agg, part_names[WEFT__ON_CPU], &row.labels.state) < 0 ||
	    text(agg, where_names[sample->where], &row.labels.where) < 0 ||
	    (sample->poll && label_location(agg, sample->location, &row.labels) < 0))
		return -ENOMEM;
	row.values[WEFT__VALUE_CPU_SAMPLES] = 1;
	row.values[WEFT__VALUE_CPU_NS] = amount(sample->ns);
	return add(agg, &row);
}

static int add_time(void *data, const struct weft__time_sample *sample)
{
	struct weft__aggregate *agg = data;
	const struct weft_thread *thread =
		sample->thread_id ? weft__names_thread(&agg->rec->names, sample->thread_id) : NULL;
	uint32_t worker = thread ? thread->worker : WEFT_WORKER_NONE;
	struct adding row = {.stack = {.stack = sample->stack, .kernel = sample->kernel, .outside = sample->what != 0}};

	if (sample->wall_ns == 0 || !weft__worker_asked(agg->analysis, worker, sample->thread_id) ||
	    !weft__thread_asked(agg->analysis, sample->thread_id))
		return 0;
	if (label_thread(agg, sample->thread_id, sample->tid, worker, &row.labels) < 0 ||
	    label_context(agg, sample->context, &row.labels) < 0 ||
	    label_wait(agg, sample->what, sample->name, &row.labels) < 0 ||
	    text(agg, time_names[sample->state], &row.labels.state) < 0)
		return -ENOMEM;
	row.values[WEFT__VALUE_WALL_NS] = amount(sample->wall_ns);
	return add(agg, &row);
}

static int add_off(void *data, const struct weft__off_view *off)
{
	struct weft__aggregate *agg = data;
	struct adding row = {.stack = {.stack = off->stack, .kernel = off->kernel}};
	const char *state = part_names[off->what == WEFT_OFFCPU_PREEMPTED ? WEFT__PREEMPTED : WEFT__BLOCKED];
	unsigned __int128 ns = (unsigned __int128)(off->end_ns - off->begin_ns) * (off->count ? off->count : 1);

	if (label_thread(agg, off->thread_id, off->tid, off->worker, &row.labels) < 0 ||
	    label_context(agg, off->context, &row.labels) < 0 || text(agg, state, &row.labels.state) < 0)
		return -ENOMEM;
	row.values[WEFT__VALUE_OFFCPU_COUNT] = amount(off->count);
	row.values[WEFT__VALUE_OFFCPU_NS] = ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
	return add(agg, &row);
}

static int add_wait(void *data, const struct weft__wait_view *view)
{
	const struct weft__wait *wait = view->wait;
	struct weft__aggregate *agg = data;
	struct adding row = {.stack = {.stack = wait->stack, .outside = true}};

	if (!is_long(agg, view->poll))
		return 0;
	if (label_thread(agg, wait->thread_id, 0, wait->worker, &row.labels) < 0 ||
	    label_context(agg, &wait->context, &row.labels) < 0 ||
	    label_wait(agg, wait->what, wait->name, &row.labels) < 0 ||
	    text(agg, part_names[WEFT__WAITING], &row.labels.state) < 0 ||
	    (wait->in_poll && label_location(agg, wait->location, &row.labels) < 0))
		return -ENOMEM;
	row.values[WEFT__VALUE_WAIT_COUNT] = 1;
	row.values[WEFT__VALUE_WAIT_NS] = amount(wait->rank_ns);
	return add(agg, &row);
}

static int add_wait_sum(void *data, const struct weft__wait_sum_view *sum)
{
	struct weft__aggregate *agg = data;
	struct adding row = {0};
	uint32_t mark;

	if (agg->opts->min_poll_ns)
		return 0;
	if (label_thread(agg, sum->thread_id, 0, sum->worker, &row.labels) < 0 ||
	    label_wait(agg, sum->what, sum->name, &row.labels) < 0 ||
	    text(agg, part_names[WEFT__WAITING], &row.labels.state) < 0 ||
	    weft__aggregate_mark(agg, "[waits too short for a stack]", NULL, 0, &mark) < 0)
		return -ENOMEM;
	row.stack.leaf = mark + 1;
	row.values[WEFT__VALUE_WAIT_COUNT] = amount(sum->n);
	row.values[WEFT__VALUE_WAIT_NS] = amount(sum->ns);
	return add(agg, &row);
}

/* Polls have no stack: where their task was spawned is the outermost frame. */
static int label_poll(struct weft__aggregate *agg, const struct weft__poll *poll, struct adding *row)
{
	const struct weft_location_def *def = weft__names_location(&agg->rec->names, poll->location);
	const char *name = weft__label_location(&agg->rec->names, poll->location);
	uint32_t mark;

	if (label_thread(agg, poll->thread_id, 0, poll->worker, &row->labels) < 0 ||
	    label_location(agg, poll->location, &row->labels) < 0 ||
	    (poll->has_context && label_context(agg, &poll->context, &row->labels) < 0) ||
	    weft__aggregate_mark(agg, name, def ? def->file : NULL, def ? def->line : 0, &mark) < 0)
		return -ENOMEM;
	row->stack.root = mark + 1;
	return 0;
}

static int add_poll(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown)
{
	struct weft__aggregate *agg = data;
	struct adding row = {0};
	uint32_t number;

	(void)breakdown;
	if (agg->finding) {
		if (poll->rank_ns < agg->opts->min_poll_ns || agg->long_polls.n >= LONG_POLLS_MAX)
			return 0;
		return weft__keys_add(&agg->long_polls, &poll->serial, sizeof(poll->serial), &number);
	}
	if (!is_long(agg, poll->serial))
		return 0;
	if (label_poll(agg, poll, &row) < 0)
		return -ENOMEM;
	row.values[WEFT__VALUE_POLL_COUNT] = 1;
	return add(agg, &row);
}

static int add_slice(void *data, const struct weft__slice_view *slice)
{
	struct weft__aggregate *agg = data;
	struct adding row = {.stack = {.stack = slice->stack, .kernel = slice->kernel, .outside = slice->what != 0}};

	if (!is_long(agg, slice->poll->serial))
		return 0;
	if (label_poll(agg, slice->poll, &row) < 0 || label_wait(agg, slice->what, slice->name, &row.labels) < 0 ||
	    text(agg, part_names[slice->part], &row.labels.state) < 0)
		return -ENOMEM;
	row.values[WEFT__VALUE_POLL_NS] = amount(slice->ns);
	return add(agg, &row);
}

/* Names of endpoints that are set when samples of their request were taken already. */
static int note_endpoint(struct weft__aggregate *agg, const struct weft__record *record)
{
	struct weft__event ev = weft__event_of_record(record);
	uint64_t root = WEFT_FIELD(&ev, CONTEXT, ROOT);
	const char *name = weft__names_string(&agg->rec->names, (uint32_t)WEFT_FIELD(&ev, CONTEXT, ENDPOINT));
	uint32_t number;

	if (!root || !name || !name[0] ||
	    (agg->endpoint_by_root.n >= ROOTS_MAX && weft__map_get(&agg->endpoint_by_root, root) == WEFT__MAP_NONE))
		return 0;
	if (text(agg, name, &number) < 0)
		return -ENOMEM;
	return weft__map_put(&agg->endpoint_by_root, root, number);
}

struct feed {
	struct weft__aggregate *agg;
};

static int feed_run(void *data, const struct weft__record *at, const struct weft__record *end)
{
	struct weft__aggregate *agg = ((struct feed *)data)->agg;
	const struct weft__record *one;

	for (one = at; one < end && !agg->opts->no_contexts && !agg->finding; one++)
		if (one->kind == WEFT_KIND_CONTEXT && note_endpoint(agg, one) < 0)
			return -ENOMEM;
	return weft__analysis_push_run(agg->analysis, at, end);
}

static void feed_progress(void *data, uint64_t n_events)
{
	const struct weft__aggregate *agg = ((struct feed *)data)->agg;

	if (agg->opts->progress)
		agg->opts->progress(agg->opts->progress_data, n_events, agg->rec->n_events);
}

static bool wants(const struct weft__aggregate *agg, uint32_t what)
{
	return !agg->opts->what || agg->opts->what & what;
}

static struct weft__row_sink sink_of(struct weft__aggregate *agg)
{
	struct weft__row_sink sink = {.data = agg};

	if (agg->finding) {
		sink.poll = add_poll;
		return sink;
	}
	if (wants(agg, WEFT__EXPORT_CPU))
		sink.sample = add_sample;
	if (wants(agg, WEFT__EXPORT_OFFCPU) && !agg->opts->min_poll_ns)
		sink.off = add_off;
	if (wants(agg, WEFT__EXPORT_WAIT)) {
		sink.wait = add_wait;
		sink.wait_sum = add_wait_sum;
	}
	if (wants(agg, WEFT__EXPORT_POLL)) {
		sink.poll = add_poll;
		sink.slice = add_slice;
	}
	return sink;
}

static struct weft__analysis_opts analysis_opts(const struct weft__aggregate *agg, const struct weft__row_sink *sink)
{
	const struct weft__export_opts *opts = agg->opts;

	return (struct weft__analysis_opts){
		.names = &agg->rec->names,
		.start_ns = agg->rec->start_ns,
		.from_ns = opts->from_ns ? weft__recording_time(agg->rec, opts->from_ns) : 0,
		.to_ns = opts->to_ns ? weft__recording_time(agg->rec, opts->to_ns) : UINT64_MAX,
		.worker = opts->worker,
		.location = opts->location,
		.thread = opts->thread,
		.endpoint = opts->endpoint,
		.label = opts->label,
		.span = opts->span,
		.trace_hi = opts->trace_hi,
		.trace_lo = opts->trace_lo,
		.top = 1,
		.rows = sink,
	};
}

static int read_once(struct weft__aggregate *agg, const struct weft__result **ret)
{
	struct feed feed = {agg};
	struct weft__events_ops ops = {.run = feed_run, .progress = feed_progress, .data = &feed};
	struct weft__row_sink sink = sink_of(agg);
	struct weft__analysis_opts opts = analysis_opts(agg, &sink);
	uint64_t end_ns = agg->rec->last_ns < opts.to_ns ? agg->rec->last_ns : opts.to_ns;
	int rc;

	if (wants(agg, WEFT__EXPORT_WALL) && !agg->no_wall && !agg->finding) {
		opts.time_sample = add_time;
		opts.time_data = agg;
	}
	rc = weft__analysis_open(&agg->analysis, &opts);
	if (rc == 0)
		rc = weft__recording_events(agg->rec, 0, opts.to_ns, &ops);
	return rc < 0 ? rc : weft__analysis_finish(agg->analysis, end_ns, ret);
}

int weft__aggregate_read(struct weft__aggregate *agg, const struct weft__result **ret)
{
	int rc = 0;

	if (agg->opts->min_poll_ns) {
		agg->finding = true;
		rc = read_once(agg, ret);
		weft__analysis_close(agg->analysis);
		agg->analysis = NULL;
		agg->finding = false;
	}
	return rc < 0 ? rc : read_once(agg, ret);
}
