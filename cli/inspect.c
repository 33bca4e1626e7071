/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "print.h"

const char cli_inspect_help[] =
	"usage: weft inspect [OPTION...] PATH...\n"
	"\n"
	"Shows what segments hold: header, time span, events per kind, bytes, threads, workers, locations, kinds with "
	"their\n"
	"fields, modules, samples, clocks, losses, damage. Of more than one segment it prints one line each.\n"
	"\n"
	"  --full            everything of each segment, also when there are many\n"
	"  --events          every event, with names, one line each, in order of time\n"
	"  --dump            every event as numbers: TIME_NS THREAD KIND FIELD..., in the order of the file\n"
	"  --order ORDER     time or stored: the order for --events and --dump\n"
	"  --stacks          every stack, with its samples and the names of its frames\n"
	"  --blocks          the blocks of the file\n"
	"  --json            one JSON document\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft inspect ~/weft\n"
	"  weft inspect FILE.weft\n"
	"  weft inspect --events FILE.weft | grep poll_begin | head\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be read in full\n";

enum mode { MODE_TEXT, MODE_FULL, MODE_JSON, MODE_DUMP, MODE_EVENTS, MODE_STACKS, MODE_BLOCKS };

struct options {
	enum mode mode;
	enum weft_order order;
	bool has_order;
};

const char *inspect_kind_name(const struct weft_segment *seg, uint32_t kind)
{
	static const char *const builtin[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, name, ...) [number] = name,
		WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
	};
	const struct weft_kind_def *def = weft_segment_kind(seg, kind);

	if (def && def->name[0])
		return def->name;
	return kind < WEFT_KIND_BUILTIN_END ? builtin[kind] : NULL;
}

const char *inspect_type_name(uint32_t type)
{
	static const char *const names[] = {"?",      "u64",  "i64",    "f64",      "bool",
					    "string", "task", "worker", "location", "stack"};

	return names[type < sizeof(names) / sizeof(names[0]) ? type : 0];
}

static int count_events(struct inspect *inspect)
{
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	int rc = weft_cursor_open(&cursor, inspect->seg, WEFT_ORDER_STORED, 0, UINT64_MAX, NULL);

	memset(inspect->n_kind, 0, 65536 * sizeof(*inspect->n_kind));
	while (rc >= 0 && (rc = weft_cursor_next(cursor, &ev)) > 0) {
		inspect->n_kind[ev.kind]++;
		inspect_count_stacks(inspect, &ev);
		if (++inspect->n_read % (1 << 20) == 0)
			cli_progress(inspect->n_read, inspect->info->n_events);
	}
	cli_progress_end();
	weft_cursor_close(cursor);
	return rc;
}

static int show_stacks(struct inspect *inspect)
{
	size_t n;
	int rc;

	weft_segment_stacks(inspect->seg, &n);
	inspect->per_stack = weft__calloc(n, sizeof(*inspect->per_stack));
	rc = inspect->per_stack ? count_events(inspect) : -ENOMEM;
	if (rc == 0)
		inspect_stacks(inspect);
	weft__free(inspect->per_stack);
	inspect->per_stack = NULL;
	return rc;
}

static int show(struct inspect *inspect, const struct options *opts, struct weft__json *json)
{
	int rc = 0;

	switch (opts->mode) {
	case MODE_DUMP:
		return inspect_dump(inspect, opts->has_order ? opts->order : WEFT_ORDER_STORED);
	case MODE_EVENTS:
		return inspect_events(inspect, opts->has_order ? opts->order : WEFT_ORDER_TIME);
	case MODE_STACKS:
		return show_stacks(inspect);
	case MODE_BLOCKS:
		inspect_blocks(inspect);
		return 0;
	case MODE_JSON:
		rc = count_events(inspect);
		if (rc == 0)
			inspect_json(json, inspect);
		return rc;
	case MODE_TEXT:
	case MODE_FULL:
		rc = count_events(inspect);
		if (rc == 0)
			inspect_text(inspect);
		return rc;
	}
	return rc;
}

static int inspect_file(struct weft__file *file, const struct options *opts, struct weft__json *json, uint64_t *n_kind)
{
	struct inspect inspect = {.path = file->path, .n_kind = n_kind};
	struct weft_error err = {0};
	struct weft_damage damage;
	int rc = weft_segment_open(&inspect.seg, file->path, &err);

	if (rc < 0)
		return cli_fail("%s: %s", file->path, err.msg[0] ? err.msg : weft_strerror(rc));
	inspect.info = weft_segment_info(inspect.seg);
	rc = show(&inspect, opts, json);
	damage = weft_segment_damage(inspect.seg);
	if (damage.places)
		cli_warn("%s: damaged: %s", file->path, damage.text);
	weft_segment_close(inspect.seg);
	if (rc < 0)
		return cli_fail("%s: %s", file->path, weft_strerror(rc));
	return damage.places ? CLI_DAMAGED : CLI_OK;
}

