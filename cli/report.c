/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "page.h"
#include "print.h"

const char cli_report_help[] =
	"usage: weft report [OPTION...] PATH...\n"
	"\n"
	"Analyses segments (files, or all of a directory) and prints one page: what was recorded, what limits it, and "
	"what\n"
	"matters most, the worst first: long polls and what their time was spent on, who waited behind them, locks, "
	"calls\n"
	"and CPU time. Of several processes it is the page of the one that did the most; the others are rows.\n"
	"--full prints all tables, each recording (run of a process) in a section: polls by worker and spawn location, "
	"the\n"
	"longest ones with their stacks, waits, time off the CPU, CPU time by thread and function, delays from wake to "
	"poll,\n"
	"queue depths, the program's own events, what weft itself cost, and what was lost.\n"
	"\n"
	"  --full            all tables; on a terminal through $PAGER (less -R -F -X)\n"
	"  --no-pager        not through a pager\n"
	"  --by-package      CPU time by whose code it was: the program, its libraries, the system, the kernel, with "
	"versions\n"
	"  --top N           length of lists: findings (5); with --full worst polls, delays, functions and threads "
	"(10)\n"
	"  --from TIME       only what happened from TIME on, relative to the recording's start: 12.5, 12.5s, 300ms\n"
	"  --to TIME         ... and before TIME\n"
	"  --worker NAME     only polls and samples on this worker (demo/1) or thread; a shell pattern such as "
	"'demo/*'\n"
	"                    will do\n"
	"  --thread NAME     only polls and samples of the threads of this name, or the one of this tid; patterns too\n"
	"  --span ID         only polls, samples and waits of this span, of those whose local root it is, or of this "
	"trace: "
	"hex\n"
	"                    digits, up to 16 of a span, 32 of a trace\n"
	"  --label KEY=VALUE only those whose context has this label\n"
	"  --endpoint NAME   only those whose context has this endpoint; patterns too\n"
	"  --location NAME   only polls of tasks spawned at this location, and samples in them; patterns too\n"
	"  --pid PID         only the recordings of this process\n"
	"  --no-symbols      do not look for names of functions in program files and debug info, only in the segments\n"
	"  --json            one JSON document; all times in ns; what was not measured is null, with the reason\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft report ~/weft\n"
	"  weft report --full ~/weft\n"
	"  weft report --location handle_upload --top 3 ~/weft\n"
	"  weft report --full --worker 'demo/*' --from 12s --to 15s --top 30 DIR  where CPU time went in three "
	"seconds\n"
	"  weft report --json DIR | jq '.recordings[].cpu.functions[:5][] | [.function, .self_ns, .total_ns]'\n"
	"  weft report --json DIR | jq '.recordings[].polls.p99_ns'\n"
	"  weft report --endpoint 'POST /upload' DIR                          one kind of request: its polls, CPU, "
	"waits\n"
	"  weft report --span 00f067aa0ba902b7 DIR                            one request, by the id that tracing "
	"knows\n"
	"  weft report --json DIR | jq '.recordings[].longest_polls[0].breakdown'  the parts of the worst poll\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be read in full\n";

const char *report_no_longest(const struct report *report)
{
	const char *why = report_no_polls(report), *mode = weft__names_fact(&report->rec->names, "poll.mode");

	if (why || report->result->poll.n_longest)
		return why;
	if (mode && strcmp(mode, "caught") == 0)
		return "no poll had a sample or a long wait in it, and the others were only counted (mode caught)";
	return mode && strcmp(mode, "slow") == 0
		       ? "no poll was as long as mode slow asks for, and the others were only counted"
		       : "polls were only counted";
}

const char *report_no_wake(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__detail *d = &report->result->detail;

	if (report->result->n_kind[WEFT_KIND_WAKE] == 0)
		return "no wake events";
	return d->counted.ns && poll->begin_ns >= d->counted.ns ? "wakes were only counted at times" : NULL;
}

const char *report_no_poll_samples(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__samples *samples = &report->result->samples;
	const char *why = report_no_samples(report);

	if (poll->sampled.n > 0)
		return NULL;
	if (why && samples->left_out.n == 0)
		return why;
	if (samples->period_ns && poll->rank_ns < samples->period_ns)
		return "no sample fell into it: it was shorter than the sampling period";
	if (samples->period_ns && poll->rank_ns < 2 * samples->period_ns)
		return "no sample fell into it: it was about as long as the sampling period";
	if (poll->rank_ns < 2 * samples->longest_period_ns)
		return "no sample fell into it: fewer were taken, to stay within the budget";
	return "no sample fell into it: it was mostly off the CPU";
}

