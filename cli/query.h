/* SPDX-License-Identifier: Apache-2.0 */
/* weft query: SQL over the rows of src/trace. query.c reads the command line, query_table.c makes SQLite see the
 * tables, query_run.c runs statements and the prompt, query_print.c prints, query_saved.c has the saved questions,
 * query_schema.c the schema. */
#ifndef WEFT_CLI_QUERY_H
#define WEFT_CLI_QUERY_H

#include <sqlite3.h>
#include <stdbool.h>

#include "trace/trace.h"

enum query_format { QUERY_TABLE, QUERY_CSV, QUERY_JSON };

/* Rows of one table in memory, for statements that wall sample rows up, or read a table again and again. */
struct query_index {
	struct weft__map first; /* by value: number of a row, from 0 on */
	uint32_t *next;         /* of the same value, by row; UINT32_MAX: the last */
	bool made;
};
struct query_cache {
	uint64_t columns; /* that are in it; 0: it is empty */
	char *rows;
	size_t n, cap, stride;
	struct query_index index[WEFT__COLUMNS_MAX];
};

struct query;
struct query_of {
	struct query *query;
	enum weft__table_id table;
	struct query_cache cache;
	uint64_t planned; /* columns that some statement uses */
	uint32_t n_scans; /* of this statement */
};

struct query {
	struct weft__set set;
	sqlite3 *db;
	enum query_format format;
	bool quiet; /* no word of progress */
	struct query_of tables[WEFT__N_TABLES];
};

/* query_percentile.c: percentile(value, p). 0 or a SQLite error. */
int query_percentile_add(sqlite3 *db);

/* query_table.c. 0 or a SQLite error. */
int query_open(struct query *query);
void query_close(struct query *query);

/* query_cache.c. Load: all rows, with these columns at least, and all that plans ask for. Returns 0, -ENOMEM, or -E2BIG
 * when they are too many. Make: an index of rows that are loaded. */
int query_cache_load(struct query_of *of, uint64_t columns);
int query_index_make(struct query_cache *cache, size_t column);
void query_cache_clear(struct query_cache *cache);
static inline struct weft__row *query_cached(const struct query_cache *cache, size_t i)
{
	return (struct weft__row *)(void *)(cache->rows + i * cache->stride);
}
void query_progress(void *data, uint64_t n_events, uint64_t total); /* of a scan */

/* query_run.c. CLI_OK, CLI_FAILED, or CLI_USAGE for what SQLite does not understand, after saying so. */
int query_statements(struct query *query, const char *sql);
int query_prompt(struct query *query);

/* query_print.c: the rows of a statement. A SQLite code. */
int query_print(sqlite3_stmt *statement, enum query_format format);

/* query_saved.c. NULL: there is none of that name. */
struct query_saved {
	const char *name, *what, *sql;
};
extern const struct query_saved query_saved[];
const struct query_saved *query_saved_find(const char *name);
void query_saved_list(void);

/* query_schema.c: SQL of a table for sqlite3_declare_vtab, to be freed with sqlite3_free; the whole schema for people;
 * docs/TABLES.md. */
char *query_declare(const struct weft__table *table);
void query_schema(void);
void query_tables_md(void);

#endif
