/* SPDX-License-Identifier: Apache-2.0 */
/* The tables, as SQL and for people, from their one declaration. */
#include <stdio.h>
#include <string.h>

#include "query.h"
#include "trace/summary.h"

static const char *sql_type(enum weft__column_type type)
{
	return type == WEFT__INT ? "INTEGER" : type == WEFT__REAL ? "REAL" : "TEXT";
}

char *query_declare(const struct weft__table *table)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	size_t i;

	sqlite3_str_appendf(text, "CREATE TABLE %s(", table->name);
	for (i = 0; i < table->n_columns; i++)
		sqlite3_str_appendf(text, "%s%s %s", i ? ", " : "", table->columns[i].name,
				    sql_type(table->columns[i].type));
	sqlite3_str_appendall(text, ")");
	return sqlite3_str_finish(text);
}

void query_schema(void)
{
	size_t i, k;

	for (i = 0; i < WEFT__N_TABLES; i++) {
		const struct weft__table *table = &weft__tables[i];

		printf("%s-- %s\nCREATE TABLE %s (\n", i ? "\n" : "", table->meaning, table->name);
		for (k = 0; k < table->n_columns; k++) {
			const struct weft__column *column = &table->columns[k];

			printf("  %s %s%s -- %s%s%s%s\n", column->name, sql_type(column->type),
			       k + 1 < table->n_columns ? "," : "", column->meaning, column->absent[0] ? " NULL: " : "",
			       column->absent, column->absent[0] ? "." : "");
		}
		puts(");");
	}
}

/* "`busy_share`", or nothing. */
static void quoted(const char *text)
{
	if (text[0])
		printf(" `%s` |", text);
	else
		fputs("  |", stdout);
}

static void table_md(const struct weft__table *table, bool summary)
{
	size_t i;

	printf("\n## %s\n\n%s\n\n| column | type | unit | meaning | NULL when |%s\n|---|---|---|---|---|%s\n",
	       table->name, table->meaning, summary ? " in `--json` | in the text |" : "", summary ? "---|---|" : "");
	for (i = 0; i < table->n_columns; i++) {
		const struct weft__column *column = &table->columns[i];

		printf("| `%s` | %s | %s | %s | %s |", column->name, sql_type(column->type), column->unit,
		       column->meaning, column->absent);
		if (summary) {
			quoted(column->json);
			quoted(column->title);
		}
		putchar('\n');
	}
}

void query_tables_md(void)
{
	size_t i;

	puts("<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
	     "<!-- Written by tools/gen-tables from src/trace/tables.h and summaries.h: run that after a change. -->\n"
	     "# Tables\n\n"
	     "`weft query` shows what was recorded as these tables. Names of tables and columns are stable: columns "
	     "may be\n"
	     "added, none is renamed or changes its meaning.\n\n"
	     "Times that end in `_ns` are ns. Moments count from the start of the recording; `recording.start_unix_ns` "
	     "is the\n"
	     "wall time of that. What was not measured is NULL, never 0 and never a guess; the last column says when "
	     "that is.\n"
	     "Ids are unique over all recordings of one query. Numbers of tasks are the program's own.\n\n"
	     "The rows are resolved by the analysis of `weft report`, so sums over them are its figures. Tables whose\n"
	     "names end in `_summary` are those of the report itself: there the key in its `--json` and the heading in "
	     "its text\n"
	     "are given, too. A key with dots is an object in an object.\n\n"
	     "## Order of rows\n\n"
	     "Recordings come one after the other. Within one, rows come as they are known, in memory that does not "
	     "grow:\n\n"
	     "- `wait`, `wait_sum`, `offcpu`, `park`, `queue`, `event`, `context`, `wall`, `stuck` and counts: in "
	     "order "
	     "of time.\n"
	     "- `poll`, `slice`, `wake`: in order of the polls' ends for each thread. A poll comes when what its "
	     "thread "
	     "did in it\n"
	     "  is known: that is when a later poll of the same thread ends, or at the end of the recording. So the "
	     "rows "
	     "of a\n"
	     "  thread that seldom polls come later than those of others, and rows of threads are not in order among "
	     "each other.\n"
	     "  A poll comes after those that are nested in it.\n"
	     "- `sample`: in order of time, but for samples in polls that are recorded at their end (modes slow and "
	     "caught),\n"
	     "  which come after that poll.\n"
	     "- Summaries: as in the report.\n\n"
	     "`order by` puts rows in order; a program that reads them by `weft/trace.h` may merge them by thread.");
	for (i = 0; i < WEFT__N_TABLES; i++)
		table_md(&weft__tables[i], weft__is_summary((enum weft__table_id)i));
}
