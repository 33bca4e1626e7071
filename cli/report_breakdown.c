/* SPDX-License-Identifier: Apache-2.0 */
/* What the time of a poll was spent on, in words:
 *
 *     52.1 ms = 41.0 on CPU (deflate 93 %, 4 samples), 8.2 blocked (read fd 7), 2.5 waiting for cache_lock held by
 *               thread 123 "w3" (in handle_upload > deflate), 0.4 preempted, 0.0 not measured */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "print.h"
#include "report.h"
#include "weft/wait.h"

#define LINE_COLUMNS 118
#define CAUSES_SHOWN 4 /* of each part */
#define SMALL 0.01     /* of the poll: not in headlines */

const char *report_no_switches(const struct report *report, const struct weft__breakdown *breakdown)
{
	const char *why = weft__switch_why(&report->rec->names);

	if (breakdown->cpu != WEFT__CPU_UNKNOWN)
		return breakdown->split.ns[WEFT__NOT_MEASURED] ? "its CPU clock was not read often enough" : NULL;
	if (breakdown->switches == WEFT__SWITCHES_ALL)
		return breakdown->split.ns[WEFT__NOT_MEASURED] ? "it has not been seen since" : NULL;
	if (breakdown->switches == WEFT__SWITCHES_SOME)
		return weft__names_fact(&report->rec->names, "degraded.budget")
			       ? "not all switches were recorded, to stay within the budget"
			       : "some of the thread's switches are missing";
	return why ? why : "the thread's switches were not recorded";
}

/* Parts have the unit of the whole, and as many decimals. */
struct unit {
	double ns;
	int decimals;
	bool named; /* each part says its own unit */
};

static struct unit unit_of(uint64_t ns)
{
	struct unit unit = {ns < 1000 ? 1 : ns < 999500 ? 1e3 : ns < 999500000 ? 1e6 : 1e9, 0, false};
	double value = (double)ns / unit.ns;

	if (ns >= 1000)
		unit.decimals = value < 9.995 ? 2 : 1;
	return unit;
}

static void say_ns(struct report_text *text, const struct unit *unit, uint64_t ns)
{
	char figure[CLI_FIGURE];
	double least = unit->decimals == 2 ? 0.005 : unit->decimals == 1 ? 0.05 : 0.5;

	if (unit->named)
		report_say(text, "%s", cli_ns(ns, figure));
	else if (ns && (double)ns / unit->ns < least)
		report_say(text, "<%.*f", unit->decimals, 2 * least);
	else
		report_say(text, "%.*f", unit->decimals, (double)ns / unit->ns);
}

/* A line that goes on below its begin when it is full. */
struct line {
	size_t column;
	int indent;
	bool any;
};

static void put(struct line *line, const struct report_text *text)
{
	size_t columns = cli_columns(text->at);

	if (text->n == 0)
		return;
	if (line->any && line->column + columns + 2 > LINE_COLUMNS) {
		printf(",\n%*s", line->indent, "");
		line->column = (size_t)line->indent;
	} else if (line->any) {
		fputs(", ", stdout);
		line->column += 2;
	}
	fputs(text->at, stdout);
	line->column += columns;
	line->any = true;
}

/* The call that most of the CPU time was in, if it was most of it; the kernel computed for the thread. */
static const struct weft__cause *cpu_call(const struct weft__poll *poll)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	size_t i;

	for (i = 0; i < breakdown->n_causes; i++) {
		const struct weft__cause *cause = &breakdown->causes[i];

		if (cause->part == WEFT__ON_CPU && 2 * cause->ns >= breakdown->split.ns[WEFT__ON_CPU] &&
		    (double)cause->ns >= SMALL * (double)poll->rank_ns)
			return cause;
	}
	return NULL;
}

