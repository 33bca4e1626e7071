/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "print.h"
#include "query.h"

/* With the line of the statement and a mark below the place, where SQLite knows it. */
static int say_error(struct query *query, const char *sql)
{
	int offset = sqlite3_error_offset(query->db), code = sqlite3_errcode(query->db);
	size_t begin = 0, i;

	cli_fail("%s", sqlite3_errmsg(query->db));
	if (offset >= 0 && (size_t)offset <= strlen(sql)) {
		for (i = 0; i < (size_t)offset; i++)
			begin = sql[i] == '\n' ? i + 1 : begin;
		fprintf(stderr, "      %.*s\n      %*s^\n", (int)strcspn(sql + begin, "\n"), cli_safe(sql + begin),
			(int)((size_t)offset - begin), "");
	}
	if (strncmp(sqlite3_errmsg(query->db), "no such ", 8) == 0)
		fputs("Try 'weft query --schema': all tables and columns.\n", stderr);
	return code == SQLITE_NOMEM || code == SQLITE_IOERR || code == SQLITE_FULL ? CLI_FAILED : CLI_USAGE;
}

static int run_one(struct query *query, const char *sql, sqlite3_stmt *statement)
{
	size_t i;
	int rc;

	for (i = 0; i < WEFT__N_TABLES; i++)
		query->tables[i].n_scans = 0;
	rc = query_print(statement, query->format);
	return rc == SQLITE_DONE || rc == SQLITE_OK ? CLI_OK : say_error(query, sql);
}

int query_statements(struct query *query, const char *sql)
{
	sqlite3_stmt *statement;
	const char *rest = sql;
	int code = CLI_OK;

	while (*rest && code == CLI_OK) {
		sql = rest;
		if (sqlite3_prepare_v2(query->db, sql, -1, &statement, &rest) != SQLITE_OK)
			return say_error(query, sql);
		if (!statement) /* a comment, or nothing */
			continue;
		code = run_one(query, sql, statement);
		sqlite3_finalize(statement);
	}
	return code;
}

static void say_tables(void)
{
	size_t i;

	for (i = 0; i < WEFT__N_TABLES; i++)
		printf("%-21s %s\n", weft__tables[i].name, weft__tables[i].meaning);
}

/* False: that was the end. */
static bool run_command(struct query *query, char *line)
{
	const struct query_saved *saved;

	line[strcspn(line, " \t\n")] = 0;
	if (strcmp(line, ".quit") == 0 || strcmp(line, ".exit") == 0)
		return false;
	saved = query_saved_find(line + 1);
	if (strcmp(line, ".tables") == 0)
		say_tables();
	else if (strcmp(line, ".schema") == 0)
		query_schema();
	else if (strcmp(line, ".list") == 0)
		query_saved_list();
	else if (saved)
		(void)query_statements(query, saved->sql);
	else
		printf(".tables  .schema  .list: saved questions  .NAME: runs one of them  .quit\n"
		       "anything else is SQL, up to a semicolon\n");
	return true;
}

int query_prompt(struct query *query)
{
	bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	char *line = NULL, *sql = NULL, *grown;
	size_t cap = 0, n = 0;
	int code = CLI_OK;
	ssize_t got;

	if (terminal)
		printf("SQL over what was recorded. .tables, .schema, .list and .quit; statements end with a "
		       "semicolon.\n");
	for (;;) {
		if (terminal)
			fputs(n ? "   -> " : "weft> ", stdout);
		fflush(stdout);
		got = getline(&line, &cap, stdin);
		if (got < 0)
			break;
		if (n == 0 && line[0] == '.') {
			if (!run_command(query, line))
				break;
			continue;
		}
		if (n == 0 && !line[strspn(line, " \t\n")])
			continue;
		grown = realloc(sql, n + (size_t)got + 1);
		if (!grown) {
			code = cli_fail("out of memory");
			break;
		}
		sql = grown;
		memcpy(sql + n, line, (size_t)got + 1);
		n += (size_t)got;
		if (!sqlite3_complete(sql))
			continue;
		n = 0;
		code = query_statements(query, sql);
		if (code != CLI_OK && !terminal)
			break;
	}
	if (n) /* a script may leave the last semicolon out */
		code = query_statements(query, sql);
	if (terminal)
		putchar('\n');
	free(line);
	free(sql);
	return terminal && code == CLI_USAGE ? CLI_OK : code;
}
