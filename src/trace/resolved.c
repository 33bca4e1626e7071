/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what the analysis resolves: polls, their slices and wakes, waits, samples, times off the CPU. */
#include <errno.h>

#include "analyze/label.h"
#include "trace/inside.h"
#include "weft/wait.h"

static const char *const part_names[WEFT__N_PARTS] = {
	[WEFT__ON_CPU] = "on_cpu",       [WEFT__BLOCKED] = "blocked",           [WEFT__WAITING] = "waiting",
	[WEFT__PREEMPTED] = "preempted", [WEFT__NOT_MEASURED] = "not_measured",
};

static const char *const where_names[WEFT__N_WHERE] = {
	[WEFT__IN_POLL] = "in_polls",        [WEFT__BETWEEN_POLLS] = "between_polls", [WEFT__PARKED] = "parked",
	[WEFT__NEVER_POLLS] = "never_polls", [WEFT__WHERE_UNKNOWN] = "unknown",
};

static __attribute__((noinline)) const struct weft__who *who_find(struct weft__scan *t, struct weft__who *who,
								  uint32_t worker, uint32_t stream)
{
	char label[WEFT__LABEL_BYTES];

	weft__label_lane(&t->rec->names, worker, stream, label, sizeof(label));
	who->label = weft__texts_add(&t->set->texts, label);
	who->thread = weft__names_thread(&t->rec->names, stream);
	who->stream = stream;
	who->worker = worker;
	return who->label ? who : NULL;
}

/* Who a thread is, or NULL when out of memory. */
static inline __attribute__((always_inline)) const struct weft__who *who_get(struct weft__scan *t, uint32_t worker,
									     uint32_t stream)
{
	struct weft__who *who = &t->whos[(worker ^ stream) % (sizeof(t->whos) / sizeof(t->whos[0]))];

	return who->label && who->stream == stream && who->worker == worker ? who : who_find(t, who, worker, stream);
}

int weft__fill_label(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t worker, uint32_t stream)
{
	const struct weft__who *who;

	if (!weft__wanted(t, column))
		return 0;
	who = who_get(t, worker, stream);
	weft__set_text(row, column, who ? who->label : NULL);
	return who ? 0 : -ENOMEM;
}

enum who { WHO_RECORDING, WHO_THREAD_ID, WHO_TID, WHO_THREAD, WHO_WORKER_ID, WHO_WORKER };

int weft__fill_who(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t stream, uint32_t tid,
		   uint32_t worker)
{
	const struct weft__who *who = NULL;

	weft__set_int(row, column + WHO_RECORDING, (int64_t)t->number);
	if (stream)
		weft__set_int(row, column + WHO_THREAD_ID, weft__id(t, stream));
	if (tid)
		weft__set_int(row, column + WHO_TID, tid);
	if (t->opts.columns >> (column + WHO_TID) & (1 | 1 << 1 | 1 << (WHO_WORKER - WHO_TID))) {
		who = who_get(t, worker, stream);
		if (!who)
			return -ENOMEM;
	}
	if (who && stream && who->thread) {
		if (who->thread->tid)
			weft__set_int(row, column + WHO_TID, who->thread->tid);
		weft__set_text(row, column + WHO_THREAD, who->thread->name);
	}
	if (worker == WEFT_WORKER_NONE || worker == WEFT__LANE_OTHER)
		return 0;
	weft__set_int(row, column + WHO_WORKER_ID, weft__id(t, worker));
	weft__set_text(row, column + WHO_WORKER, who ? who->label : NULL);
	return 0;
}

static inline const char *location_label(struct weft__scan *t, uint32_t location)
{
	struct weft__where_slot *slot = &t->locations[location % (sizeof(t->locations) / sizeof(t->locations[0]))];

	if (!slot->label || slot->location != location) {
		slot->label = weft__label_location(&t->rec->names, location);
		slot->location = location;
	}
	return slot->label;
}

void weft__fill_row_location(struct weft__scan *t, struct weft__row *row, size_t id_column, size_t column,
			     uint32_t location)
{
	if (id_column != SIZE_MAX && location > 0 && location < WEFT__LOCATION_OTHER)
		weft__set_int(row, id_column, weft__id(t, location));
	if (weft__wanted(t, column))
		weft__set_text(row, column, location_label(t, location));
}

void weft__fill_stack(const struct weft__scan *t, struct weft__row *row, size_t column, uint32_t stack)
{
	if (stack)
		weft__set_int(row, column, weft__id(t, stack));
}

