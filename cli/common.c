/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "fetch.h"
#include "print.h"

static void say(const char *before, const char *fmt, va_list args)
{
	char line[1200];

	cli_progress_end();
	fflush(stdout);
	vsnprintf(line, sizeof(line), fmt, args);
	fprintf(stderr, "%s%s\n", before, cli_safe(line));
}

int cli_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("weft: ", fmt, args);
	va_end(args);
	return CLI_FAILED;
}

void cli_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("weft: warning: ", fmt, args);
	va_end(args);
}

int cli_usage_hint(const char *command)
{
	fprintf(stderr, "Try '%s --help'.\n", command);
	return CLI_USAGE;
}

int cli_usage(const char *command, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("weft: ", fmt, args);
	va_end(args);
	return cli_usage_hint(command);
}

bool cli_parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1.0}, {"m", 60e9}, {"h", 3600e9}};
	char *end;
	double value;
	size_t i;

	if (text[0] < '0' || text[0] > '9')
		return false;
	value = strtod(text, &end);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		value = floor(value * units[i].ns + 0.5);
		if (!(value < 9e18))
			return false;
		*ns = (uint64_t)value;
		return true;
	}
	return false;
}

bool cli_parse_number(const char *text, uint64_t most, uint64_t *number)
{
	unsigned long long value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end || errno || value > most)
		return false;
	*number = value;
	return true;
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

bool cli_parse_span(const char *text, uint64_t *span, uint64_t *trace_hi, uint64_t *trace_lo)
{
	size_t n = strlen(text);

	if (n <= 16)
		return parse_hex(text, n, span) && *span;
	return n <= 32 && parse_hex(text, n - 16, trace_hi) && parse_hex(text + n - 16, 16, trace_lo) &&
	       (*trace_hi || *trace_lo);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int nothing_found(int n_paths, char **paths)
{
	if (n_paths == 1 && is_dir(paths[0]))
		return cli_fail("no segments in %s: give a directory that a recorder writes to (WEFT_DIR, or `dir` of "
				"weft_recorder_opts) or a .weft file",
				paths[0]);
	return cli_fail("nothing that could be read among the paths given");
}

int cli_load(struct weft__recordings *list, int n_paths, char **paths)
{
	int code = CLI_OK, i;
	struct weft_error err = {0};
	bool some_missing = false;
	size_t j;

	for (i = 0; i < n_paths; i++) {
		const char *path = paths[i];

		if (cli_fetch_wanted(path) && !(path = cli_fetch(path, false, &some_missing))) {
			some_missing = true;
			continue;
		}
		if (weft__recordings_add(list, path, &err) == 0)
			continue;
		cli_fail("%s", err.msg);
		if (err.code == -ENOMEM)
			return CLI_FAILED;
		code = CLI_DAMAGED;
	}
	for (j = 0; j < list->n_refused; j++) {
		const struct weft__refusal *refusal = &list->refused[j];
		bool named = strstr(refusal->why, refusal->path) != NULL;

		cli_warn("%s%s%s", named ? "" : refusal->path, named ? "" : ": ", refusal->why);
		if (refusal->status != -EEXIST)
			code = CLI_DAMAGED;
	}
	weft__recordings_settle(list);
	if (some_missing)
		code = CLI_DAMAGED;
	if (list->n > 0)
		return code;
	if (some_missing)
		return CLI_FAILED; /* why was said */
	return code == CLI_OK || list->n_refused == 0 ? nothing_found(n_paths, paths) : CLI_FAILED;
}

bool cli_tell_damage(const struct weft__recording *rec)
{
	bool any = false;
	size_t i;

	for (i = 0; i < rec->n_files; i++) {
		const struct weft__file *file = &rec->files[i];

		if (file->status < 0)
			cli_warn("%s: %s: its events are missing here", file->path, weft_strerror(file->status));
		if (file->damaged_places > 0)
			cli_warn("%s: damaged: %s", file->path, file->damage ? file->damage : "");
		any = any || file->status < 0 || file->damaged_places > 0;
	}
	return any;
}

static bool progress_shown;

/* Not in the first second, and once in a second then. */
static bool progress_due(void)
{
	static struct timespec begin, last;
	struct timespec now;

	if (!isatty(STDERR_FILENO))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (begin.tv_sec == 0)
		begin = last = now;
	if (now.tv_sec - begin.tv_sec < 1 || (progress_shown && now.tv_sec == last.tv_sec))
		return false;
	last = now;
	progress_shown = true;
	return true;
}

void cli_progress(uint64_t done, uint64_t total)
{
	char text[32];

	if (!progress_due())
		return;
	fprintf(stderr, "\r%s events", cli_count(done, text));
	if (total)
		fprintf(stderr, ", %.0f %%", 100.0 * (double)done / (double)total);
	fputs(" \x1b[K", stderr);
}

void cli_progress_line(const char *fmt, ...)
{
	va_list args;

	if (!progress_due())
		return;
	fputc('\r', stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputs(" \x1b[K", stderr);
}

void cli_progress_end(void)
{
	if (progress_shown)
		fputs("\r\x1b[K", stderr);
	progress_shown = false;
}

int cli_option(const struct cli_options *of, int argc, char **argv, int *code)
{
	int c = *code == CLI_OK ? getopt_long(argc, argv, of->letters ? of->letters : "h", of->longs, NULL) : -1;

	if (c == 'h') {
		fputs(of->help, stdout);
		*code = CLI_DONE;
	} else if (c == '?') {
		*code = cli_usage_hint(argv[0]);
	} else if (c == -1 && *code == CLI_OK && optind == argc && of->missing) {
		*code = cli_usage(argv[0], "%s", of->missing);
	}
	return *code == CLI_OK ? c : -1;
}
