/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn in a lane, layer by layer, in order of its begin. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "marks.h"
#include "picture.h"

enum { KIND_ON_CPU, KIND_BLOCKED, KIND_WAITING, KIND_PREEMPTED, KIND_NOT_MEASURED };

static double number(const struct view_store *store, size_t column, uint32_t row)
{
	int64_t value = view_store_get(store, column, row);

	return value == VIEW_NULL ? NAN : (double)value;
}

static uint32_t label(const struct view_store *store, size_t column, uint32_t row)
{
	int64_t value = view_store_get(store, column, row);

	return value == VIEW_NULL ? VIEW_NONE : (uint32_t)value;
}

const uint8_t view_poll_columns[VIEW_POLL_COLUMNS] = {WEFT__COL_POLL_ON_CPU_NS,       WEFT__COL_POLL_BLOCKED_NS,
						      WEFT__COL_POLL_WAITING_NS,      WEFT__COL_POLL_PREEMPTED_NS,
						      WEFT__COL_POLL_NOT_MEASURED_NS, WEFT__COL_POLL_BEGIN_NS,
						      WEFT__COL_POLL_END_NS,          WEFT__COL_POLL_DURATION_NS,
						      WEFT__COL_POLL_NESTED_IN,       WEFT__COL_POLL_LOCATION};

void view_poll_mark(const int64_t at[VIEW_POLL_COLUMNS], struct view_mark *m)
{
	int64_t most = 0;
	uint8_t i;

	m->begin_ns = (double)at[VIEW_POLL_BEGIN];
	m->end_ns = (double)(at[VIEW_POLL_END] == VIEW_NULL ? at[VIEW_POLL_BEGIN] + at[VIEW_POLL_DURATION]
							    : at[VIEW_POLL_END]);
	m->kind = KIND_NOT_MEASURED;
	for (i = VIEW_POLL_ON_CPU; i <= VIEW_POLL_NOT_MEASURED; i++)
		if (at[i] > most) { /* VIEW_NULL is less than all */
			most = at[i];
			m->kind = i;
		}
	m->depth = at[VIEW_POLL_NESTED_IN] <= 0    ? 0
		   : at[VIEW_POLL_NESTED_IN] > 255 ? 255
						   : (uint8_t)at[VIEW_POLL_NESTED_IN];
	m->label = at[VIEW_POLL_LOCATION] == VIEW_NULL ? VIEW_NONE : (uint32_t)at[VIEW_POLL_LOCATION];
}

static uint8_t kind_of(const char *part)
{
	static const char *const names[] = {"on_cpu", "blocked", "waiting", "preempted", "not_measured"};
	uint8_t i;

	for (i = 0; part && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(part, names[i]) == 0)
			return i;
	return KIND_NOT_MEASURED;
}

static int slice_mark(const struct view_store *s, uint32_t row, struct view_mark *m)
{
	uint32_t poll = view_poll_row(view_store_get(s, WEFT__COL_SLICE_POLL_ID, row));
	double depth =
		poll == VIEW_NONE ? 0 : number(&view_trace.stores[WEFT__TABLE_POLL], WEFT__COL_POLL_NESTED_IN, poll);

	if (view_picture_on())
		depth = view_picture_poll_depth(view_store_get(s, WEFT__COL_SLICE_POLL_ID, row));

	m->begin_ns = number(s, WEFT__COL_SLICE_BEGIN_NS, row);
	m->end_ns = number(s, WEFT__COL_SLICE_END_NS, row);
	m->kind = kind_of(view_text_at(label(s, WEFT__COL_SLICE_PART, row)));
	m->label = label(s, WEFT__COL_SLICE_NAME, row);
	if (m->label == VIEW_NONE)
		m->label = label(s, WEFT__COL_SLICE_FUNCTION, row);
	m->depth = depth > 255 ? 255 : (uint8_t)depth;
	return !isnan(m->begin_ns) && !isnan(m->end_ns);
}

static int park_mark(const struct view_store *s, uint32_t row, struct view_mark *m)
{
	m->begin_ns = number(s, WEFT__COL_PARK_BEGIN_NS, row);
	m->end_ns = number(s, WEFT__COL_PARK_END_NS, row);
	return !isnan(m->begin_ns);
}

static int offcpu_mark(const struct view_store *s, uint32_t row, struct view_mark *m)
{
	const char *state = view_text_at(label(s, WEFT__COL_OFFCPU_STATE, row));

	m->begin_ns = number(s, WEFT__COL_OFFCPU_BEGIN_NS, row);
	m->end_ns = number(s, WEFT__COL_OFFCPU_END_NS, row);
	m->kind = state && strcmp(state, "preempted") == 0 ? KIND_PREEMPTED : KIND_BLOCKED;
	m->label = label(s, WEFT__COL_OFFCPU_FUNCTION, row);
	return 1;
}

