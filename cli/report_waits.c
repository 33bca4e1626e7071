/* SPDX-License-Identifier: Apache-2.0 */
/* Waits, and what threads did when they did not run, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "cli.h"
#include "print.h"
#include "report.h"
#include "weft/wait.h"

#define TITLES(...)                                                                                                    \
	{                                                                                                              \
		.titles = (const char *const[]){__VA_ARGS__},                                                          \
		.n_columns = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                         \
	}

static void cell_count(struct cli_table *table, uint64_t n)
{
	char figure[CLI_FIGURE];

	cli_cell(table, "%s", cli_count(n, figure));
}

static void cell_ns(struct cli_table *table, uint64_t ns)
{
	char figure[CLI_FIGURE];

	cli_cell(table, "%s", cli_ns(ns, figure));
}

/* A thread by its tid, which may have no stream. */
static void cell_thread(struct cli_table *table, const struct report *report, uint32_t tid, uint32_t stream)
{
	char label[WEFT__LABEL_BYTES];

	if (stream)
		cli_cell(table, "%.40s", weft__label_thread(&report->rec->names, stream, label, sizeof(label)));
	else
		cli_cell(table, "(%u)", tid);
}

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
	const struct weft__result *r = report->result;
	struct cli_table table =
		TITLES("<waited for", "<kind", "times", "total", "mean", "longest", "one by one", "on workers");
	size_t i, n = r->n_waits < report->top ? r->n_waits : report->top;
	bool others = r->works && r->n_wait_threads; /* only some of it is workers' */

	table.n_columns -= !others;
	for (i = 0; i < n; i++) {
		const struct weft__wait_row *row = &r->waits[i];
		const char *name = weft__names_string(&report->rec->names, row->name);

		if (row->n_told && !row->objects) {
			struct report_text text = {.n = 0};

			report_say_wait(&text, report, row->what, row->name, row->object);
			cli_cell(&table, "%.60s", text.at);
		} else {
			cli_cell(&table, "%.60s", name && name[0] ? cli_safe(name) : "-");
		}
		cli_cell(&table, "%s", report_wait_kind(row->what));
		cell_count(&table, row->n);
		cell_ns(&table, row->ns);
		cell_ns(&table, row->n ? row->ns / row->n : 0);
		cell_ns(&table, row->longest_ns);
		cell_count(&table, row->n_told);
		if (others)
			cell_ns(&table, row->worker_ns);
	}
	cli_table_print(&table);
	if (r->n_waits > n)
		printf("and %zu more\n", r->n_waits - n);
	for (i = 0; i < n; i++)
		print_cpu(report, &r->waits[i]);
}

/* Who waited for which lock: those that were told one by one. */
static void print_objects(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table =
		TITLES("<object", "<waited for", "times", "total", "longest", "<held by, in the longest");
	size_t i, n = r->n_wait_objects < report->top ? r->n_wait_objects : report->top;

	if (n == 0)
		return;
	printf("\nby object, of the waits that were told one by one:\n");
	for (i = 0; i < n; i++) {
		const struct weft__wait_object *row = &r->wait_objects[i];
		const char *name = weft__names_string(&report->rec->names, row->name);
		const char *variable = weft__frames_data(&report->rec->frames, row->object);
		struct report_text holder = {.n = 0};

		if (variable)
			cli_cell(&table, "%.60s", cli_safe(variable));
		else
			cli_cell(&table, "0x%" PRIx64, row->object);
		cli_cell(&table, "%.40s", name && name[0] ? cli_safe(name) : report_wait_kind(row->what));
		cell_count(&table, row->n);
		cell_ns(&table, row->ns);
		cell_ns(&table, row->longest_ns);
		if (row->holder.tid)
			report_say_holders(&holder, report, &row->holder);
		cli_cell(&table, "%.100s", row->holder.tid ? holder.at : "not known");
	}
	cli_table_print(&table);
	if (r->n_wait_objects > n || r->wait_objects_beyond)
		printf("and %zu more\n", r->n_wait_objects - n + (size_t)r->wait_objects_beyond);
}

/* Threads that are no workers mostly wait because there is nothing to do, so theirs are not among the longest. */
static void print_wait_threads(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("<thread", "<waited for", "times", "total", "longest", "<in, in the longest");
	size_t i, n = r->n_wait_threads < report->top ? r->n_wait_threads : report->top;

	if (n == 0)
		return;
	printf(r->works ? "\nof threads that are no workers:\n" : "\nby thread:\n");
	for (i = 0; i < n; i++) {
		const struct weft__wait_thread *row = &r->wait_threads[i];
		const char *name = weft__names_string(&report->rec->names, row->name);
		struct report_text text = {.n = 0};

		cell_thread(&table, report, 0, row->stream);
		cli_cell(&table, "%.40s", name && name[0] ? cli_safe(name) : report_wait_kind(row->what));
		cell_count(&table, row->n);
		cell_ns(&table, row->ns);
		cell_ns(&table, row->longest_ns);
		cli_cell(&table, "%.80s", report_say_stack(&text, report, row->stack, 0) ? text.at : "not measured");
	}
	cli_table_print(&table);
	if (r->n_wait_threads > n || r->wait_threads_beyond)
		printf("and %zu more\n", r->n_wait_threads - n + (size_t)r->wait_threads_beyond);
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
		   cli_safe(weft__label_lane(names, wait->worker, wait->stream, label, sizeof(label))));
	if (wait->in_poll)
		report_say(&text, ", task %" PRIu64 " `%s`", wait->task,
			   cli_safe(weft__label_place(names, wait->place)));
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
	if (report_say_scope(&text, report, &wait->scope))
		printf("%16s%s\n", "", text.at);
}

