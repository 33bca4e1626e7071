/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPU time went, as text. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "page.h"
#include "print.h"
#include "report.h"

#define MODULES_SHOWN 5

static double share_of(struct weft__weight part, struct weft__weight whole)
{
	return whole.ns ? (double)part.ns / (double)whole.ns : whole.n ? (double)part.n / (double)whole.n : 0;
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
		printf("%s thread%s ended without a sample, with %s of CPU%s\n", cli_count(r->cpu_clock.threads, count),
		       r->cpu_clock.threads == 1 ? "" : "s", cli_ns(r->cpu_clock.threads_ns, ns),
		       why || report_cpu_off(report) ? "" : ", for which samples of others like them stand");
	else if (r->cpu_clock.threads)
		printf("%s thread%s ended without a sample\n", cli_count(r->cpu_clock.threads, count),
		       r->cpu_clock.threads == 1 ? "" : "s");
}

static void print_threads(const struct report *report)
{
	REPORT_VIEW(view, WEFT__COL_THREAD_CPU_SUMMARY_WORKER, WEFT__COL_THREAD_CPU_SUMMARY_THREAD,
		    WEFT__COL_THREAD_CPU_SUMMARY_CPU, WEFT__COL_THREAD_CPU_SUMMARY_SHARE,
		    WEFT__COL_THREAD_CPU_SUMMARY_SAMPLES, WEFT__COL_THREAD_CPU_SUMMARY_IN_POLLS_CPU,
		    WEFT__COL_THREAD_CPU_SUMMARY_OUTSIDE, WEFT__COL_THREAD_CPU_SUMMARY_MEASURED,
		    WEFT__COL_THREAD_CPU_SUMMARY_OF_IT) = {REPORT_OF(view), .rest = WEFT__COL_THREAD_CPU_SUMMARY_CPU,
							   .more = " threads"};

	REPORT_VIEW(plain, WEFT__COL_THREAD_CPU_SUMMARY_THREAD, WEFT__COL_THREAD_CPU_SUMMARY_CPU,
		    WEFT__COL_THREAD_CPU_SUMMARY_SHARE, WEFT__COL_THREAD_CPU_SUMMARY_SAMPLES,
		    WEFT__COL_THREAD_CPU_SUMMARY_MEASURED, WEFT__COL_THREAD_CPU_SUMMARY_OF_IT) = {
		REPORT_OF(plain), .rest = WEFT__COL_THREAD_CPU_SUMMARY_CPU, .more = " threads"};

	cli_heading("CPU time by thread");
	report_print(report, WEFT__TABLE_THREAD_CPU_SUMMARY, page_has_loop(report) ? &view : &plain);
}

#define FUNCTION_COLUMNS                                                                                               \
	WEFT__COL_FUNCTION_SUMMARY_SELF, WEFT__COL_FUNCTION_SUMMARY_SELF_SHARE,                                        \
		WEFT__COL_FUNCTION_SUMMARY_SELF_SAMPLES, WEFT__COL_FUNCTION_SUMMARY_TOTAL,                             \
		WEFT__COL_FUNCTION_SUMMARY_TOTAL_SHARE, WEFT__COL_FUNCTION_SUMMARY_TOTAL_SAMPLES,                      \
		WEFT__COL_FUNCTION_SUMMARY_FUNCTION, WEFT__COL_FUNCTION_SUMMARY_MODULE

static void print_functions(const struct report *report)
{
	REPORT_VIEW(by_self, FUNCTION_COLUMNS) = {REPORT_OF(by_self), .need = WEFT__COL_FUNCTION_SUMMARY_SELF_SAMPLES,
						  .more = " functions"};
	REPORT_VIEW(by_total, FUNCTION_COLUMNS) = {REPORT_OF(by_total), .by = WEFT__COL_FUNCTION_SUMMARY_TOTAL,
						   .more = " functions"};
	struct weft__summary functions;
	char figure[CLI_FIGURE];

	report_summary(report, WEFT__TABLE_FUNCTION_SUMMARY, &functions);
	cli_heading("Functions by their own CPU time");
	report_view(report, &functions, &by_self);
	if (report->profile.nameless.n)
		printf("%s more in no function: samples without a stack\n",
		       cli_ns(report->profile.nameless.ns, figure));
	cli_heading("Functions by CPU time, with what they called");
	report_view(report, &functions, &by_total);
	weft__summary_fini(&functions);
}

static void print_nameless(const struct report *report, const struct weft__code_module *module)
{
	const char *path = module->def.path, *why = module->why ? module->why : "";
	char count[CLI_FIGURE];

	if (report->no_symbols && !why[0])
		why = "--no-symbols";
	printf("no name for %s address%s in %s", cli_count(module->unnamed, count), module->unnamed == 1 ? "" : "es",
	       path[0] ? cli_safe(path) : "unknown code");
	if (path[0] && strncmp(why, path, strlen(path)) == 0)
		fputs(cli_safe(why + strlen(path)), stdout);
	else if (why[0])
		printf(": %s", cli_safe(why));
	putchar('\n');
}

/* Modules without names, and why: the ones with most addresses first. */
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

void report_cpu(const struct report *report)
{
	REPORT_VIEW(where, WEFT__COL_CPU_SUMMARY_CPU, WEFT__COL_CPU_SUMMARY_SHARE, WEFT__COL_CPU_SUMMARY_SAMPLES,
		    WEFT__COL_CPU_SUMMARY_MEANING) = {REPORT_OF(where), .all = true,
						      .need = WEFT__COL_CPU_SUMMARY_SAMPLES};
	const struct weft__samples *samples = &report->result->samples;
	char ns[CLI_FIGURE], count[CLI_FIGURE];

	if (report_no_samples(report))
		return;
	cli_heading("CPU time: %s in %s samples", cli_ns(samples->all.ns, ns), cli_count(samples->all.n, count));
	if (page_has_loop(report))
		report_print(report, WEFT__TABLE_CPU_SUMMARY, &where);
	if (samples->left_out.n)
		printf("%s more was not asked for\n", cli_ns(samples->left_out.ns, ns));
	if (samples->beyond_rows.n)
		printf("%s in %s samples are in no function below: more different stacks than are kept\n",
		       cli_ns(samples->beyond_rows.ns, ns), cli_count(samples->beyond_rows.n, count));
	print_threads(report);
	print_functions(report);
	print_nameless_modules(report);
}
