/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one table (tables.h), one after the other, out of the segments of recordings. Nothing is imported: events
 * are read, resolved by the analysis of the report, and forgotten. Polls, slices and wakes come in order of time for
 * each thread; other rows in order of time, but for samples whose poll is recorded at its end, which come after that
 * poll. Memory does not grow with the number of events.
 *
 * Ids (of polls, threads, stacks and so on) are unique over all recordings of a set. Context: CALLER. */
#ifndef WEFT_TRACE_TRACE_H
#define WEFT_TRACE_TRACE_H

#include <stdbool.h>

#include "analyze/recording.h"
#include "symbol/texts.h"
#include "trace/tables.h"

union weft__value {
	int64_t i;
	double f; /* REAL */
	const char *text;
};

/* Cells of columns that were not asked for need not be set. Texts live as long as the set, but for `own`. HEX has its
 * number in `i`; TRACE is in `trace`. */
struct weft__row {
	uint64_t set; /* a bit for each column that is not NULL */
	uint64_t trace[2];
	char *own; /* a text of this row alone, from malloc; inside */
	union weft__value at[];
};

static inline bool weft__row_has(const struct weft__row *row, size_t column)
{
	return row->set >> column & 1;
}

enum weft__op { WEFT__EQ, WEFT__LT, WEFT__LE, WEFT__GT, WEFT__GE };

/* Rows for which it does not hold are left out; a cell that is NULL never holds. TEXT columns take WEFT__EQ only. */
struct weft__filter {
	uint32_t column;
	enum weft__op op;
	union weft__value value;
};
#define WEFT__FILTERS_MAX 16

struct weft__scan_opts {
	enum weft__table_id table;
	uint64_t columns;                               /* a bit for each that is wanted; 0: all */
	struct weft__filter filters[WEFT__FILTERS_MAX]; /* texts must outlive the trace */
	size_t n_filters;
	uint64_t until_ns; /* rows of later events are not wanted; from the start of the recording, 0: no bound */
	void (*progress)(void *data, uint64_t n_events, uint64_t total);
	void *progress_data;
};

/* Recordings, settled, which must outlive it, and what is found out about them once. */
struct weft__set {
	struct weft__recordings *list;
	bool no_symbols;
	struct weft__named {
		bool functions, objects;
	} * named;                /* for each recording: what has its names */
	struct weft__texts texts; /* labels of workers and threads, and ids as text */
};
int weft__set_init(struct weft__set *set, struct weft__recordings *list, bool no_symbols);
void weft__set_fini(struct weft__set *set);

struct weft__scan;

/* Each returns 0 or -ENOMEM. `*ret` is the caller's. */
int weft__scan_open(struct weft__scan **ret, struct weft__set *set, const struct weft__scan_opts *opts);

/* Returns 1, 0 at the end, or -ENOMEM. The row is good until the next call. Files that could not be read say so
 * (recording.h). */
int weft__scan_next(struct weft__scan *trace, const struct weft__row **ret);

/* Rows of several tables of what happened (not of definitions, nor summaries), for one reading of the events: each
 * is given to `row` with its place among the scans, which were just opened and can only be closed after it. Returns
 * 0, -ENOMEM, -EINVAL for another table, or what `row` returned when it was negative. */
struct weft__together {
	struct weft__scan **scans;
	size_t n;
	int (*row)(void *data, size_t scan, const struct weft__row *row);
	void (*progress)(void *data, uint64_t n_events);
	void *data;
	uint64_t from_ns, to_ns; /* only events from the one on and before the other, on their clock; to_ns 0: all */
};
int weft__scan_together(const struct weft__together *together);

/* NULL is allowed. */
void weft__scan_close(struct weft__scan *trace);

#endif