int weft__fill_function(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t stack, uint32_t kernel,
			bool outside)
{
	const struct weft__frames *frames = &t->rec->frames;
	size_t at;

	if (!weft__wanted(t, column) || (!stack && !kernel))
		return 0;
	if (weft__frames_lines(frames, stack, kernel, &t->lines) < 0)
		return -ENOMEM;
	if (t->lines.n == 0)
		return 0;
	at = outside ? weft__frames_outside(frames, &t->lines) : 0;
	weft__set_text(row, column, frames->functions[t->lines.at[at].function].name);
	return 0;
}

void weft__fill_context(const struct weft__scan *t, struct weft__row *row, size_t column,
			const struct weft__context *context)
{
	enum { SPAN, ROOT_SPAN, TRACE, ENDPOINT, LABELS };

	if (!weft__context_is_set(context))
		return;
	if (context->span)
		weft__set_int(row, column + SPAN, (int64_t)context->span);
	if (context->root)
		weft__set_int(row, column + ROOT_SPAN, (int64_t)context->root);
	if (context->trace_hi || context->trace_lo) {
		weft__set_int(row, column + TRACE, 0);
		row->trace[0] = context->trace_hi;
		row->trace[1] = context->trace_lo;
	}
	weft__set_text(row, column + ENDPOINT, weft__names_string(&t->rec->names, context->endpoint));
	weft__set_text(row, column + LABELS, weft__names_string(&t->rec->names, context->labels));
}

static int64_t delay_of(const struct weft__poll *poll)
{
	return poll->begin_ns > poll->wake.time_ns ? (int64_t)(poll->begin_ns - poll->wake.time_ns) : 0;
}

/* Cells of a row of polls, the most frequent ones: `set` becomes row->set. A value that is not known is written and not
 * set. */
struct filling {
	struct weft__row *row;
	uint64_t set;
};

static inline void put(struct filling *f, size_t column, int64_t value, bool known)
{
	f->row->at[column].i = value;
	f->set |= (uint64_t)known << column;
}

static inline void put_text(struct filling *f, size_t column, const char *text)
{
	f->row->at[column].text = text;
	f->set |= (uint64_t)(text && text[0]) << column;
}

/* A part that is 0 because nothing could have said otherwise is not known, as in the report. */
static inline void put_time(struct filling *f, const struct weft__scan *t, const struct weft__poll *poll,
			    const struct weft__breakdown *breakdown)
{
	bool known = breakdown->cpu != WEFT__CPU_UNKNOWN || breakdown->switches == WEFT__SWITCHES_ALL;
	bool sampled = t->sampling || poll->sampled.n;
	const uint64_t *ns = breakdown->split.ns;

	put(f, WEFT__COL_POLL_BEGIN_NS, weft__time(t, poll->begin_ns), true);
	put(f, WEFT__COL_POLL_END_NS, weft__time(t, poll->end_ns), poll->end_ns != 0);
	put(f, WEFT__COL_POLL_DURATION_NS, (int64_t)poll->rank_ns, true);
	put(f, WEFT__COL_POLL_ON_CPU_NS, (int64_t)ns[WEFT__ON_CPU], known || ns[WEFT__ON_CPU]);
	put(f, WEFT__COL_POLL_BLOCKED_NS, (int64_t)ns[WEFT__BLOCKED], known || ns[WEFT__BLOCKED]);
	put(f, WEFT__COL_POLL_WAITING_NS, (int64_t)ns[WEFT__WAITING], known || ns[WEFT__WAITING] || !t->waits_off);
	put(f, WEFT__COL_POLL_PREEMPTED_NS, (int64_t)ns[WEFT__PREEMPTED], known || ns[WEFT__PREEMPTED]);
	put(f, WEFT__COL_POLL_THROTTLED_NS, (int64_t)breakdown->split.throttled_ns, known || ns[WEFT__PREEMPTED]);
	put(f, WEFT__COL_POLL_NOT_MEASURED_NS, (int64_t)ns[WEFT__NOT_MEASURED], true);
	put(f, WEFT__COL_POLL_SAMPLES, (int64_t)poll->sampled.n, sampled);
	put(f, WEFT__COL_POLL_SAMPLED_NS, (int64_t)poll->sampled.ns, sampled);
}

