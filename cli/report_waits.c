/* SPDX-License-Identifier: Apache-2.0 */
/* Waits, and what threads did when they did not run, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "cli.h"
#include "page.h"
#include "print.h"
#include "report.h"
#include "weft/wait.h"

#define WAITING_LONG_NS UINT64_C(1000000000) /* a task that was not polled for so long is worth a line */

/* gc: 95.0 ms of 100 ms, of those one by one, were on the CPU: the thread's own work */
static void print_cpu(const struct report *report, const struct weft__wait_row *row)
{
	const char *name = weft__names_string(&report->rec->names, row->name);
	char cpu[CLI_FIGURE], of[CLI_FIGURE];

	if ((row->what != WEFT_WAIT_GC && row->what != WEFT_WAIT_PAUSE) || !row->n_cpu)
		return;
	printf("%.60s: %s of %s, of those one by one, were on the CPU\n",
	       name && name[0] ? cli_safe(name) : report_wait_kind(row->what), cli_ns(row->cpu_ns, cpu),
	       cli_ns(row->cpu_of_ns, of));
}

static void print_wait_rows(const struct report *report)
{
	REPORT_VIEW(all, WEFT__COL_WAIT_SUMMARY_FOR, WEFT__COL_WAIT_SUMMARY_KIND, WEFT__COL_WAIT_SUMMARY_TIMES,
		    WEFT__COL_WAIT_SUMMARY_TOTAL, WEFT__COL_WAIT_SUMMARY_MEAN, WEFT__COL_WAIT_SUMMARY_LONGEST,
		    WEFT__COL_WAIT_SUMMARY_ONE_BY_ONE, WEFT__COL_WAIT_SUMMARY_ON_WORKERS) = {REPORT_OF(all)};
	const struct weft__result *r = report->result;
	struct report_view view = all;
	size_t i;

	view.n_columns -= !(r->works && r->wait.n_threads); /* all of it is workers' */
	report_print(report, WEFT__TABLE_WAIT_SUMMARY, &view);
	for (i = 0; i < r->wait.n_rows && i < report->top; i++)
		print_cpu(report, &r->wait.rows[i]);
}

/* Who waited for which lock: those that were recorded one by one. */
static void print_objects(const struct report *report)
{
	REPORT_VIEW(all, WEFT__COL_LOCK_SUMMARY_DATA, WEFT__COL_LOCK_SUMMARY_NAME, WEFT__COL_LOCK_SUMMARY_KIND,
		    WEFT__COL_LOCK_SUMMARY_TIMES, WEFT__COL_LOCK_SUMMARY_TOTAL, WEFT__COL_LOCK_SUMMARY_LONGEST,
		    WEFT__COL_LOCK_SUMMARY_HOLDER) = {REPORT_OF(all)};
	struct report_view view = all;

	if (report->result->wait.n_objects == 0)
		return;
	view.beyond = report->result->wait.objects_beyond;
	printf("\nby object, of the waits that were recorded one by one:\n");
	report_print(report, WEFT__TABLE_LOCK_SUMMARY, &view);
}

/* Threads that are no workers mostly wait because there is nothing to do, so theirs are not among the longest. */
static void print_wait_threads(const struct report *report)
{
	REPORT_VIEW(all, WEFT__COL_THREAD_WAIT_SUMMARY_THREAD, WEFT__COL_THREAD_WAIT_SUMMARY_NAME,
		    WEFT__COL_THREAD_WAIT_SUMMARY_KIND, WEFT__COL_THREAD_WAIT_SUMMARY_TIMES,
		    WEFT__COL_THREAD_WAIT_SUMMARY_TOTAL, WEFT__COL_THREAD_WAIT_SUMMARY_LONGEST,
		    WEFT__COL_THREAD_WAIT_SUMMARY_STACK) = {REPORT_OF(all)};
	struct report_view view = all;

	if (report->result->wait.n_threads == 0)
		return;
	view.beyond = report->result->wait.threads_beyond;
	puts(report->result->works ? "\nof threads that are no workers:" : "\nby thread:");
	report_print(report, WEFT__TABLE_THREAD_WAIT_SUMMARY, &view);
}

