/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "print.h"

const char cli_report_help[] =
	"usage: weft report [OPTION...] PATH...\n"
	"\n"
	"Analyses segments (files, or all of a directory) and prints how long polls took per worker and spawn\n"
	"location; the longest ones with what their time was spent on (on the CPU and in what, blocked and in what "
	"call,\n"
	"waiting for what lock and who held it, preempted) and who woke them; waits; time off the CPU; where CPU time\n"
	"went by thread, function and location; delays from wake to poll, how busy workers were, queue depths, tasks, "
	"the\n"
	"program's own events, what weft itself cost, and what was lost. Each recording (run of a process) is a "
	"section.\n"
	"\n"
	"  --top N           length of the lists of worst polls, delays, functions and threads (10)\n"
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
	"  weft report --location handle_upload --top 3 ~/weft\n"
	"  weft report --worker 'demo/*' --from 12s --to 15s --top 30 DIR     where CPU time went in three seconds\n"
	"  weft report --json DIR | jq '.recordings[].cpu.functions[:5][] | [.function, .self_ns, .total_ns]'\n"
	"  weft report --json DIR | jq '.recordings[].polls.p99_ns'\n"
	"  weft report --endpoint 'POST /upload' DIR                          one kind of request: its polls, CPU, "
	"waits\n"
	"  weft report --span 00f067aa0ba902b7 DIR                            one request, by the id that tracing "
	"knows\n"
	"  weft report --json DIR | jq '.recordings[].longest_polls[0].story'  the parts of the worst poll\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be read in full\n";

const char *report_no_polls(const struct report *report)
{
	const struct weft__result *r = report->result;

	if (r->polls.n > 0)
		return NULL;
	return r->n_kind[WEFT_KIND_POLL_BEGIN] + r->n_kind[WEFT_KIND_POLL_END] + r->n_kind[WEFT_KIND_POLL_NEXT] +
			       r->n_kind[WEFT_KIND_POLL] + r->n_kind[WEFT_KIND_POLL_COUNT]
		       ? "no poll that was asked for ended here"
		       : "no poll events";
}

const char *report_no_longest(const struct report *report)
{
	const char *why = report_no_polls(report), *mode = weft__names_fact(&report->rec->names, "poll.mode");

	if (why || report->result->n_longest)
		return why;
	if (mode && strcmp(mode, "caught") == 0)
		return "no poll had a sample or a long wait in it, and the others were only counted (mode caught)";
	return mode && strcmp(mode, "slow") == 0
		       ? "no poll was as long as mode slow asks for, and the others were only counted"
		       : "polls were only counted";
}

const char *report_no_delays(const struct report *report)
{
	const struct weft__result *r = report->result;

	if (r->delays.n > 0)
		return NULL;
	if (r->told.n > 0)
		return "not all polls are told one by one, so that which wake was whose is not known";
	return r->n_kind[WEFT_KIND_WAKE] == 0 ? "no wake events" : "no poll that was asked for follows a wake";
}

const char *report_no_wake(const struct report *report, const struct weft__poll *poll)
{
	const struct weft__detail *d = &report->result->detail;

	if (report->result->n_kind[WEFT_KIND_WAKE] == 0)
		return "no wake events";
	return d->counted.ns && poll->begin_ns >= d->counted.ns ? "wakes were only counted at times" : NULL;
}

const char *report_no_busy(const struct report *report, const struct weft__lane *lane)
{
	if (lane->observed_ns == 0)
		return "no time in which the thread was observed";
	if (lane->told.n > 0 || lane->counted)
		return "not all polls are told one by one";
	return report->result->n_kind[WEFT_KIND_POLL_BEGIN] + report->result->n_kind[WEFT_KIND_POLL_NEXT] == 0 &&
			       lane->busy_ns == 0
		       ? "no poll events"
		       : NULL;
}

const char *report_no_parked(const struct weft__lane *lane)
{
	if (lane->observed_ns == 0)
		return "no time in which the thread was observed";
	return lane->n_park_events == 0 && lane->parked_ns == 0 ? "no park events" : NULL;
}

const char *report_no_cpu(const struct weft__lane *lane)
{
	return lane->sched_ns == 0 ? "fewer than two readings of the thread's CPU time" : NULL;
}

const char *report_no_local_queue(const struct weft__lane *lane)
{
	return lane->depths.n == 0 ? "the runtime does not tell the depth of local queues" : NULL;
}

const char *report_no_global_queue(const struct report *report)
{
	return report->result->n_queues == 0 ? "no queue events: the runtime has no queue callback" : NULL;
}