static inline __attribute__((always_inline)) int put_wake(struct filling *f, struct weft__scan *t,
							  const struct weft__poll *poll)
{
	const struct weft__wake *wake = &poll->wake;
	bool behind = wake->measured && poll->behind.held_ns;
	const struct weft__who *who;

	if (!wake->known)
		return 0;
	put(f, WEFT__COL_POLL_WAKE_NS, weft__time(t, wake->time_ns), true);
	put(f, WEFT__COL_POLL_WAKE_DELAY_NS, delay_of(poll), wake->measured);
	put(f, WEFT__COL_POLL_WAKER_THREAD_ID, weft__id(t, wake->stream), true);
	put(f, WEFT__COL_POLL_WAKER_TASK, (int64_t)wake->task, wake->in_poll);
	if (wake->in_poll)
		put_text(f, WEFT__COL_POLL_WAKER_LOCATION, location_label(t, wake->location));
	put(f, WEFT__COL_POLL_BEHIND_POLL_ID, weft__id(t, poll->behind.serial), behind);
	put(f, WEFT__COL_POLL_BEHIND_NS, (int64_t)poll->behind.held_ns, behind);
	if (!weft__wanted(t, WEFT__COL_POLL_WAKER_WORKER))
		return 0;
	who = who_get(t, wake->worker, wake->stream);
	if (!who)
		return -ENOMEM;
	put_text(f, WEFT__COL_POLL_WAKER_WORKER, who->label);
	return 0;
}

static int give_poll(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown)
{
	struct weft__scan *t = data;
	struct filling f = {weft__row_new(t), 0};
	const struct weft__who *who = who_get(t, poll->worker, poll->stream);
	bool worker = poll->worker != WEFT_WORKER_NONE && poll->worker != WEFT__LANE_OTHER;

	if (!f.row || !who || put_wake(&f, t, poll) < 0)
		return -ENOMEM;
	put(&f, WEFT__COL_POLL_ID, weft__id(t, poll->serial), true);
	put(&f, WEFT__COL_POLL_RECORDING, (int64_t)t->number, true);
	put(&f, WEFT__COL_POLL_THREAD_ID, weft__id(t, poll->stream), poll->stream != 0);
	if (who->thread && poll->stream) {
		put(&f, WEFT__COL_POLL_TID, who->thread->tid, who->thread->tid != 0);
		put_text(&f, WEFT__COL_POLL_THREAD, who->thread->name);
	}
	if (worker) {
		put(&f, WEFT__COL_POLL_WORKER_ID, weft__id(t, poll->worker), true);
		put_text(&f, WEFT__COL_POLL_WORKER, who->label);
	}
	put(&f, WEFT__COL_POLL_TASK, (int64_t)poll->task, true);
	put(&f, WEFT__COL_POLL_LOCATION_ID, weft__id(t, poll->location),
	    poll->location > 0 && poll->location < WEFT__LOCATION_OTHER);
	put_text(&f, WEFT__COL_POLL_LOCATION, location_label(t, poll->location));
	put_time(&f, t, poll, breakdown);
	put(&f, WEFT__COL_POLL_QUEUE_DEPTH, poll->depth, poll->depth != WEFT_DEPTH_UNKNOWN);
	put(&f, WEFT__COL_POLL_NESTED_IN, poll->level, true);
	put(&f, WEFT__COL_POLL_WAKES_ISSUED, poll->n_wakes, !poll->reported);
	f.row->set = f.set;
	if (poll->has_context)
		weft__fill_context(t, f.row, WEFT__COL_POLL_SPAN, &poll->context);
	weft__row_give(t, f.row);
	return 0;
}

/* From a poll, which knows the wake that it began after. */
static int give_wake(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown)
{
	const struct weft__wake *wake = &poll->wake;
	struct weft__scan *t = data;
	struct weft__row *row;

	(void)breakdown;
	if (!wake->known)
		return 0;
	row = weft__row_new(t);
	if (!row || weft__fill_who(t, row, WEFT__COL_WAKE_RECORDING, wake->stream, 0, wake->worker) < 0 ||
	    weft__fill_label(t, row, WEFT__COL_WAKE_TO_WORKER, poll->worker, poll->stream) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_WAKE_TIME_NS, weft__time(t, wake->time_ns));
	if (wake->in_poll) {
		weft__set_int(row, WEFT__COL_WAKE_FROM_TASK, (int64_t)wake->task);
		weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_WAKE_FROM_LOCATION, wake->location);
	}
	weft__set_int(row, WEFT__COL_WAKE_TO_TASK, (int64_t)poll->task);
	weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_WAKE_TO_LOCATION, poll->location);
	weft__set_int(row, WEFT__COL_WAKE_POLL_ID, weft__id(t, poll->serial));
	if (wake->measured)
		weft__set_int(row, WEFT__COL_WAKE_DELAY_NS, delay_of(poll));
	weft__row_give(t, row);
	return 0;
}

