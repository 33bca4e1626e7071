/* SPDX-License-Identifier: Apache-2.0 */
/* weft report: one analysis per recording, printed as text (report_text.c, report_list.c, report_cpu.c, report_stacks.c) or JSON
 * (report_json.c, report_cpu_json.c). */
#ifndef WEFT_CLI_REPORT_H
#define WEFT_CLI_REPORT_H

#include "analyze/analysis.h"
#include "analyze/json.h"
#include "analyze/profile.h"
#include "analyze/recording.h"

struct report {
	const struct weft__recording *rec;
	const struct weft__result *result;
	uint64_t from_ns, to_ns; /* of the window, relative to the start; 0 and UINT64_MAX: all of it */
	uint64_t end_ns;         /* where the window ends in trace time */
	size_t top;              /* length of lists */
	bool no_symbols;
	bool by_location; /* only samples in polls of some locations */
	struct weft__profile profile;
};

void report_text(const struct report *report);
void report_json(struct weft__json *json, const struct report *report);

/* The lists of worst polls and delays, as text. */
void report_headline(const struct report *report);
void report_longest(const struct report *report);
void report_running(const struct report *report);
void report_delayed(const struct report *report);

/* report_cpu.c: what was sampled, as text. The line says how, the tables where. */
void report_sampling(const struct report *report);
void report_cpu(const struct report *report);

/* report_stacks.c: the samples of one poll. "41.0 ms on CPU in deflate, ..." and the tree of calls below it. */
void report_poll_cpu(const struct report *report, const struct weft__poll *poll, int indent);
void report_poll_stacks(const struct report *report, const struct weft__poll *poll);

/* report_cpu_json.c */
void report_json_samples(struct weft__json *json, const struct report *report);
void report_json_poll(struct weft__json *json, const struct report *report, const struct weft__poll *poll);
void report_json_place_cpu(struct weft__json *json, const struct report *report, const struct weft__place *place);

/* report_json.c */
void report_json_lane(struct weft__json *json, const struct report *report, uint32_t worker, uint32_t stream);
void report_json_place(struct weft__json *json, const struct report *report, uint32_t place);

/* Of the poll's time, what no sample accounts for. */
uint64_t report_unsampled(const struct weft__poll *poll);
/* What shares of the poll are of: its time, or what was sampled in it where that is more, because a sample stands for
 * CPU time that may lie before the poll. */
uint64_t report_poll_whole(const struct weft__poll *poll);

/* Why a figure is not there, NULL when it is. Text and JSON say the same. */
const char *report_no_polls(const struct report *report);
const char *report_no_delays(const struct report *report);
const char *report_no_busy(const struct report *report, const struct weft__lane *lane);
const char *report_no_parked(const struct weft__lane *lane);
const char *report_no_cpu(const struct weft__lane *lane);
const char *report_no_local_queue(const struct weft__lane *lane);
const char *report_no_global_queue(const struct report *report);
const char *report_no_alive(const struct report *report);
const char *report_no_samples(const struct report *report); /* in the whole recording and window */
const char *report_no_poll_samples(const struct report *report, const struct weft__poll *poll);
const char *report_no_measured(const struct weft__sampled_thread *thread);

/* Time in the trace relative to the start of the recording. */
static inline uint64_t report_since_start(const struct report *report, uint64_t ns)
{
	return ns > report->rec->start_ns ? ns - report->rec->start_ns : 0;
}

#endif
