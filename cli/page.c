/* SPDX-License-Identifier: Apache-2.0 */
/* The first page as text. It fits a screen: at most PAGE_SHOWN findings of two to four lines each, in the columns of
 * the terminal. */
#include "page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "cli.h"

#define WIDTH 100 /* where there is no terminal */
#define WIDTH_MOST 120
#define WIDTH_LEAST 60
#define INDENT 4
#define FUNCTIONS 4
#define RATE_SAMPLES 10 /* fewer say nothing of a rate */
#define COMMAND 40      /* bytes of the command line */

struct page_origin page_origin;

size_t page_width(void)
{
	struct winsize size = {0};

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH;
	return size.ws_col < WIDTH_LEAST ? WIDTH_LEAST : size.ws_col > WIDTH_MOST ? WIDTH_MOST : size.ws_col;
}

void page_wrap(size_t column, size_t indent, const char *text)
{
	size_t width = page_width(), begun = column;

	while (*text) {
		size_t n = strcspn(text, " "), columns;
		char word[512];

		/* A figure and its unit stay together: "41.1 ms", "52 %". */
		if (n && text[n] == ' ' && text[0] >= '0' && text[0] <= '9' && text[n + 1] && text[n + 1] != '(' &&
		    strcspn(text + n + 1, " ") <= 3)
			n += 1 + strcspn(text + n + 1, " ");
		snprintf(word, sizeof(word), "%.*s", (int)(n < sizeof(word) ? n : sizeof(word) - 1), text);
		columns = cli_columns(word);
		if (column > begun && column + 1 + columns > width) {
			printf("\n%*s", (int)indent, "");
			column = begun = indent;
		} else if (column > begun) {
			putchar(' ');
			column++;
		}
		fputs(word, stdout);
		column += columns;
		text += n;
		text += strspn(text, " ");
	}
	putchar('\n');
}

bool page_has_loop(const struct report *report)
{
	const struct weft__result *r = report->result;

	return r->polls.n > 0 || r->poll.open > 0 ||
	       r->n_kind[WEFT_KIND_POLL_BEGIN] + r->n_kind[WEFT_KIND_POLL_NEXT] + r->n_kind[WEFT_KIND_POLL] +
			       r->n_kind[WEFT_KIND_POLL_COUNT] >
		       0;
}

bool page_has_wakes(const struct report *report)
{
	const struct weft__result *r = report->result;

	return r->delays.n > 0 || r->n_kind[WEFT_KIND_WAKE] + r->detail.wakes > 0;
}

bool page_has_queues(const struct report *report)
{
	const struct weft__result *r = report->result;
	size_t i;

	for (i = 0; i < r->lane.n_lanes; i++)
		if (r->lane.lanes[i].depths.n > 0)
			return true;
	return r->custom.n_queues > 0;
}

uint64_t page_cpu_ns(const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	uint64_t ns = 0, sampled = samples->all.ns + samples->left_out.ns;
	size_t i;

	for (i = 0; i < samples->n_threads; i++)
		ns += samples->threads[i].measured_ns > samples->threads[i].all.ns ? samples->threads[i].measured_ns
										   : samples->threads[i].all.ns;
	ns = ns > sampled ? ns : sampled;
	return ns > report->result->cpu_clock.process_ns ? ns : report->result->cpu_clock.process_ns;
}

/* Threads of the program that were recorded. One may have several ids, as after recovery. */
static size_t threads_of(const struct report *report)
{
	const struct weft__names *names = &report->rec->names;
	const struct weft_thread *threads = names->threads.rows;
	struct weft__map seen = {0};
	size_t i;

	for (i = 0; i < names->threads.n; i++)
		if (threads[i].tid && strncmp(threads[i].name, "weft", 4) != 0 &&
		    weft__map_put(&seen, threads[i].tid, 1) < 0)
			break;
	i = seen.n;
	weft__map_fini(&seen);
	return i;
}

/* Of threads that only ran, and ended without a sample, nothing is there but their number. Some of them may be among
 * those that were recorded. */