void report_waits(const struct report *report)
{
	const struct weft__result *r = report->result;
	char count[CLI_FIGURE], figure[CLI_FIGURE];
	size_t i;

	if (r->n_waits == 0 && r->n_waits_mixed == 0)
		return;
	cli_heading("Waits");
	if (r->n_waits)
		print_wait_rows(report);
	if (r->n_waits_mixed)
		printf("not measured: how much of %s more waits, %s in all, was in what was asked for\n",
		       cli_count(r->n_waits_mixed, count), cli_ns(r->waits_mixed_ns, figure));
	print_objects(report);
	print_wait_threads(report);
	if (r->n_long_waits == 0)
		return;
	cli_heading("Longest waits");
	for (i = 0; i < r->n_long_waits; i++) {
		printf("%3zu  %9s  ", i + 1, cli_ns(r->long_waits[i].rank_ns, figure));
		print_long_wait(report, &r->long_waits[i]);
	}
}

static void print_off_threads(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table =
		TITLES("<thread", "blocked", "times", "preempted", "times", "longest", "off-CPU samples");
	size_t i, n = r->n_off_threads < report->top ? r->n_off_threads : report->top;

	for (i = 0; i < n; i++) {
		const struct weft__off_thread *thread = &r->off_threads[i];

		cell_thread(&table, report, thread->tid, thread->stream);
		cell_ns(&table, thread->blocked_ns);
		cell_count(&table, thread->n_blocked);
		cell_ns(&table, thread->preempted_ns);
		cell_count(&table, thread->n_preempted);
		cell_ns(&table, thread->longest_ns);
		cell_count(&table, thread->samples);
	}
	cli_table_print(&table);
	if (r->n_off_threads > n)
		printf("and %zu more threads\n", r->n_off_threads - n);
}

static void print_off_rows(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("time", "times", "samples", "<", "<thread", "<in");
	uint64_t with_ns = 0, all_ns = r->off_beyond_ns;
	char with[CLI_FIGURE], all[CLI_FIGURE];
	size_t i, n = 0;

	for (i = 0; i < r->n_off_rows; i++) {
		all_ns += r->off_rows[i].ns;
		with_ns += r->off_rows[i].stack || r->off_rows[i].kernel ? r->off_rows[i].ns : 0;
	}

	for (i = 0; i < r->n_off_rows && n < report->top; i++) {
		const struct weft__off_row *row = &r->off_rows[i];
		struct report_text text = {.n = 0};

		if (!report_say_stack(&text, report, row->stack, row->kernel))
			continue;
		cell_ns(&table, row->ns);
		cell_count(&table, row->n);
		cell_count(&table, row->samples);
		cli_cell(&table, "%s", row->what == WEFT_OFFCPU_PREEMPTED ? "preempted" : "blocked");
		cell_thread(&table, report, row->tid, row->stream);
		cli_cell(&table, "%.100s", text.at);
		n++;
	}
	if (n == 0)
		return;
	printf("\nby stack, which %s of these %s have:\n", cli_ns(with_ns, with), cli_ns(all_ns, all));
	cli_table_print(&table);
}

/* How the times off the CPU were found. */
static void print_switch_mode(const struct report *report)
{
	const char *mode = weft__names_fact(&report->rec->names, "switch.mode");

	if (mode && strcmp(mode, "intervals") == 0)
		puts("in what: not measured where no wait says so (switches without stacks)");
}

double report_switch_share(const struct report *report)
{
	const struct weft__result *r = report->result;

	return r->switch_span_ns ? 1 - (double)r->switch_missing_ns / (double)r->switch_span_ns : 1;
}

void report_off_cpu(const struct report *report)
{
	const struct weft__result *r = report->result;
	const char *why = weft__names_fact(&report->rec->names, "degraded.switch");
	double share = report_switch_share(report);
	char figure[CLI_FIGURE];

	if (r->n_off_threads == 0) {
		if (why && why[0])
			printf("\nOff the CPU\nnot measured: %s\n", cli_safe(why));
		return;
	}
	cli_heading("Off the CPU");
	if (share < 0.999)
		printf("switches were recorded in %s of the time: what follows is a part of the time off the CPU, not "
		       "all of it\n",
		       cli_percent(share, figure));
	print_off_threads(report);
	print_off_rows(report);
	print_switch_mode(report);
}

