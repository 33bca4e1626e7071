/* SPDX-License-Identifier: Apache-2.0 */
/* The report as text: what matters first, then the tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "cli.h"
#include "print.h"
#include "report.h"

#define TITLES(...)                                                                                                    \
	{                                                                                                              \
		.titles = (const char *const[]){__VA_ARGS__},                                                          \
		.n_columns = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)                         \
	}

static const char no[] = "not measured";

static void cell_quantiles(struct cli_table *table, const struct weft__hist *hist)
{
	static const uint32_t at[] = {5000, 9900, 9990, 10000};
	char figure[CLI_FIGURE];
	size_t i;

	for (i = 0; i < 4; i++)
		cli_cell(table, "%s", hist->n ? cli_ns(weft__hist_at(hist, at[i]), figure) : "-");
}

static void cell_share(struct cli_table *table, const char *why, uint64_t part_ns, uint64_t whole_ns)
{
	char figure[CLI_FIGURE];

	cli_cell(table, "%s", why ? no : cli_percent((double)part_ns / (double)whole_ns, figure));
}

static void cell_count(struct cli_table *table, uint64_t n)
{
	char figure[CLI_FIGURE];

	cli_cell(table, "%s", cli_count(n, figure));
}

static void cell_lane(struct cli_table *table, const struct report *report, const struct weft__lane *lane)
{
	char label[WEFT__LABEL_BYTES];

	cli_cell(table, "%s", weft__label_lane(&report->rec->names, lane->worker, lane->stream, label, sizeof(label)));
}

static void cell_place(struct cli_table *table, const struct report *report, uint32_t place)
{
	const struct weft__names *names = &report->rec->names;
	char file[WEFT__LABEL_BYTES];

	weft__label_file(names, place, file, sizeof(file));
	cli_cell(table, "%.60s%s%.40s", weft__label_place(names, place), file[0] ? "  " : "", cli_base(file));
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
	       cli_ns(rec->last_ns > rec->start_ns ? rec->last_ns - rec->start_ns : 0, span), rec->n_files,
	       rec->n_files == 1 ? "" : "s", cli_bytes(rec->n_bytes, from));
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

/* Where not all polls are told one by one. */
static void print_poll_mode(const struct report *report)
{
	const struct weft__result *r = report->result;
	const char *mode = weft__names_fact(&report->rec->names, "poll.mode");
	const char *slow = weft__names_fact(&report->rec->names, "poll.slow_ns");
	char count[CLI_FIGURE], told[CLI_FIGURE], figure[CLI_FIGURE];
	uint64_t ns;

	if (r->n_kind[WEFT_KIND_POLL] + r->n_kind[WEFT_KIND_POLL_COUNT] == 0)
		return;
	printf("polls: mode %.20s", mode && mode[0] ? cli_safe(mode) : "not known");
	if (mode && strcmp(mode, "slow") == 0 && slow && cli_parse_number(slow, UINT64_MAX, &ns))
		printf(", those of %s and more one by one", cli_ns(ns, figure));
	else if (mode && strcmp(mode, "caught") == 0)
		fputs(", those with a sample or a long wait in them one by one", stdout);
	printf(": %s", cli_count(r->told.n, told));
	if (r->counted)
		printf(" of %s", cli_count(r->polls.n, count));
	printf("\n       %sby location, only those one by one count\n",
	       r->counted ? "percentiles by worker are from counts of all by duration; " : "");
}

static void print_workers(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("<worker", "polls", "p50", "p99", "p99.9", "max", "total", "in polls", "parked",
					"on CPU", "waited for CPU");
	char figure[CLI_FIGURE];
	size_t i;

	cli_heading("Polls by worker");
	if (r->n_lanes == 0) {
		puts("none: no worker or thread that was asked for polled or parked");
		return;
	}
	for (i = 0; i < r->n_lanes; i++) {
		const struct weft__lane *lane = &r->lanes[i];

		cell_lane(&table, report, lane);
		cell_count(&table, lane->polls.n);
		cell_quantiles(&table, &lane->polls);
		cli_cell(&table, "%s", cli_ns(lane->polls.sum, figure));
		cell_share(&table, report_no_busy(report, lane), lane->busy_ns, lane->observed_ns);
		cell_share(&table, report_no_parked(lane), lane->parked_ns, lane->observed_ns);
		cell_share(&table, report_no_cpu(lane), lane->cpu_ns, lane->sched_ns);
		cli_cell(&table, "%s", report_no_cpu(lane) ? no : cli_ns(lane->runqueue_ns, figure));
	}
	cli_table_print(&table);
}

