/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text: what matters first, then the tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "cli.h"
#include "page.h"
#include "print.h"
#include "report.h"

#define TITLES(...)                                                                                                    \
	{                                                                                                              \
		.titles = (const char *const[]){__VA_ARGS__},                                                          \
		.n_columns = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                         \
	}

static void fact(const struct report *report, const char *title, const char *key)
{
	const char *value = weft__names_fact(&report->rec->names, key);

	if (value && value[0])
		printf("  %s %.60s", title, cli_safe(value));
}

static void print_head(const struct report *report)
{
	const struct weft__recording *rec = report->rec;
	const char *name = weft__names_fact(&rec->names, "service.name");
	char count[CLI_FIGURE], span[CLI_FIGURE], from[CLI_FIGURE], to[CLI_FIGURE];
	int i;

	printf("%s%s%s", cli_style(CLI_BOLD), cli_safe(name && name[0] ? name : "recording"), cli_style(CLI_PLAIN));
	fact(report, "pid", "process.pid");
	fact(report, "on", "host.name");
	printf("  began %s  id ", cli_wall(rec->start_real_ns, span));
	for (i = 0; i < 4; i++)
		printf("%02x", rec->id[i]);
	printf("\n%s events over %s in %zu segment%s (%s", cli_count(rec->n_events, count),
	       cli_ns(weft__recording_since(rec, rec->last_ns), span), rec->n_files, rec->n_files == 1 ? "" : "s",
	       cli_bytes(rec->n_bytes, from));
	if (rec->n_events)
		printf(", %.2f B an event", (double)rec->n_event_bytes / (double)rec->n_events);
	puts(")");
	if (report->from_ns || report->to_ns != UINT64_MAX)
		printf("window: %s to %s, %s events\n", cli_moment(report->from_ns, from),
		       report->to_ns == UINT64_MAX ? "the end" : cli_moment(report->to_ns, to),
		       cli_count(report->result->n_events, count));
}

/* What asked for it, when it is a dump of a flight recorder. */
static void print_dump(const struct report *report)
{
	const struct weft__names *names = &report->rec->names;
	const char *why = weft__names_fact(names, "dump.why"), *unheard = weft__names_fact(names, "dump.unheard");
	char count[CLI_FIGURE];
	uint64_t n;

	if (!why)
		return;
	printf("dump %" PRIu64 " of a flight recorder: %.100s", report->rec->dump - 1, cli_safe(why));
	if (unheard && cli_parse_number(unheard, UINT64_MAX, &n) && n)
		printf("; %s more asked for one before it was written, or too soon after the last",
		       cli_count(n, count));
	puts("");
}

/* Where not all polls are reported one by one. */
static void print_poll_mode(const struct report *report)
{
	const struct weft__result *r = report->result;
	const char *mode = weft__names_fact(&report->rec->names, "poll.mode");
	const char *slow = weft__names_fact(&report->rec->names, "poll.slow_ns");
	char count[CLI_FIGURE], reported[CLI_FIGURE], figure[CLI_FIGURE];
	uint64_t ns;

	if (r->n_kind[WEFT_KIND_POLL] + r->n_kind[WEFT_KIND_POLL_COUNT] == 0)
		return;
	printf("polls: mode %.20s", mode && mode[0] ? cli_safe(mode) : "not known");
	if (mode && strcmp(mode, "slow") == 0 && slow && cli_parse_number(slow, UINT64_MAX, &ns))
		printf(", those of %s and more one by one", cli_ns(ns, figure));
	else if (mode && strcmp(mode, "caught") == 0)
		fputs(", those with a sample or a long wait in them one by one", stdout);
	printf(": %s", cli_count(r->reported.n, reported));
	if (r->counted)
		printf(" of %s", cli_count(r->polls.n, count));
	printf("\n       %sby location, only those one by one count\n",
	       r->counted ? "percentiles by worker are from counts of all by duration; " : "");
}

#define HIST(P) P##_COUNT, P##_P50, P##_P99, P##_P999, P##_MAX
#define DEPTH(P) P##_SAMPLES, P##_MIN, P##_MEAN, P##_P99, P##_MAX
#define SPLIT(P)                                                                                                       \
	P##_TIME_POLLS, P##_TIME_TOTAL, P##_ON_CPU, P##_BLOCKED, P##_WAITING, P##_PREEMPTED, P##_NOT_MEASURED,         \
		P##_THROTTLED