static void say_cpu(struct report_text *text, const struct report *report, const struct weft__poll *poll,
		    const struct unit *unit)
{
	const struct weft__cause *call = cpu_call(poll);
	struct report_text heart = {.n = 0};
	char count[CLI_FIGURE];
	double share = 0;

	say_ns(text, unit, poll->breakdown.split.ns[WEFT__ON_CPU]);
	report_say(text, " on CPU");
	if (call && poll->sampled.n == 0) {
		report_say(text, " (in ");
		report_say_wait(text, report, call->what, call->name, call->object);
		report_say(text, ")");
		return;
	}
	if (poll->sampled.n == 0) {
		if (poll->breakdown.split.ns[WEFT__ON_CPU] > report->result->samples.period_ns)
			report_say(text, " (in what: not measured)");
		return;
	}
	if (unit->named && report_poll_heart(&heart, report, poll, true, &share))
		report_say(text, " in %s", heart.at);
	report_say(text, " (");
	if (!unit->named && report_poll_heart(&heart, report, poll, false, &share))
		report_say(text, "%s %.0f %%, ", heart.at, share * 100);
	report_say(text, "%s sample%s", cli_count(poll->sampled.n, count), poll->sampled.n == 1 ? "" : "s");
	if (call) {
		report_say(text, "; in ");
		report_say_wait(text, report, call->what, call->name, call->object);
	}
	report_say(text, ")");
}

static void say_blocked(struct report_text *text, const struct report *report, const struct weft__cause *cause)
{
	struct report_text stack = {.n = 0};
	bool known = report_say_stack(&stack, report, cause->stack, cause->kernel);

	report_say(text, " blocked (");
	if (cause->what)
		report_say_wait(text, report, cause->what, cause->name, cause->object);
	else if (cause->call)
		report_say_call(text, report, cause->call);
	if (!cause->what && known)
		report_say(text, "%s%s", cause->call ? " in " : "in ", stack.at);
	if (!cause->what && !cause->call && !known)
		report_say(text, "in what: not measured");
	report_say(text, ")");
}

static void say_cause(struct report_text *text, const struct report *report, const struct weft__cause *cause,
		      const struct unit *unit)
{
	say_ns(text, unit, cause->ns);
	if (cause->part == WEFT__BLOCKED) {
		say_blocked(text, report, cause);
	} else {
		report_say(text, " waiting for ");
		report_say_wait(text, report, cause->what, cause->name, cause->object);
	}
	if (cause->holder.tid) {
		report_say(text, " held by ");
		report_say_holders(text, report, &cause->holder);
	}
}

/* The causes of one part, the longest first, and what is left of it. */
static void put_causes(struct line *line, const struct report *report, const struct weft__poll *poll,
		       const struct unit *unit, enum weft__part part, uint64_t least_ns)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	uint64_t rest_ns = breakdown->split.ns[part];
	size_t i, shown = 0, left = 0;
	struct report_text text;

	for (i = 0; i < breakdown->n_causes; i++) {
		const struct weft__cause *cause = &breakdown->causes[i];

		if (cause->part != part)
			continue;
		if (shown == CAUSES_SHOWN || cause->ns < least_ns || (shown > 0 && cause->ns < rest_ns / 50)) {
			left++;
			continue;
		}
		text.n = 0;
		say_cause(&text, report, cause, unit);
		put(line, &text);
		rest_ns -= cause->ns < rest_ns ? cause->ns : rest_ns;
		shown++;
	}
	if (rest_ns < poll->rank_ns / 1000 + 1 || rest_ns < least_ns)
		return;
	text.n = 0;
	say_ns(&text, unit, rest_ns);
	report_say(&text, part == WEFT__BLOCKED ? " blocked" : " waiting");
	if (left)
		report_say(&text, " (%zu more)", left);
	put(line, &text);
}

static void put_part(struct line *line, const struct weft__breakdown *breakdown, const struct unit *unit,
		     enum weft__part part, const char *title, const char *why)
{
	struct report_text text = {.n = 0};

	say_ns(&text, unit, breakdown->split.ns[part]);
	report_say(&text, " %s", title);
	if (why)
		report_say(&text, " (%s)", cli_safe(why));
	put(line, &text);
}

/* "40.1 preempted (38.0 by the CPU quota)" */
static void put_preempted(struct line *line, const struct weft__breakdown *breakdown, const struct unit *unit)
{
	struct report_text quota = {.n = 0};

	if (breakdown->split.throttled_ns) {
		say_ns(&quota, unit, breakdown->split.throttled_ns);
		report_say(&quota, " throttled: by the CPU quota");
	}
	put_part(line, breakdown, unit, WEFT__PREEMPTED, "preempted", quota.n ? quota.at : NULL);
}

