/* SPDX-License-Identifier: Apache-2.0 */
/* Whether samples can be believed: held against the process' CPU clock, and where work is in step with what samples. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "print.h"
#include "report.h"
#include "weft/recorder.h"

#define OFF_SHARE 0.05     /* of the CPU time that samples may be off by, */
#define OFF_SIGMAS 3       /* or what chance does, if that is more */
#define IN_STEP_SHARE 0.05 /* of all samples, by CPU time: less is nothing to write about */

static double root(double v)
{
	double r = v > 1 ? v : 1;

	for (int i = 0; i < 60; i++)
		r = (r + v / r) / 2;
	return r;
}

/* What samples may be off by when each of n stands for as much, and they come by chance. */
static double chance_ns(const struct weft__cpu_clock *clock, uint64_t period_ns)
{
	return OFF_SIGMAS * root((double)clock->process_ns * (double)period_ns);
}

int64_t report_cpu_off(const struct report *report)
{
	const struct weft__cpu_clock *clock = &report->result->cpu_clock;
	const struct weft__samples *samples = &report->result->samples;
	int64_t off = (int64_t)(clock->process_ns - clock->sampled_ns);
	double most = OFF_SHARE * (double)clock->process_ns, chance = chance_ns(clock, samples->longest_period_ns);

	if (clock->n == 0 || clock->process_ns > INT64_MAX || clock->sampled_ns > INT64_MAX)
		return 0;
	most = most > chance ? most : chance;
	return (double)off > most || (double)-off > most ? off : 0;
}

static void say_cause(struct report_text *text, const struct report *report, uint64_t off_ns)
{
	const struct weft__result *r = report->result;
	const struct weft__cpu_clock *clock = &r->cpu_clock;
	char count[CLI_FIGURE], ns[CLI_FIGURE];

	if (clock->threads && clock->threads_ns >= off_ns / 2)
		report_say(text, "%s threads ended before a sample came, and used %s", cli_count(clock->threads, count),
			   cli_ns(clock->threads_ns, ns));
	else if (clock->threads && !clock->threads_ns && !r->loss.uncovered && !r->loss.missed_samples)
		report_say(text, "%s threads ended before a sample came", cli_count(clock->threads, count));
	else if (r->loss.missed_samples)
		report_say(text, "another handler took the signal of the samples for a time");
	else if (r->loss.uncovered)
		report_say(text, "%s threads could not be sampled", cli_count(r->loss.uncovered, count));
	else if (r->samples.engines[WEFT_ENGINE_PERF].n == 0)
		report_say(text, "the kernel's tick, at which timers sample, met the program's work too rarely");
	else
		report_say(text, "the cause is not known");
}

void report_say_cpu_off(struct report_text *text, const struct report *report)
{
	const struct weft__cpu_clock *clock = &report->result->cpu_clock;
	int64_t off = report_cpu_off(report);
	char sampled[CLI_FIGURE], used[CLI_FIGURE], share[CLI_FIGURE];

	report_say(text, "samples stand for %s of CPU time, and the process used %s by its clock (%s): ",
		   cli_ns(clock->sampled_ns, sampled), cli_ns(clock->process_ns, used),
		   cli_percent((double)clock->sampled_ns / (double)clock->process_ns, share));
	if (off > 0) {
		say_cause(text, report, (uint64_t)off);
		report_say(text, "; what functions used is more than is shown, and their shares may be others");
	} else {
		report_say(text, "too much was counted; what functions used is less than is shown");
	}
}

double report_in_step_share(const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	uint64_t ns = samples->all.ns + samples->left_out.ns;

	return ns ? (double)samples->in_step.ns / (double)ns : 0;
}

bool report_in_step(const struct report *report)
{
	return report_in_step_share(report) > IN_STEP_SHARE;
}

void report_say_in_step(struct report_text *text, const struct report *report)
{
	const char *precise = weft__names_fact(&report->rec->names, "sample.precise");
	const char *why = weft__names_fact(&report->rec->names, "sample.why");
	char share[CLI_FIGURE];

	report_say(text,
		   "%s of the CPU time is of threads that begin their work in step with the kernel's tick, at which "
		   "timers take "
		   "samples: always at the same places of that work, so the shares of its functions can be wrong by "
		   "any amount",
		   cli_percent(report_in_step_share(report), share));
	if (precise && strcmp(precise, "0") == 0 && why && why[0])
		report_say(text, "; perf events do not depend on the tick, but timers were used: %.120s",
			   cli_safe(why));
}

void report_json_cpu_clock(struct weft__json *json, const struct report *report)
{
	const struct weft__cpu_clock *clock = &report->result->cpu_clock;
	int64_t off = report_cpu_off(report);

	weft__json_u64(json, "cpu_not_sampled_ns", off > 0 ? (uint64_t)off : 0);
	if (clock->n == 0) {
		weft__json_absent(json, "cpu_clock", "no reading of the process' CPU clock here");
		return;
	}
	weft__json_begin(json, "cpu_clock", '{');
	weft__json_u64(json, "process_ns", clock->process_ns);
	weft__json_u64(json, "sampled_ns", clock->sampled_ns);
	weft__json_u64(json, "span_ns", clock->span_ns);
	weft__json_bool(json, "agree", off == 0);
	weft__json_u64(json, "threads_without_a_sample", clock->threads);
	weft__json_u64(json, "threads_without_a_sample_ns", clock->threads_ns);
	weft__json_end(json, '}');
}
