/* SPDX-License-Identifier: Apache-2.0 */
/* Figures and tables for people. Functions with a `buf` write at most 32 bytes into it and answer it. */
#ifndef WEFT_CLI_PRINT_H
#define WEFT_CLI_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_FIGURE 32

const char *cli_ns(uint64_t ns, char *buf);        /* "52.3 ms" */
const char *cli_count(uint64_t n, char *buf);      /* "12,345" */
const char *cli_bytes(uint64_t n, char *buf);      /* "4.1 MiB" */
const char *cli_percent(double share, char *buf);  /* 0.423 -> "42.3 %" */
const char *cli_moment(uint64_t ns, char *buf);    /* "+3.214567 s" */
const char *cli_wall(uint64_t real_ns, char *buf); /* "2026-09-01T12:00:01.123456Z", "not known" for 0 */
const char *cli_number(double value, char *buf);   /* at most 6 digits, no trailing zeros */

/* The text with everything that a terminal might obey shown as '?'. One of eight static buffers: use it soon. */
const char *cli_safe(const char *text);

/* The name of a function in at most `columns`, at least 16: arguments and what is in <> go first, then the outer
 * scopes. `buf` has 4 bytes for each column and one more. */
const char *cli_function(const char *name, size_t columns, char *buf);

/* The columns that a text takes on a screen. */
size_t cli_columns(const char *text);

/* The last part of a path. */
const char *cli_base(const char *path);

/* Terminal styles: "" unless stdout is a terminal and NO_COLOR is not set. */
enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_YELLOW };
const char *cli_style(enum cli_style style);

void cli_heading(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A table is filled cell by cell, row after row, and printed when it is complete. Columns whose title begins with
 * '<' are aligned left. When memory runs out, what there is gets printed and `cut` is set. */
struct cli_table {
	const char *const *titles;
	size_t n_columns;
	char **cells;
	size_t n_cells, cap_cells;
	bool cut;
};
void cli_cell(struct cli_table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_table_print(struct cli_table *table); /* and empties it */

#endif
