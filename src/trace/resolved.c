/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what the analysis resolves: polls and wakes; resolved_waits.c has the others. */
#include <errno.h>

#include "analyze/label.h"
#include "trace/inside.h"

static __attribute__((noinline)) const struct weft__who *who_find(struct weft__scan *t, struct weft__who *who,
								  uint32_t worker, uint32_t thread_id)
{
	char label[WEFT__LABEL_BYTES];

	weft__label_lane(&t->rec->names, worker, thread_id, label, sizeof(label));
	who->label = weft__texts_add(&t->set->texts, label);
	who->thread = weft__names_thread(&t->rec->names, thread_id);
	who->loops = weft__label_loops(&t->rec->names, worker);
	who->thread_id = thread_id;
	who->worker = worker;
	return who->label ? who : NULL;
}

/* Who a thread is, or NULL when out of memory. */
static inline __attribute__((always_inline)) const struct weft__who *who_get(struct weft__scan *t, uint32_t worker,
									     uint32_t thread_id)
{
	struct weft__who *who = &t->whos[(worker ^ thread_id) % (sizeof(t->whos) / sizeof(t->whos[0]))];

	return who->label && who->thread_id == thread_id && who->worker == worker ? who
										  : who_find(t, who, worker, thread_id);
}

int weft__fill_label(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t worker, uint32_t thread_id)
{
	const struct weft__who *who;

	if (!weft__wanted(t, column))
		return 0;
	who = who_get(t, worker, thread_id);
	weft__set_text(row, column, who ? who->label : NULL);
	return who ? 0 : -ENOMEM;
}

enum who { WHO_RECORDING, WHO_THREAD_ID, WHO_TID, WHO_THREAD, WHO_WORKER_ID, WHO_WORKER };

int weft__fill_who(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t thread_id, uint32_t tid,
		   uint32_t worker)
{
	const struct weft__who *who = NULL;

	weft__set_int(row, column + WHO_RECORDING, (int64_t)t->number);
	if (thread_id)
		weft__set_int(row, column + WHO_THREAD_ID, weft__id(t, thread_id));
	if (tid)
		weft__set_int(row, column + WHO_TID, tid);
	if (t->opts.columns >> (column + WHO_TID) & (1 | 1 << 1 | 1 << (WHO_WORKER - WHO_TID))) {
		who = who_get(t, worker, thread_id);
		if (!who)
			return -ENOMEM;
	}
	if (who && thread_id && who->thread) {
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

static inline const struct weft__where_slot *location_get(struct weft__scan *t, uint32_t location)
{
	struct weft__where_slot *slot = &t->locations[location % (sizeof(t->locations) / sizeof(t->locations[0]))];

	if (!slot->label || slot->location != location) {
		slot->label = weft__label_location(&t->rec->names, location);
		slot->is_loop = weft__label_is_loop(&t->rec->names, location);
		slot->location = location;
	}
	return slot;
}

static inline const char *location_label(struct weft__scan *t, uint32_t location)
{
	return location_get(t, location)->label;
}

bool weft__is_tick(struct weft__scan *t, uint32_t worker, uint32_t thread_id, uint32_t location)
{
	const struct weft__who *who = location_get(t, location)->is_loop ? who_get(t, worker, thread_id) : NULL;

	return who && who->loops;
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
	put(f, WEFT__COL_POLL_WAKER_THREAD_ID, weft__id(t, wake->thread_id), true);
	put(f, WEFT__COL_POLL_WAKER_TASK, (int64_t)wake->task, wake->in_poll);
	if (wake->in_poll)
		put_text(f, WEFT__COL_POLL_WAKER_LOCATION, location_label(t, wake->location));
	put(f, WEFT__COL_POLL_BEHIND_POLL_ID, weft__id(t, poll->behind.serial), behind);
	put(f, WEFT__COL_POLL_BEHIND_NS, (int64_t)poll->behind.held_ns, behind);
	if (!weft__wanted(t, WEFT__COL_POLL_WAKER_WORKER))
		return 0;
	who = who_get(t, wake->worker, wake->thread_id);
	if (!who)
		return -ENOMEM;
	put_text(f, WEFT__COL_POLL_WAKER_WORKER, who->label);
	return 0;
}

static int give_poll(void *data, const struct weft__poll *poll, const struct weft__breakdown *breakdown)
{
	struct weft__scan *t = data;
	struct filling f = {weft__row_new(t), 0};
	bool worker = poll->worker != WEFT_WORKER_NONE && poll->worker != WEFT__LANE_OTHER;
	const struct weft__where_slot *where;
	const struct weft__who *who;

	if (!f.row || put_wake(&f, t, poll) < 0)
		return -ENOMEM;
	/* Until the next call: the waker may have the same places. */
	who = who_get(t, poll->worker, poll->thread_id);
	where = location_get(t, poll->location);
	if (!who)
		return -ENOMEM;
	put(&f, WEFT__COL_POLL_ID, weft__id(t, poll->serial), true);
	put(&f, WEFT__COL_POLL_RECORDING, (int64_t)t->number, true);
	put(&f, WEFT__COL_POLL_THREAD_ID, weft__id(t, poll->thread_id), poll->thread_id != 0);
	if (who->thread && poll->thread_id) {
		put(&f, WEFT__COL_POLL_TID, who->thread->tid, who->thread->tid != 0);
		put_text(&f, WEFT__COL_POLL_THREAD, who->thread->name);
	}
	if (worker) {
		put(&f, WEFT__COL_POLL_WORKER_ID, weft__id(t, poll->worker), true);
		put_text(&f, WEFT__COL_POLL_WORKER, who->label);
	}
	put(&f, WEFT__COL_POLL_TASK, (int64_t)poll->task, !(who->loops && where->is_loop));
	put(&f, WEFT__COL_POLL_LOCATION_ID, weft__id(t, poll->location),
	    poll->location > 0 && poll->location < WEFT__LOCATION_OTHER);
	put_text(&f, WEFT__COL_POLL_LOCATION, where->label);
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
	if (!row || weft__fill_who(t, row, WEFT__COL_WAKE_RECORDING, wake->thread_id, 0, wake->worker) < 0 ||
	    weft__fill_label(t, row, WEFT__COL_WAKE_TO_WORKER, poll->worker, poll->thread_id) < 0)
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

/* The same filters that the row has to pass, as far as they are known before its time is divided. */
static bool poll_holds(struct weft__scan *t, const struct weft__poll *poll, const struct weft__filter *filter)
{
	enum weft__column_type type = t->table->columns[filter->column].type;

	switch (filter->column) {
	case WEFT__COL_POLL_DURATION_NS:
		return weft__holds(filter, type, (union weft__value){.i = (int64_t)poll->rank_ns});
	case WEFT__COL_POLL_TASK:
		return !weft__is_tick(t, poll->worker, poll->thread_id, poll->location) &&
		       weft__holds(filter, type, (union weft__value){.i = (int64_t)poll->task});
	case WEFT__COL_POLL_THREAD_ID:
		return weft__holds(filter, type, (union weft__value){.i = weft__id(t, poll->thread_id)});
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
		t->sink.slice = weft__give_slice;
	else if (t->opts.table == WEFT__TABLE_WAIT)
		t->sink.wait = weft__give_wait;
	else if (t->opts.table == WEFT__TABLE_WAIT_SUM)
		t->sink.wait_sum = weft__give_wait_sum;
	else if (t->opts.table == WEFT__TABLE_SAMPLE)
		t->sink.sample = weft__give_sample;
	else if (t->opts.table == WEFT__TABLE_OFFCPU)
		t->sink.off = weft__give_off;
}
