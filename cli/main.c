/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "weft/version.h"

void (*cli_sigpipe)(int) = SIG_DFL;

static const struct cli_command commands[] = {
	{"run", "record a program that knows nothing of weft, and report", cli_run, cli_run_help},
	{"report", "what the recording says: worst polls, delays, how busy workers are", cli_report, cli_report_help},
	{"query", "ask the recording in SQL: every poll, wait, sample and wake is a row", cli_query, cli_query_help},
	{"view", "look at the recording in a browser: timeline, causes, flame graphs", cli_view, cli_view_help},
	{"polls", "long polls, each with its length and its samples", cli_polls, cli_polls_help},
	{"export", "a profile for other tools: pprof, OTLP, collapsed stacks", cli_export, cli_export_help},
	{"inspect", "what segments hold", cli_inspect, cli_inspect_help},
	{"symbolize", "put names of functions, files and lines into segments", cli_symbolize, cli_symbolize_help},
	{"recover", "make segments of what killed processes left behind", cli_recover, cli_recover_help},
	{"push", "send segments to S3, by HTTP, or to another directory", cli_push, cli_push_help},
	{"ls", "what is in a bucket of S3", cli_ls, cli_ls_help},
	{"config", "the options of a recorder here, and where each comes from", cli_config, cli_config_help},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void short_help(FILE *out)
{
	size_t i;

	fprintf(out, "weft %s, a profiler for event loops\n\nusage: weft COMMAND [OPTION...] PATH...\n\n",
		weft_version());
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
	fprintf(out, "  %-9s %s\n", "help", "more about a command: weft help report");
}

static void long_help(void)
{
	short_help(stdout);
	printf("\nA PATH is a segment (.weft, or .weft.active while it is written), a directory of them,\n"
	       "s3://BUCKET/PREFIX, or a zip archive of segments.\n"
	       "\nexamples:\n"
	       "  weft run -- redis-server --port 7000          record a program as it is, report when it ends\n"
	       "  weft report ~/weft                            all that was recorded there\n"
	       "  weft report --from 12s --to 15s --top 5 DIR   three seconds of it\n"
	       "  weft report --json DIR | jq '.recordings[0].longest_polls[0]'\n"
	       "  weft query DIR 'select location, max(duration_ns) from poll group by 1'\n"
	       "  weft view ~/weft                              look at it in a browser\n"
	       "  weft polls ~/weft --min 10ms                  each long poll, with the samples in it\n"
	       "  weft export ~/weft -o x.pb.gz                 a profile for go tool pprof and others\n"
	       "  weft inspect FILE.weft                        header, threads, kinds, bytes per event\n"
	       "  weft inspect --events FILE.weft | less        every event, by name\n"
	       "  weft symbolize ~/weft                         names of functions into the segments, to read them "
	       "elsewhere\n"
	       "  weft recover ~/weft                           after kill -9 or a crash\n"
	       "  weft push --to s3://bucket/web ~/weft         what is not there yet\n"
	       "\nexit status: 0 done, 1 failed, 2 wrong usage, 3 done but something could not be read in full\n"
	       "\nMan pages: weft(1), weft-run(1), weft-report(1), weft-query(1), weft-view(1), weft-polls(1), "
	       "weft-export(1),\n"
	       "weft-inspect(1), weft-symbolize(1), weft-recover(1), weft-push(1), weft-ls(1), weft-config(1),\n"
	       "weft-agent(7), weft-segment(5)\n");
}

/* Edits that make one word of the other; words here are short. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], n = strlen(b), i, j;

	if (n >= 63 || strlen(a) >= 63)
		return 63;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (j = 1; j <= n; j++) {
			size_t change = diagonal + (a[i - 1] != b[j - 1]);
			size_t edit = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = edit < change ? edit : change;
		}
	}
	return row[n];
}

static const struct cli_command *find(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int unknown(const char *name)
{
	size_t best = 63, most = (strlen(name) + 1) / 2, i; /* half of the word is another word */
	const char *nearest = NULL;

	for (i = 0; i < N_COMMANDS; i++) {
		size_t edits = distance(name, commands[i].name);

		/* "rep" is a long way from "report" in edits, and yet it is clear what was meant. */
		if (name[0] && strncmp(name, commands[i].name, strlen(name)) == 0)
			edits = 1;
		if (edits < best) {
			best = edits;
			nearest = commands[i].name;
		}
	}
	if (best <= (most < 2 ? most : 2))
		return cli_usage("weft", "there is no command '%s'; did you mean '%s'?", name, nearest);
	return cli_usage("weft", "there is no command '%s'", name);
}

static int help(const char *name)
{
	const struct cli_command *command = find(name);

	if (!command)
		return unknown(name);
	fputs(command->help, stdout);
	return CLI_OK;
}

static int run(int argc, char **argv)
{
	const struct cli_command *command;
	char title[64];

	if (argc < 2) {
		short_help(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc == 2)) {
		long_help();
		return CLI_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("weft %s\n", weft_version());
		return CLI_OK;
	}
	if (strcmp(argv[1], "help") == 0)
		return help(argv[2]);
	if (argv[1][0] == '-')
		return cli_usage("weft", "there is no option '%s'", argv[1]);
	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	snprintf(title, sizeof(title), "weft %s", command->name);
	argv[1] = title;
	return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int code;

	weft__alloc_plain();
	/* Who closes the pipe early, as head does, has seen enough: end at once and without a word. */
	cli_sigpipe = signal(SIGPIPE, SIG_DFL);
	code = run(argc, argv);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_fail("cannot write the output: %s", strerror(errno));
	return code;
}