static void print_polls(const struct report *report, const struct weft__summary *workers,
			const struct weft__summary *locations)
{
	REPORT_VIEW(by_worker, WEFT__COL_WORKER_SUMMARY_WORKER, HIST(WEFT__COL_WORKER_SUMMARY_POLLS),
		    WEFT__COL_WORKER_SUMMARY_POLLS_TOTAL, WEFT__COL_WORKER_SUMMARY_BUSY_SHARE,
		    WEFT__COL_WORKER_SUMMARY_PARKED_SHARE, WEFT__COL_WORKER_SUMMARY_CPU_SHARE,
		    WEFT__COL_WORKER_SUMMARY_RUNQUEUE) = {REPORT_OF(by_worker), .all = true};
	REPORT_VIEW(by_location, WEFT__COL_LOCATION_SUMMARY_LOCATION, HIST(WEFT__COL_LOCATION_SUMMARY_POLLS),
		    WEFT__COL_LOCATION_SUMMARY_POLLS_TOTAL, WEFT__COL_LOCATION_SUMMARY_SPAWNED,
		    WEFT__COL_LOCATION_SUMMARY_ENDED, WEFT__COL_LOCATION_SUMMARY_ALIVE,
		    WEFT__COL_LOCATION_SUMMARY_CPU) = {REPORT_OF(by_location), .all = true};

	if (!page_has_loop(report) && workers->n_rows == 0)
		return;
	cli_heading(page_only_ticks(report) ? "Ticks by event loop" : "Polls by worker");
	if (workers->n_rows == 0)
		puts("none: no worker or thread that was asked for polled or parked");
	report_view(report, workers, &by_worker);
	if (locations->n_rows == 0 || page_only_ticks(report))
		return;
	cli_heading("Polls and tasks by spawn location");
	report_view(report, locations, &by_location);
}

/* Where there is more than one worker: what of all of them is in the JSON, too. */
static void print_all(const struct report *report, const struct weft__summary *workers)
{
	REPORT_VIEW(polls, HIST(WEFT__COL_TOTAL_SUMMARY_POLLS), WEFT__COL_TOTAL_SUMMARY_POLLS_TOTAL) = {
		REPORT_OF(polls), .need = WEFT__COL_TOTAL_SUMMARY_POLLS_COUNT};
	REPORT_VIEW(delays, HIST(WEFT__COL_TOTAL_SUMMARY_DELAYS)) = {REPORT_OF(delays),
								     .need = WEFT__COL_TOTAL_SUMMARY_DELAYS_COUNT};
	REPORT_VIEW(split, SPLIT(WEFT__COL_TOTAL_SUMMARY)) = {REPORT_OF(split),
							      .need = WEFT__COL_TOTAL_SUMMARY_TIME_POLLS,
							      .optional = WEFT__COL_TOTAL_SUMMARY_THROTTLED};

	if (workers->n_rows < 2 || report->result->polls.n == 0)
		return;
	cli_heading(page_only_ticks(report) ? "All ticks" : "All polls");
	report_print(report, WEFT__TABLE_TOTAL_SUMMARY, &polls);
	if (report->result->split.n && report_has_breakdown(report))
		report_print(report, WEFT__TABLE_TOTAL_SUMMARY, &split);
	if (report->result->delays.n)
		report_print(report, WEFT__TABLE_TOTAL_SUMMARY, &delays);
}

static void print_splits(const struct report *report, const struct weft__summary *workers,
			 const struct weft__summary *locations)
{
	REPORT_VIEW(by_worker, WEFT__COL_WORKER_SUMMARY_WORKER, SPLIT(WEFT__COL_WORKER_SUMMARY)) = {
		REPORT_OF(by_worker), .all = true, .need = WEFT__COL_WORKER_SUMMARY_TIME_POLLS,
		.optional = WEFT__COL_WORKER_SUMMARY_THROTTLED};
	REPORT_VIEW(by_location, WEFT__COL_LOCATION_SUMMARY_LOCATION, SPLIT(WEFT__COL_LOCATION_SUMMARY)) = {
		REPORT_OF(by_location), .all = true, .need = WEFT__COL_LOCATION_SUMMARY_TIME_POLLS,
		.optional = WEFT__COL_LOCATION_SUMMARY_THROTTLED};

	if (!report_has_breakdown(report) || report->result->split.n == 0)
		return;
	cli_heading(page_only_ticks(report) ? "Where the time of ticks went" : "Where the time of polls went");
	report_view(report, workers, &by_worker);
	if (page_only_ticks(report)) /* a loop is a worker and a location: once is enough */
		return;
	putchar('\n');
	report_view(report, locations, &by_location);
}

