/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing from a recording, or was taken from the program, in one sentence each: what it means for who reads the figures. Text has
 * them in its first lines, JSON under one key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "print.h"
#include "report.h"

double report_quota(const struct report *report)
{
	const char *max = weft__names_fact(&report->rec->names, "cgroup.cpu.max");
	char *end = NULL;
	double quota = max ? strtod(max, &end) : 0, period = end ? strtod(end, NULL) : 0;

	return quota > 0 && period > 0 ? quota / period : 0;
}

static uint64_t recorded_ns(const struct report *report)
{
	uint64_t from_ns = report->rec->start_ns + report->from_ns, to_ns = report->end_ns;

	return to_ns > from_ns ? to_ns - from_ns : 0;
}

void report_say_throttling(struct report_text *text, const struct report *report)
{
	const struct weft__throttling *t = &report->result->throttling;
	const char *cpus = weft__names_fact(&report->rec->names, "host.cpus");
	double quota = report_quota(report);
	char ns[CLI_FIGURE], span[CLI_FIGURE], figure[CLI_FIGURE];

	if (t->n == 0)
		return;
	report_say(text, "the cgroup's CPU quota");
	if (quota > 0)
		report_say(text, " of %s CPU%s", cli_number(quota, figure), quota == 1 ? "" : "s");
	report_say(text, " stopped the process for %s of %s", cli_ns(t->ns, ns), cli_ns(recorded_ns(report), span));
	if (cpus && strcmp(cpus, "1") != 0)
		report_say(text, " (added up over CPUs)");
	report_say(text, ", %s time%s: threads that were ready did not run, whatever their code does; ",
		   cli_count(t->times, figure), t->times == 1 ? "" : "s");
	if (report->result->n_kind[WEFT_KIND_OFFCPU])
		report_say(text, "time preempted says how much of it was throttled");
	else
		report_say(text, "how much of that was in which poll is not measured, as switches were not recorded");
}

/* Adds one; the text is there to be written to. */
static struct report_text *add(struct report_missing *list, const char *key)
{
	struct report_text *text = &list->at[list->n < REPORT_MISSING ? list->n++ : REPORT_MISSING - 1];

	list->keys[text - list->at] = key;
	text->n = 0;
	text->at[0] = 0;
	return text;
}

void report_missing(const struct report *report, struct report_missing *list)
{
	list->n = 0;
	if (report->result->throttling.n)
		report_say_throttling(add(list, "cpu_quota"), report);
}

void report_print_missing(const struct report *report)
{
	struct report_missing list;
	size_t i;

	report_missing(report, &list);
	for (i = 0; i < list.n; i++)
		printf("%sNOTE:%s %s\n", cli_style(CLI_YELLOW), cli_style(CLI_PLAIN), list.at[i].at);
}

void report_json_missing(struct weft__json *json, const struct report *report)
{
	struct report_missing list;
	size_t i;

	report_missing(report, &list);
	weft__json_begin(json, "incomplete", '[');
	for (i = 0; i < list.n; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "what", list.keys[i]);
		weft__json_text(json, "meaning", list.at[i].at);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
}