/* Kind, name, object, descriptor and what that was, from `column` on. */
static void fill_object(const struct weft__scan *t, struct weft__row *row, size_t column, uint32_t what, uint32_t name,
			uint64_t object)
{
	enum { KIND, NAME, OBJECT, FD, ABOUT };

	weft__set_text(row, column + KIND, weft__label_wait(what));
	weft__set_text(row, column + NAME, weft__names_string(&t->rec->names, name));
	if (what != WEFT_WAIT_CALL && object) {
		weft__set_int(row, column + OBJECT, (int64_t)object);
	} else if (what == WEFT_WAIT_CALL && object != UINT64_MAX) {
		weft__set_int(row, column + FD, (int64_t)(uint32_t)object);
		weft__set_text(row, column + ABOUT,
			       weft__names_string(&t->rec->names, (uint32_t)(object >> WEFT_WAIT_ABOUT_AT)));
	}
}

/* Before the row is filled: most slices are short. */
static bool slice_holds(const struct weft__scan *t, const struct weft__slice_view *slice)
{
	size_t i;

	for (i = 0; i < t->opts.n_filters; i++)
		if (t->opts.filters[i].column == WEFT__COL_SLICE_DURATION_NS &&
		    !weft__holds(&t->opts.filters[i], WEFT__INT, (union weft__value){.i = (int64_t)slice->ns}))
			return false;
	return true;
}

static int give_slice(void *data, const struct weft__slice_view *slice)
{
	const struct weft__poll *poll = slice->poll;
	struct weft__scan *t = data;
	struct weft__row *row;

	if (!slice_holds(t, slice))
		return 0;
	row = weft__row_new(t);
	if (!row || weft__fill_who(t, row, WEFT__COL_SLICE_RECORDING, poll->stream, 0, poll->worker) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_SLICE_POLL_ID, weft__id(t, poll->serial));
	weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_SLICE_LOCATION, poll->location);
	weft__set_text(row, WEFT__COL_SLICE_PART, part_names[slice->part]);
	weft__set_int(row, WEFT__COL_SLICE_DURATION_NS, (int64_t)slice->ns);
	if (slice->end_ns) {
		weft__set_int(row, WEFT__COL_SLICE_BEGIN_NS, weft__time(t, slice->begin_ns));
		weft__set_int(row, WEFT__COL_SLICE_END_NS, weft__time(t, slice->end_ns));
	}
	if (slice->what)
		fill_object(t, row, WEFT__COL_SLICE_KIND, slice->what, slice->name, slice->object);
	if (slice->call)
		weft__set_int(row, WEFT__COL_SLICE_SYSCALL, (int64_t)slice->call - 1);
	weft__fill_stack(t, row, WEFT__COL_SLICE_STACK_ID, slice->stack);
	weft__fill_stack(t, row, WEFT__COL_SLICE_KERNEL_STACK_ID, slice->kernel);
	if (weft__fill_function(t, row, WEFT__COL_SLICE_FUNCTION, slice->stack, slice->kernel, slice->what != 0) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

static int fill_holder(struct weft__scan *t, struct weft__row *row, const struct weft__holder *holder)
{
	if (!holder->tid)
		return 0;
	weft__set_int(row, WEFT__COL_WAIT_HOLDER_TID, holder->tid);
	if (holder->stream) {
		weft__set_int(row, WEFT__COL_WAIT_HOLDER_THREAD_ID, weft__id(t, holder->stream));
		if (weft__fill_label(t, row, WEFT__COL_WAIT_HOLDER, holder->worker, holder->stream) < 0)
			return -ENOMEM;
	}
	if (holder->in_poll) {
		weft__set_int(row, WEFT__COL_WAIT_HOLDER_TASK, (int64_t)holder->task);
		weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_WAIT_HOLDER_LOCATION, holder->location);
	}
	if (holder->held_ns)
		weft__set_int(row, WEFT__COL_WAIT_HELD_NS, (int64_t)holder->held_ns);
	weft__fill_stack(t, row, WEFT__COL_WAIT_HOLDER_STACK_ID, holder->stack);
	return weft__fill_function(t, row, WEFT__COL_WAIT_HOLDER_FUNCTION, holder->stack, holder->kernel,
				   holder->what != 0);
}