/* One line per segment. */
static void list_segments(const struct weft__recordings *list)
{
	static const char *const titles[] = {"<segment", "<pid", "number",  "<begun", "span",
					     "events",   "size", "B/event", "<state"};
	struct cli_table table = {.titles = titles, .n_columns = sizeof(titles) / sizeof(titles[0])};
	char figure[CLI_FIGURE];
	size_t i, j;

	for (i = 0; i < list->n; i++) {
		const struct weft__recording *rec = &list->all[i];
		const char *pid = weft__names_fact(&rec->names, "process.pid");

		for (j = 0; j < rec->n_files; j++) {
			const struct weft_segment_info *info = &rec->files[j].info;

			cli_cell(&table, "%s", cli_base(rec->files[j].path));
			cli_cell(&table, "%.10s", pid ? pid : "-");
			cli_cell(&table, "%llu", (unsigned long long)info->sequence);
			cli_cell(&table, "%s", cli_wall(info->start_real_ns, figure));
			cli_cell(&table, "%s", cli_ns(info->last_ns - info->first_ns, figure));
			cli_cell(&table, "%s", cli_count(info->n_events, figure));
			cli_cell(&table, "%s", cli_bytes(info->n_bytes, figure));
			cli_cell(&table, info->n_events ? "%.2f" : "-",
				 (double)info->n_event_bytes / (double)info->n_events);
			cli_cell(&table, "%s%s", info->sealed ? "sealed" : "open",
				 info->recovered ? ", recovered" : "");
		}
	}
	cli_table_print(&table);
}

static int inspect_all(struct weft__recordings *list, const struct options *opts, int code)
{
	struct weft__json json = {.out = stdout};
	uint64_t *n_kind;
	size_t i, j, n = 0;

	for (i = 0; i < list->n; i++)
		n += list->all[i].n_files;
	if (opts->mode == MODE_TEXT && n > 1) {
		list_segments(list);
		return code;
	}
	n_kind = weft__alloc(65536 * sizeof(*n_kind));
	if (!n_kind)
		return cli_fail("%s", weft_strerror(-ENOMEM));
	if (opts->mode == MODE_JSON) {
		weft__json_begin(&json, NULL, '{');
		weft__json_u64(&json, "version", 1);
		weft__json_begin(&json, "segments", '[');
	}
	for (i = 0, n = 0; i < list->n; i++)
		for (j = 0; j < list->all[i].n_files; j++) {
			int one;

			if (n++ > 0 &&
			    (opts->mode == MODE_FULL || opts->mode == MODE_BLOCKS || opts->mode == MODE_STACKS))
				putchar('\n');
			one = inspect_file(&list->all[i].files[j], opts, &json, n_kind);
			code = one == CLI_FAILED || code == CLI_FAILED ? CLI_FAILED : one > code ? one : code;
		}
	if (opts->mode == MODE_JSON) {
		weft__json_end(&json, ']');
		weft__json_end(&json, '}');
	}
	weft__free(n_kind);
	return code;
}

static int parse(int argc, char **argv, struct options *opts)
{
	static const struct option longs[] = {
		{"full", no_argument, NULL, CLI_OPT_FULL},
		{"events", no_argument, NULL, CLI_OPT_EVENTS},
		{"dump", no_argument, NULL, CLI_OPT_DUMP},
		{"order", required_argument, NULL, CLI_OPT_ORDER},
		{"stacks", no_argument, NULL, CLI_OPT_STACKS},
		{"blocks", no_argument, NULL, CLI_OPT_BLOCKS},
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_inspect_help, CLI_NO_PATH};
	enum mode mode = MODE_TEXT;
	int code = CLI_OK, c;

	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		switch (c) {
		case CLI_OPT_ORDER:
			opts->has_order = true;
			opts->order = strcmp(optarg, "stored") == 0 ? WEFT_ORDER_STORED : WEFT_ORDER_TIME;
			if (opts->order == WEFT_ORDER_TIME && strcmp(optarg, "time") != 0)
				return cli_usage(argv[0], "--order takes time or stored, not '%s'", optarg);
			continue;
		case CLI_OPT_FULL:
			mode = MODE_FULL;
			break;
		case CLI_OPT_EVENTS:
			mode = MODE_EVENTS;
			break;
		case CLI_OPT_DUMP:
			mode = MODE_DUMP;
			break;
		case CLI_OPT_STACKS:
			mode = MODE_STACKS;
			break;
		case CLI_OPT_BLOCKS:
			mode = MODE_BLOCKS;
			break;
		case CLI_OPT_JSON:
			mode = MODE_JSON;
			break;
		}
		if (opts->mode != MODE_TEXT && opts->mode != mode)
			return cli_usage(argv[0],
					 "choose one of --full, --events, --dump, --stacks, --blocks and --json");
		opts->mode = mode;
	}
	if (code != CLI_OK)
		return code;
	if (opts->has_order && opts->mode != MODE_DUMP && opts->mode != MODE_EVENTS)
		return cli_usage(argv[0], "--order goes with --events or --dump");
	return CLI_OK;
}

int cli_inspect(int argc, char **argv)
{
	struct weft__recordings list = {0};
	struct options opts = {0};
	int code = parse(argc, argv, &opts);

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	code = cli_load(&list, argc - optind, argv + optind);
	if (code != CLI_FAILED)
		code = inspect_all(&list, &opts, code);
	weft__recordings_fini(&list);
	return code;
}
