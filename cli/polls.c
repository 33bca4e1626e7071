/* SPDX-License-Identifier: Apache-2.0 */
#include "polls.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "fetch.h"
#include "trace/trace.h"

const char cli_polls_help[] =
	"usage: weft polls [OPTION...] PATH...\n"
	"\n"
	"Lists long polls, each with its true length, what its time was spent on, and the samples that fell into it.\n"
	"PATH is a segment, a directory of them, s3://BUCKET/PREFIX or a zip archive, as everywhere. JFR files that\n"
	"the rust-agent of async-profiler wrote are read, too: the polls that it caught.\n"
	"\n"
	"  --min DURATION    only polls of at least this length (5ms)\n"
	"  --sort KEY        length (the longest first), time, or cpu\n"
	"  --group KEY       one row for each location, thread, worker, endpoint or function (the innermost one of "
	"most of\n"
	"                    its time) instead of one for each poll\n"
	"  --top N           at most so many (20; with --json all)\n"
	"  --stack-depth N   frames of each stack (5)\n"
	"  --from TIME       only polls that ended from TIME on, relative to the recording's start: 12.5s, 300ms\n"
	"  --to TIME         ... and before TIME\n"
	"  --worker NAME     only polls on this worker (demo/1); a shell pattern will do\n"
	"  --thread NAME     only polls of the threads of this name, or the one of this tid; patterns too\n"
	"  --location NAME   only polls of tasks spawned at this location; patterns too\n"
	"  --no-symbols      do not look for names of functions in program files and debug info\n"
	"  --json            one JSON document; times in ns, and wall time as text\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft polls ~/weft --min 10ms\n"
	"  weft polls ~/weft --group function\n"
	"  weft polls --json ~/weft | jq '.polls[0].samples'\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be read in full\n";

#define POLLS_MAX ((size_t)1 << 20)
#define MIN_NS UINT64_C(5000000)
#define ID_BITS 44 /* trace.h: ids have the number of their recording above */

