/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the timeline, and what is drawn in them. Context: CALLER. */
#ifndef WEFT_VIEW_LANES_H
#define WEFT_VIEW_LANES_H

#include "view.h"

/* As LaneLayer in viewer/src/api.ts. */
enum view_layer {
	VIEW_LAYER_POLL,
	VIEW_LAYER_SLICE,
	VIEW_LAYER_PARK,
	VIEW_LAYER_OFFCPU,
	VIEW_LAYER_WAIT,
	VIEW_LAYER_CONTEXT,
	VIEW_LAYER_EVENT,
	VIEW_LAYER_STUCK,
	VIEW_LAYER_LOSS,
	VIEW_LAYER_FLAME,
	VIEW_LAYERS
};

struct view_lane {
	int64_t key;
	uint32_t recording, tid;
	int64_t thread, worker; /* VIEW_NULL: none */
	uint32_t name;          /* VIEW_NONE: it has none */
};

/* One thing to draw. */
struct view_mark {
	double begin_ns, end_ns;
	uint32_t row, label;
	uint8_t kind, depth;
};

/* Where the columns of who did it begin in a table, or SIZE_MAX. */
size_t view_who_at(enum weft__table_id table);
/* Index of the lane of a row, or VIEW_NONE. */
uint32_t view_lane_of(const struct view_store *store, size_t who, uint32_t row);
const struct view_lane *view_lane_at(uint32_t lane);
/* What a lane is known by, from the ids of its worker and thread; -1: nothing. Index of that lane, or VIEW_NONE. */
int64_t view_lane_key(int64_t worker, int64_t thread);
uint32_t view_lane_by_key(int64_t key);

/* Rows of a table by lane: first[lane] to first[lane + 1] of `rows`. NULL: out of memory. */
struct view_by_lane {
	uint32_t *rows, *first;
};
const struct view_by_lane *view_by_lane(enum weft__table_id table);

/* flamechart.c: samples of a lane as intervals by depth, appended by `add`. */
int view_flame_chart(uint32_t lane, int (*add)(void *data, const struct view_mark *mark), void *data);

#endif
