/* SPDX-License-Identifier: Apache-2.0 */
/* The first page of a report: what was recorded, what limits it, and the findings, the worst first. A finding is one
 * cause at one place, however often it came: polls, waits and delays that have both in common are one. */
#ifndef WEFT_CLI_PAGE_H
#define WEFT_CLI_PAGE_H

#include "analyze/label.h"
#include "print.h"
#include "report.h"

#define PAGE_LISTS 500       /* length of the lists of worst polls, delays and waits that findings are made of */
#define PAGE_FINDINGS 48     /* most that are kept */
#define PAGE_SHOWN 5         /* on the page; --top says another number */
#define PAGE_NAME_COLUMNS 48 /* of a function */
#define PAGE_LONG_NS UINT64_C(1000000) /* a poll, wait or delay that is shorter does no harm by itself */

/* Name in JSON. */
#define PAGE_KINDS(X)                                                                                                  \
	X(DEADLOCK, "deadlock")                                                                                        \
	X(PENDING, "unfinished_wait")                                                                                  \
	X(RUNNING, "unfinished_poll")                                                                                  \
	X(POLL, "poll")                                                                                                \
	X(TICK, "tick")                                                                                                \
	X(DELAY, "wake_to_poll")                                                                                       \
	X(LOCK, "lock")                                                                                                \
	X(CALL, "call")                                                                                                \
	X(CPU, "cpu")                                                                                                  \
	X(QUOTA, "cpu_quota")

enum page_kind {
#define PAGE_KIND(name, text) PAGE_##name,
	PAGE_KINDS(PAGE_KIND)
#undef PAGE_KIND
};

struct page_finding {
	enum page_kind kind;
	const char *cause; /* "on_cpu", "blocked", "waiting", "preempted", "not_measured", or NULL: the kind says it */
	const char *callback;      /* kind of a loop's callbacks that it is about; NULL: not known, or not about them */
	struct report_text title;  /* where and why */
	struct report_text worst;  /* what the worst one was spent on; empty: the title says it */
	struct report_text who;    /* whom it happened to: workers or threads */
	struct report_text behind; /* who else waited because of it */
	uint64_t count, total_ns, worst_ns;
	uint64_t worst_at_ns; /* in the trace; 0: not known */
	bool more;            /* `count` and `total_ns` are of the worst only: the list was full */
	uint64_t n_behind, behind_ns, behind_worst_ns;
	uint64_t harm_ns;  /* the rank */
	const char *query; /* a saved question that has the rows; NULL: none has */
	/* Inside: what it is merged and compared by. */
	uint32_t location, what, name;
	uint64_t object;
};

struct page_findings {
	size_t n;
	struct page_finding at[PAGE_FINDINGS];
};

/* The findings of a recording, the worst first; NULL: out of memory. For weft__free. */
struct page_findings *page_findings(const struct report *report);

/* Inside: one that is to be filled in, zeroed; the least harmful is given up for it when there is no room. */
struct page_finding *page_add(struct page_findings *list, enum page_kind kind, uint64_t harm_ns);
void page_add_polls(struct page_findings *list, const struct report *report);
void page_add_waits(struct page_findings *list, const struct report *report);
void page_add_pending(struct page_findings *list, const struct report *report);
void page_add_cpu(struct page_findings *list, const struct report *report);
/* The name of a function; `buf` as for cli_function, of PAGE_NAME_COLUMNS. */
const char *page_function(const struct weft__function *function, char *buf);
/* "52 % send, called from flush; 20 % hash_bytes"; false: there is no sample. */
bool page_say_functions(struct report_text *text, const struct report *report, size_t most);
/* How code that was made at run time gets names; false: little CPU time is in such code. */
bool page_say_nameless(struct report_text *text, const struct report *report);

bool page_has_loop(const struct report *report);
/* A tick of an event loop that weft run found, not a task's poll. */
static inline bool page_is_tick(const struct report *report, uint32_t worker, uint32_t location)
{
	return weft__label_is_tick(&report->rec->names, worker, location);
}
static inline bool page_only_ticks(const struct report *report) /* and no task's polls */
{
	return weft__only_ticks(report->result, &report->rec->names);
}
/* What can be measured at all in this way of recording. */
bool page_has_wakes(const struct report *report);
bool page_has_queues(const struct report *report);
/* CPU time of the process as far as it was recorded: by its clock, or by samples. */
uint64_t page_cpu_ns(const struct report *report);
/* CPU time that weft itself used, of all threads, and over how long it was looked at. */
uint64_t page_cost_ns(const struct report *report, uint64_t *span_ns);
/* Whether that is beyond the budget, which a short program may not live long enough for. */
bool page_over_budget(const struct report *report);

/* What limits the recording, as one sentence; false: nothing. */
bool page_say_limits(struct report_text *text, const struct report *report);

/* How the report came about. */
struct page_origin {
	int n_paths;
	char **paths;
	struct report_text asked; /* the options that leave something out */
	bool removed;             /* weft run is about to remove the recording */
	uint64_t pid;             /* of the process that weft run started; 0: none */
	int status;               /* ... as wait(2) has it */
};
extern struct page_origin page_origin;

void page_print(const struct report *report);
const char *page_query(const struct report *report); /* the saved question of the worst finding; NULL: none */
void page_print_more(const char *query);             /* the commands that show more, below all else */
void page_json(struct weft__json *json, const struct report *report);
size_t page_width(void);
/* Words from `column` on, lines that follow begin at `indent`. Ends the line. */
void page_wrap(size_t column, size_t indent, const char *text);

/* pager.c: what is printed from here on goes through a pager, if stdout is a terminal; page_end waits for its end. */
void page_through_pager(void);
void page_end(void);

#endif