static void say_threads(struct report_text *text, const struct report *report)
{
	const struct weft__result *r = report->result;
	uint64_t recorded = threads_of(report), ran = r->cpu_clock.threads;
	char count[CLI_FIGURE];
	size_t i;

	for (i = 0; i < r->samples.n_threads; i++)
		ran += r->samples.threads[i].all.n > 0;
	if (r->cpu_clock.threads && ran > 2 * recorded)
		report_say(text, "at least %s threads, ", cli_count(ran, count));
	else if (recorded)
		report_say(text, "%s thread%s%s, ", cli_count(recorded, count), recorded == 1 ? "" : "s",
			   r->cpu_clock.threads && ran > recorded ? " recorded" : "");
}

/* The rate that was reached, and if it is far from it the one that was asked for. */
static void say_samples(struct report_text *text, const struct report *report)
{
	const struct weft__samples *samples = &report->result->samples;
	const char *hz = weft__names_fact(&report->rec->names, "sample.hz"), *why = report_no_samples(report);
	double rate = samples->all.ns ? (double)samples->all.n * 1e9 / (double)samples->all.ns : 0;
	uint64_t asked = hz ? strtoull(hz, NULL, 10) : 0;
	char count[CLI_FIGURE];

	if (why) {
		report_say(text, "no CPU samples: %s", cli_safe(why));
		return;
	}
	report_say(text, "%s CPU sample%s", cli_count(samples->all.n, count), samples->all.n == 1 ? "" : "s");
	if (samples->all.n >= RATE_SAMPLES)
		report_say(text, " (%.0f per second of CPU time", rate);
	if (asked && samples->all.n >= RATE_SAMPLES && rate < 0.8 * (double)asked)
		report_say(text, ", not the %" PRIu64 " that were asked for", asked);
	if (samples->all.n >= RATE_SAMPLES)
		report_say(text, ")");
}

uint64_t page_cost_ns(const struct report *report, uint64_t *span_ns)
{
	const struct weft__cost *costs = report->result->off.costs;
	uint64_t ns = 0;
	size_t i;

	for (i = 0, *span_ns = 0; i < WEFT__COSTS; i++) {
		ns += costs[i].cpu_ns;
		*span_ns = costs[i].span_ns > *span_ns ? costs[i].span_ns : *span_ns;
	}
	return ns;
}

bool page_over_budget(const struct report *report)
{
	const char *budget = weft__names_fact(&report->rec->names, "budget.ppm");
	uint64_t span_ns, cost_ns = page_cost_ns(report, &span_ns), of_ns = page_cpu_ns(report), ppm;

	if (!budget || !cli_parse_number(budget, UINT32_MAX, &ppm))
		return false;
	of_ns = of_ns > span_ns / 2 ? of_ns : span_ns / 2; /* as the governor has it */
	return (double)cost_ns > (double)of_ns * (double)ppm / 1e6;
}

static void say_cost(struct report_text *text, const struct report *report)
{
	uint64_t span_ns, cost_ns = page_cost_ns(report, &span_ns), cpu_ns = page_cpu_ns(report);
	char figure[CLI_FIGURE], share[CLI_FIGURE];

	if (!cost_ns)
		return;
	report_say(text, "; weft itself used %s", cli_ns(cost_ns, figure));
	if (cpu_ns > cost_ns)
		report_say(text, ", %s of the program's", cli_percent((double)cost_ns / (double)cpu_ns, share));
}

/* A command line without the folder that the program is in. */
static const char *command_of(const char *line)
{
	const char *end = line + strcspn(line, " "), *at = end;

	while (at > line && at[-1] != '/')
		at--;
	return at;
}

/* demo-server (pid 27441) for 4.06 s: 4 threads, 1.75 s of CPU, 159 CPU samples, 91 per second of CPU time */
static void print_head(const struct report *report)
{
	const struct weft__names *names = &report->rec->names;
	const char *name = weft__names_fact(names, "service.name"), *pid = weft__names_fact(names, "process.pid");
	const char *line = weft__names_fact(names, "process.cmdline");
	struct report_text text = {.n = 0};
	char figure[CLI_FIGURE];
	uint64_t cpu_ns = page_cpu_ns(report);

	name = name && name[0] ? name : "recording";
	printf("%s%s%s ", cli_style(CLI_BOLD), cli_safe(name), cli_style(CLI_PLAIN));
	report_say(&text, "(pid %s", pid && pid[0] ? cli_safe(pid) : "not known");
	line = line ? command_of(line) : "";
	if (line[0] && strcmp(line, name) != 0)
		report_say(&text, ": %.*s%s", COMMAND, cli_safe(line), strlen(line) > COMMAND ? "..." : "");
	report_say(&text, ") for %s", cli_ns(report_span_ns(report), figure));
	report_say(&text, ": ");
	say_threads(&text, report);
	if (cpu_ns)
		report_say(&text, "%s of CPU, ", cli_ns(cpu_ns, figure));
	say_samples(&text, report);
	say_cost(&text, report);
	page_wrap(cli_columns(cli_safe(name)) + 1, INDENT, text.at);
}

