/* SPDX-License-Identifier: Apache-2.0 */
/* What the sub-commands share. Each is one function in a file of its own and one row of the table in main.c. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/recording.h"

/* What the command leaves behind; also in the man pages. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_DAMAGED = 3, /* done, but something that was given could not be read in full */
};

struct cli_command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv); /* argv[0] is for messages: "weft report" */
	const char *help;
};

int cli_config(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_ls(int argc, char **argv);
int cli_push(int argc, char **argv);
int cli_polls(int argc, char **argv);
int cli_query(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_recover(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_symbolize(int argc, char **argv);
int cli_view(int argc, char **argv);
extern const char cli_config_help[], cli_export_help[], cli_inspect_help[], cli_ls_help[], cli_polls_help[],
	cli_push_help[], cli_query_help[], cli_report_help[], cli_recover_help[], cli_run_help[], cli_symbolize_help[],
	cli_view_help[];

/* What the command found SIGPIPE set to, for programs that it runs. */
extern void (*cli_sigpipe)(int);

/* Options that no getopt letter stands for. */
enum cli_option {
	CLI_OPT_JSON = 256,
	CLI_OPT_TOP,
	CLI_OPT_FROM,
	CLI_OPT_TO,
	CLI_OPT_WORKER,
	CLI_OPT_LOCATION,
	CLI_OPT_PID,
	CLI_OPT_DUMP,
	CLI_OPT_EVENTS,
	CLI_OPT_BLOCKS,
	CLI_OPT_ORDER,
	CLI_OPT_FULL,
	CLI_OPT_THREAD,
	CLI_OPT_SPAN,
	CLI_OPT_LABEL,
	CLI_OPT_ENDPOINT,
	CLI_OPT_NO_SYMBOLS,
	CLI_OPT_STACKS,
	CLI_OPT_HZ,
	CLI_OPT_KEEP,
	CLI_OPT_NO_CHILDREN,
	CLI_OPT_START_AFTER,
	CLI_OPT_CSV,
	CLI_OPT_SCHEMA,
	CLI_OPT_LIST,
	CLI_OPT_RUN,
	CLI_OPT_TABLES,
	CLI_OPT_NO_PAGER,
	CLI_OPT_OTLP,
	CLI_OPT_WHAT,
	CLI_OPT_TAG,
	CLI_OPT_MIN,
	CLI_OPT_NO_CONTEXTS,
	CLI_OPT_SORT,
	CLI_OPT_GROUP,
	CLI_OPT_BY_PACKAGE,
	CLI_OPT_DEPTH,
};

/* A line on stderr that begins with "weft: ". Answers CLI_FAILED. */
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for wrong usage, with a hint where help is. Answers CLI_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* After getopt has said what is wrong. Answers CLI_USAGE. */
int cli_usage_hint(const char *command);

/* The options of a command. */
#define CLI_DONE (-1) /* --help was printed; what is left is nothing */
#define CLI_NO_PATH "no PATH given: name a .weft file or the directory that was recorded to"
struct option;
struct cli_options {
	const char *letters; /* as of getopt; NULL: "h" */
	const struct option *longs;
	const char *help;
	const char *missing; /* what to say when no argument is left; NULL: that is allowed */
};
/* The next one that the command has to look at itself, or -1 at the end, or when `*code` is not CLI_OK any more: --help
 * is printed (CLI_DONE), and what is wrong is said (CLI_USAGE). */
int cli_option(const struct cli_options *of, int argc, char **argv, int *code);

/* "12.5", "12.5s", "300ms", "2m" as ns; seconds without a unit. False when it is none of these. */
bool cli_parse_time(const char *text, uint64_t *ns);

/* A decimal number with nothing behind it, at most `most`. */
bool cli_parse_number(const char *text, uint64_t most, uint64_t *number);

/* A span of up to 16 hex digits, or a trace of 17 to 32. */
bool cli_parse_span(const char *text, uint64_t *span, uint64_t *trace_hi, uint64_t *trace_lo);

/* Whether nobody else can replace what is in a directory for temporary files, by its descriptor. `why` not, up to the
 * comma or semicolon and a space before what else to do. */
bool cli_temporary_safe(int dir, const char *path, char *why, size_t bytes);

/* All segments that the arguments name, in order. Says on stderr what cannot be used and why. Returns CLI_OK,
 * CLI_DAMAGED when some could not be used, or CLI_FAILED when there is none; the list is the caller's in each case. */
int cli_load(struct weft__recordings *list, int n_paths, char **paths);

/* Says on stderr what was missing in the files once they were read. True when something was. */
bool cli_tell_damage(const struct weft__recording *rec);

/* A line on stderr that shows how far a long run is, if that is a terminal. `total` 0: not known. */
void cli_progress(uint64_t done, uint64_t total);
/* The same, of something else. */
void cli_progress_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

#endif
