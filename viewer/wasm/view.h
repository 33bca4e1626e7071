/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of the viewer: what the page's worker calls in WebAssembly. One trace at a time. Functions with
 * VIEW_EXPORT are called from viewer/src/engine/core.ts; numbers that do not fit a double are texts. Context: CALLER,
 * one thread. */
#ifndef WEFT_VIEW_H
#define WEFT_VIEW_H

#include "store.h"

#define VIEW_EXPORT __attribute__((visibility("default"), used))

struct view_trace {
	struct weft__recordings list;
	struct weft__set set;
	struct view_store stores[WEFT__N_TABLES]; /* n_columns 0: not there */
	int64_t *shift_ns;                        /* for each recording: from the start of the first */
	uint64_t min_slice_ns;                    /* slices of shorter polls are not kept, because there are too many */
	uint64_t n_events;
	bool open;
	char **paths;
	size_t n_paths, cap_paths;
	char *names; /* beside the segments; NULL: none */
	char problem[1400];
};
extern struct view_trace view_trace;

/* load.c: the store of a table that is not kept, with these columns at least; NULL: out of memory. Good until the
 * next call. */
struct view_store *view_table(enum weft__table_id table, uint64_t columns);
/* The same; where the table has to be read, rows for which the filters do not hold may be left out. */
struct view_store *view_table_where(enum weft__table_id table, uint64_t columns, const struct weft__scan_opts *where);
/* The same files once more, settled and with names. 0 or -ENOMEM; the list is the caller's in each case. */
int view_reopen(struct weft__recordings *list);
/* Row of a poll by its id, or VIEW_NONE. */
uint32_t view_poll_row(int64_t id);

/* select.c: buffers that the page reads; each is good until the next call of its kind. */
void *view_room(size_t slot, size_t bytes);
enum { VIEW_ROOM_SELECT, VIEW_ROOM_GATHER, VIEW_ROOM_LAYER, VIEW_ROOM_FLAME, VIEW_ROOM_TEXT, VIEW_ROOM_IN, VIEW_ROOMS };

/* What all panels follow (viewer/src/api.ts). */
struct view_selection {
	double from_ns, to_ns; /* NaN: no bound */
	int64_t recording;     /* -1: all */
	int64_t ids[256];      /* of threads, then of workers */
	uint32_t n_threads, n_workers;
	int64_t task, location, poll; /* VIEW_NULL: any */
	int64_t min_poll_ns;          /* 0: any */
	uint64_t span;                /* 0: any */
	char label[512];              /* "key=value"; "": any */
};
extern struct view_selection view_selection; /* selection.c */

#endif
