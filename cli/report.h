/* SPDX-License-Identifier: Apache-2.0 */
/* weft report: one analysis per recording, printed as text (report_text.c, report_list.c) or JSON (report_json.c). */
#ifndef WEFT_CLI_REPORT_H
#define WEFT_CLI_REPORT_H

#include "analyze/analysis.h"
#include "analyze/json.h"
#include "analyze/recording.h"

struct report {
	const struct weft__recording *rec;
	const struct weft__result *result;
	uint64_t from_ns, to_ns; /* of the window, relative to the start; 0 and UINT64_MAX: all of it */
	uint64_t end_ns;         /* where the window ends in trace time */
};

void report_text(const struct report *report);
void report_json(struct weft__json *json, const struct report *report);

/* The lists of worst polls and delays, as text. */
void report_headline(const struct report *report);
void report_longest(const struct report *report);
void report_running(const struct report *report);
void report_delayed(const struct report *report);

/* Why a figure is not there, NULL when it is. Text and JSON say the same. */
const char *report_no_polls(const struct report *report);
const char *report_no_delays(const struct report *report);
const char *report_no_busy(const struct report *report, const struct weft__lane *lane);
const char *report_no_parked(const struct weft__lane *lane);
const char *report_no_cpu(const struct weft__lane *lane);
const char *report_no_local_queue(const struct weft__lane *lane);
const char *report_no_global_queue(const struct report *report);
const char *report_no_alive(const struct report *report);

/* Time in the trace relative to the start of the recording. */
static inline uint64_t report_since_start(const struct report *report, uint64_t ns)
{
	return ns > report->rec->start_ns ? ns - report->rec->start_ns : 0;
}

#endif
