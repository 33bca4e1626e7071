/* SPDX-License-Identifier: Apache-2.0 */
/* weft report: one analysis per recording, printed as text (report_text.c, report_list.c, report_cpu.c,
 * report_stacks.c) or JSON (report_json.c, report_cpu_json.c). Tables are summaries (trace/summary.h), which
 * report_table.c and report_table_json.c print. */
#ifndef WEFT_CLI_REPORT_H
#define WEFT_CLI_REPORT_H

#include "analyze/analysis.h"
#include "analyze/json.h"
#include "analyze/profile.h"
#include "analyze/recording.h"
#include "trace/reasons.h"
#include "trace/summary.h"

struct report {
	const struct weft__recording *rec;
	const struct weft__result *result; /* its lists are as long as is asked for, */
	const struct weft__result *whole;  /* ... and these as long as they were kept, for the first page */
	uint64_t from_ns, to_ns;           /* of the window, relative to the start; 0 and UINT64_MAX: all of it */
	uint64_t end_ns;                   /* where the window ends in trace time */
	size_t top;                        /* length of lists */
	bool no_symbols;
	bool by_location; /* only samples in polls of some locations */
	struct weft__profile profile;
};

/* report_short.c: processes that ended before weft started in them. */
#define REPORT_SHORT_FILE "short-processes.txt"
#define REPORT_SHORT_NAMES 256 /* of programs; more are only in the sums */
struct report_short_name {
	char name[64];
	uint64_t n, cpu_ns;
};
struct report_short {
	uint64_t n, cpu_ns;
	uint64_t unheard; /* of these nothing is known but that they began */
	bool asked;       /* unheard is known */
	size_t n_names;
	struct report_short_name names[REPORT_SHORT_NAMES];
};
void report_short_load(struct report_short *all, int n_paths, char **paths);
/* There are such, and no segment beside them. */
bool report_short_only(const struct report_short *all, int n_paths, char **paths);
void report_short_text(const struct report_short *all); /* nothing when there are none */
void report_short_json(struct weft__json *json, const struct report_short *all);
void report_short_alone(const struct report_short *all, bool as_json); /* the whole report */

struct report_opts {
	const struct report_short *shorts;
	struct weft__analysis_opts analysis;
	uint64_t from_ns, to_ns;
	uint64_t pid;
	bool has_pid;
	bool no_symbols;
	bool json;
	bool full; /* all tables, not the first page */
	bool no_pager;
	/* CPU time by package instead of all else (report_packages); NULL: not. The page of weft view has none. */
	int (*by_package)(const struct report *report, struct weft__json *json);
};

/* package.c: CPU time by package, as text or into an array. 0 or -ENOMEM. */
int report_packages(const struct report *report, struct weft__json *json);

/* report_each.c: the recordings, one after the other. Answers `code`, or what became of it. As text the process that
 * did the most comes first, and those that did little are rows of one table. */
bool report_chosen(const struct weft__recording *rec, const struct report_opts *opts);
int report_each_text(struct weft__recordings *list, const struct report_opts *opts, size_t n, int code);
int report_each_json(struct weft__recordings *list, const struct report_opts *opts, int code);

/* report_table.c: columns of a summary as text. A column that has no value in any row, for one reason, is left out, and
 * the reason is printed below the table. */
struct report_view {
	const uint8_t *columns;
	size_t n_columns;
	uint8_t need;     /* rows without a value there, or with 0, are left out; 0: none is */
	uint8_t by;       /* the most of this first; 0: in the order of the summary */
	uint8_t rest;     /* summed up over the rows that are not shown; 0: nothing is */
	uint8_t optional; /* left out where it is 0 in all rows */
	bool all;         /* rows, not only `top` of the report */
	const char *more; /* what rows that are not shown are called */
	uint64_t beyond;  /* rows that are not even in the summary */
};
/* REPORT_VIEW(name, columns...) = {REPORT_OF(name), ...}; */
#define REPORT_VIEW(name, ...)                                                                                         \
	static const uint8_t name##_columns[] = {__VA_ARGS__};                                                         \
	static const struct report_view name