static void print_places(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("<spawn location", "polls", "p50", "p99", "p99.9", "max", "total", "spawned",
					"ended", "alive", "on CPU");
	bool sampled = !report_no_samples(report);
	char figure[CLI_FIGURE];
	size_t i;

	if (r->n_places == 0)
		return;
	cli_heading("Polls and tasks by spawn location");
	if (!sampled)
		table.n_columns--;
	for (i = 0; i < r->n_places; i++) {
		const struct weft__place *place = &r->places[i];

		cell_place(&table, report, place->id);
		cell_count(&table, place->polls.n);
		cell_quantiles(&table, &place->polls);
		cli_cell(&table, "%s", cli_ns(place->polls.sum, figure));
		cell_count(&table, place->spawned);
		cell_count(&table, place->ended);
		cli_cell(&table, "%s", report_no_alive(report) ? no : cli_count(place->alive, figure));
		if (sampled)
			cli_cell(&table, "%s", cli_ns(place->sampled.ns, figure));
	}
	cli_table_print(&table);
}

static void print_delays(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table by_worker = TITLES("<worker", "polls woken", "p50", "p99", "p99.9", "max");
	struct cli_table by_place = TITLES("<spawn location", "polls woken", "p50", "p99", "p99.9", "max");
	size_t i;

	cli_heading("Wake to poll");
	if (r->delays.n == 0) {
		printf("%s: %s\n", no, report_no_delays(report));
		return;
	}
	for (i = 0; i < r->n_lanes; i++) {
		if (r->lanes[i].delays.n == 0)
			continue;
		cell_lane(&by_worker, report, &r->lanes[i]);
		cell_count(&by_worker, r->lanes[i].delays.n);
		cell_quantiles(&by_worker, &r->lanes[i].delays);
	}
	cli_table_print(&by_worker);
	putchar('\n');
	for (i = 0; i < r->n_places; i++) {
		if (r->places[i].delays.n == 0)
			continue;
		cell_place(&by_place, report, r->places[i].id);
		cell_count(&by_place, r->places[i].delays.n);
		cell_quantiles(&by_place, &r->places[i].delays);
	}
	cli_table_print(&by_place);
}

static void cell_depths(struct cli_table *table, const struct weft__hist *hist)
{
	cell_count(table, hist->n);
	cell_count(table, hist->min);
	cli_cell(table, "%.2f", weft__hist_mean(hist));
	cell_count(table, weft__hist_at(hist, 9900));
	cell_count(table, hist->max);
}

