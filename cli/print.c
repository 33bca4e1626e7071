/* SPDX-License-Identifier: Apache-2.0 */
#include "print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyze/json.h"
#include "base/alloc.h"

/* Three digits, whatever the size: 9.87, 98.7, 987. */
static void three_digits(double value, const char *unit, char *buf)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(buf, CLI_FIGURE, "%.*f %s", decimals, value, unit);
}

const char *cli_ns(uint64_t ns, char *buf)
{
	if (ns < 1000)
		snprintf(buf, CLI_FIGURE, "%" PRIu64 " ns", ns);
	else if (ns < 999500)
		three_digits((double)ns / 1e3, "us", buf);
	else if (ns < 999500000)
		three_digits((double)ns / 1e6, "ms", buf);
	else
		three_digits((double)ns / 1e9, "s", buf);
	return buf;
}

const char *cli_count(uint64_t n, char *buf)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), i, at = 0;

	for (i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = 0;
	return buf;
}

const char *cli_bytes(uint64_t n, char *buf)
{
	if (n < 1024)
		snprintf(buf, CLI_FIGURE, "%" PRIu64 " B", n);
	else if (n < 1024 * 1024)
		three_digits((double)n / 1024, "KiB", buf);
	else if (n < 1024 * 1024 * 1024)
		three_digits((double)n / (1024 * 1024), "MiB", buf);
	else
		three_digits((double)n / (1024 * 1024 * 1024), "GiB", buf);
	return buf;
}

const char *cli_percent(double share, char *buf)
{
	snprintf(buf, CLI_FIGURE, "%.1f %%", share * 100);
	return buf;
}

const char *cli_moment(uint64_t ns, char *buf)
{
	snprintf(buf, CLI_FIGURE, "+%.6f s", (double)ns / 1e9);
	return buf;
}

const char *cli_wall(uint64_t real_ns, char *buf)
{
	time_t seconds = (time_t)(real_ns / 1000000000);
	struct tm tm;
	size_t at;

	if (real_ns == 0 || !gmtime_r(&seconds, &tm)) {
		snprintf(buf, CLI_FIGURE, "not known");
		return buf;
	}
	at = strftime(buf, CLI_FIGURE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + at, CLI_FIGURE - at, ".%06uZ", (unsigned)(real_ns % 1000000000 / 1000));
	return buf;
}

const char *cli_number(double value, char *buf)
{
	snprintf(buf, CLI_FIGURE, value >= 1e5 && value < 1e15 ? "%.0f" : "%.6g", value);
	return buf;
}

const char *cli_safe(const char *text)
{
	static char bufs[8][1300];
	static unsigned turn;
	char *buf = bufs[turn++ % 8];
	size_t at = 0;

	while (*text && at + 5 < sizeof(bufs[0])) {
		size_t len = weft__utf8_length(text);
		unsigned char c = (unsigned char)*text;

		/* Control characters, their 8-bit twins (U+0080 to U+009F), and bytes that are no text. */
		if (len == 0 || c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0)) {
			buf[at++] = '?';
			text += len ? len : 1;
			continue;
		}
		memcpy(buf + at, text, len);
		at += len;
		text += len;
	}
	buf[at] = 0;
	return buf;
}

const char *cli_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *cli_style(enum cli_style style)
{
	static const char *const codes[] = {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"};
	static int on = -1;

	if (on < 0) {
		const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

		on = isatty(STDOUT_FILENO) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
	}
	return on ? codes[style] : "";
}

void cli_heading(const char *fmt, ...)
{
	va_list args;

	printf("\n%s", cli_style(CLI_BOLD));
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("%s\n", cli_style(CLI_PLAIN));
}

void cli_cell(struct cli_table *table, const char *fmt, ...)
{
	char text[1300];
	va_list args;
	char **grown;

	if (table->cut)
		return;
	grown = weft__grow(table->cells, &table->cap_cells, table->n_cells, sizeof(*grown));
	if (grown)
		table->cells = grown;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (!grown || !(table->cells[table->n_cells] = weft__strdup(cli_safe(text)))) {
		table->cut = true;
		return;
	}
	table->n_cells++;
}

/* Wide characters are counted as one. */
size_t cli_columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_cell(const char *text, size_t width, bool left, bool last)
{
	size_t pad = width - cli_columns(text);

	if (!left)
		printf("%*s", (int)pad, "");
	fputs(text, stdout);
	if (left && !last)
		printf("%*s", (int)pad, "");
	if (!last)
		fputs("  ", stdout);
}

static size_t width_of(const struct cli_table *table, size_t column)
{
	size_t width = cli_columns(table->titles[column]) - (table->titles[column][0] == '<'), i;

	for (i = column; i < table->n_cells; i += table->n_columns)
		if (cli_columns(table->cells[i]) > width)
			width = cli_columns(table->cells[i]);
	return width;
}

void cli_table_print(struct cli_table *table)
{
	size_t widths[32], i, n = table->n_columns;

	while (table->n_cells % n)
		weft__free(table->cells[--table->n_cells]);
	for (i = 0; i < n; i++)
		widths[i] = width_of(table, i);
	fputs(cli_style(CLI_DIM), stdout);
	for (i = 0; i < n; i++) {
		bool left = table->titles[i][0] == '<';

		print_cell(table->titles[i] + left, widths[i], left, i + 1 == n);
	}
	printf("%s\n", cli_style(CLI_PLAIN));
	for (i = 0; i < table->n_cells; i++) {
		print_cell(table->cells[i], widths[i % n], table->titles[i % n][0] == '<', (i + 1) % n == 0);
		if ((i + 1) % n == 0)
			putchar('\n');
		weft__free(table->cells[i]);
	}
	weft__free(table->cells);
	if (table->cut)
		puts("(out of memory: the rest of this table is missing)");
	table->cells = NULL;
	table->n_cells = table->cap_cells = 0;
}