static void print_short(const struct report *report, const struct weft__summary *locations)
{
	REPORT_VIEW(view, WEFT__COL_LOCATION_SUMMARY_LOCATION, WEFT__COL_LOCATION_SUMMARY_SHORT,
		    WEFT__COL_LOCATION_SUMMARY_SHORT_TOTAL, WEFT__COL_LOCATION_SUMMARY_SHORT_CPU,
		    WEFT__COL_LOCATION_SUMMARY_SHORT_SHARE, WEFT__COL_LOCATION_SUMMARY_SHORT_SAMPLES) = {
		REPORT_OF(view), .all = true, .need = WEFT__COL_LOCATION_SUMMARY_SHORT};
	uint64_t n = 0;
	char figure[CLI_FIGURE];
	size_t i;

	for (i = 0; i < locations->n_rows; i++)
		n += weft__summary_cell(locations, i, WEFT__COL_LOCATION_SUMMARY_SHORT)->u;
	if (n == 0 || page_only_ticks(report) || report_no_samples(report) || report->result->samples.period_ns == 0)
		return;
	cli_heading("Polls shorter than the sampling period of %s, by spawn location",
		    cli_ns(report->result->samples.period_ns, figure));
	report_view(report, locations, &view);
}

static void print_delays(const struct report *report, const struct weft__summary *workers,
			 const struct weft__summary *locations)
{
	REPORT_VIEW(by_worker, WEFT__COL_WORKER_SUMMARY_WORKER, HIST(WEFT__COL_WORKER_SUMMARY_DELAYS)) = {
		REPORT_OF(by_worker), .all = true, .need = WEFT__COL_WORKER_SUMMARY_DELAYS_COUNT};
	REPORT_VIEW(by_location, WEFT__COL_LOCATION_SUMMARY_LOCATION, HIST(WEFT__COL_LOCATION_SUMMARY_DELAYS)) = {
		REPORT_OF(by_location), .all = true, .need = WEFT__COL_LOCATION_SUMMARY_DELAYS_COUNT};

	if (!page_has_wakes(report))
		return;
	cli_heading("Wake to poll");
	if (report_no_delays(report)) {
		printf("not measured: %s\n", report_no_delays(report));
		return;
	}
	report_view(report, workers, &by_worker);
	putchar('\n');
	report_view(report, locations, &by_location);
}

static void print_queues(const struct report *report, const struct weft__summary *workers)
{
	REPORT_VIEW(global, WEFT__COL_QUEUE_SUMMARY_RUNTIME, DEPTH(WEFT__COL_QUEUE_SUMMARY)) = {REPORT_OF(global),
												.all = true};
	REPORT_VIEW(local, WEFT__COL_WORKER_SUMMARY_WORKER, DEPTH(WEFT__COL_WORKER_SUMMARY_QUEUE)) = {
		REPORT_OF(local), .all = true, .need = WEFT__COL_WORKER_SUMMARY_QUEUE_SAMPLES};

	if (!page_has_queues(report))
		return;
	cli_heading("Queue depth");
	report_print(report, WEFT__TABLE_QUEUE_SUMMARY, &global);
	if (weft__no_global_queue(report->result))
		printf("global queues: not measured: %s\n", weft__no_global_queue(report->result));
	report_view(report, workers, &local);
}

/* Times and bytes in the unit that fits, other numbers as they are. */
static void cell_number(struct cli_table *table, const struct weft_field *field, double value)
{
	char figure[CLI_FIGURE];
	bool whole = value >= 0 && value < 1e18;

	if (whole && strcmp(field->unit, "ns") == 0)
		cli_cell(table, "%s", cli_ns((uint64_t)(value + 0.5), figure));
	else if (whole && strcmp(field->unit, "By") == 0 && value >= 1024)
		cli_cell(table, "%s", cli_bytes((uint64_t)(value + 0.5), figure));
	else
		cli_cell(table, "%s", cli_number(value, figure));
}

