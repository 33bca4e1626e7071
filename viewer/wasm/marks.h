/* SPDX-License-Identifier: Apache-2.0 */
/* Things to draw, in columns that the page takes over as they are. Context: CALLER. */
#ifndef WEFT_VIEW_MARKS_H
#define WEFT_VIEW_MARKS_H

#include "lanes.h"

/* layers.c: the columns of a poll that its mark is made from, and the mark without its row. */
enum {
	VIEW_POLL_ON_CPU,
	VIEW_POLL_NOT_MEASURED = 4,
	VIEW_POLL_BEGIN,
	VIEW_POLL_END,
	VIEW_POLL_DURATION,
	VIEW_POLL_NESTED_IN,
	VIEW_POLL_LOCATION,
	VIEW_POLL_COLUMNS
};
extern const uint8_t view_poll_columns[VIEW_POLL_COLUMNS];
void view_poll_mark(const int64_t at[VIEW_POLL_COLUMNS], struct view_mark *mark);

/* Of the layer or line that was made last. */
struct view_marks {
	double *begin, *end;
	uint32_t *row, *label;
	float *value; /* of points, which have no other column than this and `begin` */
	uint8_t *kind, *depth;
	size_t n, cap;
	bool unsorted;
};
extern struct view_marks view_marks;

/* Each returns 0 or -ENOMEM. */
/* Room for n marks, or points. */
int view_marks_reserve(size_t n, bool points);
/* `data` is not used. */
int view_mark_add(void *data, const struct view_mark *mark);
int view_point_add(double time_ns, double value);
/* The same of what is a number. */
int view_point(double time_ns, double value);
/* By begin. */
int view_marks_sort(void);

void view_mark_move(size_t to, size_t from);
void view_marks_free(void);

#endif
