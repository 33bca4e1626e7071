/* SPDX-License-Identifier: Apache-2.0 */
/* What limits a recording, as one sentence. The full report has a note on each (report_missing.c); here each is a
 * clause that says what is not there. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define CLAUSES 4 /* more are counted */
#define TICKS_MANY 20
#define LONGEST 160 /* bytes of one */

static const char *fact(const struct report *report, const char *key)
{
	const char *value = weft__names_fact(&report->rec->names, key);

	return value && value[0] ? value : NULL;
}

static void say_detail(struct report_text *text, const struct report *report)
{
	const struct weft__detail *d = &report->result->detail;
	const char *slow = fact(report, "poll.slow_ns");
	uint64_t slow_ns = d->coarser.ns ? d->coarser.slow_ns : slow ? strtoull(slow, NULL, 10) : 0;
	char figure[CLI_FIGURE];

	report_say(text, "polls shorter than %s%s%s are only counted", cli_ns(slow_ns, figure),
		   !d->parked.ns   ? ""
		   : d->counted.ns ? ", parks"
				   : " and parks",
		   d->counted.ns ? " and wakes" : "");
	if (d->coarser.ns)
		report_say(text, " from +%.3f s on%s", (double)report_since_start(report, d->coarser.ns) / 1e9,
			   d->finer_ns ? ", for a time" : "");
	if (d->untimed.ns && d->polls_untimed)
		report_say(text,
			   "; %s of the polls were counted without a clock, and those below 10 ms among them are not "
			   "listed",
			   cli_percent((double)d->polls_untimed /
					       ((double)report->result->polls.n + (double)d->polls_untimed),
				       figure));
}

/* A clause for a key of report_missing; false: the long text has to do. */
static bool say_short(struct report_text *text, const struct report *report, const char *key)
{
	const struct weft__result *r = report->result;
	char figure[CLI_FIGURE], other[CLI_FIGURE];
	const char *after = fact(report, "start.after_ns"), *cpu = fact(report, "start.cpu_ns");

	if (strcmp(key, "process_end") == 0)
		report_say_end(text, report);
	else if (strcmp(key, "late_start") == 0)
		report_say(
			text,
			"the first %s of the process (%s of CPU) are not here (weft run --start-after 0 records them)",
			cli_ns(after ? strtoull(after, NULL, 10) : 0, figure),
			cli_ns(cpu ? strtoull(cpu, NULL, 10) : 0, other));
	else if (strcmp(key, "polls_not_listed") == 0)
		say_detail(text, report);
	else if (strcmp(key, "switches") == 0)
		report_say(text, "context switches were recorded in %s of the time",
			   cli_percent(report_switch_share(report), figure));
	else if (strcmp(key, "sample_rate") == 0)
		report_say(text, "at times there was only a CPU sample every %s",
			   cli_ns(r->samples.longest_period_ns, figure));
	else if (strcmp(key, "samples_in_step") == 0)
		report_say(text,
			   "%s of the CPU time was sampled in step with the kernel's tick, so that shares of "
			   "functions may be wrong",
			   cli_percent(report_in_step_share(report), figure));
	else if (strcmp(key, "first_ticks") == 0)
		report_say(text, "the first tick of a plain loop is not here");
	else if (strcmp(key, "budget") == 0)
		report_say(text, "less was recorded at times");
	else if (strcmp(key, "events_lost") == 0)
		report_say(text, "%s events were lost, and times that span their gap are left out",
			   cli_count(r->loss.events, figure));
	else
		return false;
	return true;
}

/* What a sentence says before it goes into detail, or what fits of it. */
static void say_first(struct report_text *text, const char *sentence)
{
	const char *colon = strstr(sentence, ": ");
	size_t n = strlen(sentence);

	if (colon && colon - sentence > 20)
		n = (size_t)(colon - sentence);
	if (n > LONGEST)
		for (n = LONGEST; n > 0 && sentence[n] != ' '; n--)
			;
	report_say(text, "%.*s%s", (int)n, sentence, n == LONGEST ? "..." : "");
}

/* Those are said with another, or are findings. */
static bool is_said(const struct report *report, const char *key)
{
	if (strcmp(key, "first_ticks") == 0) /* of many ticks one is nothing */
		return report->result->polls.n >= TICKS_MANY;
	return strcmp(key, "parks_not_listed") == 0 || strcmp(key, "wakes_not_listed") == 0 ||
	       strcmp(key, "cpu_quota") == 0;
}

static bool by_budget(const char *key)
{
	return strcmp(key, "polls_not_listed") == 0 || strcmp(key, "switches") == 0 ||
	       strcmp(key, "sample_rate") == 0 || strcmp(key, "budget") == 0;
}

bool page_say_limits(struct report_text *text, const struct report *report)
{
	static struct report_missing list; /* large, and the command has one thread */
	const char *budget = fact(report, "budget.ppm");
	size_t i, n = 0, left = 0, end = 0; /* end: of the last clause that the budget is the reason for */
	struct report_text after;

	report_missing(report, &list);
	for (i = 0; i < list.n; i++) {
		struct report_text clause = {.n = 0};

		if (is_said(report, list.keys[i]))
			continue;
		if (n == CLAUSES) {
			left++;
			continue;
		}
		if (!say_short(&clause, report, list.keys[i]))
			say_first(&clause, list.at[i].at);
		report_say(text, "%s%s", n++ ? "; " : "", clause.at);
		if (by_budget(list.keys[i]))
			end = text->n;
	}
	if (left)
		report_say(text, "; %zu more in the full report", left);
	if (end && budget && (fact(report, "degraded.budget") || fact(report, "poll.chosen"))) {
		after = *text;
		text->n = end;
		report_say(text,
			   page_over_budget(report) ? " (for weft's budget of %.3g %% of the CPU, which it holds over "
						      "10 s and exceeded here)%s"
						    : " (to keep weft within its budget of %.3g %% of the CPU)%s",
			   (double)strtoull(budget, NULL, 10) / 1e4, after.at + end);
	}
	return n > 0;
}