uint64_t report_poll_whole(const struct weft__poll *poll)
{
	return poll->rank_ns > poll->sampled.ns ? poll->rank_ns : poll->sampled.ns;
}

uint64_t report_unsampled(const struct weft__poll *poll)
{
	return poll->rank_ns > poll->sampled.ns ? poll->rank_ns - poll->sampled.ns : 0;
}

static void parse_filter(int c, struct report_opts *opts)
{
	switch (c) {
	case CLI_OPT_WORKER:
		opts->analysis.worker = optarg;
		break;
	case CLI_OPT_LOCATION:
		opts->analysis.location = optarg;
		break;
	case CLI_OPT_THREAD:
		opts->analysis.thread = optarg;
		break;
	case CLI_OPT_LABEL:
		opts->analysis.label = optarg;
		break;
	case CLI_OPT_ENDPOINT:
		opts->analysis.endpoint = optarg;
		break;
	}
}

static int parse(int argc, char **argv, struct report_opts *opts)
{
	static const struct option longs[] = {
		{"top", required_argument, NULL, CLI_OPT_TOP},
		{"from", required_argument, NULL, CLI_OPT_FROM},
		{"to", required_argument, NULL, CLI_OPT_TO},
		{"worker", required_argument, NULL, CLI_OPT_WORKER},
		{"location", required_argument, NULL, CLI_OPT_LOCATION},
		{"thread", required_argument, NULL, CLI_OPT_THREAD},
		{"span", required_argument, NULL, CLI_OPT_SPAN},
		{"label", required_argument, NULL, CLI_OPT_LABEL},
		{"endpoint", required_argument, NULL, CLI_OPT_ENDPOINT},
		{"no-symbols", no_argument, NULL, CLI_OPT_NO_SYMBOLS},
		{"pid", required_argument, NULL, CLI_OPT_PID},
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"full", no_argument, NULL, CLI_OPT_FULL},
		{"no-pager", no_argument, NULL, CLI_OPT_NO_PAGER},
		{"by-package", no_argument, NULL, CLI_OPT_BY_PACKAGE},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_report_help, CLI_NO_PATH};
	uint64_t number;
	int code = CLI_OK, c;

	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		switch (c) {
		case CLI_OPT_TOP:
			if (!cli_parse_number(optarg, 100000, &number) || number == 0)
				return cli_usage(argv[0], "--top takes a number from 1 to 100000, not '%s'", optarg);
			opts->analysis.top = number;
			break;
		case CLI_OPT_FROM:
			if (!cli_parse_time(optarg, &opts->from_ns))
				return cli_usage(argv[0], "--from takes a time like 12.5s or 300ms, not '%s'", optarg);
			break;
		case CLI_OPT_TO:
			if (!cli_parse_time(optarg, &opts->to_ns))
				return cli_usage(argv[0], "--to takes a time like 12.5s or 300ms, not '%s'", optarg);
			break;
		case CLI_OPT_SPAN:
			if (!cli_parse_span(optarg, &opts->analysis.span, &opts->analysis.trace_hi,
					    &opts->analysis.trace_lo))
				return cli_usage(argv[0],
						 "--span takes the hex digits of a span (up to 16) or a trace (up to "
						 "32), not '%s'",
						 optarg);
			break;
		case CLI_OPT_NO_SYMBOLS:
			opts->no_symbols = true;
			break;
		case CLI_OPT_PID:
			if (!cli_parse_number(optarg, UINT32_MAX, &opts->pid))
				return cli_usage(argv[0], "--pid takes the number of a process, not '%s'", optarg);
			opts->has_pid = true;
			break;
		case CLI_OPT_JSON:
			opts->json = true;
			break;
		case CLI_OPT_BY_PACKAGE:
			opts->by_package = report_packages;
			break;
		case CLI_OPT_FULL:
			opts->full = true;
			break;
		case CLI_OPT_NO_PAGER:
			opts->no_pager = true;
			break;
		default:
			parse_filter(c, opts);
		}
	}
	if (code != CLI_OK)
		return code;
	if (opts->analysis.label && !strchr(opts->analysis.label, '='))
		return cli_usage(argv[0], "--label takes KEY=VALUE, not '%s'", opts->analysis.label);
	if (opts->to_ns <= opts->from_ns)
		return cli_usage(argv[0], "--to must lie behind --from");
	return CLI_OK;
}

