/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a trace: trace.c reads events and keeps rows until they are asked for, resolved.c and resolved_waits.c
 * fill rows of what the analysis resolves, plain.c those that events say by themselves, definitions.c those of names
 * and code, summary_rows.c those of summaries. Context: CALLER. */
#ifndef WEFT_TRACE_INSIDE_H
#define WEFT_TRACE_INSIDE_H

#include "analyze/analysis.h"
#include "analyze/gap.h"
#include "trace/trace.h"

/* What a thread is, and since when it is parked, for plain.c. */
struct weft__plain_thread {
	uint32_t worker;
	uint64_t park_ns; /* 0: it is not */
};

/* For plain_tasks.c. */
#define ENDED_TASKS_KEPT 4096u
struct weft__plain_task {
	uint64_t id;
	uint64_t spawn_ns, first_poll_ns, end_ns, polls, wakes; /* 0: not seen */
	uint64_t ended;                                         /* its number among those that have; 0: it has not */
	uint32_t location;
	bool looped; /* spawned or polled by a worker of a loop */
};

struct weft__plain_tasks {
	struct weft__map by_id;
	struct weft__plain_task *at;
	size_t n, cap;
	uint32_t free;   /* its spawn_ns is the next one */
	uint32_t *ended; /* a ring of the last ones */
	uint64_t n_ended;
	bool wakes_counted; /* not every wake was recorded */
};

struct weft__plain {
	struct weft__map thread_by_id;
	struct weft__plain_thread *threads;
	size_t n_threads, cap_threads;
	struct weft__plain_tasks tasks;
	struct weft__gaps gaps;
};

struct weft__scan {
	struct weft__set *set;
	struct weft__scan_opts opts;
	const struct weft__table *table;
	size_t next; /* recording */
	struct weft__recording *rec;
	uint64_t number; /* of rec */
	struct weft__merge *merge;
	const struct weft__record *run, *run_end; /* events that it gave and that are still to be read */
	struct weft__analysis *analysis;
	struct weft__row_sink sink;
	struct weft__plain plain;
	bool sampling, polls_reported, waits_off; /* of rec */
	uint64_t n_events;

	struct weft__line_list lines;
	/* What was looked up last, of rec: threads as workers, and locations. */
	struct weft__who {
		uint32_t thread_id, worker;
		const char *label;                /* NULL: nothing is here */
		const struct weft_thread *thread; /* NULL: not defined */
		bool loops;                       /* its polls may be ticks of an event loop */
	} whos[64];
	struct weft__where_slot {
		uint32_t location;
		const char *label; /* NULL: nothing is here */
		bool is_loop;      /* polls of it may be ticks */
	} locations[64];

	char *rows; /* of `stride` bytes each */
	size_t stride, first, n, cap;
	bool given; /* the caller has the first */
};

static inline bool weft__wanted(const struct weft__scan *t, size_t column)
{
	return t->opts.columns >> column & 1;
}

static inline int64_t weft__id(const struct weft__scan *t, uint64_t id)
{
	return (int64_t)(t->number << 44 | id);
}

static inline int64_t weft__time(const struct weft__scan *t, uint64_t ns)
{
	return (int64_t)weft__recording_since(t->rec, ns);
}

static inline void weft__set_int(struct weft__row *row, size_t column, int64_t value)
{
	row->at[column].i = value;
	row->set |= UINT64_C(1) << column;
}

/* NULL and "" are NULL. */
static inline void weft__set_text(struct weft__row *row, size_t column, const char *text)
{
	if (!text || !text[0])
		return;
	row->at[column].text = text;
	row->set |= UINT64_C(1) << column;
}

static inline struct weft__row *weft__row_at(struct weft__scan *t, size_t i)
{
	return (struct weft__row *)(void *)(t->rows + i * t->stride);
}