/* 2 workers, 142,467 polls: p50 4.64 us, p99 45.3 us, longest 50.1 ms; wake to poll p99 569 us */
static void print_loop(const struct report *report)
{
	const struct weft__result *r = report->result;
	struct report_text text = {.n = 0};
	char count[CLI_FIGURE], figure[3][CLI_FIGURE];
	size_t i, workers = 0;
	bool ticks = page_only_ticks(report);

	if (r->polls.n == 0)
		return;
	for (i = 0; i < r->lane.n_lanes; i++)
		workers += r->lane.lanes[i].polls.n > 0;
	report_say(&text, "%zu %s%s, %s %s: half took up to %s, 99 %% up to %s, the longest %s", workers,
		   ticks ? "event loop" : "worker", workers == 1 ? "" : "s",
		   cli_count(r->polls.n + r->detail.polls_untimed, count),
		   r->polls.n == 1 ? (ticks ? "tick" : "poll") : (ticks ? "ticks" : "polls"),
		   cli_ns(weft__hist_at(&r->polls, 5000), figure[0]), cli_ns(weft__hist_at(&r->polls, 9900), figure[1]),
		   cli_ns(r->polls.max, figure[2]));
	if (r->delays.n)
		report_say(&text, "; from wake to poll 99 %% took up to %s, the longest %s",
			   cli_ns(weft__hist_at(&r->delays, 9900), figure[0]), cli_ns(r->delays.max, figure[1]));
	page_wrap(0, INDENT, text.at);
}

static void print_dump(const struct report *report)
{
	const char *why = weft__names_fact(&report->rec->names, "dump.why");
	struct report_text text = {.n = 0};

	if (!why)
		return;
	report_say(&text, "dump %" PRIu64 " of a flight recorder: %.100s", report->rec->dump - 1, cli_safe(why));
	page_wrap(0, INDENT, text.at);
}

static void print_asked(void)
{
	if (!page_origin.asked.n)
		return;
	fputs("Only what was asked for: ", stdout);
	page_wrap(strlen("Only what was asked for: "), INDENT, page_origin.asked.at);
}

static void print_limits(const struct report *report)
{
	struct report_text text = {.n = 0};

	if (!page_say_limits(&text, report))
		return;
	report_say(&text, ".");
	printf("%sLimits:%s ", cli_style(CLI_YELLOW), cli_style(CLI_PLAIN));
	page_wrap(strlen("Limits: "), INDENT, text.at);
}

/* 4 times, 201 ms in all, longest 50.1 ms (41.1 ms on CPU, 8.97 ms preempted) at +3.158884 s, on demo/0, demo/1 */
static void say_numbers(struct report_text *text, const struct report *report, const struct page_finding *f)
{
	char figure[CLI_FIGURE];

	if (f->kind == PAGE_CPU) {
		report_say(text, "%s, %s, in ", cli_ns(f->total_ns, figure), f->worst.at);
		report_say(text, "%s sample%s", cli_count(f->count, figure), f->count == 1 ? "" : "s");
		report_say(text, " of %s", f->who.at);
		return;
	}
	if (f->kind == PAGE_DEADLOCK || f->kind == PAGE_PENDING) {
		report_say(text, "%s until the recording ended,", cli_ns(f->worst_ns, figure));
	} else if (f->count > 1) {
		report_say(text, "%s%s times", f->more ? "at least " : "", cli_count(f->count, figure));
		report_say(text, ", %s in all", cli_ns(f->total_ns, figure));
		if (f->worst_ns)
			report_say(text, ", the longest %s", cli_ns(f->worst_ns, figure));
	} else {
		report_say(text, "once, %s", cli_ns(f->total_ns, figure));
	}
	if (f->worst_at_ns)
		report_say(text, " %s +%.3f s", f->kind == PAGE_DEADLOCK || f->kind == PAGE_PENDING ? "from" : "at",
			   (double)report_since_start(report, f->worst_at_ns) / 1e9);
	if (f->worst.n)
		report_say(text, ": %s", f->worst.at);
	if (f->who.n)
		report_say(text, "; on %s", f->who.at);
}