static void print_long_wait(const struct report *report, const struct weft__wait *wait)
{
	const struct weft__names *names = &report->rec->names;
	struct report_text text = {.n = 0};
	char label[WEFT__LABEL_BYTES], moment[CLI_FIGURE];

	report_say(&text, "%s", wait->what == WEFT_WAIT_CALL ? "blocked in " : "for ");
	report_say_wait(&text, report, wait->what, wait->name, wait->object);
	if (wait->what != WEFT_WAIT_CALL && wait->object && !strstr(text.at, " at 0x"))
		report_say(&text, " (0x%" PRIx64 ")", wait->object);
	report_say(&text, " on %s",
		   cli_safe(weft__label_lane(names, wait->worker, wait->thread_id, label, sizeof(label))));
	if (wait->in_poll && page_is_tick(report, wait->worker, wait->location))
		report_say(&text, ", tick of the %s", cli_safe(weft__label_location(names, wait->location)));
	else if (wait->in_poll)
		report_say(&text, ", task %" PRIu64 " `%s`", wait->task,
			   cli_safe(weft__label_location(names, wait->location)));
	printf("%s, at %s\n", text.at,
	       cli_moment(report_since_start(report, wait->end_ns > wait->rank_ns ? wait->end_ns - wait->rank_ns : 0),
			  moment));
	text.n = 0;
	if (wait->holder.tid) {
		report_say_holders(&text, report, &wait->holder);
		printf("%16sheld by %s\n", "", text.at);
	}
	text.n = 0;
	if (report_say_stack(&text, report, wait->stack, 0))
		printf("%16sin %s\n", "", text.at);
	text.n = 0;
	if (report_say_context(&text, report, &wait->context))
		printf("%16s%s\n", "", text.at);
}

void report_waits(const struct report *report)
{
	const struct weft__result *r = report->result;
	char count[CLI_FIGURE], figure[CLI_FIGURE];
	size_t i;

	if (r->wait.n_rows == 0 && r->wait.n_mixed == 0)
		return;
	cli_heading("Waits");
	if (r->wait.n_rows)
		print_wait_rows(report);
	if (r->wait.n_mixed)
		printf("not measured: how much of %s more waits, %s in all, was in what was asked for\n",
		       cli_count(r->wait.n_mixed, count), cli_ns(r->wait.mixed_ns, figure));
	print_objects(report);
	print_wait_threads(report);
	if (r->wait.n_longest == 0)
		return;
	cli_heading("Longest waits");
	for (i = 0; i < r->wait.n_longest; i++) {
		printf("%3zu  %9s  ", i + 1, cli_ns(r->wait.longest[i].rank_ns, figure));
		print_long_wait(report, &r->wait.longest[i]);
	}
}

static void print_off_stacks(const struct report *report)
{
	REPORT_VIEW(view, WEFT__COL_OFFCPU_SUMMARY_TOTAL, WEFT__COL_OFFCPU_SUMMARY_TIMES,
		    WEFT__COL_OFFCPU_SUMMARY_SAMPLES, WEFT__COL_OFFCPU_SUMMARY_REASON, WEFT__COL_OFFCPU_SUMMARY_THREAD,
		    WEFT__COL_OFFCPU_SUMMARY_STACK) = {REPORT_OF(view)};
	const struct weft__result *r = report->result;
	uint64_t with_ns = 0, all_ns = r->off.beyond_ns;
	char with[CLI_FIGURE], all[CLI_FIGURE];
	size_t i;

	for (i = 0; i < r->off.n_rows; i++) {
		all_ns += r->off.rows[i].ns;
		with_ns += r->off.rows[i].stack || r->off.rows[i].kernel ? r->off.rows[i].ns : 0;
	}
	if (with_ns == 0)
		return;
	printf("\nby stack, which %s of these %s have:\n", cli_ns(with_ns, with), cli_ns(all_ns, all));
	report_print(report, WEFT__TABLE_OFFCPU_SUMMARY, &view);
}