/* A name that nothing has is no failure, but it may be a mistake. */
static void check_name(const struct weft__recordings *list, const struct report_opts *opts, enum report_names_of of,
		       const char *option, const char *pattern)
{
	struct report_names others = {0};
	struct report_text text = {.n = 0};
	size_t i;

	for (i = 0; pattern && i < list->n; i++)
		if (report_chosen(&list->all[i], opts) && report_has_name(&list->all[i].names, of, pattern, &others))
			return;
	for (i = 0; i < others.n; i++)
		report_say(&text, "%s%s", i ? ", " : "", others.at[i]);
	if (pattern && others.n)
		cli_warn("%s '%s': nothing here is called so; there are: %s", option, pattern, cli_safe(text.at));
	else if (pattern)
		cli_warn("%s '%s': nothing here has a name of that kind", option, pattern);
}

static void check_window(const struct weft__recordings *list, const struct report_opts *opts)
{
	uint64_t longest_ns = 0;
	char figure[CLI_FIGURE];
	size_t i;

	for (i = 0; i < list->n; i++) {
		const struct weft__recording *rec = &list->all[i];

		if (report_chosen(rec, opts) && weft__recording_since(rec, rec->last_ns) > longest_ns)
			longest_ns = weft__recording_since(rec, rec->last_ns);
	}
	if (opts->from_ns > longest_ns)
		cli_warn("--from lies behind the end: %s were recorded", cli_ns(longest_ns, figure));
}

static int report_all(struct weft__recordings *list, const struct report_opts *opts, int code)
{
	size_t i, n = 0;

	for (i = 0; i < list->n; i++)
		n += report_chosen(&list->all[i], opts);
	if (n == 0)
		return cli_fail("no recording of process %" PRIu64 " here; weft inspect PATH lists those there are",
				opts->pid);
	check_name(list, opts, REPORT_LOCATIONS, "--location", opts->analysis.location);
	check_name(list, opts, REPORT_WORKERS, "--worker", opts->analysis.worker);
	check_name(list, opts, REPORT_THREADS, "--thread", opts->analysis.thread);
	check_window(list, opts);
	return opts->json ? report_each_json(list, opts, code) : report_each_text(list, opts, n, code);
}

/* What was asked for, for the head of the page. */
static void say_asked(struct report_text *text, const struct report_opts *opts)
{
	const struct weft__analysis_opts *of = &opts->analysis;
	const struct {
		const char *title, *value;
	} names[] = {
		{"worker", of->worker}, {"location", of->location}, {"thread", of->thread},
		{"label", of->label},   {"endpoint", of->endpoint},
	};
	char figure[CLI_FIGURE];
	size_t i;

	text->n = 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].value)
			report_say(text, "%s%s %.80s", text->n ? ", " : "", names[i].title, cli_safe(names[i].value));
	if (of->span)
		report_say(text, "%sspan %" PRIx64, text->n ? ", " : "", of->span);
	if (of->trace_hi || of->trace_lo)
		report_say(text, "%strace %" PRIx64 "%016" PRIx64, text->n ? ", " : "", of->trace_hi, of->trace_lo);
	if (opts->from_ns)
		report_say(text, "%sfrom %s on", text->n ? ", " : "", cli_moment(opts->from_ns, figure));
	if (opts->to_ns != UINT64_MAX)
		report_say(text, "%sup to %s", text->n ? ", " : "", cli_moment(opts->to_ns, figure));
}

int cli_report(int argc, char **argv)
{
	static struct report_short shorts;
	struct report_opts opts = {.to_ns = UINT64_MAX, .shorts = &shorts};
	struct weft__recordings list = {0};
	int code = parse(argc, argv, &opts);

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	page_origin.n_paths = argc - optind;
	page_origin.paths = argv + optind;
	say_asked(&page_origin.asked, &opts);
	report_short_load(&shorts, argc - optind, argv + optind);
	if (report_short_only(&shorts, argc - optind, argv + optind)) {
		report_short_alone(&shorts, opts.json);
		return CLI_OK;
	}
	code = cli_load(&list, argc - optind, argv + optind);
	if (code != CLI_FAILED && opts.full && !opts.json && !opts.no_pager)
		page_through_pager();
	if (code != CLI_FAILED)
		code = report_all(&list, &opts, code);
	page_end();
	weft__recordings_fini(&list);
	return code;
}