static int give_wait(void *data, const struct weft__wait_view *view)
{
	const struct weft__wait *wait = view->wait;
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);
	uint64_t whole_ns = wait->end_ns - view->begin_ns;

	if (!row || weft__fill_who(t, row, WEFT__COL_WAIT_RECORDING, wait->stream, 0, wait->worker) < 0)
		return -ENOMEM;
	fill_object(t, row, WEFT__COL_WAIT_KIND, wait->what, wait->name, wait->object);
	weft__set_int(row, WEFT__COL_WAIT_BEGIN_NS, weft__time(t, view->begin_ns));
	weft__set_int(row, WEFT__COL_WAIT_END_NS, weft__time(t, wait->end_ns));
	weft__set_int(row, WEFT__COL_WAIT_DURATION_NS, (int64_t)wait->rank_ns);
	if (view->cpu_ns != WEFT_NOT_MEASURED)
		weft__set_int(row, WEFT__COL_WAIT_ON_CPU_NS,
			      (int64_t)(view->cpu_ns < whole_ns ? view->cpu_ns : whole_ns));
	weft__fill_stack(t, row, WEFT__COL_WAIT_STACK_ID, wait->stack);
	if (wait->in_poll) {
		weft__set_int(row, WEFT__COL_WAIT_POLL_ID, weft__id(t, view->poll));
		weft__set_int(row, WEFT__COL_WAIT_TASK, (int64_t)wait->task);
		weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_WAIT_LOCATION, wait->location);
	}
	weft__fill_context(t, row, WEFT__COL_WAIT_SPAN, &wait->context);
	if (weft__fill_function(t, row, WEFT__COL_WAIT_FUNCTION, wait->stack, 0, true) < 0 ||
	    fill_holder(t, row, &wait->holder) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

static int give_wait_sum(void *data, const struct weft__wait_sum_view *sum)
{
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_who(t, row, WEFT__COL_WAIT_SUM_RECORDING, sum->stream, 0, sum->worker) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_WAIT_SUM_TIME_NS, weft__time(t, sum->time_ns));
	weft__set_text(row, WEFT__COL_WAIT_SUM_KIND, weft__label_wait(sum->what));
	weft__set_text(row, WEFT__COL_WAIT_SUM_NAME, weft__names_string(&t->rec->names, sum->name));
	weft__set_int(row, WEFT__COL_WAIT_SUM_COUNT, (int64_t)sum->n);
	weft__set_int(row, WEFT__COL_WAIT_SUM_TOTAL_NS, (int64_t)sum->ns);
	weft__set_int(row, WEFT__COL_WAIT_SUM_LONGEST_NS, (int64_t)sum->longest_ns);
	weft__row_give(t, row);
	return 0;
}

