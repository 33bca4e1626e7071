/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a recording: each poll with its breakdown, each wait with its holder, each sample, wake, loss and so on, as
 * docs/TABLES.md has them. In a library of its own, libweft-trace (pkg-config weft-trace); programs that only record
 * do not need it.
 *
 *     struct weft_trace_rows_opts opts = WEFT_OPTIONS_INIT(weft_trace_rows_opts);
 *     const char *columns[] = {"location", "duration_ns"};
 *
 *     weft_trace_open(&trace, &path, 1, NULL, &err);
 *     opts.columns = columns;
 *     opts.n_columns = 2;
 *     weft_trace_rows_open(&rows, trace, "poll", &opts, &err);
 *     while (weft_trace_rows_next(rows) > 0)
 *             printf("%s %" PRId64 "\n", weft_trace_rows_text(rows, 0), weft_trace_rows_number(rows, 1));
 *
 * Rows are read as they are asked for, and memory does not grow with their number. Nothing here is async-signal-safe.
 * One trace with all its rows may be used by one thread at a time; several traces by several threads. */
#ifndef WEFT_TRACE_H
#define WEFT_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is in a column. A column that was not measured in a row is NULL there, whatever its type. */
enum weft_trace_type {
	WEFT_TRACE_NUMBER = 1,
	WEFT_TRACE_TEXT = 2,
	WEFT_TRACE_HEX = 3,  /* an address or an id of 64 bits: a number whose text is 16 hex digits */
	WEFT_TRACE_ID = 4,   /* the id of a trace: only text, 32 hex digits */
	WEFT_TRACE_REAL = 5, /* a share or a mean, in summaries */
};

/* Set `size` before the call; what a newer library knows beyond it is left out. Texts are static. */
struct weft_trace_table {
	size_t size;
	const char *name;
	const char *meaning;
	size_t n_columns;
};
struct weft_trace_column {
	size_t size;
	const char *name;
	const char *unit; /* "": none */
	const char *meaning;
	const char *absent; /* when it is NULL; "": never */
	uint32_t type;      /* enum weft_trace_type */
};

/* The tables, from 0 on, and the columns of one. Return 0, -ENOENT behind the last, or -EINVAL when `size` is too
 * small to be one. Any thread. */
WEFT_API int weft_trace_table(size_t table, struct weft_trace_table *ret);
WEFT_API int weft_trace_column(size_t table, size_t column, struct weft_trace_column *ret);

struct weft_trace;

/* NULL for the defaults. Bytes beyond what the library knows must be 0. */
struct weft_trace_opts {
	size_t size;
	uint32_t no_symbols; /* 1: names of functions only from the segments, not from program files */
};

/* Opens segments and directories of segments. `*ret` is the caller's. Returns 0, -ENOMEM, -EINVAL (options), or
 * why the first path cannot be looked at; -ENOENT when there is no segment. Files that cannot be used are problems
 * (below). */
WEFT_API int weft_trace_open(struct weft_trace **ret, const char *const *paths, size_t n_paths,
			     const struct weft_trace_opts *opts, struct weft_error *err);

/* NULL is allowed. Close its rows before it. */
WEFT_API void weft_trace_close(struct weft_trace *trace);

/* What could not be read, a line each from 0 on, or NULL behind the last. Complete when rows of a table of events
 * were read to the end. The text lives until the next call, or the trace is closed. */
WEFT_API const char *weft_trace_problem(struct weft_trace *trace, size_t i);

struct weft_trace_rows;

enum weft_trace_op {
	WEFT_TRACE_EQ = 1,
	WEFT_TRACE_LT = 2,
	WEFT_TRACE_LE = 3,
	WEFT_TRACE_GT = 4,
	WEFT_TRACE_GE = 5,
};

/* Leaves rows out for which it does not hold; NULL never does. Text columns take WEFT_TRACE_EQ only. An upper
 * bound of the time at which rows end ends the reading, too. It may grow: the options say which size it has. */
struct weft_trace_filter {
	const char *column;
	uint32_t op; /* enum weft_trace_op */
	int64_t number;
	const char *text; /* for columns of text */
};

struct weft_trace_rows_opts {
	size_t size;
	const char *const *columns; /* that are wanted, in this order; NULL: all, in the order of the table */
	size_t n_columns;
	const struct weft_trace_filter *filters; /* at most 16; see WEFT_TRACE_FILTERS */
	size_t n_filters;
	size_t filter_size; /* of one of them: sizeof(struct weft_trace_filter) */
};

/* An array of filters, with its length and the size of one: {.size = sizeof(opts), WEFT_TRACE_FILTERS(array)}. */
#define WEFT_TRACE_FILTERS(array)                                                                                      \
	.filters = (array), .n_filters = sizeof(array) / sizeof((array)[0]), .filter_size = sizeof((array)[0])

/* Begins to read rows of a table. `*ret` is the caller's; `opts` may be NULL and need not live longer than the
 * call. Returns 0, -ENOMEM, -ENOENT when there is no such table or column, or -EINVAL. */
WEFT_API int weft_trace_rows_open(struct weft_trace_rows **ret, struct weft_trace *trace, const char *table,
				  const struct weft_trace_rows_opts *opts, struct weft_error *err);

/* Goes to the next row. Returns 1, 0 at the end, or -ENOMEM. Polls, slices and wakes come in order of time for
 * each thread, other rows in order of time, but for samples whose poll is recorded at its end, which come after
 * that poll. */
WEFT_API int weft_trace_rows_next(struct weft_trace_rows *rows);

/* The cells of the row, by their place among the wanted columns; all only after next has returned 1. Of a column
 * that is NULL or not there the number is 0 and the text NULL. A text lives until next is called; that of a number
 * until the next call of weft_trace_rows_text. */
WEFT_API int weft_trace_rows_is_null(const struct weft_trace_rows *rows, size_t column);
WEFT_API int64_t weft_trace_rows_number(const struct weft_trace_rows *rows, size_t column);
WEFT_API double weft_trace_rows_real(const struct weft_trace_rows *rows, size_t column); /* of a NUMBER, too */
WEFT_API const char *weft_trace_rows_text(struct weft_trace_rows *rows, size_t column);

/* NULL is allowed. */
WEFT_API void weft_trace_rows_close(struct weft_trace_rows *rows);

#ifdef __cplusplus
}
#endif
#endif
