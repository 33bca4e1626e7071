/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries (summaries.h) of one recording, filled from the result of its analysis. A cell has a value, or the reason
 * why it has none. Context: CALLER. */
#ifndef WEFT_TRACE_SUMMARY_H
#define WEFT_TRACE_SUMMARY_H

#include "analyze/profile.h"
#include "analyze/recording.h"
#include "trace/tables.h"

/* By the form of its column: `u` for numbers, CALL among them, `f` for SHARE and MEAN, `text` for NAME and MODULE. */
struct weft__cell {
	bool set;
	const char *why; /* it is not, NULL: nothing to say beyond what the column's declaration does */
	union {
		uint64_t u;
		double f;
		const char *text;
		uint32_t location;                     /* LOCATION: id */
		const struct weft__function *function; /* FUNCTION */
		const struct weft__holder *holder;     /* HOLDER */
		struct {
			uint32_t worker, thread_id;
		} lane; /* LANE, WORKER */
		struct {
			uint32_t thread_id, tid; /* THREAD; an id of 0: only its tid is known */
		} thread;
		struct {
			uint32_t stack, kernel; /* STACK */
		} stack;
		struct {
			uint32_t what, name;
			uint64_t object;
			bool one; /* `object` is the only one */
		} wait;           /* WAIT */
		struct {
			const char *name; /* NULL: not known */
			uint64_t address;
		} data; /* DATA */
	};
};

struct weft__summary {
	const struct weft__table *table;
	struct weft__cell *cells; /* of the first row, then the second, ... */
	size_t n_rows, cap_rows;
};

/* What a summary is of. The profile is wanted for functions only. All of it must outlive the summary. */
struct weft__summary_of {
	const struct weft__recording *rec;
	const struct weft__result *result;
	const struct weft__profile *profile;
};

static inline bool weft__is_summary(enum weft__table_id table)
{
	return table >= WEFT__TABLE_WORKER_SUMMARY;
}

/* Returns 0 or -ENOMEM. `*ret` is the caller's, to be given to fini. */
int weft__summary_init(struct weft__summary *ret, enum weft__table_id table, const struct weft__summary_of *of);
void weft__summary_fini(struct weft__summary *summary);

static inline const struct weft__cell *weft__summary_cell(const struct weft__summary *summary, size_t row,
							  size_t column)
{
	return &summary->cells[row * summary->table->n_columns + column];
}

/* Inside, for the files that fill. Each puts into the newest row; a `why` that is not NULL is put instead of the
 * value. */
struct weft__filling {
	struct weft__summary *summary;
	const struct weft__summary_of *of;
	struct weft__cell *row;
	bool failed; /* out of memory */
};
bool weft__fill_row(struct weft__filling *f); /* begins one, all cells without value and reason; false: no memory */
void weft__fill_u64(struct weft__filling *f, size_t column, const char *why, uint64_t value);
void weft__fill_real(struct weft__filling *f, size_t column, const char *why, double value);
void weft__fill_share(struct weft__filling *f, size_t column, const char *why, uint64_t part, uint64_t whole);
void weft__fill_text(struct weft__filling *f, size_t column, const char *text); /* NULL or "": none */
void weft__fill_thread(struct weft__filling *f, size_t column, uint32_t tid, uint32_t thread_id);
/* The columns of WEFT__SUM_LANE, _LOCATION, _HIST, _DEPTH and _SPLIT, of which `first` is the first. */
void weft__fill_lane(struct weft__filling *f, size_t first, uint32_t worker, uint32_t thread_id);
void weft__fill_location(struct weft__filling *f, size_t first, uint32_t location);
void weft__fill_hist(struct weft__filling *f, size_t first, const char *why, const struct weft__hist *hist);
void weft__fill_depth(struct weft__filling *f, size_t first, const char *why, const struct weft__hist *hist);
void weft__fill_split(struct weft__filling *f, size_t first, const struct weft__split *split);

void weft__fill_stack_of(struct weft__filling *f, size_t column, uint32_t stack, uint32_t kernel);
/* The columns of WEFT__SUM_TIMES. */
void weft__fill_times(struct weft__filling *f, size_t first, uint64_t n, uint64_t ns, uint64_t longest_ns);

/* Each fills one summary: summary_cpu.c */
void weft__fill_functions(struct weft__filling *f);
void weft__fill_cpu(struct weft__filling *f);
void weft__fill_cpu_threads(struct weft__filling *f);
void weft__fill_stacks(struct weft__filling *f);
void weft__fill_off_threads(struct weft__filling *f);
void weft__fill_off_stacks(struct weft__filling *f);
void weft__fill_wall(struct weft__filling *f);
/* summary_waits.c */
void weft__fill_waits(struct weft__filling *f);
void weft__fill_locks(struct weft__filling *f);
void weft__fill_wait_threads(struct weft__filling *f);
void weft__fill_stuck(struct weft__filling *f);
void weft__fill_waiting(struct weft__filling *f);

#endif