static int give_sample(void *data, const struct weft__sample_one *sample)
{
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_who(t, row, WEFT__COL_SAMPLE_RECORDING, sample->stream, 0, sample->worker) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_SAMPLE_TIME_NS, weft__time(t, sample->time_ns));
	weft__set_int(row, WEFT__COL_SAMPLE_WEIGHT_NS, (int64_t)sample->ns);
	weft__set_text(row, WEFT__COL_SAMPLE_STATE, where_names[sample->where]);
	if (sample->poll) {
		weft__set_int(row, WEFT__COL_SAMPLE_POLL_ID, weft__id(t, sample->poll));
		weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_SAMPLE_LOCATION, sample->location);
	}
	weft__fill_stack(t, row, WEFT__COL_SAMPLE_STACK_ID, sample->stack);
	weft__fill_stack(t, row, WEFT__COL_SAMPLE_KERNEL_STACK_ID, sample->kernel);
	if (sample->cpu != UINT32_MAX)
		weft__set_int(row, WEFT__COL_SAMPLE_CPU, sample->cpu);
	weft__set_int(row, WEFT__COL_SAMPLE_ENGINE, sample->engine);
	if (weft__fill_function(t, row, WEFT__COL_SAMPLE_FUNCTION, sample->stack, sample->kernel, false) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

static int give_off(void *data, const struct weft__off_view *off)
{
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_who(t, row, WEFT__COL_OFFCPU_RECORDING, off->stream, off->tid, off->worker) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_OFFCPU_BEGIN_NS, weft__time(t, off->begin_ns));
	weft__set_int(row, WEFT__COL_OFFCPU_END_NS, weft__time(t, off->end_ns));
	weft__set_int(row, WEFT__COL_OFFCPU_DURATION_NS, (int64_t)(off->end_ns - off->begin_ns));
	weft__set_text(row, WEFT__COL_OFFCPU_STATE, off->what == WEFT_OFFCPU_PREEMPTED ? "preempted" : "blocked");
	weft__set_int(row, WEFT__COL_OFFCPU_COUNT, (int64_t)off->count);
	weft__fill_stack(t, row, WEFT__COL_OFFCPU_STACK_ID, off->stack);
	weft__fill_stack(t, row, WEFT__COL_OFFCPU_KERNEL_STACK_ID, off->kernel);
	if (weft__fill_function(t, row, WEFT__COL_OFFCPU_FUNCTION, off->stack, off->kernel, false) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

/* The same filters that the row has to pass, as far as they are known before its time is divided. */
static bool poll_holds(struct weft__scan *t, const struct weft__poll *poll, const struct weft__filter *filter)
{
	enum weft__column_type type = t->table->columns[filter->column].type;

	switch (filter->column) {
	case WEFT__COL_POLL_DURATION_NS:
		return weft__holds(filter, type, (union weft__value){.i = (int64_t)poll->rank_ns});
	case WEFT__COL_POLL_TASK:
		return weft__holds(filter, type, (union weft__value){.i = (int64_t)poll->task});
	case WEFT__COL_POLL_THREAD_ID:
		return weft__holds(filter, type, (union weft__value){.i = weft__id(t, poll->stream)});
	case WEFT__COL_POLL_BEGIN_NS:
		return weft__holds(filter, type, (union weft__value){.i = weft__time(t, poll->begin_ns)});
	case WEFT__COL_POLL_END_NS:
		return poll->end_ns && weft__holds(filter, type, (union weft__value){.i = weft__time(t, poll->end_ns)});
	case WEFT__COL_POLL_LOCATION:
		return weft__holds(filter, type, (union weft__value){.text = location_label(t, poll->location)});
	default:
		return true;
	}
}

static bool wants_poll(void *data, const struct weft__poll *poll)
{
	struct weft__scan *t = data;
	size_t i;

	for (i = 0; i < t->opts.n_filters; i++)
		if (!poll_holds(t, poll, &t->opts.filters[i]))
			return false;
	return true;
}

static bool wants_woken(void *data, const struct weft__poll *poll)
{
	(void)data;
	return poll->wake.known;
}

bool weft__is_resolved(enum weft__table_id table)
{
	return table == WEFT__TABLE_POLL || table == WEFT__TABLE_SLICE || table == WEFT__TABLE_WAIT ||
	       table == WEFT__TABLE_WAIT_SUM || table == WEFT__TABLE_SAMPLE || table == WEFT__TABLE_OFFCPU ||
	       table == WEFT__TABLE_WAKE;
}

void weft__resolved_init(struct weft__scan *t)
{
	t->sink.data = t;
	t->sink.behind = t->opts.table == WEFT__TABLE_POLL &&
			 (weft__wanted(t, WEFT__COL_POLL_BEHIND_POLL_ID) || weft__wanted(t, WEFT__COL_POLL_BEHIND_NS));
	if (t->opts.table == WEFT__TABLE_POLL && t->opts.n_filters)
		t->sink.wants = wants_poll;
	else if (t->opts.table == WEFT__TABLE_WAKE)
		t->sink.wants = wants_woken;
	if (t->opts.table == WEFT__TABLE_POLL)
		t->sink.poll = give_poll;
	else if (t->opts.table == WEFT__TABLE_WAKE)
		t->sink.poll = give_wake;
	else if (t->opts.table == WEFT__TABLE_SLICE)
		t->sink.slice = give_slice;
	else if (t->opts.table == WEFT__TABLE_WAIT)
		t->sink.wait = give_wait;
	else if (t->opts.table == WEFT__TABLE_WAIT_SUM)
		t->sink.wait_sum = give_wait_sum;
	else if (t->opts.table == WEFT__TABLE_SAMPLE)
		t->sink.sample = give_sample;
	else if (t->opts.table == WEFT__TABLE_OFFCPU)
		t->sink.off = give_off;
}