static double number(uint32_t type, union weft__number number)
{
	return type == WEFT_TYPE_F64 ? number.f : type == WEFT_TYPE_I64 ? (double)number.i : (double)number.u;
}

static void print_customs(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("<event", "count", "<field", "<unit", "min", "mean", "max");
	char figure[CLI_FIGURE];
	size_t i, j;

	if (r->custom.n_kinds == 0)
		return;
	cli_heading("Events of the program");
	for (i = 0; i < r->custom.n_kinds; i++) {
		const struct weft__custom *custom = &r->custom.kinds[i];
		const struct weft_kind_def *def = weft__names_kind(&report->rec->names, custom->kind);
		size_t rows = 0;

		for (j = 0; j < WEFT_FIELDS_MAX + 1; j++) {
			bool field = def && j < def->n_fields && custom->fields[j].n > 0;

			if (!field && (j < WEFT_FIELDS_MAX || rows > 0))
				continue;
			if (rows++ == 0 && def)
				cli_cell(&table, "%.40s", def->name);
			else if (rows == 1)
				cli_cell(&table, "kind %u", custom->kind);
			else
				cli_cell(&table, "%s", "");
			cli_cell(&table, "%s", rows == 1 ? cli_count(custom->n, figure) : "");
			cli_cell(&table, "%.40s", field ? def->fields[j].name : "");
			cli_cell(&table, "%.12s", field ? def->fields[j].unit : "");
			if (!field) {
				cli_cell(&table, "%s", "");
				cli_cell(&table, "%s", "");
				cli_cell(&table, "%s", "");
				continue;
			}
			cell_number(&table, &def->fields[j], number(def->fields[j].type, custom->fields[j].min));
			cell_number(&table, &def->fields[j], custom->fields[j].sum / (double)custom->fields[j].n);
			cell_number(&table, &def->fields[j], number(def->fields[j].type, custom->fields[j].max));
		}
	}
	cli_table_print(&table);
}

static void print_losses(const struct report *report)
{
	REPORT_VIEW(view, WEFT__COL_LOSS_SUMMARY_REASON, WEFT__COL_LOSS_SUMMARY_THREAD, WEFT__COL_LOSS_SUMMARY_EVENTS,
		    WEFT__COL_LOSS_SUMMARY_THREADS, WEFT__COL_LOSS_SUMMARY_RECORDS, WEFT__COL_LOSS_SUMMARY_FROM,
		    WEFT__COL_LOSS_SUMMARY_TO, WEFT__COL_LOSS_SUMMARY_TOGETHER) = {
		REPORT_OF(view), .all = true, .optional = WEFT__COL_LOSS_SUMMARY_THREADS};

	if (report->result->loss.n_rows == 0)
		return;
	cli_heading("Loss: what is missing, and why");
	report_print(report, WEFT__TABLE_LOSS_SUMMARY, &view);
}

void report_text(const struct report *report)
{
	struct weft__summary workers, locations;

	print_head(report);
	print_dump(report);
	report_print_missing(report);
	report_sampling(report);
	print_poll_mode(report);
	report_cost(report);
	if (report->rec->n_events == 0) {
		puts("no events");
		return;
	}
	if (page_has_loop(report) || report->result->wait.n_pendings)
		putchar('\n');
	report_pending_headline(report);
	report_headline(report);
	report_summary(report, WEFT__TABLE_WORKER_SUMMARY, &workers);
	report_summary(report, WEFT__TABLE_LOCATION_SUMMARY, &locations);
	print_all(report, &workers);
	print_polls(report, &workers, &locations);
	print_splits(report, &workers, &locations);
	report_longest(report);
	report_running(report);
	report_stuck(report);
	report_waiting(report);
	report_pending(report);
	report_waits(report);
	report_off_cpu(report);
	report_wall(report);
	report_cpu(report);
	print_short(report, &locations);
	print_delays(report, &workers, &locations);
	report_delayed(report);
	print_queues(report, &workers);
	print_customs(report);
	print_losses(report);
	report_print_notes(report);
	weft__summary_fini(&workers);
	weft__summary_fini(&locations);
}