static void print_switch_mode(const struct report *report)
{
	const char *mode = weft__names_fact(&report->rec->names, "switch.mode");

	if (mode && strcmp(mode, "intervals") == 0)
		puts("in what: not measured where no wait says so (switches without stacks)");
}

double report_switch_share(const struct report *report)
{
	const struct weft__result *r = report->result;

	return r->off.switch_span_ns ? 1 - (double)r->off.switch_missing_ns / (double)r->off.switch_span_ns : 1;
}

void report_off_cpu(const struct report *report)
{
	REPORT_VIEW(threads, WEFT__COL_THREAD_OFFCPU_SUMMARY_THREAD, WEFT__COL_THREAD_OFFCPU_SUMMARY_BLOCKED,
		    WEFT__COL_THREAD_OFFCPU_SUMMARY_N_BLOCKED, WEFT__COL_THREAD_OFFCPU_SUMMARY_PREEMPTED,
		    WEFT__COL_THREAD_OFFCPU_SUMMARY_N_PREEMPTED, WEFT__COL_THREAD_OFFCPU_SUMMARY_LONGEST,
		    WEFT__COL_THREAD_OFFCPU_SUMMARY_SAMPLES) = {REPORT_OF(threads), .more = " threads"};
	const struct weft__result *r = report->result;
	const char *why = weft__switch_why(&report->rec->names);
	double share = report_switch_share(report);
	char figure[CLI_FIGURE];

	if (r->off.n_threads == 0) {
		if (why)
			printf("\nOff the CPU\nnot measured: %s\n", cli_safe(why));
		return;
	}
	cli_heading("Off the CPU");
	if (share < 0.999)
		printf("switches were recorded in %s of the time: what follows is a part of the time off the CPU, not "
		       "all of it\n",
		       cli_percent(share, figure));
	report_print(report, WEFT__TABLE_THREAD_OFFCPU_SUMMARY, &threads);
	print_off_stacks(report);
	print_switch_mode(report);
}

static void print_states(const struct report *report, uint64_t walls_ns)
{
	uint64_t cpu_ns = report->result->samples.all.ns;
	double whole = (double)cpu_ns + (double)walls_ns;
	char figure[CLI_FIGURE], share[2][CLI_FIGURE];

	if (whole <= 0 || report_no_samples(report))
		return;
	printf("of %s of the threads' time: %s on CPU, %s blocked\n", cli_ns((uint64_t)whole, figure),
	       cli_percent((double)cpu_ns / whole, share[0]), cli_percent((double)walls_ns / whole, share[1]));
}

void report_wall(const struct report *report)
{
	REPORT_VIEW(view, WEFT__COL_WALL_SUMMARY_TOTAL, WEFT__COL_WALL_SUMMARY_SHARE, WEFT__COL_WALL_SUMMARY_SAMPLES,
		    WEFT__COL_WALL_SUMMARY_CALL, WEFT__COL_WALL_SUMMARY_THREAD,
		    WEFT__COL_WALL_SUMMARY_STACK) = {REPORT_OF(view)};
	const struct weft__result *r = report->result;
	char figure[CLI_FIGURE];
	uint64_t all_ns = 0;
	size_t i;

	if (r->off.n_walls == 0)
		return;
	for (i = 0; i < r->off.n_walls; i++)
		all_ns += r->off.walls[i].ns;
	cli_heading("Threads that waited, by wall samples: %s", cli_ns(all_ns, figure));
	print_states(report, all_ns);
	report_print(report, WEFT__TABLE_WALL_SUMMARY, &view);
}