static void print_queues(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("<queue", "samples", "min", "mean", "p99", "max");
	const struct weft_runtime_def *runtime;
	bool any = false;
	size_t i;

	cli_heading("Queue depth");
	for (i = 0; i < r->n_queues; i++) {
		runtime = weft__names_runtime(&report->rec->names, r->queues[i].runtime);
		if (runtime)
			cli_cell(&table, "%.60s, global", runtime->name);
		else
			cli_cell(&table, "runtime-%u, global", r->queues[i].runtime);
		cell_depths(&table, &r->queues[i].depths);
		any = true;
	}
	for (i = 0; i < r->n_lanes; i++) {
		if (r->lanes[i].depths.n == 0)
			continue;
		cell_lane(&table, report, &r->lanes[i]);
		cell_depths(&table, &r->lanes[i].depths);
		any = true;
	}
	if (any)
		cli_table_print(&table);
	if (r->n_queues == 0)
		printf("global queues %s: %s\n", no, report_no_global_queue(report));
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

	if (r->n_customs == 0)
		return;
	cli_heading("Events of the program");
	for (i = 0; i < r->n_customs; i++) {
		const struct weft__custom *custom = &r->customs[i];
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
	const struct weft__result *r = report->result;
	struct cli_table table = TITLES("<reason", "<thread", "count", "times", "from", "to", "together");
	char figure[CLI_FIGURE], label[WEFT__LABEL_BYTES];
	size_t i;

	if (r->n_lost == 0)
		return;
	cli_heading("Loss");
	for (i = 0; i < r->n_lost; i++) {
		const struct weft__lost *lost = &r->lost[i];
		bool counted = lost->reason != WEFT_LOSS_PAUSED && lost->reason != WEFT_LOSS_DISK_FULL;

		cli_cell(&table, "%s", weft__label_reason(lost->reason));
		cli_cell(&table, "%s",
			 lost->stream ? weft__label_thread(&report->rec->names, lost->stream, label, sizeof(label))
			 : counted    ? "not known"
				      : "all");
		cli_cell(&table, "%s", counted ? cli_count(lost->count, figure) : "not counted");
		cell_count(&table, lost->records);
		cli_cell(&table, "%s", cli_moment(report_since_start(report, lost->from_ns), figure));
		cli_cell(&table, "%s", cli_moment(report_since_start(report, lost->to_ns), figure));
		cli_cell(&table, "%s", cli_ns(lost->span_ns, figure));
	}
	cli_table_print(&table);
}

static void note(uint64_t n, const char *text)
{
	char count[CLI_FIGURE];

	if (n)
		printf("  %s %s\n", cli_count(n, count), text);
}

static void print_notes(const struct report *report)
{
	const struct weft__result *r = report->result;
	uint64_t any = r->polls_began_before + r->polls_cut + r->polls_never_ended + r->polls_too_deep + r->delays_cut +
		       r->wakes_again + r->late_causes + r->ids_reused + r->tasks_untracked + r->streams_untracked +
		       r->stretches_cut + r->stretches_late + r->threads_untracked + r->malformed +
		       r->samples.beyond_polls + report->rec->frames.stacks_beyond;

	if (!any)
		return;
	cli_heading("Notes");
	note(r->polls_began_before, "polls began before the recording: not in the figures");
	note(r->polls_cut, "polls have a gap in them: not in the figures");
	note(r->polls_never_ended, "polls were open when their thread ended: not in the figures");
	note(r->polls_too_deep, "polls were nested too deep: not in the figures");
	note(r->delays_cut, "wakes have a gap between them and the poll: not in the figures");
	note(r->wakes_again, "wakes were of a task that had been woken and not polled yet");
	note(r->late_causes, "wakes and spawns have a time just behind the poll that they caused: taken as no delay");
	note(r->ids_reused, "task ids were spawned again without an end of the earlier task, which counts as gone");
	note(r->tasks_untracked,
	     "events were of tasks beyond the limit of tasks that are kept: their location is not known");
	note(r->streams_untracked,
	     "events were of threads beyond the limit of threads that are kept: not in the figures");
	note(r->samples.beyond_polls,
	     "samples are in no poll's list of stacks: more than the analysis holds at a time");
	note(report->rec->frames.stacks_beyond, "stacks are not kept: more than the analysis holds");
	note(r->stretches_cut,
	     "waits, switches and looks were dropped: more than the analysis holds; polls of that time have "
	     "parts that are not measured");
	note(r->stretches_late, "switches came too late to be of a poll");
	note(r->threads_untracked,
	     "switches, waits and looks were of threads beyond the limit of threads that are kept");
	note(r->malformed, "events had fewer fields than their kind has: not in the figures");
}

void report_text(const struct report *report)
{
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
	putchar('\n');
	report_pending_headline(report);
	report_headline(report);
	print_workers(report);
	print_places(report);
	report_splits(report);
	report_longest(report);
	report_running(report);
	report_stuck(report);
	report_pending(report);
	report_waits(report);
	report_off_cpu(report);
	report_looks(report);
	report_cpu(report);
	print_delays(report);
	report_delayed(report);
	print_queues(report);
	print_customs(report);
	print_losses(report);
	print_notes(report);
}
