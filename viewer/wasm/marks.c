/* SPDX-License-Identifier: Apache-2.0 */
#include "marks.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"

struct view_marks view_marks;

static int resize(void *column, size_t n, size_t bytes)
{
	void **at = column, *grown = weft__realloc(*at, n * bytes);

	if (!grown)
		return -ENOMEM;
	*at = grown;
	return 0;
}

void view_marks_free(void)
{
	weft__free(view_marks.begin);
	weft__free(view_marks.end);
	weft__free(view_marks.row);
	weft__free(view_marks.label);
	weft__free(view_marks.value);
	weft__free(view_marks.kind);
	weft__free(view_marks.depth);
	memset(&view_marks, 0, sizeof(view_marks));
}

int view_marks_reserve(size_t n, bool points)
{
	size_t cap = n > 16 ? n : 16;
	int rc;

	if (cap <= view_marks.cap && points == (view_marks.value != NULL))
		return 0;
	if (view_marks.n == 0) /* nothing to take along */
		view_marks_free();
	rc = resize(&view_marks.begin, cap, sizeof(*view_marks.begin));
	if (rc == 0 && points) {
		rc = resize(&view_marks.value, cap, sizeof(*view_marks.value));
	} else if (rc == 0 && (resize(&view_marks.end, cap, sizeof(*view_marks.end)) < 0 ||
			       resize(&view_marks.row, cap, sizeof(*view_marks.row)) < 0 ||
			       resize(&view_marks.label, cap, sizeof(*view_marks.label)) < 0 ||
			       resize(&view_marks.kind, cap, 1) < 0 || resize(&view_marks.depth, cap, 1) < 0)) {
		rc = -ENOMEM;
	}
	view_marks.cap = rc == 0 ? cap : 0;
	return rc;
}

static void place(double begin_ns)
{
	view_marks.unsorted |= view_marks.n > 0 && view_marks.begin[view_marks.n - 1] > begin_ns;
	view_marks.begin[view_marks.n++] = begin_ns;
}

int view_mark_add(void *data, const struct view_mark *mark)
{
	size_t n = view_marks.n;

	(void)data;
	if (n == view_marks.cap && view_marks_reserve(n + n / 2 + 16, false) < 0)
		return -ENOMEM;
	view_marks.end[n] = mark->end_ns;
	view_marks.row[n] = mark->row;
	view_marks.label[n] = mark->label;
	view_marks.kind[n] = mark->kind;
	view_marks.depth[n] = mark->depth;
	place(mark->begin_ns);
	return 0;
}

int view_point_add(double time_ns, double value)
{
	if (view_marks.n == view_marks.cap && view_marks_reserve(view_marks.n + view_marks.n / 2 + 16, true) < 0)
		return -ENOMEM;
	view_marks.value[view_marks.n] = (float)value;
	place(time_ns);
	return 0;
}

int view_point(double time_ns, double value)
{
	return isnan(time_ns) || isnan(value) ? 0 : view_point_add(time_ns, value);
}

static int by_begin(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (view_marks.begin[a] != view_marks.begin[b])
		return view_marks.begin[a] < view_marks.begin[b] ? -1 : 1;
	if (view_marks.value)
		return a < b ? -1 : a > b;
	if (view_marks.depth[a] != view_marks.depth[b])
		return view_marks.depth[a] < view_marks.depth[b] ? -1 : 1;
	return view_marks.end[a] > view_marks.end[b] ? -1 : view_marks.end[a] < view_marks.end[b];
}

#define REORDER(column)                                                                                                \
	do {                                                                                                           \
		memcpy(copy, view_marks.column, view_marks.n * sizeof(*view_marks.column));                            \
		for (i = 0; i < view_marks.n; i++)                                                                     \
			view_marks.column[i] = ((__typeof__(view_marks.column))copy)[order[i]];                        \
	} while (0)

int view_marks_sort(void)
{
	uint32_t *order = weft__alloc((view_marks.n + 1) * sizeof(*order));
	void *copy = weft__alloc((view_marks.n + 1) * sizeof(*view_marks.begin));
	uint32_t i;
	int rc = order && copy ? 0 : -ENOMEM;

	for (i = 0; rc == 0 && i < view_marks.n; i++)
		order[i] = i;
	if (rc == 0) {
		weft__sort(order, view_marks.n, sizeof(*order), by_begin);
		REORDER(begin);
	}
	if (rc == 0 && view_marks.value) {
		REORDER(value);
	} else if (rc == 0) {
		REORDER(end);
		REORDER(row);
		REORDER(label);
		REORDER(kind);
		REORDER(depth);
	}
	weft__free(order);
	weft__free(copy);
	return rc;
}

void view_mark_move(size_t to, size_t from)
{
	view_marks.begin[to] = view_marks.begin[from];
	view_marks.end[to] = view_marks.end[from];
	view_marks.row[to] = view_marks.row[from];
	view_marks.label[to] = view_marks.label[from];
	view_marks.kind[to] = view_marks.kind[from];
	view_marks.depth[to] = view_marks.depth[from];
}

/* A column of what was made last, by number: begin and end (double), row and label (32 bits), kind and depth (8 bits),
 * value of points (float). */
VIEW_EXPORT const void *view_layer_column(uint32_t which)
{
	const void *const columns[] = {view_marks.begin, view_marks.end,   view_marks.row,  view_marks.label,
				       view_marks.kind,  view_marks.depth, view_marks.value};

	return which < sizeof(columns) / sizeof(columns[0]) ? columns[which] : NULL;
}