static void put_parts(struct line *line, const struct report *report, const struct weft__poll *poll,
		      const struct unit *unit, uint64_t least_ns)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	struct report_text text = {.n = 0};
	uint64_t unknown_ns = breakdown->split.ns[WEFT__NOT_MEASURED];

	if (breakdown->split.ns[WEFT__ON_CPU] > least_ns || (breakdown->split.ns[WEFT__ON_CPU] && least_ns == 0)) {
		say_cpu(&text, report, poll, unit);
		put(line, &text);
	}
	put_causes(line, report, poll, unit, WEFT__BLOCKED, least_ns);
	put_causes(line, report, poll, unit, WEFT__WAITING, least_ns);
	if (breakdown->split.ns[WEFT__PREEMPTED] > least_ns)
		put_preempted(line, breakdown, unit);
	if (unknown_ns > least_ns || least_ns == 0)
		put_part(line, breakdown, unit, WEFT__NOT_MEASURED, "not measured",
			 unknown_ns ? report_no_switches(report, breakdown) : NULL);
}

/* One sample in a poll that is shorter than what the sample stands for says where it was, not for how long. */
static bool put_short(const struct report *report, const struct weft__poll *poll)
{
	struct report_text heart = {.n = 0};
	double share;
	char count[CLI_FIGURE];

	if (poll->breakdown.switches == WEFT__SWITCHES_ALL || poll->breakdown.cpu != WEFT__CPU_UNKNOWN ||
	    poll->sampled.n == 0 || poll->rank_ns >= report->result->samples.period_ns)
		return false;
	printf("sampled on CPU");
	if (report_poll_heart(&heart, report, poll, true, &share))
		printf(" in %s", heart.at);
	printf(" (%s sample%s; the poll is shorter than the sampling period)", cli_count(poll->sampled.n, count),
	       poll->sampled.n == 1 ? "" : "s");
	return true;
}

/* Nothing at all is known but the length: why. */
static bool put_nothing(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__breakdown *breakdown = &poll->breakdown;
	const char *why = report_no_poll_samples(report, poll);

	if (breakdown->known && (!why || breakdown->split.ns[WEFT__NOT_MEASURED] < poll->rank_ns))
		return false;
	printf("%s%s", why && strncmp(why, "no sample", 9) == 0 ? "" : "not measured: ",
	       cli_safe(why ? why : "more threads than the analysis keeps"));
	if (breakdown->switches == WEFT__SWITCHES_SOME)
		printf("; %s", report_no_switches(report, breakdown));
	return true;
}

void report_breakdown_headline(const struct report *report, const struct weft__poll *poll, int indent)
{
	struct unit unit = {.named = true};
	struct line line = {(size_t)indent, indent, false};
	double small = SMALL * (double)poll->rank_ns;

	if (!put_nothing(report, poll) && !put_short(report, poll))
		put_parts(&line, report, poll, &unit, (uint64_t)small);
}

void report_breakdown(const struct report *report, const struct weft__poll *poll, int indent)
{
	struct unit unit = unit_of(poll->rank_ns);
	struct line line = {0, indent, false};
	struct report_text total = {.n = 0};
	char figure[CLI_FIGURE];

	printf("%*s", indent, "");
	if (!put_nothing(report, poll) && !put_short(report, poll)) {
		cli_ns(poll->rank_ns, figure);
		say_ns(&total, &unit, poll->rank_ns);
		report_say(&total, "%s = ", strrchr(figure, ' '));
		fputs(total.at, stdout);
		line.column = (size_t)indent + total.n;
		line.indent += (int)total.n;
		put_parts(&line, report, poll, &unit, 0);
	}
	putchar('\n');
}

bool report_has_breakdown(const struct report *report)
{
	const uint64_t *n = report->result->n_kind;

	return weft__detects(&report->rec->names) || n[WEFT_KIND_OFFCPU] + n[WEFT_KIND_WAIT] + n[WEFT_KIND_WALL] > 0;
}
