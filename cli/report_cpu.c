/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPU time went, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "print.h"
#include "report.h"

#define FUNCTION_COLUMNS 58
#define MODULE_COLUMNS 24
#define MODULES_SHOWN 5

static double share_of(struct weft__weight part, struct weft__weight whole)
{
	return whole.ns ? (double)part.ns / (double)whole.ns : whole.n ? (double)part.n / (double)whole.n : 0;
}

static void cell_weight(struct cli_table *table, struct weft__weight weight, struct weft__weight whole)
{
	char figure[CLI_FIGURE];

	cli_cell(table, "%s", cli_ns(weight.ns, figure));
	cli_cell(table, "%s", cli_percent(share_of(weight, whole), figure));
}

static void cell_count(struct cli_table *table, uint64_t n)
{
	char figure[CLI_FIGURE];

	cli_cell(table, "%s", cli_count(n, figure));
}

static void print_engines(const struct report *report)
{
	static const char *const names[] = {"unknown", "timer", "perf"};
	const struct weft__samples *samples = &report->result->samples;
	char share[CLI_FIGURE];
	size_t i, n = 0;

	for (i = 0; i < WEFT__ENGINES; i++)
		n += samples->engines[i].n > 0;
	for (i = 0; i < WEFT__ENGINES && n > 1; i++)
		if (samples->engines[i].n)
			printf(", %s %s", cli_percent(share_of(samples->engines[i], samples->all), share),
			       i < 3 ? names[i] : "other");
}

static void print_part(const char *title, struct weft__weight part, struct weft__weight whole, bool *any)
{
	char share[CLI_FIGURE];

	if (part.n == 0)
		return;
	printf("%s%s %s", *any ? ", " : "", cli_percent(share_of(part, whole), share), title);
	*any = true;
}

static void print_quality(const struct report *report)
{
	const struct weft__quality *q = &report->profile.quality;
	struct weft__weight all = report->profile.all;
	bool any = false;

	fputs("stacks: ", stdout);
	print_part("complete", q->complete, all, &any);
	print_part("cut at the depth limit", q->cut, all, &any);
	print_part("lost on the way", q->lost, all, &any);
	print_part("without a stack", q->none, all, &any);
	print_part("with a stack that is not defined", q->undefined, all, &any);
	if (q->fp.n + q->no_code.n + q->early.n + q->kernel.n == 0) {
		putchar('\n');
		return;
	}
	fputs("; ", stdout);
	any = false;
	print_part("have frames from frame pointers", q->fp, all, &any);
	print_part("begin in unknown code", q->no_code, all, &any);
	print_part("came before the tables of their code were made", q->early, all, &any);
	print_part("have kernel frames", q->kernel, all, &any);
	putchar('\n');
}

/* By which engine, how often, why that one. */
static void print_how(const struct report *report)
{
	const struct weft__names *names = &report->rec->names;
	const char *engine = weft__names_fact(names, "sample.engine"), *hz = weft__names_fact(names, "sample.hz");
	const char *event = weft__names_fact(names, "sample.event"), *why = weft__names_fact(names, "sample.why");

	if (hz && hz[0])
		printf(", %.20s Hz", cli_safe(hz));
	if (engine && engine[0])
		printf(", %.20s engine", cli_safe(engine));
	if (event && event[0])
		printf(", %.40s", cli_safe(event));
	if (why && why[0])
		printf(" (%.100s)", cli_safe(why));
}

void report_sampling(const struct report *report)
{
	const struct weft__result *r = report->result;
	const char *why = report_no_samples(report);
	char count[CLI_FIGURE], ns[CLI_FIGURE];

	if (why) {
		printf("samples: not measured: %s\n", cli_safe(why));
	} else {
		printf("samples: %s for %s of CPU", cli_count(r->samples.all.n, count), cli_ns(r->samples.all.ns, ns));
		print_how(report);
		print_engines(report);
		putchar('\n');
		print_quality(report);
	}
	if (r->cpu_clock.threads && r->cpu_clock.threads_ns)
		printf("%s threads ended without a sample; they used %s%s\n", cli_count(r->cpu_clock.threads, count),
		       cli_ns(r->cpu_clock.threads_ns, ns),
		       report_cpu_off(report) ? "" : ", for which samples of others like them stand");
	else if (r->cpu_clock.threads)
		printf("%s threads ended without a sample\n", cli_count(r->cpu_clock.threads, count));
}