static void print_states(const struct report *report, uint64_t looks_ns)
{
	uint64_t cpu_ns = report->result->samples.all.ns;
	double whole = (double)cpu_ns + (double)looks_ns;
	char figure[CLI_FIGURE], share[2][CLI_FIGURE];

	if (whole <= 0 || report_no_samples(report))
		return;
	printf("of %s of the threads' time: %s on CPU, %s blocked\n", cli_ns((uint64_t)whole, figure),
	       cli_percent((double)cpu_ns / whole, share[0]), cli_percent((double)looks_ns / whole, share[1]));
}

void report_looks(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("time", "share", "looks", "<call", "<thread", "<in");
	char figure[CLI_FIGURE];
	uint64_t all_ns = 0;
	size_t i;

	if (r->n_look_rows == 0)
		return;
	for (i = 0; i < r->n_look_rows; i++)
		all_ns += r->look_rows[i].ns;
	cli_heading("Threads that waited, by looks at them: %s", cli_ns(all_ns, figure));
	print_states(report, all_ns);
	for (i = 0; i < r->n_look_rows && i < report->top; i++) {
		const struct weft__off_row *row = &r->look_rows[i];
		struct report_text call = {.n = 0}, text = {.n = 0};

		report_say_call(&call, report, row->what);
		cell_ns(&table, row->ns);
		cli_cell(&table, "%s", cli_percent(all_ns ? (double)row->ns / (double)all_ns : 0, figure));
		cell_count(&table, row->n);
		cli_cell(&table, "%s", row->what ? call.at : "not known");
		cell_thread(&table, report, row->tid, row->stream);
		cli_cell(&table, "%.100s", report_say_stack(&text, report, row->stack, 0) ? text.at : "not measured");
	}
	cli_table_print(&table);
	if (r->n_look_rows > report->top)
		printf("and %zu more\n", r->n_look_rows - report->top);
}

void report_stuck(const struct report *report)
{
	const struct weft__result *r = report->result;
	const struct weft__names *names = &report->rec->names;
	char figure[CLI_FIGURE], label[WEFT__LABEL_BYTES];
	size_t i;

	if (r->n_stucks == 0)
		return;
	cli_heading("Stuck polls, as seen while they ran");
	for (i = 0; i < r->n_stucks; i++) {
		const struct weft__stuck *stuck = &r->stucks[i];
		struct report_text text = {.n = 0};

		printf("%3zu  %9s  ", i + 1, cli_ns(stuck->rank_ns, figure));
		if (stuck->stream)
			printf("%s",
			       cli_safe(weft__label_lane(names, stuck->worker, stuck->stream, label, sizeof(label))));
		else
			printf("thread %u", stuck->tid);
		printf("  task %" PRIu64 " `%s`", stuck->task, cli_safe(weft__label_place(names, stuck->place)));
		if (stuck->ended)
			printf(", ended after %s\n", cli_ns(stuck->duration_ns, figure));
		else
			puts(", its end was not seen");
		if (report_say_stack(&text, report, stuck->stack, 0))
			printf("%16sin %s\n", "", text.at);
	}
}

const char *report_cost_name(size_t what)
{
	return weft__label_cost(what);
}

/* weft itself used 25.3 ms of CPU in 4.13 s: 0.6 % of one CPU, 2.1 % of the program's 1.20 s; budget 1 %
 *       collector 0.5 %, samples 0.1 % */
void report_cost(const struct report *report)
{
	const struct weft__cost *costs = report->result->costs;
	const struct weft__samples *samples = &report->result->samples;
	const char *budget = weft__names_fact(&report->rec->names, "budget.ppm");
	uint64_t span_ns = 0, cpu_ns = 0, program_ns = samples->all.ns + samples->left_out.ns, ppm;
	char share[CLI_FIGURE], figure[CLI_FIGURE], span[CLI_FIGURE];
	bool any = false;
	size_t i;

	for (i = 0; i < WEFT__COSTS; i++) {
		cpu_ns += costs[i].cpu_ns;
		span_ns = costs[i].span_ns > span_ns ? costs[i].span_ns : span_ns;
	}
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
	for (i = 0; i < WEFT__COSTS; i++)
		if (costs[i].cpu_ns) {
			printf("%s%s %s%s", any ? ", " : "\n      ", report_cost_name(i),
			       cli_percent((double)costs[i].cpu_ns / (double)span_ns, share),
			       i == WEFT_COST_TABLES ? " (made once)" : "");
			any = true;
		}
	if (weft__names_fact(&report->rec->names, "degraded.budget"))
		printf("; at the end %" PRIu64 " samples a second, switches in %s of the time",
		       costs[WEFT_COST_SAMPLES].rate, cli_percent((double)costs[WEFT_COST_SWITCH].rate / 1000, share));
	putchar('\n');
}