static int wait_mark(const struct view_store *s, uint32_t row, struct view_mark *m)
{
	const char *kind = view_text_at(label(s, WEFT__COL_WAIT_KIND, row));

	m->begin_ns = number(s, WEFT__COL_WAIT_BEGIN_NS, row);
	m->end_ns = number(s, WEFT__COL_WAIT_END_NS, row);
	m->kind = kind && strcmp(kind, "call") == 0 ? KIND_BLOCKED : KIND_WAITING;
	m->label = label(s, WEFT__COL_WAIT_NAME, row);
	if (m->label == VIEW_NONE)
		m->label = label(s, WEFT__COL_WAIT_KIND, row);
	return 1;
}

static int event_mark(const struct view_store *s, uint32_t row, struct view_mark *m)
{
	m->begin_ns = m->end_ns = number(s, WEFT__COL_EVENT_TIME_NS, row);
	m->label = label(s, WEFT__COL_EVENT_KIND, row);
	return 1;
}

static int stuck_mark(const struct view_store *s, uint32_t row, struct view_mark *m)
{
	m->end_ns = number(s, WEFT__COL_STUCK_TIME_NS, row);
	m->begin_ns = m->end_ns - number(s, WEFT__COL_STUCK_AGE_NS, row);
	m->label = label(s, WEFT__COL_STUCK_FUNCTION, row);
	return 1;
}

static const struct {
	enum weft__table_id table;
	int (*mark)(const struct view_store *store, uint32_t row, struct view_mark *mark);
} layers[VIEW_LAYERS] = {
	[VIEW_LAYER_SLICE] = {WEFT__TABLE_SLICE, slice_mark}, [VIEW_LAYER_PARK] = {WEFT__TABLE_PARK, park_mark},
	[VIEW_LAYER_WAIT] = {WEFT__TABLE_WAIT, wait_mark},    [VIEW_LAYER_OFFCPU] = {WEFT__TABLE_OFFCPU, offcpu_mark},
	[VIEW_LAYER_EVENT] = {WEFT__TABLE_EVENT, event_mark}, [VIEW_LAYER_STUCK] = {WEFT__TABLE_STUCK, stuck_mark},
};

static int plain_layer(uint32_t lane, enum view_layer layer)
{
	const struct view_store *store = &view_trace.stores[layers[layer].table];
	const struct view_by_lane *by = view_by_lane(layers[layer].table);
	uint32_t i;
	int rc = by ? view_marks_reserve(by->first[lane + 1] - by->first[lane], false) : -ENOMEM;

	for (i = rc == 0 ? by->first[lane] : 0; rc == 0 && i < by->first[lane + 1]; i++) {
		struct view_mark mark = {.row = by->rows[i], .label = VIEW_NONE};

		if (layers[layer].mark(store, by->rows[i], &mark))
			rc = view_mark_add(NULL, &mark);
	}
	return rc;
}

/* From so many polls of a lane in one chunk on it is cheaper to unpack all of the chunk. */
#define DENSE 128u

/* As plain_layer, of the table that has most rows: columns are unpacked by chunks. */
static int poll_layer(uint32_t lane)
{
	static int64_t unpacked[VIEW_POLL_COLUMNS][VIEW_CHUNK];
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_POLL];
	const struct view_by_lane *by = view_by_lane(WEFT__TABLE_POLL);
	uint32_t i, k, end = by ? by->first[lane + 1] : 0, chunk = UINT32_MAX;
	int rc = by ? view_marks_reserve(end - by->first[lane], false) : -ENOMEM;
	bool dense = false;

	for (i = rc == 0 ? by->first[lane] : 0; rc == 0 && i < end; i++) {
		uint32_t row = by->rows[i];
		struct view_mark mark = {.row = row};
		int64_t at[VIEW_POLL_COLUMNS];

		if (row / VIEW_CHUNK != chunk) {
			chunk = row / VIEW_CHUNK;
			dense = i + DENSE < end && by->rows[i + DENSE] / VIEW_CHUNK == chunk;
			for (k = 0; dense && k < VIEW_POLL_COLUMNS; k++)
				view_store_read(s, view_poll_columns[k], chunk, unpacked[k]);
		}
		for (k = 0; k < VIEW_POLL_COLUMNS; k++)
			at[k] = dense ? unpacked[k][row % VIEW_CHUNK] : view_store_get(s, view_poll_columns[k], row);
		view_poll_mark(at, &mark);
		rc = view_mark_add(NULL, &mark);
	}
	return rc;
}

