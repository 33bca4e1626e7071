/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const char cli_query_help[] =
	"usage: weft query [OPTION...] PATH... ['select ...']\n"
	"\n"
	"Asks what was recorded in SQL. Every poll, wait, sample, wake and so on is a row of a table; nothing is "
	"imported,\n"
	"rows are read from the segments as they are asked for. Without SQL there is a prompt, or SQL is read from\n"
	"standard input. Tables are those of docs/TABLES.md; percentile(value, p) is an aggregate besides SQLite's.\n"
	"\n"
	"  --run NAME     runs a saved question\n"
	"  --list         prints the saved questions, as SQL\n"
	"  --schema       prints all tables and columns, with what they mean and when they are NULL\n"
	"  --csv          rows as CSV; what is NULL is empty\n"
	"  --json         rows as a JSON array of objects\n"
	"  --no-symbols   do not look for names of functions in program files and debug info, only in the segments\n"
	"  -h, --help\n"
	"\n"
	"examples:\n"
	"  weft query DIR                                                        a prompt\n"
	"  weft query DIR --run worst-polls\n"
	"  weft query DIR 'select location, count(*), max(duration_ns) from poll group by location'\n"
	"  weft query --csv DIR 'select * from poll where duration_ns > 10000000' > slow.csv\n"
	"  weft query DIR 'select name, sum(duration_ns) from wait where poll_id is not null group by name'\n"
	"  weft query --json DIR \"select * from event where kind = 'request' limit 10\"\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong usage or SQL, 3 done but something could not be read in full\n";

struct options {
	enum query_format format;
	bool no_symbols;
	const char *sql;
	char **paths;
	int n_paths;
};

/* Whether it prints something and needs no recording. */
static bool without_recording(int c)
{
	if (c == CLI_OPT_SCHEMA)
		query_schema();
	else if (c == CLI_OPT_LIST)
		query_saved_list();
	else if (c == CLI_OPT_TABLES)
		query_tables_md();
	else
		return false;
	return true;
}

static int parse(int argc, char **argv, struct options *opts)
{
	static const struct option longs[] = {
		{"run", required_argument, NULL, CLI_OPT_RUN},
		{"list", no_argument, NULL, CLI_OPT_LIST},
		{"schema", no_argument, NULL, CLI_OPT_SCHEMA},
		{"csv", no_argument, NULL, CLI_OPT_CSV},
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"no-symbols", no_argument, NULL, CLI_OPT_NO_SYMBOLS},
		{"tables-md", no_argument, NULL, CLI_OPT_TABLES},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {NULL, longs, cli_query_help, NULL};
	const struct query_saved *saved;
	int code = CLI_OK, c;

	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		if (without_recording(c))
			return CLI_DONE;
		switch (c) {
		case CLI_OPT_RUN:
			saved = query_saved_find(optarg);
			if (!saved)
				return cli_usage(argv[0],
						 "there is no saved question '%s'; --list prints those there are",
						 optarg);
			opts->sql = saved->sql;
			break;
		case CLI_OPT_CSV:
			opts->format = QUERY_CSV;
			break;
		case CLI_OPT_JSON:
			opts->format = QUERY_JSON;
			break;
		case CLI_OPT_NO_SYMBOLS:
			opts->no_symbols = true;
			break;
		}
	}
	opts->paths = argv + optind;
	opts->n_paths = argc - optind;
	return code;
}

/* The last argument is SQL unless it is a file. */
static int find_sql(const char *command, struct options *opts)
{
	const char *last = opts->n_paths ? opts->paths[opts->n_paths - 1] : "";
	bool is_sql = opts->n_paths && access(last, F_OK) != 0 && strpbrk(last, " \t\n;(*");

	if (is_sql && opts->sql)
		return cli_usage(command, "--run has its own SQL: '%s' is too much", last);
	if (is_sql) {
		opts->sql = last;
		opts->n_paths--;
	}
	if (opts->n_paths == 0)
		return cli_usage(command, CLI_NO_PATH);
	return CLI_OK;
}

static int run(const struct options *opts, struct weft__recordings *list, int code)
{
	struct query query = {.format = opts->format};
	size_t i;
	int rc;

	if (weft__set_init(&query.set, list, opts->no_symbols) < 0 || query_open(&query) != SQLITE_OK) {
		query_close(&query);
		return cli_fail("cannot open SQLite: out of memory");
	}
	rc = opts->sql ? query_statements(&query, opts->sql) : query_prompt(&query);
	query_close(&query);
	for (i = 0; i < list->n; i++)
		if (cli_tell_damage(&list->all[i]))
			code = CLI_DAMAGED;
	return rc == CLI_OK ? code : rc;
}

int cli_query(int argc, char **argv)
{
	struct options opts = {.format = QUERY_TABLE};
	struct weft__recordings list = {0};
	int code = parse(argc, argv, &opts);

	if (code == CLI_OK)
		code = find_sql(argv[0], &opts);
	if (code != CLI_OK)
		return code == CLI_DONE ? CLI_OK : code;
	code = cli_load(&list, opts.n_paths, opts.paths);
	if (code != CLI_FAILED)
		code = run(&opts, &list, code);
	weft__recordings_fini(&list);
	return code;
}