static void print_where(const struct report *report)
{
	static const char *const names[WEFT__N_WHERE] = {
		[WEFT__IN_POLL] = "in polls",
		[WEFT__BETWEEN_POLLS] = "outside polls: in the runtime, between them",
		[WEFT__PARKED] = "outside polls: while parked",
		[WEFT__NEVER_POLLS] = "outside polls: on threads that never poll",
		[WEFT__WHERE_UNKNOWN] =
			"not known: in a poll that began before the recording or in a gap, or was not told",
	};
	const struct weft__samples *samples = &report->result->samples;
	struct cli_table table = {.titles = (const char *const[]){"CPU", "share", "samples", "<where"}, .n_columns = 4};
	size_t i;

	for (i = 0; i < WEFT__N_WHERE; i++) {
		if (samples->where[i].n == 0)
			continue;
		cell_weight(&table, samples->where[i], samples->all);
		cell_count(&table, samples->where[i].n);
		cli_cell(&table, "%s", names[i]);
	}
	cli_table_print(&table);
}

static void cell_thread(struct cli_table *table, const struct report *report, const struct weft__sampled_thread *thread)
{
	const struct weft__names *names = &report->rec->names;
	char label[WEFT__LABEL_BYTES];

	cli_cell(table, "%.40s",
		 thread->worker == WEFT_WORKER_NONE
			 ? "-"
			 : weft__label_lane(names, thread->worker, thread->stream, label, sizeof(label)));
	cli_cell(table, "%.40s",
		 thread->worker == WEFT__LANE_OTHER ? "-"
						    : weft__label_thread(names, thread->stream, label, sizeof(label)));
}

static void print_threads(const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	struct cli_table table = {.titles = (const char *const[]){"<worker", "<thread", "CPU", "share", "samples",
								  "in polls", "outside", "CPU clock", "sampled of it"},
				  .n_columns = 9};
	char figure[CLI_FIGURE];
	size_t i, n = samples->n_threads < report->top ? samples->n_threads : report->top;
	struct weft__weight rest = {0, 0};

	cli_heading("CPU time by thread");
	for (i = 0; i < n; i++) {
		const struct weft__sampled_thread *thread = &samples->threads[i];
		bool compared = !report_no_measured(thread) && thread->measured_ns > 0;
		uint64_t in_ns = thread->where[WEFT__IN_POLL].ns;

		cell_thread(&table, report, thread);
		cell_weight(&table, thread->all, samples->all);
		cell_count(&table, thread->all.n);
		cli_cell(&table, "%s", cli_ns(in_ns, figure));
		cli_cell(&table, "%s", cli_ns(thread->all.ns - in_ns, figure));
		cli_cell(&table, "%s", compared ? cli_ns(thread->measured_ns, figure) : "not measured");
		cli_cell(&table, "%s",
			 compared ? cli_percent((double)thread->measured_sampled_ns / (double)thread->measured_ns,
						figure)
				  : "-");
	}
	cli_table_print(&table);
	for (; i < samples->n_threads; i++)
		weft__weight_add(&rest, samples->threads[i].all.n, samples->threads[i].all.ns);
	if (samples->n_threads > n)
		printf("and %zu more threads with %s\n", samples->n_threads - n, cli_ns(rest.ns, figure));
}

static void function_row(struct cli_table *table, const struct report *report, const struct weft__function_weight *row)
{
	const struct weft__function *function = &report->rec->frames.functions[row->function];
	char name[4 * FUNCTION_COLUMNS + 1], module[4 * MODULE_COLUMNS + 1];

	cell_weight(table, row->self, report->profile.all);
	cell_count(table, row->self.n);
	cell_weight(table, row->total, report->profile.all);
	cell_count(table, row->total.n);
	cli_cell(table, "%s%s", cli_function(function->name, FUNCTION_COLUMNS, name), function->kernel ? " [k]" : "");
	cli_cell(table, "%s", cli_function(cli_base(function->module), MODULE_COLUMNS, module));
}