/* Each is a text of its own: of many contexts they would be more than all else. */
#define SPAN_LABELS 100000u

static uint32_t span_label(const struct view_store *s, uint32_t row)
{
	int64_t span = view_store_get(s, WEFT__COL_CONTEXT_SPAN, row);
	char text[32];

	if (span == VIEW_NULL)
		return VIEW_NONE;
	snprintf(text, sizeof(text), "span %016" PRIx64, (uint64_t)span);
	return view_text(text);
}

/* A context lasts until the next of its thread, or the end. */
static int context_layer(uint32_t lane)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_CONTEXT];
	const struct view_by_lane *by = view_by_lane(WEFT__TABLE_CONTEXT);
	const struct view_lane *of = view_lane_at(lane);
	struct view_mark mark = {.begin_ns = NAN};
	double end_ns =
		(double)view_trace.shift_ns[of->recording] +
		(double)(view_trace.list.all[of->recording].last_ns - view_trace.list.all[of->recording].start_ns);
	uint32_t i;
	int rc = by ? 0 : -ENOMEM;

	for (i = rc == 0 ? by->first[lane] : 0; rc == 0 && i < by->first[lane + 1]; i++) {
		uint32_t row = by->rows[i];

		mark.end_ns = number(s, WEFT__COL_CONTEXT_TIME_NS, row);
		if (!isnan(mark.begin_ns) && mark.end_ns > mark.begin_ns)
			rc = view_mark_add(NULL, &mark);
		mark = (struct view_mark){
			.begin_ns = NAN, .row = row, .label = label(s, WEFT__COL_CONTEXT_ENDPOINT, row)};
		if (mark.label == VIEW_NONE)
			mark.label = label(s, WEFT__COL_CONTEXT_LABELS, row);
		if (mark.label == VIEW_NONE && s->n <= SPAN_LABELS)
			mark.label = span_label(s, row);
		if (mark.label != VIEW_NONE || view_store_get(s, WEFT__COL_CONTEXT_SPAN, row) != VIEW_NULL)
			mark.begin_ns = number(s, WEFT__COL_CONTEXT_TIME_NS, row);
	}
	mark.end_ns = end_ns;
	if (rc == 0 && !isnan(mark.begin_ns) && mark.end_ns > mark.begin_ns)
		rc = view_mark_add(NULL, &mark);
	return rc;
}

/* What is missing of no one thread may be missing of each. */
static int loss_layer(uint32_t lane)
{
	const struct view_store *s = view_table(WEFT__TABLE_LOSS, UINT64_MAX);
	const struct view_lane *of = view_lane_at(lane);
	uint32_t i;
	int rc = s ? 0 : -ENOMEM;

	for (i = 0; rc == 0 && i < s->n; i++) {
		int64_t thread = view_store_get(s, WEFT__COL_LOSS_THREAD_ID, i);
		struct view_mark mark = {.row = i, .label = label(s, WEFT__COL_LOSS_REASON, i)};

		if (view_store_get(s, WEFT__COL_LOSS_RECORDING, i) != of->recording ||
		    (thread != VIEW_NULL && thread != of->thread))
			continue;
		mark.begin_ns = number(s, WEFT__COL_LOSS_FROM_NS, i);
		mark.end_ns = number(s, WEFT__COL_LOSS_TO_NS, i);
		rc = view_mark_add(NULL, &mark);
	}
	return rc;
}

/* Of slices that share one interval the largest is shown. */
static void drop_covered_slices(void)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_SLICE];
	size_t i, kept = 0;

	for (i = 0; i < view_marks.n; i++) {
		size_t last = kept - 1;

		if (!kept || view_marks.begin[last] != view_marks.begin[i] ||
		    view_marks.end[last] != view_marks.end[i] || view_marks.depth[last] != view_marks.depth[i])
			view_mark_move(kept++, i);
		else if (view_store_get(s, WEFT__COL_SLICE_DURATION_NS, view_marks.row[i]) >
			 view_store_get(s, WEFT__COL_SLICE_DURATION_NS, view_marks.row[last]))
			view_mark_move(last, i);
	}
	view_marks.n = kept;
}

