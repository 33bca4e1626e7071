/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what the analysis resolves: slices of polls, waits, samples, times off the CPU. */
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

/* What people call a lock: as the program named it, or else the variable that it is. */
static const char *name_of_lock(const struct weft__scan *t, const char *given, uint64_t object)
{
	return given && given[0] && !weft__label_is_call(given) ? given : weft__frames_data(&t->rec->frames, object);
}

/* Kind, name, object, descriptor and what that was, from `column` on; and what the lock is called. */
static void fill_object(const struct weft__scan *t, struct weft__row *row, size_t column, size_t lock, uint32_t what,
			uint32_t name, uint64_t object)
{
	enum { KIND, NAME, OBJECT, FD, ABOUT };
	const char *given = weft__names_string(&t->rec->names, name);

	weft__set_text(row, column + KIND, weft__label_wait(what));
	weft__set_text(row, column + NAME, given);
	if (what != WEFT_WAIT_CALL && object) {
		weft__set_int(row, column + OBJECT, (int64_t)object);
		if (weft__wanted(t, lock))
			weft__set_text(row, lock, name_of_lock(t, given, object));
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

int weft__give_slice(void *data, const struct weft__slice_view *slice)
{
	const struct weft__poll *poll = slice->poll;
	struct weft__scan *t = data;
	struct weft__row *row;

	if (!slice_holds(t, slice))
		return 0;
	row = weft__row_new(t);
	if (!row || weft__fill_who(t, row, WEFT__COL_SLICE_RECORDING, poll->thread_id, 0, poll->worker) < 0)
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
		fill_object(t, row, WEFT__COL_SLICE_KIND, WEFT__COL_SLICE_OBJECT_NAME, slice->what, slice->name,
			    slice->object);
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
	if (holder->thread_id) {
		weft__set_int(row, WEFT__COL_WAIT_HOLDER_THREAD_ID, weft__id(t, holder->thread_id));
		if (weft__fill_label(t, row, WEFT__COL_WAIT_HOLDER, holder->worker, holder->thread_id) < 0)
			return -ENOMEM;
	}
	if (holder->in_poll) {
		if (!weft__is_tick(t, holder->worker, holder->thread_id, holder->location))
			weft__set_int(row, WEFT__COL_WAIT_HOLDER_TASK, (int64_t)holder->task);
		weft__fill_row_location(t, row, SIZE_MAX, WEFT__COL_WAIT_HOLDER_LOCATION, holder->location);
	}
	if (holder->held_ns)
		weft__set_int(row, WEFT__COL_WAIT_HELD_NS, (int64_t)holder->held_ns);
	weft__fill_stack(t, row, WEFT__COL_WAIT_HOLDER_STACK_ID, holder->stack);
	return weft__fill_function(t, row, WEFT__COL_WAIT_HOLDER_FUNCTION, holder->stack, holder->kernel,
				   holder->what != 0);
}

int weft__give_wait(void *data, const struct weft__wait_view *view)
{
	const struct weft__wait *wait = view->wait;
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);
	uint64_t whole_ns = wait->end_ns - view->begin_ns;

	if (!row || weft__fill_who(t, row, WEFT__COL_WAIT_RECORDING, wait->thread_id, 0, wait->worker) < 0)
		return -ENOMEM;
	fill_object(t, row, WEFT__COL_WAIT_KIND, WEFT__COL_WAIT_OBJECT_NAME, wait->what, wait->name, wait->object);
	weft__set_int(row, WEFT__COL_WAIT_BEGIN_NS, weft__time(t, view->begin_ns));
	weft__set_int(row, WEFT__COL_WAIT_END_NS, weft__time(t, wait->end_ns));
	weft__set_int(row, WEFT__COL_WAIT_DURATION_NS, (int64_t)wait->rank_ns);
	if (view->cpu_ns != WEFT_NOT_MEASURED)
		weft__set_int(row, WEFT__COL_WAIT_ON_CPU_NS,
			      (int64_t)(view->cpu_ns < whole_ns ? view->cpu_ns : whole_ns));
	weft__fill_stack(t, row, WEFT__COL_WAIT_STACK_ID, wait->stack);
	if (wait->in_poll) {
		weft__set_int(row, WEFT__COL_WAIT_POLL_ID, weft__id(t, view->poll));
		if (!weft__is_tick(t, wait->worker, wait->thread_id, wait->location))
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

int weft__give_wait_sum(void *data, const struct weft__wait_sum_view *sum)
{
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_who(t, row, WEFT__COL_WAIT_SUM_RECORDING, sum->thread_id, 0, sum->worker) < 0)
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

int weft__give_sample(void *data, const struct weft__sample_one *sample)
{
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_who(t, row, WEFT__COL_SAMPLE_RECORDING, sample->thread_id, 0, sample->worker) < 0)
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
	if (sample->context)
		weft__fill_context(t, row, WEFT__COL_SAMPLE_SPAN, sample->context);
	if (weft__fill_function(t, row, WEFT__COL_SAMPLE_FUNCTION, sample->stack, sample->kernel, false) < 0)
		return -ENOMEM;
	weft__row_give(t, row);
	return 0;
}

int weft__give_off(void *data, const struct weft__off_view *off)
{
	struct weft__scan *t = data;
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_who(t, row, WEFT__COL_OFFCPU_RECORDING, off->thread_id, off->tid, off->worker) < 0)
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
