/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing from a recording, or was taken from the program, in one sentence each: what it means for who reads
 * the figures. Text has them in its first lines, JSON under one key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/loss.h"
#include "cli.h"
#include "page.h"
#include "print.h"
#include "report.h"

double report_quota(const struct report *report)
{
	const char *max = weft__names_fact(&report->rec->names, "cgroup.cpu.max");
	char *end = NULL;
	double quota = max ? strtod(max, &end) : 0, period = end ? strtod(end, NULL) : 0;

	return quota > 0 && period > 0 ? quota / period : 0;
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
	report_say(text, " stopped the process for %s of %s", cli_ns(t->ns, ns), cli_ns(report_span_ns(report), span));
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

static bool within_budget(const struct report *report)
{
	return weft__names_fact(&report->rec->names, "degraded.budget") != NULL;
}

/* "switches were recorded in 4 % of the time, to stay within the budget: the table of ..." */
static void add_switches(struct report_missing *list, const struct report *report)
{
	const struct weft__result *r = report->result;
	double share = report_switch_share(report), total = 0;
	bool spared = weft__names_fact(&report->rec->names, "switch.spared") != NULL;
	char figure[CLI_FIGURE];
	struct report_text *text;
	size_t i;

	if (share >= 0.999 && r->loss.switches)
		report_say(add(list, "switches"),
			   "%s records of context switches were lost in a moment: polls of then have parts that are "
			   "not measured",
			   cli_count(r->loss.switches, figure));
	if (share >= 0.999 || !(r->n_kind[WEFT_KIND_OFFCPU] || r->loss.switches || spared))
		return;
	text = add(list, "switches");
	report_say(text, "switches were recorded in %s of the time", cli_percent(share, figure));
	if (spared)
		report_say(text, ", because there were more than 10,000 a second");
	else if (r->loss.switches && within_budget(report))
		report_say(text, ", to stay within the budget and because records were lost");
	else if (r->loss.switches)
		report_say(text, ", because %s records were lost", cli_count(r->loss.switches, figure));
	else if (within_budget(report))
		report_say(text, ", to stay within the budget");
	report_say(text, ", so the table of time off the CPU shows a part of it");
	for (i = 0; i < WEFT__N_PARTS; i++)
		total += (double)r->split.ns[i];
	if (total > 0 && (double)r->split.ns[WEFT__NOT_MEASURED] >= 0.001 * total)
		report_say(text, ", and of %s of the time of polls it is not known what it was spent on",
			   cli_percent((double)r->split.ns[WEFT__NOT_MEASURED] / total, figure));
}

#define LATE_NS UINT64_C(40000000) /* of its life, or: */
#define LATE_CPU_NS UINT64_C(10000000)

/* Of a process that weft run recorded: what it did before. */
static void add_late_start(struct report_missing *list, const struct report *report)
{
	const char *after = weft__names_fact(&report->rec->names, "start.after_ns");
	const char *cpu = weft__names_fact(&report->rec->names, "start.cpu_ns");
	uint64_t after_ns = after ? strtoull(after, NULL, 10) : 0, cpu_ns = cpu ? strtoull(cpu, NULL, 10) : 0;
	char figure[CLI_FIGURE], other[CLI_FIGURE];

	if (after_ns < LATE_NS && cpu_ns < LATE_CPU_NS)
		return;
	report_say(add(list, "late_start"),
		   "the recording began %s after the process, which had used %s of CPU until then (weft run "
		   "--start-after 0 records from the start)",
		   cli_ns(after_ns, figure), cli_ns(cpu_ns, other));
}

static void add_rate(struct report_missing *list, const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	char figure[CLI_FIGURE], other[CLI_FIGURE];

	if (!samples->period_ns || 2 * samples->longest_period_ns < 3 * samples->period_ns)
		return;
	report_say(add(list, "sample_rate"),
		   "CPU samples were taken every %s of CPU time at times, not every %s, to stay within the budget: "
		   "sums are right, but "
		   "what is short may have no sample",
		   cli_ns(samples->longest_period_ns, figure), cli_ns(samples->period_ns, other));
}

static void add_samples(struct report_missing *list, const struct report *report)
{
	const struct weft__result *r = report->result;
	char count[CLI_FIGURE];

	if (r->loss.samples)
		report_say(add(list, "samples_lost"),
			   "%s CPU samples were lost, for want of memory for their stacks: CPU time is too small by "
			   "what they stand for",
			   cli_count(r->loss.samples, count));
	if (r->loss.missed_samples)
		report_say(add(list, "samples_missed"),
			   "about %s CPU samples are missing, because another handler took their signal: CPU time of "
			   "then is too small",
			   cli_count(r->loss.missed_samples, count));
	if (r->loss.uncovered)
		report_say(add(list, "threads_not_sampled"),
			   "%s thread%s could not be sampled: what %s did on the CPU is in no table",
			   cli_count(r->loss.uncovered, count), r->loss.uncovered == 1 ? "" : "s",
			   r->loss.uncovered == 1 ? "it" : "they");
}

static void add_losses(struct report_missing *list, const struct report *report)
{
	const struct weft__result *r = report->result;
	uint64_t pauses = 0, paused_ns = 0;
	char count[CLI_FIGURE], span[CLI_FIGURE];
	size_t i;

	for (i = 0; i < r->loss.n_rows; i++)
		if (!weft__loss_counted(r->loss.rows[i].reason)) {
			pauses += r->loss.rows[i].records;
			paused_ns += r->loss.rows[i].span_ns;
		}
	if (r->loss.events)
		report_say(add(list, "events_lost"),
			   "%s events were not recorded: times that span their gap are left out, and what was in it is "
			   "missing "
			   "(see Loss)",
			   cli_count(r->loss.events, count));
	if (pauses)
		report_say(add(list, "paused"),
			   "recording was paused %s time%s, %s in all: nothing of that time is here, and what spans it "
			   "is left out",
			   cli_count(pauses, count), pauses == 1 ? "" : "s", cli_ns(paused_ns, span));
	if (r->loss.polls)
		report_say(add(list, "polls_beyond_cap"),
			   "%s polls were beyond the cap of polls a second: they are counted, but not in the lists",
			   cli_count(r->loss.polls, count));
}

static void say_when(struct report_text *text, const struct report *report, uint64_t from_ns, uint64_t to_ns)
{
	char from[CLI_FIGURE], to[CLI_FIGURE];

	if (to_ns)
		report_say(text, "from %s to %s", cli_moment(report_since_start(report, from_ns), from),
			   cli_moment(report_since_start(report, to_ns), to));
	else
		report_say(text, "from %s on", cli_moment(report_since_start(report, from_ns), from));
}

/* Polls without their duration. */
static void add_untimed(struct report_missing *list, const struct report *report)
{
	const struct weft__detail *d = &report->result->detail;
	uint64_t polls = report->result->polls.n + d->polls_untimed;
	char figure[CLI_FIGURE], other[CLI_FIGURE];
	struct report_text *text;

	if (!d->untimed.ns || !d->polls_untimed)
		return;
	text = add(list, "polls_not_timed");
	report_say(text, "of %s of %s polls only the number is known, ", cli_count(d->polls_untimed, figure),
		   cli_count(polls, other));
	say_when(text, report, d->untimed.ns, d->level == WEFT_DETAIL_UNTIMED ? 0 : d->timed_ns);
	report_say(
		text,
		": to time them all costs %s of one CPU. Durations are those of the others, which were timed in short "
		"windows at random times. Of polls outside of these, those of 40 ms and longer are listed, and some "
		"shorter ones, up to 20 ms too short; others are not (WEFT_POLLS=slow times all)",
		cli_percent((double)d->untimed.cost_ppm / 1e6, figure));
}

/* Parks and wakes, too. */
static void add_counted(struct report_missing *list, const struct report *report)
{
	const struct weft__detail *d = &report->result->detail;
	bool wakes = d->level == WEFT_DETAIL_COUNTED || d->level == WEFT_DETAIL_UNTIMED;
	bool parks = d->level == WEFT_DETAIL_PARKS || wakes;
	char figure[CLI_FIGURE], other[CLI_FIGURE];
	struct report_text *text;

	if (d->parked.ns) {
		text = add(list, "parks_not_listed");
		report_say(text, "parks and queue depths were only counted, too, ");
		say_when(text, report, d->parked.ns, parks ? 0 : d->parks_ns);
		report_say(text, " (%s and %s): the time parked is exact, parks of 1 ms and longer are listed",
			   cli_count(d->parks, figure), cli_count(d->queues, other));
	}
	if (!d->counted.ns)
		return;
	text = add(list, "wakes_not_listed");
	report_say(text, "wakes%s were only counted, too, ", d->parked.ns ? "" : " and queue depths");
	say_when(text, report, d->counted.ns, wakes ? 0 : d->wakes_ns);
	report_say(text, " (%s", cli_count(d->wakes, figure));
	if (!d->parked.ns)
		report_say(text, " and %s", cli_count(d->queues, other));
	report_say(text, "): polls that are listed have theirs, as far as it was remembered");
}

/* "polls shorter than 1 ms were counted, not listed, from +2.1 s on: 1.9 M events/s cost 12 % of one CPU, and ..." */
static void add_detail(struct report_missing *list, const struct report *report)
{
	const struct weft__detail *d = &report->result->detail;
	const char *chosen = weft__names_fact(&report->rec->names, "poll.chosen");
	const char *slow = weft__names_fact(&report->rec->names, "poll.slow_ns");
	char figure[CLI_FIGURE], other[CLI_FIGURE], more[CLI_FIGURE];
	struct report_text *text;
	uint64_t ns;

	if (!d->coarser.ns) { /* it was chosen before what is here begins */
		if (chosen && slow && cli_parse_number(slow, UINT64_MAX, &ns))
			report_say(add(list, "polls_not_listed"),
				   "polls shorter than %s were counted, not listed, for a part of the time at least, "
				   "to stay "
				   "within the budget",
				   cli_ns(ns, figure));
		return;
	}
	text = add(list, "polls_not_listed");
	report_say(text, "polls shorter than %s were counted, not listed, ", cli_ns(d->coarser.slow_ns, figure));
	say_when(text, report, d->coarser.ns, d->finer_ns);
	if (d->times > 1)
		report_say(text, ", and %s more time%s", cli_count(d->times - 1, figure), d->times == 2 ? "" : "s");
	report_say(text,
		   ": %s events/s cost %s of one CPU, and all of weft may take %s (WEFT_BUDGET_PPM; WEFT_POLLS=all "
		   "lists them)",
		   cli_count(d->coarser.rate, figure), cli_percent((double)d->coarser.cost_ppm / 1e6, other),
		   cli_percent((double)d->coarser.allowed_ppm / 1e6, more));
	add_untimed(list, report);
	add_counted(list, report);
}

/* What the machine or the program did not allow, by the facts that say so: what that is, and what it means. */
static void add_degraded(struct report_missing *list, const struct report *report)
{
	static const struct {
		const char *key, *means;
	} meanings[] = {
		{"switch", "when threads were off the CPU is not, or not always, known"},
		{"sampling", "CPU samples are not as they were asked for"},
		{"wall", "what threads that wait do is not, or not fully, seen"},
		{"ring", "what was recorded in the last second is lost when the process is killed"},
		{"clock", "each event costs more, and times are as exact as that clock"},
		{"tables", "stacks may end early"},
		{"symbolize", "names are looked up later, where the files are"},
		{"events", "weft takes more than its budget"},
	};
	const struct weft__names *names = &report->rec->names;
	size_t i, j, n = sizeof(meanings) / sizeof(meanings[0]);

	for (i = 0; i < names->n_facts; i++) {
		const char *key = names->facts[i].key, *means = NULL;

		/* Empty: it was so for a time, and is not any more. */
		if (strncmp(key, "degraded.", 9) != 0 || strcmp(key, "degraded.budget") == 0 ||
		    !names->facts[i].value[0])
			continue;
		for (j = 0; j < n && !means; j++)
			means = strcmp(key + 9, meanings[j].key) == 0 ? meanings[j].means : NULL;
		if (means)
			report_say(add(list, key), "%s: %s", means, cli_safe(names->facts[i].value));
		else
			report_say(add(list, key), "%s: %s", cli_safe(key + 9), cli_safe(names->facts[i].value));
	}
}

/* Of the process that weft run started: the signal that ended it; 0: none did. */
static int signal_of(const struct report *report)
{
	const char *pid = weft__names_fact(&report->rec->names, "process.pid");

	if (!pid || !pid[0] || !page_origin.pid || strtoull(pid, NULL, 10) != page_origin.pid ||
	    !WIFSIGNALED(page_origin.status))
		return 0;
	return WTERMSIG(page_origin.status);
}

/* How the process ended and its files were closed, where that is not as usual. */
bool report_say_end(struct report_text *text, const struct report *report)
{
	const struct weft__recording *rec = report->rec;
	const char *fact = weft__names_fact(&rec->names, "weft.recovered");
	bool recovered = fact && fact[0], open = false;
	int number = signal_of(report);
	size_t i;

	for (i = 0; i < rec->n_files; i++) {
		const struct weft__file *file = &rec->files[i];
		size_t n = strlen(file->path), suffix = strlen(".active");
		bool active = n > suffix && strcmp(file->path + n - suffix, ".active") == 0;

		recovered |= file->info.recovered;
		/* A file with its final name was closed: one without its end was cut since. */
		open |= !file->info.sealed && !file->info.recovered && (active || !file->damaged_places);
	}
	if (number)
		report_say(text, "the process was killed by signal %d (SIG%s)", number,
			   sigabbrev_np(number) ? sigabbrev_np(number) : "?");
	else if (recovered)
		report_say(text, "the process was killed, crashed or called _exit");
	else if (open)
		report_say(text, "the recording is not closed: the process still runs, or was killed and weft recover "
				 "has not been run");
	if (recovered)
		report_say(text, ", and the end of its recording was recovered");
	return number || recovered || open;
}

static void add_files(struct report_missing *list, const struct report *report)
{
	const struct weft__recording *rec = report->rec;
	char count[CLI_FIGURE];
	size_t i;

	for (i = 0; i < rec->n_files; i++)
		if (rec->files[i].damaged_places || rec->files[i].status < 0)
			report_say(add(list, "damaged"), "%s is damaged, and what cannot be read is missing: %s",
				   cli_safe(rec->files[i].path),
				   cli_safe(rec->files[i].damage ? rec->files[i].damage
								 : weft_strerror(rec->files[i].status)));
	if (rec->missing_segments)
		report_say(add(list, "segments_missing"),
			   "%s segments between the first and the last are not here: nothing of their time is",
			   cli_count(rec->missing_segments, count));
}

/* Of loops that weft run finds. */
static void add_first_ticks(struct report_missing *list, const struct report *report)
{
	if (page_only_ticks(report))
		report_say(
			add(list, "first_ticks"),
			"the first tick of an event loop is not here where only its second wait shows that it is one: "
			"plain loops around epoll_wait, poll or select");
}

/* Rates were lowered, and nothing above says of what. */
static void add_budget(struct report_missing *list, const struct report *report)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (strcmp(list->keys[i], "switches") == 0 || strcmp(list->keys[i], "sample_rate") == 0)
			return;
	if (within_budget(report))
		report_say(add(list, "budget"), "less was recorded at times, to stay within the budget (%s)",
			   cli_safe(weft__names_fact(&report->rec->names, "degraded.budget")));
}

void report_missing(const struct report *report, struct report_missing *list)
{
	struct report_text end = {.n = 0};

	list->n = 0;
	if (report_say_end(&end, report))
		report_say(add(list, "process_end"), "%s", end.at);
	if (report->result->throttling.n)
		report_say_throttling(add(list, "cpu_quota"), report);
	add_late_start(list, report);
	add_files(list, report);
	add_detail(list, report);
	add_first_ticks(list, report);
	add_losses(list, report);
	add_switches(list, report);
	add_rate(list, report);
	if (report_cpu_off(report))
		report_say_cpu_off(add(list, "cpu_samples"), report);
	if (report_in_step(report))
		report_say_in_step(add(list, "samples_in_step"), report);
	add_samples(list, report);
	add_budget(list, report);
	add_degraded(list, report);
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