/* Makes a layer of a lane; the number of things in it, or a negative error. */
VIEW_EXPORT int view_layer(uint32_t lane, uint32_t layer)
{
	int rc;

	view_marks.n = 0;
	view_marks.unsorted = false;
	if (!view_lane_at(lane) || layer >= VIEW_LAYERS)
		return -EINVAL;
	if (view_marks_reserve(0, false) < 0)
		return -ENOMEM;
	if (layer == VIEW_LAYER_FLAME)
		rc = view_flame_chart(lane, view_mark_add, NULL);
	else if (view_picture_on() && (layer == VIEW_LAYER_POLL || layer == VIEW_LAYER_PARK))
		rc = view_picture_layer(layer == VIEW_LAYER_POLL ? WEFT__TABLE_POLL : WEFT__TABLE_PARK, lane);
	else if (layer == VIEW_LAYER_POLL)
		rc = poll_layer(lane);
	else if (layer == VIEW_LAYER_CONTEXT)
		rc = context_layer(lane);
	else if (layer == VIEW_LAYER_LOSS)
		rc = loss_layer(lane);
	else
		rc = plain_layer(lane, (enum view_layer)layer);
	if (rc == 0 && view_marks.unsorted)
		rc = view_marks_sort();
	if (rc == 0 && layer == VIEW_LAYER_SLICE)
		drop_covered_slices();
	return rc < 0 ? rc : (int)view_marks.n;
}

VIEW_EXPORT void view_layer_forget(void)
{
	view_marks_free();
}

enum { POINTS_QUEUE, POINTS_LOCAL_QUEUE, POINTS_WAKE_DELAY, POINTS_COST };

/* Where most polls have a value, each has a point, of no number where there is none: its times are those of the polls,
 * which the page has. */
static int poll_points(uint32_t lane, uint32_t what)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_POLL];
	const struct view_by_lane *by = view_by_lane(WEFT__TABLE_POLL);
	size_t column = what == POINTS_LOCAL_QUEUE ? WEFT__COL_POLL_QUEUE_DEPTH : WEFT__COL_POLL_WAKE_DELAY_NS;
	uint32_t i, from, to, n_set = 0;
	int rc = 0;

	if (!by)
		return -ENOMEM;
	from = by->first[lane];
	to = by->first[lane + 1];
	for (i = from; i < to; i++)
		n_set += view_store_get(s, column, by->rows[i]) != VIEW_NULL;
	if (n_set && view_marks_reserve(n_set > (to - from) / 2 ? to - from : n_set, true) < 0)
		return -ENOMEM;
	for (i = from; n_set && i < to && rc == 0; i++) {
		double time_ns = number(s, WEFT__COL_POLL_BEGIN_NS, by->rows[i]);
		double value = number(s, column, by->rows[i]);

		rc = n_set > (to - from) / 2 ? view_point_add(time_ns, value) : view_point(time_ns, value);
	}
	return rc;
}

/* Each turn of the collector says what each source cost: their sum, as a share of one CPU. */
static int cost_points(void)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_COST];
	double time_ns = NAN, sum = 0;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->n && rc == 0; i++) {
		double at_ns = number(s, WEFT__COL_COST_TIME_NS, i), span_ns = number(s, WEFT__COL_COST_SPAN_NS, i);

		if (at_ns != time_ns) {
			rc = view_point(time_ns, sum);
			sum = 0;
		}
		time_ns = at_ns;
		if (span_ns > 0)
			sum += number(s, WEFT__COL_COST_CPU_NS, i) / span_ns;
	}
	return rc < 0 ? rc : view_point(time_ns, sum);
}

static int queue_points(void)
{
	const struct view_store *s = &view_trace.stores[WEFT__TABLE_QUEUE];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->n && rc == 0; i++)
		rc = view_point(number(s, WEFT__COL_QUEUE_TIME_NS, i), number(s, WEFT__COL_QUEUE_DEPTH, i));
	return rc;
}

/* A line over time: 0 global queue, 1 local queue of a lane, 2 wake delay of a lane, 3 weft's cost. The number of its
 * points. */
VIEW_EXPORT int view_points(uint32_t what, uint32_t lane)
{
	int rc;

	view_marks.n = 0;
	view_marks.unsorted = false;
	if (view_marks_reserve(0, true) < 0)
		return -ENOMEM;
	if (what == POINTS_QUEUE)
		rc = queue_points();
	else if (what == POINTS_COST)
		rc = cost_points();
	else if (!view_lane_at(lane))
		rc = -EINVAL;
	else
		rc = view_picture_on() ? view_picture_points(lane, what == POINTS_WAKE_DELAY) : poll_points(lane, what);
	if (rc == 0 && view_marks.unsorted)
		rc = view_marks_sort();
	return rc < 0 ? rc : (int)view_marks.n;
}
