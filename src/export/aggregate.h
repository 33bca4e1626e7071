/* SPDX-License-Identifier: Apache-2.0 */
/* The aggregated profile: recordings summed up by stack, thread, labels and state, with the tables that every encoder
 * needs: texts, functions, mapped files, places in code. Encoders read it and change nothing.
 *
 *     recording -> analysis -> rows (analyze/rows.h, times.h) -> rows.c, labels -> sums (stacks.h)
 *                    frames (analyze/frames.h) -> code.c -> places, functions, mappings
 *
 * The figures are those of `weft report` with the same filters: both come from one analysis. Context: CALLER. */
#ifndef WEFT_EXPORT_AGGREGATE_H
#define WEFT_EXPORT_AGGREGATE_H

#include "analyze/analysis.h"
#include "analyze/recording.h"
#include "base/buf.h"
#include "export/export.h"
#include "export/stacks.h"
#include "export/tags.h"
#include "package/keys.h"

/* Sample types: X(NAME, bit of weft__export_what, type, unit). Their order is that of the values of a row. */
#define WEFT__EXPORT_TYPES(X)                                                                                          \
	X(CPU_SAMPLES, CPU, "cpu_samples", "count")                                                                    \
	X(CPU_NS, CPU, "cpu", "nanoseconds")                                                                           \
	X(WALL_NS, WALL, "wall", "nanoseconds")                                                                        \
	X(OFFCPU_COUNT, OFFCPU, "offcpu_intervals", "count")                                                           \
	X(OFFCPU_NS, OFFCPU, "offcpu", "nanoseconds")                                                                  \
	X(WAIT_COUNT, WAIT, "waits", "count")                                                                          \
	X(WAIT_NS, WAIT, "wait", "nanoseconds")                                                                        \
	X(POLL_COUNT, POLL, "polls", "count")                                                                          \
	X(POLL_NS, POLL, "poll", "nanoseconds")

enum weft__value_type {
#define X(NAME, what, type, unit) WEFT__VALUE_##NAME,
	WEFT__EXPORT_TYPES(X)
#undef X
		WEFT__N_VALUES
};
_Static_assert(WEFT__N_VALUES <= WEFT__SUMS_VALUES_MAX, "values of a row");

struct weft__value_name {
	const char *type, *unit;
	uint32_t what;
};
extern const struct weft__value_name weft__value_names[WEFT__N_VALUES];

/* What rows that are summed have in common besides their stack; all zero bytes where unused, since sets are compared
 * by their bytes. Texts are numbers of aggregate->texts, where 0 is "". */
struct weft__row_labels {
	uint64_t span, root, trace_hi, trace_lo;
	uint32_t pid, tid;
	uint32_t thread, worker;
	uint32_t state;    /* "on cpu", "blocked", "preempted", "waiting", "not measured" */
	uint32_t where;    /* of CPU samples: "in_polls", "between_polls", "parked", "unknown" */
	uint32_t location; /* of the poll's task */
	uint32_t wait;     /* kind of what was waited for */
	uint32_t wait_for; /* its name */
	uint32_t endpoint;
	uint32_t labels; /* "key=value,key=value" */
	uint32_t unused;
};
_Static_assert(sizeof(struct weft__row_labels) == 80, "no padding");

struct weft__mapping {
	uint32_t path, build_id; /* texts; the build-id in hex digits */
	uint32_t kind;           /* enum weft_module_kind */
	uint64_t start, end, offset;
	bool has_functions, has_files, has_inlined;
};

/* One place in code, or something that stands for one. */
struct weft__place {
	uint32_t mapping;  /* number + 1; 0: none */
	uint32_t first, n; /* of its lines, innermost first */
	uint64_t address;
};

struct weft__place_line {
	uint32_t function;
	uint32_t line;
};

struct weft__place_function {
	uint32_t name, file; /* texts */
};

struct weft__aggregate {
	const struct weft__export_opts *opts;
	struct weft__name_cache *cache;
	struct weft__sums sums;
	struct weft__keys texts, functions, mappings_by_key, places_by_key, stacks_by_key;
	struct weft__mapping *mappings;
	size_t n_mappings, cap_mappings;
	struct weft__place *places;
	size_t n_places, cap_places;
	struct weft__place_line *lines;
	size_t n_lines, cap_lines;
	uint32_t *stack_of_key; /* number in sums.stacks of each of stacks_by_key */
	size_t cap_stack_of_key;
	uint32_t *scratch; /* frames of a stack that is put together */
	size_t cap_scratch;
	struct weft__map endpoint_by_root; /* texts: names that come after the samples of their request */