const char *report_no_alive(const struct report *report)
{
	return report->result->tasks_untracked ? "more tasks at one time than the analysis keeps" : NULL;
}

const char *report_no_samples(const struct report *report)
{
	const struct weft__names *names = &report->rec->names;
	const char *engine = weft__names_fact(names, "sample.engine"), *why;

	if (report->result->samples.all.n > 0)
		return NULL;
	if (report->result->samples.left_out.n > 0)
		return "no sample that was asked for";
	why = weft__names_fact(names, "degraded.sampling");
	if (why && why[0])
		return why;
	if (!engine || !engine[0])
		return "sampling was off";
	if (strcmp(engine, "off") == 0 || strcmp(engine, "none") == 0)
		return "sampling was off";
	return "no thread used enough CPU for a sample";
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

const char *report_no_measured(const struct weft__sampled_thread *thread)
{
	return thread->measured_span_ns == 0 ? "fewer than two readings of the thread's CPU time" : NULL;
}

uint64_t report_poll_whole(const struct weft__poll *poll)
{
	return poll->rank_ns > poll->sampled.ns ? poll->rank_ns : poll->sampled.ns;
}

uint64_t report_unsampled(const struct weft__poll *poll)
{
	return poll->rank_ns > poll->sampled.ns ? poll->rank_ns - poll->sampled.ns : 0;
}

static bool parse_filter(int c, struct report_opts *opts)
{
	switch (c) {
	case CLI_OPT_WORKER:
		opts->analysis.worker = optarg;
		return true;
	case CLI_OPT_LOCATION:
		opts->analysis.location = optarg;
		return true;
	case CLI_OPT_THREAD:
		opts->analysis.thread = optarg;
		return true;
	case CLI_OPT_LABEL:
		opts->analysis.label = optarg;
		return true;
	case CLI_OPT_ENDPOINT:
		opts->analysis.endpoint = optarg;
		return true;
	default:
		return false;
	}
}

static bool parse_hex(const char *text, size_t n, uint64_t *ret)
{
	size_t i;

	for (i = 0, *ret = 0; i < n; i++) {
		int digit = text[i] >= '0' && text[i] <= '9'   ? text[i] - '0'
			    : text[i] >= 'a' && text[i] <= 'f' ? text[i] - 'a' + 10
			    : text[i] >= 'A' && text[i] <= 'F' ? text[i] - 'A' + 10
							       : -1;

		if (digit < 0)
			return false;
		*ret = *ret << 4 | (uint64_t)digit;
	}
	return n > 0;
}

/* A span of up to 16 digits, or a trace of 17 to 32. */
static bool parse_span(const char *text, struct weft__analysis_opts *opts)
{
	size_t n = strlen(text);

	if (n <= 16)
		return parse_hex(text, n, &opts->span) && opts->span;
	return n <= 32 && parse_hex(text, n - 16, &opts->trace_hi) && parse_hex(text + n - 16, 16, &opts->trace_lo) &&
	       (opts->trace_hi || opts->trace_lo);
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
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	uint64_t number;
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(cli_report_help, stdout);
			return -1;
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
			if (!parse_span(optarg, &opts->analysis))
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
		default:
			if (!parse_filter(c, opts))
				return cli_usage_hint(argv[0]);
		}
	}
	if (opts->analysis.label && !strchr(opts->analysis.label, '='))
		return cli_usage(argv[0], "--label takes KEY=VALUE, not '%s'", opts->analysis.label);
	if (optind == argc)
		return cli_usage(argv[0], "no PATH given: name a .weft file or the directory that was recorded to");
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

		if (report_chosen(rec, opts) && rec->last_ns > rec->start_ns &&
		    rec->last_ns - rec->start_ns > longest_ns)
			longest_ns = rec->last_ns - rec->start_ns;
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

int cli_report(int argc, char **argv)
{
	static struct report_short shorts;
	struct report_opts opts = {.to_ns = UINT64_MAX, .shorts = &shorts};
	struct weft__recordings list = {0};
	int code = parse(argc, argv, &opts);

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	report_short_load(&shorts, argc - optind, argv + optind);
	if (report_short_only(&shorts, argc - optind, argv + optind)) {
		report_short_alone(&shorts, opts.json);
		return CLI_OK;
	}
	code = cli_load(&list, argc - optind, argv + optind);
	if (code != CLI_FAILED)
		code = report_all(&list, &opts, code);
	weft__recordings_fini(&list);
	return code;
}