#define REPORT_OF(name) .columns = name##_columns, .n_columns = sizeof(name##_columns)
/* To be given to weft__summary_fini. Without memory it is empty, after saying so. */
void report_summary(const struct report *report, enum weft__table_id table, struct weft__summary *ret);
void report_view(const struct report *report, const struct weft__summary *summary, const struct report_view *view);
void report_print(const struct report *report, enum weft__table_id table, const struct report_view *view);
/* report_table_json.c: the same as a member of an object, an array of all rows. */
void report_json_table(struct weft__json *json, const struct report *report, const char *key,
		       enum weft__table_id table);
/* The rows as members of an object, or of the one that is open (NULL), by what is in their first column. */
void report_json_keyed(struct weft__json *json, const struct report *report, const char *key,
		       enum weft__table_id table);
/* The columns of its one row as members of the object that is open. */
void report_json_one(struct weft__json *json, const struct report *report, enum weft__table_id table);
void report_json_holder(struct weft__json *json, const struct report *report, const struct weft__holder *holder);

void report_text(const struct report *report);
void report_json(struct weft__json *json, const struct report *report);

/* The lists of worst polls and delays, as text. */
void report_headline(const struct report *report);
void report_longest(const struct report *report);
void report_running(const struct report *report);
void report_delayed(const struct report *report);

/* report_notes.c */
void report_print_notes(const struct report *report);
void report_json_notes(struct weft__json *json, const struct report *report);

/* report_cpu.c: what was sampled, as text. The line says how, the tables where. */
void report_sampling(const struct report *report);
void report_cpu(const struct report *report);

/* report_say.c: names for what is in no list of names. Text that does not fit is cut. */
struct report_text {
	size_t n;
	char at[1400];
};

/* report_filter.c: whether a recording has what an option asks for; otherwise some of the names that it has are
 * added. */
enum report_names_of { REPORT_LOCATIONS, REPORT_WORKERS, REPORT_THREADS };
#define REPORT_NAMES 12
struct report_names {
	size_t n;
	char at[REPORT_NAMES][80];
};
bool report_has_name(const struct weft__names *names, enum report_names_of of, const char *pattern,
		     struct report_names *others);