	uint64_t totals[WEFT__N_VALUES]; /* all that was added, for what is left out */
	uint64_t n_rows_of[WEFT__N_VALUES];
	uint64_t start_unix_ns, end_unix_ns, period_ns;
	uint32_t *comments; /* texts: what is not measured, and why */
	size_t n_comments, cap_comments;
	size_t n_recordings;
	struct weft__tags tags; /* of the first recording */

	/* While a recording is read. */
	struct weft__recording *rec;
	struct weft__analysis *analysis;
	uint32_t number; /* of the recording */
	uint32_t pid;
	struct weft__keys long_polls; /* serials, with opts->min_poll_ns */
	bool finding;                 /* the first of two readings, for these */
	bool no_wall;
};

/* aggregate.c. Adds all recordings of the list. `cache`: names of earlier ones, or NULL. 0, or a negative error with a
 * message. */
int weft__aggregate_init(struct weft__aggregate *agg, struct weft__recordings *list,
			 const struct weft__export_opts *opts, struct weft__name_cache *cache, struct weft_error *err);
void weft__aggregate_fini(struct weft__aggregate *agg);
/* Bits of enum weft__value_type that a profile has: those that were asked for, or that have rows. */
uint32_t weft__aggregate_values(const struct weft__aggregate *agg);
/* Rows without labels of theirs: what did not fit. False: there is none. */
bool weft__aggregate_dropped(const struct weft__aggregate *agg);
const char *weft__aggregate_text(const struct weft__aggregate *agg, uint32_t text);
/* The labels of a row, with the name of the endpoint that became known later. */
void weft__aggregate_labels(const struct weft__aggregate *agg, uint32_t labels, struct weft__row_labels *ret);
/* The next "key=value" of the labels of a context: number of characters of each, 0 at the end. */
const char *weft__labels_next(const char *at, size_t *key, const char **value, size_t *value_bytes);

/* code.c. Each returns 0 or -ENOMEM. */
/* A place that is no code, but stands at the end of a stack. */
int weft__aggregate_mark(struct weft__aggregate *agg, const char *name, const char *file, uint32_t line, uint32_t *ret);
/* The mapping of the program itself: readers take the first for it. */
int weft__aggregate_main(struct weft__aggregate *agg);
/* The stack of a row, as number in sums.stacks; WEFT__SUMS_NONE when it does not fit. `leaf` and `root` are places + 1
 * to put before the innermost frame and behind the outermost; 0: none. `outside`: without weft's own frames. */
struct weft__stack_key {
	uint32_t recording, stack, kernel, outside, leaf, root;
};
int weft__aggregate_stack(struct weft__aggregate *agg, const struct weft__stack_key *key, uint32_t *ret);

/* rows.c. Reads one recording. */
int weft__aggregate_read(struct weft__aggregate *agg, const struct weft__result **ret);
int weft__aggregate_comment(struct weft__aggregate *agg, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* notes.c: what the recording does not have, as comments. */
int weft__aggregate_notes(struct weft__aggregate *agg, const struct weft__result *result);

/* export.c. Opens segments; 0 or a negative error with a message. */
int weft__export_load(struct weft__recordings *list, const char *const *paths, size_t n, struct weft_error *err);
/* export.c. What was encoded becomes `out`, compressed unless `plain`. */
int weft__export_pack(struct weft__bytes *out, struct weft__buf *buf, const struct weft__aggregate *agg, bool plain,
		      struct weft_error *err);
/* export.c, for who has recordings: `encode` is one of the encoders. */
int weft__export_recordings(struct weft__bytes *out, struct weft__recordings *list,
			    void (*encode)(const struct weft__aggregate *agg, struct weft__buf *out),
			    const struct weft__export_opts *opts, struct weft_error *err);
/* attachment.c: the same for code provenance. */
int weft__provenance_export(struct weft__bytes *out, struct weft__recordings *list, struct weft_error *err);

/* Encoders: one file each. All add to `out`, which remembers when memory ran out. */
void weft__pprof_encode(const struct weft__aggregate *agg, struct weft__buf *out);
void weft__otlp_encode(const struct weft__aggregate *agg, struct weft__buf *out);
void weft__folded_encode(const struct weft__aggregate *agg, struct weft__buf *out);

#endif