/* trace.c, for together.c. What is known of a recording before its events are read; 0 or -ENOMEM. */
int weft__scan_recording(struct weft__scan *t, size_t number);
/* Forgets the first row. */
void weft__scan_pop(struct weft__scan *t);

/* trace.c. A new row, all NULL, or NULL when out of memory; it is given when it passes the filters. */
int weft__rows_grow(struct weft__scan *t);
static inline struct weft__row *weft__row_new(struct weft__scan *t)
{
	struct weft__row *row;

	if (t->first + t->n == t->cap && weft__rows_grow(t) < 0)
		return NULL;
	row = weft__row_at(t, t->first + t->n);
	row->set = 0;
	row->own = NULL;
	return row;
}
void weft__row_give(struct weft__scan *t, struct weft__row *row);
/* Whether a cell that is not NULL passes. */
bool weft__holds(const struct weft__filter *filter, enum weft__column_type type, union weft__value value);

/* resolved.c. The six columns of a thread, from `column` on. A tid of 0 is looked up. Returns 0 or -ENOMEM. */
int weft__fill_who(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t thread_id, uint32_t tid,
		   uint32_t worker);
int weft__fill_label(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t worker, uint32_t thread_id);
/* Whether a poll is a tick of an event loop, which has no task. */
bool weft__is_tick(struct weft__scan *t, uint32_t worker, uint32_t thread_id, uint32_t location);
/* id_column SIZE_MAX: there is none */
void weft__fill_row_location(struct weft__scan *t, struct weft__row *row, size_t id_column, size_t column,
			     uint32_t location);
void weft__fill_stack(const struct weft__scan *t, struct weft__row *row, size_t column, uint32_t stack);
/* The innermost function; `outside` of weft. */
int weft__fill_function(struct weft__scan *t, struct weft__row *row, size_t column, uint32_t stack, uint32_t kernel,
			bool outside);
/* The five columns of a context, from `column` on. */
void weft__fill_context(const struct weft__scan *t, struct weft__row *row, size_t column,
			const struct weft__context *context);
bool weft__is_resolved(enum weft__table_id table);
void weft__resolved_init(struct weft__scan *t);

/* resolved_waits.c: functions of the sink, whose data is the scan. Each returns 0 or -ENOMEM. */
int weft__give_slice(void *data, const struct weft__slice_view *slice);
int weft__give_wait(void *data, const struct weft__wait_view *view);
int weft__give_wait_sum(void *data, const struct weft__wait_sum_view *sum);
int weft__give_sample(void *data, const struct weft__sample_one *sample);
int weft__give_off(void *data, const struct weft__off_view *off);

/* plain.c */
bool weft__is_plain(enum weft__table_id table);
/* Whether events of the kind say anything to the table; WEFT_KIND_BUILTIN_END stands for all beyond the built-in. */
bool weft__plain_wants(enum weft__table_id table, uint32_t kind);
int weft__plain_begin(struct weft__scan *t);
int weft__plain_event(struct weft__scan *t, const struct weft__event *ev);
int weft__plain_end(struct weft__scan *t); /* of the recording */
void weft__plain_fini(struct weft__scan *t);
int weft__plain_thread_get(struct weft__scan *t, uint32_t thread_id, struct weft__plain_thread **ret);
/* plain_tasks.c */
int weft__plain_task_event(struct weft__scan *t, const struct weft__event *ev);
int weft__plain_tasks_end(struct weft__scan *t);
void weft__plain_tasks_fini(struct weft__plain_tasks *tasks);

/* summary_rows.c: all rows of the recording that was analysed. Returns 0 or -ENOMEM. */
int weft__summary_rows(struct weft__scan *t, const struct weft__result *result);

/* definitions.c: all rows of one recording */
int weft__definitions(struct weft__scan *t);
/* Whether the table or the wanted columns need the names of functions, or of variables. */
bool weft__needs_functions(const struct weft__scan *t);
bool weft__needs_objects(const struct weft__scan *t);

#endif