void report_stuck(const struct report *report)
{
	REPORT_VIEW(view, WEFT__COL_STUCK_SUMMARY_AGE, WEFT__COL_STUCK_SUMMARY_SEEN, WEFT__COL_STUCK_SUMMARY_TIMES,
		    WEFT__COL_STUCK_SUMMARY_THREAD, WEFT__COL_STUCK_SUMMARY_TASK, WEFT__COL_STUCK_SUMMARY_LOCATION,
		    WEFT__COL_STUCK_SUMMARY_DURATION, WEFT__COL_STUCK_SUMMARY_STACK) = {REPORT_OF(view)};

	if (report->result->off.n_stucks == 0)
		return;
	cli_heading("Stuck polls, as seen while they ran");
	report_print(report, WEFT__TABLE_STUCK_SUMMARY, &view);
}

/* In the text only tasks that were silent for long: all others wait, as tasks do. */
void report_waiting(const struct report *report)
{
	REPORT_VIEW(view, WEFT__COL_WAITING_SUMMARY_SILENT, WEFT__COL_WAITING_SUMMARY_WOKEN,
		    WEFT__COL_WAITING_SUMMARY_WAKE, WEFT__COL_WAITING_SUMMARY_WAKER_LOCATION,
		    WEFT__COL_WAITING_SUMMARY_TASK, WEFT__COL_WAITING_SUMMARY_LOCATION,
		    WEFT__COL_WAITING_SUMMARY_STACK) = {REPORT_OF(view)};
	const struct weft__result *r = report->result;
	char count[CLI_FIGURE];

	if (r->task.n_waiting == 0 || r->task.waiting[0].silent_ns < WAITING_LONG_NS)
		return;
	cli_heading("Tasks not polled as the recording ended: %s; woken ones first, then the longest silent",
		    cli_count(r->task.n_waiting_all, count));
	report_print(report, WEFT__TABLE_WAITING_SUMMARY, &view);
}

/* weft itself used 25.3 ms of CPU in 4.13 s: 0.6 % of one CPU, 2.1 % of the program's 1.20 s; budget 1 %
 *       collector 0.5 %, samples 0.1 % */
void report_cost(const struct report *report)
{
	const struct weft__cost *costs = report->result->off.costs;
	const char *budget = weft__names_fact(&report->rec->names, "budget.ppm");
	uint64_t span_ns, cpu_ns = page_cost_ns(report, &span_ns), program_ns = page_cpu_ns(report), ppm;
	char share[CLI_FIGURE], figure[CLI_FIGURE], span[CLI_FIGURE];
	bool any = false;
	size_t i;

	if (span_ns == 0)
		return;
	printf("weft itself used %s of CPU in %s: %s of one CPU", cli_ns(cpu_ns, figure), cli_ns(span_ns, span),
	       cli_percent((double)cpu_ns / (double)span_ns, share));
	if (program_ns)
		printf(", %s of the program's %s", cli_percent((double)cpu_ns / (double)program_ns, share),
		       cli_ns(program_ns, span));
	if (budget && cli_parse_number(budget, UINT32_MAX, &ppm))
		printf(program_ns < span_ns / 2 ? "; budget %.3g %%, or %.3g %% of one CPU" : "; budget %.3g %%",
		       (double)ppm / 1e4, (double)ppm / 2e4);
	else if (budget && strcmp(budget, "none") == 0)
		printf("; no budget was set");
	if (page_over_budget(report))
		printf(", held over 10 s and exceeded here");
	for (i = 0; i < WEFT__COSTS; i++)
		if (costs[i].cpu_ns) {
			printf("%s%s %s%s", any ? ", " : "\n      ", weft__label_cost(i),
			       cli_percent((double)costs[i].cpu_ns / (double)span_ns, share),
			       i == WEFT_COST_TABLES ? " (made once)" : "");
			any = true;
		}
	if (weft__names_fact(&report->rec->names, "degraded.budget"))
		printf("; at the end %" PRIu64 " samples a second, switches in %s of the time",
		       costs[WEFT_COST_SAMPLES].rate, cli_percent((double)costs[WEFT_COST_SWITCH].rate / 1000, share));
	putchar('\n');
}
