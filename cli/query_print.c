/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a statement: as a table with aligned columns, as CSV, as JSON. On a terminal nothing is printed that it
 * might obey. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/json.h"
#include "base/alloc.h"
#include "print.h"
#include "query.h"

#define FIRST_ROWS 1000 /* whose widths are those of all */
#define WIDTH_MAX 120   /* of a column, as others follow it */

struct aligned {
	sqlite3_stmt *statement;
	int n;
	size_t *widths;
	bool *left;
	char **cells;
	size_t n_cells, cap_cells;
};

static const char *cell_text(sqlite3_stmt *statement, int i)
{
	const unsigned char *text = sqlite3_column_text(statement, i);

	return text ? (const char *)text : "NULL";
}

/* For people; numbers have as many digits as matter. */
static const char *shown(sqlite3_stmt *statement, int i, char buf[32])
{
	if (sqlite3_column_type(statement, i) != SQLITE_FLOAT)
		return cli_safe(cell_text(statement, i));
	snprintf(buf, 32, "%.7g", sqlite3_column_double(statement, i));
	return buf;
}

/* Text is never cut in the last column. */
static void print_aligned(const struct aligned *table, int i, const char *text)
{
	size_t width = table->widths[i], columns = cli_columns(text), pad = width > columns ? width - columns : 0;
	bool last = i + 1 == table->n;

	if (!table->left[i])
		printf("%*s", (int)pad, "");
	fputs(text, stdout);
	if (last)
		putchar('\n');
	else
		printf("%*s", (int)((table->left[i] ? pad : 0) + 2), "");
}

static void print_head(struct aligned *table)
{
	int i;

	fputs(cli_style(CLI_DIM), stdout);
	for (i = 0; i < table->n; i++)
		print_aligned(table, i, cli_safe(sqlite3_column_name(table->statement, i)));
	fputs(cli_style(CLI_PLAIN), stdout);
}

static void print_kept(struct aligned *table)
{
	size_t i;

	if (!table->cells && table->n_cells)
		return;
	print_head(table);
	for (i = 0; i < table->n_cells; i++) {
		print_aligned(table, (int)(i % (size_t)table->n), table->cells[i]);
		weft__free(table->cells[i]);
	}
	weft__free(table->cells);
	table->cells = NULL;
}

/* Into memory, until the widths are known. */
static int keep_row(struct aligned *table)
{
	char **grown, buf[32];
	size_t columns;
	int i;

	for (i = 0; i < table->n; i++) {
		grown = weft__grow(table->cells, &table->cap_cells, table->n_cells, sizeof(*grown));
		if (!grown)
			return SQLITE_NOMEM;
		table->cells = grown;
		grown[table->n_cells] = weft__strdup(shown(table->statement, i, buf));
		if (!grown[table->n_cells])
			return SQLITE_NOMEM;
		columns = cli_columns(grown[table->n_cells++]);
		if (columns > table->widths[i])
			table->widths[i] = columns < WIDTH_MAX ? columns : WIDTH_MAX;
		if (sqlite3_column_type(table->statement, i) == SQLITE_TEXT)
			table->left[i] = true;
	}
	return SQLITE_OK;
}

static int print_table(sqlite3_stmt *statement)
{
	struct aligned table = {.statement = statement, .n = sqlite3_column_count(statement)};
	size_t n_rows = 0;
	char buf[32];
	int rc, i;

	table.widths = weft__calloc((size_t)table.n + 1, sizeof(*table.widths));
	table.left = weft__calloc((size_t)table.n + 1, sizeof(*table.left));
	rc = table.widths && table.left ? SQLITE_ROW : SQLITE_NOMEM;
	for (i = 0; i < table.n && rc == SQLITE_ROW; i++)
		table.widths[i] = cli_columns(sqlite3_column_name(statement, i));
	while (rc == SQLITE_ROW && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
		if (n_rows == FIRST_ROWS)
			print_kept(&table);
		if (n_rows++ < FIRST_ROWS)
			rc = keep_row(&table) == SQLITE_OK ? SQLITE_ROW : SQLITE_NOMEM;
		else
			for (i = 0; i < table.n; i++)
				print_aligned(&table, i, shown(statement, i, buf));
	}
	if (n_rows <= FIRST_ROWS && (n_rows || rc == SQLITE_DONE) && table.n)
		print_kept(&table);
	weft__free(table.widths);
	weft__free(table.left);
	return rc;
}

static void print_csv_text(const char *text)
{
	const char *c;

	if (isatty(STDOUT_FILENO))
		text = cli_safe(text);
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (c = text; *c; c++) {
		if (*c == '"')
			putchar('"');
		putchar(*c);
	}
	putchar('"');
}

static int print_csv(sqlite3_stmt *statement)
{
	int rc, i, n = sqlite3_column_count(statement);

	for (i = 0; i < n; i++) {
		print_csv_text(sqlite3_column_name(statement, i));
		fputs(i + 1 < n ? "," : "\r\n", stdout);
	}
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
		for (i = 0; i < n; i++) {
			if (sqlite3_column_type(statement, i) != SQLITE_NULL)
				print_csv_text(cell_text(statement, i));
			fputs(i + 1 < n ? "," : "\r\n", stdout);
		}
	return rc;
}

static void print_json_cell(struct weft__json *json, sqlite3_stmt *statement, int i)
{
	const char *key = sqlite3_column_name(statement, i);

	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		weft__json_i64(json, key, sqlite3_column_int64(statement, i));
		break;
	case SQLITE_FLOAT:
		weft__json_f64(json, key, sqlite3_column_double(statement, i));
		break;
	case SQLITE_NULL:
		weft__json_null(json, key);
		break;
	default:
		weft__json_text(json, key, cell_text(statement, i));
	}
}

static int print_json(sqlite3_stmt *statement)
{
	struct weft__json json = {.out = stdout};
	int rc, i, n = sqlite3_column_count(statement);

	weft__json_begin(&json, NULL, '[');
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		weft__json_begin(&json, NULL, '{');
		for (i = 0; i < n; i++)
			print_json_cell(&json, statement, i);
		weft__json_end(&json, '}');
	}
	weft__json_end(&json, ']');
	return rc;
}

int query_print(sqlite3_stmt *statement, enum query_format format)
{
	if (sqlite3_column_count(statement) == 0)
		return sqlite3_step(statement);
	if (format == QUERY_TABLE)
		return print_table(statement);
	return format == QUERY_CSV ? print_csv(statement) : print_json(statement);
}
