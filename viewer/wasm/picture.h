/* SPDX-License-Identifier: Apache-2.0 */
/* The first picture of a large trace: polls and parks go straight to their lanes, and no row of them is kept. Context:
 * CALLER. */
#ifndef WEFT_VIEW_PICTURE_H
#define WEFT_VIEW_PICTURE_H

#include "lanes.h"

/* Whether rows of the table come here. */
static inline bool view_picture_takes(enum weft__table_id table)
{
	return table == WEFT__TABLE_POLL || table == WEFT__TABLE_PARK;
}

/* Between the two a picture is made. */
void view_picture_begin(void);
void view_picture_end(void);
bool view_picture_on(void);

/* Each returns 0 or -ENOMEM. */
int view_picture_add(enum weft__table_id table, const struct weft__row *row, int64_t shift_ns);
/* Finds lanes: what is known of each that has polls or parks. */
int view_picture_lanes(int (*add)(const struct view_lane *lane));
/* The layer of a lane, and a line of its polls, into view_marks. */
int view_picture_layer(enum weft__table_id table, uint32_t lane);
int view_picture_points(uint32_t lane, bool delays);

/* Of a poll by its id: its begin in ns, NaN: not known; how deep it is nested. */
double view_picture_poll_ns(int64_t id);
uint8_t view_picture_poll_depth(int64_t id);

#endif