static void print_finding(const struct report *report, const struct page_finding *f, size_t number)
{
	struct report_text text = {.n = 0};
	char count[CLI_FIGURE], figure[CLI_FIGURE];

	printf("%2zu  %s", number, cli_style(f->kind == PAGE_DEADLOCK ? CLI_RED : CLI_BOLD));
	page_wrap(INDENT, INDENT, f->title.at);
	fputs(cli_style(CLI_PLAIN), stdout);
	say_numbers(&text, report, f);
	printf("%*s", INDENT, "");
	page_wrap(INDENT, INDENT, text.at);
	if (!f->n_behind)
		return;
	text.n = 0;
	report_say(&text, "behind %s waited %s poll%s (%s), ", f->count == 1 ? "it" : "them",
		   cli_count(f->n_behind, count), f->n_behind == 1 ? "" : "s", f->behind.at);
	report_say(&text, "%s in all", cli_ns(f->behind_ns, figure));
	report_say(&text, ", up to %s each", cli_ns(f->behind_worst_ns, figure));
	printf("%*s", INDENT, "");
	page_wrap(INDENT, INDENT, text.at);
}

static void print_quiet(const struct report *report)
{
	const struct weft__result *r = report->result;
	char figure[CLI_FIGURE], longest[CLI_FIGURE];

	if (r->n_events == 0)
		puts("nothing was recorded in this time");
	else if (r->polls.n)
		printf("No poll and no wait for a lock took %s or longer: the longest poll took %s.\n",
		       cli_ns(PAGE_LONG_NS, figure), cli_ns(r->polls.max, longest));
	else
		printf("Nothing to report: no sample, and no wait of %s or longer in what was recorded.\n",
		       cli_ns(PAGE_LONG_NS, figure));
}

static void print_functions(const struct report *report)
{
	struct report_text text = {.n = 0};

	if (!page_has_loop(report) || !page_say_functions(&text, report, FUNCTIONS))
		return;
	printf("\n%sCPU time:%s ", cli_style(CLI_BOLD), cli_style(CLI_PLAIN));
	page_wrap(strlen("CPU time: "), INDENT, text.at);
}

static void print_nameless(const struct report *report)
{
	struct report_text text = {.n = 0};

	if (!page_say_nameless(&text, report))
		return;
	putchar('\n');
	page_wrap(0, INDENT, text.at);
}

void page_print(const struct report *report)
{
	struct page_findings *list = page_findings(report);
	size_t i, most = report->top != 10 ? report->top : PAGE_SHOWN;

	print_head(report);
	print_loop(report);
	print_dump(report);
	print_asked();
	print_limits(report);
	if (!list) {
		puts("(out of memory: the findings are missing)");
		return;
	}
	putchar('\n');
	for (i = 0; i < list->n && i < most; i++)
		print_finding(report, &list->at[i], i + 1);
	if (list->n == 0)
		print_quiet(report);
	else if (list->n > i)
		printf("%*sand %zu lesser one%s\n", INDENT, "", list->n - i, list->n - i == 1 ? "" : "s");
	print_functions(report);
	print_nameless(report);
	weft__free(list);
}

const char *page_query(const struct report *report)
{
	struct page_findings *list = page_findings(report);
	const char *query = list && list->n ? list->at[0].query : NULL;

	weft__free(list);
	return query;
}

void page_print_more(const char *query)
{
	struct report_text paths = {.n = 0};
	int i;

	putchar('\n');
	if (page_origin.removed) {
		puts("More: weft run -o DIR keeps the recording; weft report --full DIR has all tables");
		return;
	}
	for (i = 0; i < page_origin.n_paths && i < 3; i++)
		report_say(&paths, " %s", cli_safe(page_origin.paths[i]));
	if (page_origin.n_paths > i)
		report_say(&paths, " ...");
	printf("More: weft report --full%s\n", paths.at);
	if (query)
		printf("      weft query --run %s%s\n", query, paths.at);
	printf("      weft view%s\n", paths.at);
}