void report_say(struct report_text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *report_wait_kind(uint32_t what);
/* "cache_lock", "read fd 7", "a lock at 0x7f..." */
void report_say_wait(struct report_text *text, const struct report *report, uint32_t what, uint32_t name,
		     uint64_t object);
/* The same of a cell of that form. */
void report_say_waited(struct report_text *text, const struct report *report, const struct weft__cell *cell);
void report_say_call(struct report_text *text, const struct report *report, uint32_t call); /* number + 1 */
/* Whether to name a function as the caller of a leaf in another module: 2 it is the program's own code, 1 when there
 * is none of that nearer or further out (a library that does the program's work; main), 0 it says nothing. */
/* Whether it is the program's own code: in its file, or interpreted. */
bool report_is_own(const struct weft__function *function, const char *exe);
int report_calls(const struct weft__function *function, const char *leaf_module, const char *exe);
/* "deflate", or "read, called from load"; false when nothing names it. */
bool report_say_stack(struct report_text *text, const struct report *report, uint32_t stack, uint32_t kernel);
void report_say_doing(struct report_text *text, const struct report *report, const struct weft__holder *holder);
/* thread 123 "worker-3" (in handle_upload > deflate) */
void report_say_holder(struct report_text *text, const struct report *report, const struct weft__holder *holder);
/* The same for all that held it, the one that did so for the longest time first. */
void report_say_holders(struct report_text *text, const struct report *report, const struct weft__holder *holder);
bool report_say_context(struct report_text *text, const struct report *report, const struct weft__context *context);

/* report_trust.c: whether samples can be believed. What they are short of (or, below 0, too much by), beyond what
 * chance does; 0: nothing, or not measured. */
int64_t report_cpu_off(const struct report *report);
void report_say_cpu_off(struct report_text *text, const struct report *report);
double report_in_step_share(const struct report *report); /* of all samples, whatever was asked for */
bool report_in_step(const struct report *report);
void report_say_in_step(struct report_text *text, const struct report *report);
void report_json_cpu_clock(struct weft__json *json, const struct report *report);

/* report_missing.c: what is missing, a sentence each */
#define REPORT_MISSING 24
struct report_missing {
	size_t n;
	const char *keys[REPORT_MISSING];
	struct report_text at[REPORT_MISSING];
};
void report_missing(const struct report *report, struct report_missing *list);
void report_print_missing(const struct report *report);
void report_json_missing(struct weft__json *json, const struct report *report);
bool report_say_end(struct report_text *text, const struct report *report); /* not as usual, or false */
double report_quota(const struct report *report);                           /* CPUs; 0: there was none */
void report_say_throttling(struct report_text *text, const struct report *report);

/* report_breakdown.c: what the time of a poll was spent on; in lists with all of it, in headlines with what matters. */
void report_breakdown(const struct report *report, const struct weft__poll *poll, int indent);
void report_breakdown_headline(const struct report *report, const struct weft__poll *poll, int indent);
bool report_has_breakdown(const struct report *report);
const char *report_no_switches(const struct report *report,
			       const struct weft__breakdown *breakdown); /* NULL: all are there */

/* report_waits.c, each only if there is any */
void report_waits(const struct report *report);
/* Of the time, in which switches were recorded; 1: all of it. */
double report_switch_share(const struct report *report);
void report_off_cpu(const struct report *report);
void report_wall(const struct report *report);
void report_stuck(const struct report *report);
void report_waiting(const struct report *report);
void report_pending_headline(const struct report *report); /* waits for locks that have not ended; deadlocks */
void report_pending(const struct report *report);
void report_say_pending(struct report_text *text, const struct report *report, const struct weft__pending *pending);
void report_json_pending(struct weft__json *json, const struct report *report);
void report_cost(const struct report *report);

/* report_stacks.c: the samples of one poll, as a tree of calls. The heart is the innermost function that at least
 * half of them are in, with its share of them. */
bool report_poll_heart(struct report_text *text, const struct report *report, const struct weft__poll *poll,
		       bool caller, double *share);
bool report_tree_heart(struct report_text *text, const struct report *report,
		       const struct weft__tree *tree); /* sorted */
void report_poll_stacks(const struct report *report, const struct weft__poll *poll);

/* report_cpu_json.c */
void report_json_samples(struct weft__json *json, const struct report *report);
void report_json_poll(struct weft__json *json, const struct report *report, const struct weft__poll *poll);

/* report_breakdown_json.c */
void report_json_breakdown(struct weft__json *json, const struct report *report, const struct weft__poll *poll);
void report_json_context(struct weft__json *json, const struct report *report, const struct weft__context *context);
void report_json_offcpu(struct weft__json *json,
			const struct report *report); /* waits, switches, wall samples, stuck, cost */

/* report_cpu_json.c: the frames of a stack, leaf first, as an array */
void report_json_frames(struct weft__json *json, const struct report *report, uint32_t stack, uint32_t kernel);

/* report_json.c */
void report_json_lane(struct weft__json *json, const struct report *report, uint32_t worker, uint32_t thread_id);
void report_json_task(struct weft__json *json, const struct report *report, uint32_t worker, uint64_t task,
		      uint32_t location); /* with its location */
void report_json_location(struct weft__json *json, const struct report *report, uint32_t location);

/* Of the poll's time, what no sample accounts for. */
uint64_t report_unsampled(const struct weft__poll *poll);
/* What shares of the poll are of: its time, or what was sampled in it where that is more, because a sample stands for
 * CPU time that may lie before the poll. */
uint64_t report_poll_whole(const struct weft__poll *poll);

/* Why a figure is not there, NULL when it is. Text and JSON say the same. */
const char *report_no_longest(const struct report *report); /* polls one by one */
/* Why a poll has no wake; NULL: there was none. */
const char *report_no_wake(const struct report *report, const struct weft__poll *poll);
const char *report_no_poll_samples(const struct report *report, const struct weft__poll *poll);
static inline const char *report_no_polls(const struct report *report)
{
	return weft__no_polls(report->result);
}
static inline const char *report_no_delays(const struct report *report)
{
	return weft__no_delays(report->result);
}
static inline const char *report_no_samples(const struct report *report) /* in the whole recording and window */
{
	return weft__no_samples(report->result, &report->rec->names);
}

/* Time in the trace relative to the start of the recording. */
static inline uint64_t report_since_start(const struct report *report, uint64_t ns)
{
	return weft__recording_since(report->rec, ns);
}

/* How much time the report is about. */
static inline uint64_t report_span_ns(const struct report *report)
{
	uint64_t from_ns = weft__recording_time(report->rec, report->from_ns);

	return report->end_ns > from_ns ? report->end_ns - from_ns : 0;
}

#endif