static int most_total_first(const void *left, const void *right)
{
	const struct weft__function_weight *a = *(const struct weft__function_weight *const *)left;
	const struct weft__function_weight *b = *(const struct weft__function_weight *const *)right;

	if (a->total.ns != b->total.ns)
		return a->total.ns > b->total.ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

#define FUNCTION_TITLES                                                                                                \
	{                                                                                                              \
		.titles = (const char *const[]){"self",  "share",   "samples",   "total",                              \
						"share", "samples", "<function", "<module"},                           \
		.n_columns = 8                                                                                         \
	}

static void print_functions(const struct report *report)
{
	const struct weft__profile *profile = &report->profile;
	const struct weft__function_weight **order;
	struct cli_table by_self = FUNCTION_TITLES, by_total = FUNCTION_TITLES;
	char figure[CLI_FIGURE];
	size_t i;

	cli_heading("Functions by their own CPU time");
	for (i = 0; i < profile->n_functions && i < report->top && profile->functions[i].self.n > 0; i++)
		function_row(&by_self, report, &profile->functions[i]);
	cli_table_print(&by_self);
	if (profile->nameless.n)
		printf("%s more in no function: samples without a stack\n", cli_ns(profile->nameless.ns, figure));
	cli_heading("Functions by CPU time, with what they called");
	order = weft__calloc(profile->n_functions + 1, sizeof(*order));
	if (!order) {
		puts("(out of memory)");
		return;
	}
	for (i = 0; i < profile->n_functions; i++)
		order[i] = &profile->functions[i];
	qsort(order, profile->n_functions, sizeof(*order), most_total_first);
	for (i = 0; i < profile->n_functions && i < report->top; i++)
		function_row(&by_total, report, order[i]);
	cli_table_print(&by_total);
	weft__free(order);
}

static void print_nameless(const struct report *report, const struct weft__code_module *module)
{
	const char *path = module->def.path, *why = module->why ? module->why : "";
	char count[CLI_FIGURE];

	if (report->no_symbols && !why[0])
		why = "--no-symbols";
	printf("no name for %s place%s in %s", cli_count(module->unnamed, count), module->unnamed == 1 ? "" : "s",
	       path[0] ? cli_safe(path) : "unknown code");
	if (path[0] && strncmp(why, path, strlen(path)) == 0)
		fputs(cli_safe(why + strlen(path)), stdout);
	else if (why[0])
		printf(": %s", cli_safe(why));
	putchar('\n');
}

/* Modules without names, and why: the ones with most places first. */
static void print_nameless_modules(const struct report *report)
{
	const struct weft__frames *frames = &report->rec->frames;
	const struct weft__code_module *last = NULL;
	size_t i, turn;

	for (turn = 0; turn < MODULES_SHOWN; turn++) {
		const struct weft__code_module *most = NULL;

		for (i = 0; i < frames->n_modules; i++) {
			const struct weft__code_module *module = &frames->modules[i];

			if (module->unnamed == 0 || (last && (module->unnamed > last->unnamed ||
							      (module->unnamed == last->unnamed && module <= last))))
				continue;
			if (!most || module->unnamed > most->unnamed)
				most = module;
		}
		if (!most)
			return;
		print_nameless(report, most);
		last = most;
	}
}

static void print_short(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct cli_table table = {.titles = (const char *const[]){"<spawn location", "short polls", "together",
								  "CPU sampled", "share", "samples"},
				  .n_columns = 6};
	char figure[CLI_FIGURE];
	size_t i, n = 0;

	for (i = 0; i < r->n_places; i++)
		n += r->places[i].n_short > 0;
	if (n == 0 || r->samples.period_ns == 0)
		return;
	cli_heading("Polls shorter than the sampling period of %s, by spawn location",
		    cli_ns(r->samples.period_ns, figure));
	for (i = 0; i < r->n_places; i++) {
		const struct weft__place *place = &r->places[i];
		char file[WEFT__LABEL_BYTES];

		if (place->n_short == 0)
			continue;
		weft__label_file(&report->rec->names, place->id, file, sizeof(file));
		cli_cell(&table, "%.60s%s%.40s", weft__label_place(&report->rec->names, place->id), file[0] ? "  " : "",
			 cli_base(file));
		cell_count(&table, place->n_short);
		cli_cell(&table, "%s", cli_ns(place->short_ns, figure));
		cli_cell(&table, "%s", cli_ns(place->short_sampled.ns, figure));
		cli_cell(&table, "%s",
			 place->short_ns
				 ? cli_percent((double)place->short_sampled.ns / (double)place->short_ns, figure)
				 : "-");
		cell_count(&table, place->short_sampled.n);
	}
	cli_table_print(&table);
}

void report_cpu(const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	char ns[CLI_FIGURE], count[CLI_FIGURE];

	if (report_no_samples(report))
		return;
	cli_heading("CPU time: %s in %s samples", cli_ns(samples->all.ns, ns), cli_count(samples->all.n, count));
	print_where(report);
	if (samples->left_out.n)
		printf("%s more was not asked for\n", cli_ns(samples->left_out.ns, ns));
	if (samples->beyond_rows.n)
		printf("%s in %s samples are in no function below: more different stacks than are kept\n",
		       cli_ns(samples->beyond_rows.ns, ns), cli_count(samples->beyond_rows.n, count));
	print_threads(report);
	print_functions(report);
	print_nameless_modules(report);
	print_short(report);
}