int polls_add(struct polls *polls, const struct polls_one *one)
{
	struct polls_one *grown;

	if (polls->n >= POLLS_MAX) {
		polls->n_beyond++;
		return 0;
	}
	grown = weft__grow(polls->at, &polls->cap, polls->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	polls->at = grown;
	grown[polls->n++] = *one;
	return 0;
}

int polls_hit(struct polls *polls, const struct polls_hit *hit)
{
	struct polls_hit *grown = weft__grow(polls->hits, &polls->cap_hits, polls->n_hits, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	polls->hits = grown;
	grown[polls->n_hits++] = *hit;
	return 0;
}

int polls_name(struct polls_names *names, const char *name)
{
	const char **grown = weft__grow(names->at, &names->cap, names->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	names->at = grown;
	grown[names->n++] = name;
	return 0;
}

void polls_fini(struct polls *polls)
{
	weft__free(polls->at);
	weft__free(polls->hits);
}

static bool matches(const char *pattern, const char *name)
{
	return !pattern || (name && fnmatch(pattern, name, 0) == 0);
}

bool polls_asked(const struct polls_opts *opts, const struct polls_one *one, int64_t tid)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld", (long long)tid);
	return matches(opts->worker, one->worker) && matches(opts->location, one->location) &&
	       (matches(opts->thread, one->thread) || (opts->thread && strcmp(opts->thread, number) == 0));
}

/* Polls of segments, by their ids. */
struct reading {
	struct weft__set set;
	struct polls polls;
	const struct polls_opts *opts;
	struct weft__map by_id;
	struct weft__line_list lines; /* of one hit */
};

static int64_t number(const struct weft__row *row, size_t column, int64_t none)
{
	return weft__row_has(row, column) ? row->at[column].i : none;
}

static const char *text(const struct weft__row *row, size_t column)
{
	return weft__row_has(row, column) ? row->at[column].text : NULL;
}

static int add_poll(struct reading *r, const struct weft__row *row)
{
	const struct weft__recording *rec = &r->set.list->all[row->at[WEFT__COL_POLL_RECORDING].i];
	struct polls_one one = {
		.begin_ns = row->at[WEFT__COL_POLL_BEGIN_NS].i,
		.duration_ns = row->at[WEFT__COL_POLL_DURATION_NS].i,
		.start_real_ns = (int64_t)rec->start_real_ns,
		.tid = number(row, WEFT__COL_POLL_TID, 0),
		.task = number(row, WEFT__COL_POLL_TASK, 0),
		.span = (uint64_t)number(row, WEFT__COL_POLL_SPAN, 0),
		.running = !weft__row_has(row, WEFT__COL_POLL_END_NS),
		.thread = text(row, WEFT__COL_POLL_THREAD),
		.worker = text(row, WEFT__COL_POLL_WORKER),
		.location = text(row, WEFT__COL_POLL_LOCATION),
		.endpoint = text(row, WEFT__COL_POLL_ENDPOINT),
	};
	static const size_t columns[POLLS_PARTS] = {WEFT__COL_POLL_ON_CPU_NS, WEFT__COL_POLL_BLOCKED_NS,
						    WEFT__COL_POLL_WAITING_NS, WEFT__COL_POLL_PREEMPTED_NS,
						    WEFT__COL_POLL_NOT_MEASURED_NS};
	size_t i;

	for (i = 0; i < POLLS_PARTS; i++)
		one.parts[i] = number(row, columns[i], POLLS_NONE);
	if (!polls_asked(r->opts, &one, one.tid))
		return 0;
	if (r->polls.n < POLLS_MAX &&
	    weft__map_put(&r->by_id, (uint64_t)row->at[WEFT__COL_POLL_ID].i, (uint32_t)r->polls.n) < 0)
		return -ENOMEM;
	return polls_add(&r->polls, &one);
}

static void set_stack(struct polls_hit *hit, const struct weft__row *row, size_t stack, size_t kernel)
{
	int64_t id = number(row, stack, 0), in_kernel = number(row, kernel, 0);

	hit->recording = (uint32_t)((id ? id : in_kernel) >> ID_BITS);
	hit->stack = (uint32_t)id;
	hit->kernel = (uint32_t)in_kernel;
}

static int add_sample(struct reading *r, const struct weft__row *row)
{
	uint32_t poll = weft__map_get(&r->by_id, (uint64_t)number(row, WEFT__COL_SAMPLE_POLL_ID, 0));
	struct polls_hit hit = {.poll = poll, .n = 1, .ns = row->at[WEFT__COL_SAMPLE_WEIGHT_NS].i, .state = "on cpu"};

	if (poll == WEFT__MAP_NONE)
		return 0;
	set_stack(&hit, row, WEFT__COL_SAMPLE_STACK_ID, WEFT__COL_SAMPLE_KERNEL_STACK_ID);
	return polls_hit(&r->polls, &hit);
}

/* Time off the CPU that something is known of; samples have the time on it. */
static int add_slice(struct reading *r, const struct weft__row *row)
{
	uint32_t poll = weft__map_get(&r->by_id, (uint64_t)row->at[WEFT__COL_SLICE_POLL_ID].i);
	const char *part = text(row, WEFT__COL_SLICE_PART), *name = text(row, WEFT__COL_SLICE_OBJECT_NAME);
	struct polls_hit hit = {.poll = poll, .ns = row->at[WEFT__COL_SLICE_DURATION_NS].i, .state = part};

	hit.name = name ? name : text(row, WEFT__COL_SLICE_NAME);
	set_stack(&hit, row, WEFT__COL_SLICE_STACK_ID, WEFT__COL_SLICE_KERNEL_STACK_ID);
	if (poll == WEFT__MAP_NONE || strcmp(part, "on_cpu") == 0 || strcmp(part, "not_measured") == 0 ||
	    (!hit.stack && !hit.kernel && !hit.name))
		return 0;
	return polls_hit(&r->polls, &hit);
}

static int scan(struct reading *r, enum weft__table_id table, int (*add)(struct reading *, const struct weft__row *))
{
	struct weft__scan_opts opts = {.table = table};
	const struct weft__row *row;
	struct weft__scan *trace;
	int rc;

	if (table == WEFT__TABLE_POLL) {
		opts.filters[opts.n_filters++] =
			(struct weft__filter){WEFT__COL_POLL_DURATION_NS, WEFT__GE, {.i = (int64_t)r->opts->min_ns}};
		if (r->opts->from_ns)
			opts.filters[opts.n_filters++] = (struct weft__filter){
				WEFT__COL_POLL_END_NS, WEFT__GE, {.i = (int64_t)r->opts->from_ns}};
		if (r->opts->to_ns)
			opts.filters[opts.n_filters++] =
				(struct weft__filter){WEFT__COL_POLL_END_NS, WEFT__LT, {.i = (int64_t)r->opts->to_ns}};
	}
	rc = weft__scan_open(&trace, &r->set, &opts);
	if (rc < 0)
		return rc;
	while ((rc = weft__scan_next(trace, &row)) > 0) {
		rc = add(r, row);
		if (rc < 0)
			break;
	}
	weft__scan_close(trace);
	return rc;
}

static int functions_of(void *data, const struct polls_hit *hit, struct polls_names *ret)
{
	struct reading *r = data;
	const struct weft__frames *frames = &r->set.list->all[hit->recording].frames;
	int rc = weft__frames_lines(frames, hit->stack, hit->kernel, &r->lines);
	size_t i = 0;

	ret->n = 0;
	if (rc == 0 && strcmp(hit->state, "on cpu") != 0)
		i = weft__frames_outside(frames, &r->lines); /* the stack of a wait is taken in weft */
	for (; i < r->lines.n && rc == 0; i++)
		rc = polls_name(ret, frames->functions[r->lines.at[i].function].name);
	return rc;
}

static int read_all(struct weft__recordings *list, const struct polls_opts *opts, int code)
{
	struct reading r = {.opts = opts};
	size_t i;
	int rc = weft__set_init(&r.set, list, opts->no_symbols);

	r.polls.functions = functions_of;
	r.polls.data = &r;
	r.polls.source = "CPU samples, and time off the CPU";
	if (rc == 0)
		rc = scan(&r, WEFT__TABLE_POLL, add_poll);
	if (rc == 0 && r.polls.n)
		rc = scan(&r, WEFT__TABLE_SAMPLE, add_sample);
	if (rc == 0 && r.polls.n)
		rc = scan(&r, WEFT__TABLE_SLICE, add_slice);
	for (i = 0; i < list->n && rc == 0; i++)
		if (cli_tell_damage(&list->all[i]))
			code = CLI_DAMAGED;
	if (rc == 0)
		rc = polls_print(&r.polls, opts);
	polls_fini(&r.polls);
	weft__map_fini(&r.by_id);
	weft__free(r.lines.at);
	weft__set_fini(&r.set);
	return rc < 0 ? cli_fail("cannot list polls: %s", weft_strerror(rc)) : code;
}

static bool choose(const char *text_of, const char *const *names, size_t n, size_t *ret)
{
	for (*ret = 0; *ret < n; ++*ret)
		if (strcmp(names[*ret], text_of) == 0)
			return true;
	return false;
}

static int parse_value(int c, const char *command, struct polls_opts *opts)
{
	static const char *const sorts[] = {"length", "time", "cpu"};
	static const char *const groups[] = {"poll", "location", "thread", "worker", "endpoint", "function"};
	uint64_t value;
	size_t at;

	switch (c) {
	case CLI_OPT_MIN:
		if (!cli_parse_time(optarg, &opts->min_ns))
			return cli_usage(command, "--min takes a duration like 5ms, not '%s'", optarg);
		break;
	case CLI_OPT_FROM:
		if (!cli_parse_time(optarg, &opts->from_ns))
			return cli_usage(command, "--from takes a time like 12.5s or 300ms, not '%s'", optarg);
		break;
	case CLI_OPT_TO:
		if (!cli_parse_time(optarg, &opts->to_ns))
			return cli_usage(command, "--to takes a time like 12.5s or 300ms, not '%s'", optarg);
		break;
	case CLI_OPT_SORT:
		if (!choose(optarg, sorts, 3, &at))
			return cli_usage(command, "--sort takes length, time or cpu, not '%s'", optarg);
		opts->sort = (enum polls_sort)at;
		break;
	case CLI_OPT_GROUP:
		if (!choose(optarg, groups, 6, &at))
			return cli_usage(command,
					 "--group takes location, thread, worker, endpoint or function, not '%s'",
					 optarg);
		opts->group = (enum polls_group)at;
		break;
	case CLI_OPT_TOP:
	case CLI_OPT_DEPTH:
		if (!cli_parse_number(optarg, 1000000, &value) || value == 0)
			return cli_usage(command, "--top and --stack-depth take a number from 1 on, not '%s'", optarg);
		*(c == CLI_OPT_TOP ? &opts->top : &opts->depth) = value;
		opts->top_given |= c == CLI_OPT_TOP;
		break;
	case CLI_OPT_WORKER:
		opts->worker = optarg;
		break;
	case CLI_OPT_THREAD:
		opts->thread = optarg;
		break;
	case CLI_OPT_LOCATION:
		opts->location = optarg;
		break;
	case CLI_OPT_NO_SYMBOLS:
		opts->no_symbols = true;
		break;
	case CLI_OPT_JSON:
		opts->json = true;
		break;
	}
	return CLI_OK;
}

static int parse(int argc, char **argv, struct polls_opts *opts)
{
	static const struct option longs[] = {
		{"min", required_argument, NULL, CLI_OPT_MIN},
		{"sort", required_argument, NULL, CLI_OPT_SORT},
		{"group", required_argument, NULL, CLI_OPT_GROUP},
		{"top", required_argument, NULL, CLI_OPT_TOP},
		{"stack-depth", required_argument, NULL, CLI_OPT_DEPTH},
		{"from", required_argument, NULL, CLI_OPT_FROM},
		{"to", required_argument, NULL, CLI_OPT_TO},
		{"worker", required_argument, NULL, CLI_OPT_WORKER},
		{"thread", required_argument, NULL, CLI_OPT_THREAD},
		{"location", required_argument, NULL, CLI_OPT_LOCATION},
		{"no-symbols", no_argument, NULL, CLI_OPT_NO_SYMBOLS},
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_polls_help, CLI_NO_PATH};
	int code = CLI_OK, rc = CLI_OK, c;

	while (rc == CLI_OK && (c = cli_option(&of, argc, argv, &code)) != -1)
		rc = parse_value(c, argv[0], opts);
	if (rc != CLI_OK || code != CLI_OK)
		return rc != CLI_OK ? rc : code;
	if (opts->to_ns && opts->to_ns <= opts->from_ns)
		return cli_usage(argv[0], "--to must lie behind --from");
	return CLI_OK;
}

int cli_polls(int argc, char **argv)
{
	struct polls_opts opts = {.min_ns = MIN_NS, .top = 20, .depth = 5};
	struct weft__recordings list = {0};
	int code = parse(argc, argv, &opts), found, i;
	bool some_missing = false;

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	for (i = optind; i < argc; i++)
		if (cli_fetch_wanted(argv[i]) && !(argv[i] = cli_fetch(argv[i], true, &some_missing)))
			return CLI_FAILED;
	found = some_missing ? CLI_DAMAGED : CLI_OK;
	code = polls_jfr(argc - optind, argv + optind, &opts, found);
	if (code != POLLS_NO_JFR)
		return code;
	code = cli_load(&list, argc - optind, argv + optind);
	if (code != CLI_FAILED)
		code = read_all(&list, &opts, code == CLI_OK ? found : code);
	weft__recordings_fini(&list);
	return code;
}
