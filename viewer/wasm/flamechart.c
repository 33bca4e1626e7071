/* SPDX-License-Identifier: Apache-2.0 */
/* Samples along time: each stands for the CPU time before it, and neighbours that have callers in common are drawn as
 * one interval there. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyze/frames.h"
#include "base/alloc.h"
#include "base/sort.h"
#include "lanes.h"
#include "picture.h"

#define DEPTH_MAX 255u

struct open_call {
	uint32_t function;
	struct view_mark mark;
};

struct chart {
	const struct view_store *samples;
	const struct weft__frames *frames;
	struct weft__line_list lines;
	struct open_call open[DEPTH_MAX];
	size_t n_open;
	double last_ns;
	int64_t last_poll;
	int (*add)(void *data, const struct view_mark *mark);
	void *data;
};

static const struct view_store *sorted_samples;

static int by_time(const void *left, const void *right)
{
	int64_t a = view_store_get(sorted_samples, WEFT__COL_SAMPLE_TIME_NS, *(const uint32_t *)left);
	int64_t b = view_store_get(sorted_samples, WEFT__COL_SAMPLE_TIME_NS, *(const uint32_t *)right);

	return a < b ? -1 : a > b;
}

static int close_from(struct chart *c, size_t depth)
{
	int rc = 0;

	while (c->n_open > depth && rc == 0)
		rc = c->add(c->data, &c->open[--c->n_open].mark);
	return rc;
}

static uint32_t stack_of(const struct view_store *s, size_t column, uint32_t row)
{
	int64_t id = view_store_get(s, column, row);

	return id == VIEW_NULL ? 0 : (uint32_t)(id & ((INT64_C(1) << 44) - 1));
}

/* NaN: not known. */
static double poll_begin(int64_t poll)
{
	uint32_t at;

	if (view_picture_on())
		return view_picture_poll_ns(poll);
	at = poll == VIEW_NULL ? VIEW_NONE : view_poll_row(poll);
	return at == VIEW_NONE
		       ? NAN
		       : (double)view_store_get(&view_trace.stores[WEFT__TABLE_POLL], WEFT__COL_POLL_BEGIN_NS, at);
}

static double begin_of(const struct chart *c, uint32_t row, double time_ns, int64_t poll)
{
	double begin = time_ns - (double)view_store_get(c->samples, WEFT__COL_SAMPLE_WEIGHT_NS, row);
	double poll_ns = poll_begin(poll);

	if (begin < poll_ns) /* not NaN */
		begin = poll_ns;
	return begin < c->last_ns ? c->last_ns : begin;
}

static int add_sample(struct chart *c, uint32_t row)
{
	double time_ns = (double)view_store_get(c->samples, WEFT__COL_SAMPLE_TIME_NS, row);
	int64_t poll = view_store_get(c->samples, WEFT__COL_SAMPLE_POLL_ID, row);
	double begin_ns = begin_of(c, row, time_ns, poll);
	/* Without a gap that could have held another sample. */
	bool joins = poll == c->last_poll && begin_ns - c->last_ns <= (time_ns - begin_ns) / 2 + 1000;
	size_t depth = 0, i;
	int rc;

	if (weft__frames_lines(c->frames, stack_of(c->samples, WEFT__COL_SAMPLE_STACK_ID, row),
			       stack_of(c->samples, WEFT__COL_SAMPLE_KERNEL_STACK_ID, row), &c->lines) < 0)
		return -ENOMEM;
	while (joins && depth < c->n_open && depth < c->lines.n &&
	       c->open[depth].function == c->lines.at[c->lines.n - 1 - depth].function)
		c->open[depth++].mark.end_ns = time_ns;
	rc = close_from(c, depth);
	for (i = depth; rc == 0 && i < c->lines.n && i < DEPTH_MAX; i++) {
		uint32_t function = c->lines.at[c->lines.n - 1 - i].function;

		c->open[i] = (struct open_call){
			function,
			{.begin_ns = begin_ns,
			 .end_ns = time_ns,
			 .row = row,
			 .label = view_text_kept(c->frames->functions[function].name),
			 .depth = (uint8_t)i},
		};
		c->n_open = i + 1;
	}
	c->last_ns = time_ns;
	c->last_poll = poll;
	return rc;
}

int view_flame_chart(uint32_t lane, int (*add)(void *data, const struct view_mark *mark), void *data)
{
	const struct view_by_lane *by = view_by_lane(WEFT__TABLE_SAMPLE);
	struct chart *c = weft__calloc(1, sizeof(*c));
	uint32_t i, n, *rows;
	int rc = 0;

	if (!by || !c) {
		weft__free(c);
		return -ENOMEM;
	}
	rows = by->rows + by->first[lane];
	n = by->first[lane + 1] - by->first[lane];
	c->samples = sorted_samples = &view_trace.stores[WEFT__TABLE_SAMPLE];
	c->frames = &view_trace.list.all[view_lane_at(lane)->recording].frames;
	c->last_ns = -1e18;
	c->last_poll = VIEW_NULL;
	c->add = add;
	c->data = data;
	weft__sort(rows, n, sizeof(*rows), by_time);
	for (i = 0; i < n && rc == 0; i++)
		rc = add_sample(c, rows[i]);
	if (rc == 0)
		rc = close_from(c, 0);
	weft__free(c->lines.at);
	weft__free(c);
	return rc;
}
