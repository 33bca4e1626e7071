/* SPDX-License-Identifier: Apache-2.0 */
/* The tables as SQLite sees them: virtual, read-only, nothing is imported.
 *
 *  * A plain scan threads rows from the segments. Comparisons with constants go down to it, so that rows are left out
 * before SQLite sees them, and reading stops behind an upper bound of time. SQLite checks them again, so they may let
 * too much through, never too little.
 *
 *  * A join looks rows of the inner table up, once for each row of the outer one. A scan each time would take forever,
 * so the table is read once into memory, with a hash of the column that is asked for. A table that is scanned again
 * and again is kept, too. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli.h"
#include "query.h"

#define SCANS_MAX 2 /* of a table in one statement, before it is kept */

struct table {
	sqlite3_vtab base;
	struct query_of *of;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct weft__scan *scan; /* NULL: rows are in the cache */
	const struct weft__row *row;
	size_t at;                      /* in the cache */
	const uint32_t *next;           /* of an index; NULL: all rows */
	uint64_t number;                /* of the row */
	char *texts[WEFT__FILTERS_MAX]; /* of filters */
	size_t n_texts;
};

static int fail(struct query_of *of, sqlite3_vtab *vtab, const char *why)
{
	sqlite3_free(vtab->zErrMsg);
	vtab->zErrMsg = sqlite3_mprintf("table %s: %s", weft__tables[of->table].name, why);
	return SQLITE_ERROR;
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **err)
{
	struct query_of *of = aux;
	struct table *table = sqlite3_malloc(sizeof(*table));
	char *sql = query_declare(&weft__tables[of->table]);
	int rc = table && sql ? sqlite3_declare_vtab(db, sql) : SQLITE_NOMEM;

	(void)argc;
	(void)argv;
	(void)err;
	sqlite3_free(sql);
	if (rc != SQLITE_OK) {
		sqlite3_free(table);
		return rc;
	}
	*table = (struct table){.of = of};
	*ret = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *vtab)
{
	sqlite3_free(vtab);
	return SQLITE_OK;
}

static bool op_of(int sqlite_op, enum weft__op *op)
{
	switch (sqlite_op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		*op = WEFT__EQ;
		return true;
	case SQLITE_INDEX_CONSTRAINT_LT:
		*op = WEFT__LT;
		return true;
	case SQLITE_INDEX_CONSTRAINT_LE:
		*op = WEFT__LE;
		return true;
	case SQLITE_INDEX_CONSTRAINT_GT:
		*op = WEFT__GT;
		return true;
	case SQLITE_INDEX_CONSTRAINT_GE:
		*op = WEFT__GE;
		return true;
	default:
		return false;
	}
}

/* What SQLite asks for and a scan can do. */
static bool can_filter(const struct weft__table *table, sqlite3_index_info *info, int i, enum weft__op *op)
{
	int column = info->aConstraint[i].iColumn;

	if (!info->aConstraint[i].usable || column < 0 || !op_of(info->aConstraint[i].op, op))
		return false;
	if (table->columns[column].type == WEFT__INT)
		return true;
	return table->columns[column].type == WEFT__TEXT && *op == WEFT__EQ &&
	       strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
}

/* Whether it is the same value for all of the statement. */
static bool is_constant(sqlite3_index_info *info, int i)
{
	sqlite3_value *value = NULL;

	return sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK && value;
}

/* idxNum: 1 + the column that rows are looked up by, or 0. idxStr: the columns that are used, and for each argument of
 * xFilter its column and operator. */
static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct weft__table *table = &weft__tables[((struct table *)vtab)->of->table];
	bool small = ((struct table *)vtab)->of->table >= WEFT__TABLE_LOSS;
	double rows = small ? 1000 : 1e6;
	sqlite3_str *text = sqlite3_str_new(NULL);
	enum weft__op op;
	int i, n = 0;

	((struct table *)vtab)->of->planned |= info->colUsed;
	sqlite3_str_appendf(text, "%llu", (unsigned long long)info->colUsed);
	for (i = 0; i < info->nConstraint; i++)
		if (can_filter(table, info, i, &op) && op == WEFT__EQ &&
		    table->columns[info->aConstraint[i].iColumn].type == WEFT__INT && !is_constant(info, i)) {
			info->idxNum = 1 + info->aConstraint[i].iColumn;
			info->aConstraintUsage[i].argvIndex = ++n;
			sqlite3_str_appendf(text, " %d %d", info->aConstraint[i].iColumn, (int)op);
			rows = table->columns[info->aConstraint[i].iColumn].flags & WEFT__COLUMN_KEY ? 1 : 20;
			break;
		}
	for (i = 0; i < info->nConstraint && !info->idxNum && n < WEFT__FILTERS_MAX; i++)
		if (can_filter(table, info, i, &op)) {
			info->aConstraintUsage[i].argvIndex = ++n;
			sqlite3_str_appendf(text, " %d %d", info->aConstraint[i].iColumn, (int)op);
			rows /= op == WEFT__EQ ? 10 : 3;
		}
	info->estimatedRows = (sqlite3_int64)rows + 1;
	info->estimatedCost = info->idxNum ? rows * 2 : small ? 1000 : 1e7 + rows;
	info->idxStr = sqlite3_str_finish(text);
	info->needToFreeIdxStr = 1;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
	struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	(void)vtab;
	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct cursor){.scan = NULL};
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void reset(struct cursor *cursor)
{
	weft__scan_close(cursor->scan);
	cursor->scan = NULL;
	cursor->row = NULL;
	while (cursor->n_texts > 0)
		sqlite3_free(cursor->texts[--cursor->n_texts]);
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	reset((struct cursor *)base);
	sqlite3_free(base);
	return SQLITE_OK;
}

static void show_cached(struct cursor *cursor, const struct query_cache *cache, size_t at)
{
	cursor->at = at;
	cursor->row = at < cache->n ? query_cached(cache, at) : NULL;
}

/* A comparison of integers that lets through all that the one with a REAL does. */
static int64_t whole(double value, enum weft__op op)
{
	double limit = 9.2e18;

	if (value >= limit)
		return INT64_MAX;
	if (value <= -limit)
		return INT64_MIN;
	return (int64_t)value + (op == WEFT__LT || op == WEFT__LE ? 1 : op == WEFT__GT || op == WEFT__GE ? -1 : 0);
}

/* False: no row can pass. One that is not understood is left to SQLite. */
static bool add_filter(struct cursor *cursor, struct weft__scan_opts *opts, const struct weft__table *table,
		       struct weft__filter filter, sqlite3_value *value)
{
	const char *text;

	switch (sqlite3_value_type(value)) {
	case SQLITE_NULL:
		return false;
	case SQLITE_INTEGER:
		filter.value.i = sqlite3_value_int64(value);
		break;
	case SQLITE_FLOAT:
		if (filter.op == WEFT__EQ)
			return true;
		filter.value.i = whole(sqlite3_value_double(value), filter.op);
		break;
	case SQLITE_TEXT:
		text = (const char *)sqlite3_value_text(value);
		if (table->columns[filter.column].type != WEFT__TEXT)
			return true;
		cursor->texts[cursor->n_texts] = text ? sqlite3_mprintf("%s", text) : NULL;
		if (!cursor->texts[cursor->n_texts])
			return true;
		filter.value.text = cursor->texts[cursor->n_texts++];
		opts->filters[opts->n_filters++] = filter;
		return true;
	default:
		return true;
	}
	if (table->columns[filter.column].type == WEFT__INT)
		opts->filters[opts->n_filters++] = filter;
	return true;
}

static int failed(struct cursor *cursor, int rc)
{
	sqlite3_vtab *vtab = cursor->base.pVtab;
	struct query_of *of = ((struct table *)vtab)->of;

	if (rc == -ENOMEM)
		return SQLITE_NOMEM;
	if (rc == -E2BIG)
		return fail(of, vtab,
			    "more rows than fit into 1 GiB, which a join has to look rows up in; select what is needed "
			    "of it first: with x as materialized (select ... where ...) select ... join x");
	return fail(of, vtab, strerror(-rc));
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct query_cache *cache = &((struct table *)base->pVtab)->of->cache;
	int rc;

	cursor->number++;
	if (!cursor->scan) {
		show_cached(cursor, cache, cursor->next ? cursor->next[cursor->at] : cursor->at + 1);
		return SQLITE_OK;
	}
	rc = weft__scan_next(cursor->scan, &cursor->row);
	if (rc > 0)
		return SQLITE_OK;
	cli_progress_end();
	cursor->row = NULL;
	return rc == 0 ? SQLITE_OK : failed(cursor, rc);
}

static int look_up(struct cursor *cursor, struct query_of *of, uint64_t columns, size_t column, sqlite3_value *value)
{
	int rc;

	if (sqlite3_value_numeric_type(value) != SQLITE_INTEGER)
		return SQLITE_OK;
	rc = query_cache_load(of, columns | UINT64_C(1) << column);
	if (rc == 0)
		rc = query_index_make(&of->cache, column);
	if (rc < 0)
		return failed(cursor, rc);
	cursor->next = of->cache.index[column].next;
	show_cached(cursor, &of->cache,
		    weft__map_get(&of->cache.index[column].first, (uint64_t)sqlite3_value_int64(value)));
	return SQLITE_OK;
}

/* Whether the whole table is in the cache now, as it was asked for often. */
static bool is_kept(struct query_of *of, uint64_t columns)
{
	return of->n_scans > SCANS_MAX && query_cache_load(of, columns) == 0;
}

static int filter_rows(sqlite3_vtab_cursor *base, int lookup, const char *plan, int argc, sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct query_of *of = ((struct table *)base->pVtab)->of;
	const struct weft__table *table = &weft__tables[of->table];
	struct weft__scan_opts opts = {.table = of->table, .progress = of->query->quiet ? NULL : query_progress};
	char *rest;
	int i, rc;

	reset(cursor);
	cursor->next = NULL;
	cursor->number = 0;
	opts.columns = strtoull(plan, &rest, 10);
	if (opts.columns == 0) /* as for count(*) */
		opts.columns = 1;
	if (lookup)
		return look_up(cursor, of, opts.columns, (size_t)lookup - 1, argv[0]);
	for (i = 0; i < argc; i++) {
		struct weft__filter filter = {.column = (uint32_t)strtoul(rest, &rest, 10)};

		filter.op = (enum weft__op)strtoul(rest, &rest, 10);
		if (!add_filter(cursor, &opts, table, filter, argv[i]))
			return SQLITE_OK;
	}
	of->n_scans++;
	if (is_kept(of, opts.columns)) {
		show_cached(cursor, &of->cache, 0);
		return SQLITE_OK;
	}
	rc = weft__scan_open(&cursor->scan, &of->query->set, &opts);
	return rc < 0 ? failed(cursor, rc) : next_row(base);
}

static int is_end(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->row == NULL;
}

static int get_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int i)
{
	const struct weft__table *table = &weft__tables[((struct table *)base->pVtab)->of->table];
	const struct weft__row *row = ((struct cursor *)base)->row;
	char hex[40];

	if (!weft__row_has(row, (size_t)i))
		return SQLITE_OK;
	switch (table->columns[i].type) {
	case WEFT__INT:
		sqlite3_result_int64(context, row->at[i].i);
		break;
	case WEFT__REAL:
		sqlite3_result_double(context, row->at[i].f);
		break;
	case WEFT__TEXT:
		sqlite3_result_text(context, row->at[i].text, -1,
				    row->at[i].text == row->own ? SQLITE_TRANSIENT : SQLITE_STATIC);
		break;
	case WEFT__HEX:
		snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)row->at[i].i);
		sqlite3_result_text(context, hex, -1, SQLITE_TRANSIENT);
		break;
	default:
		snprintf(hex, sizeof(hex), "%016llx%016llx", (unsigned long long)row->trace[0],
			 (unsigned long long)row->trace[1]);
		sqlite3_result_text(context, hex, -1, SQLITE_TRANSIENT);
	}
	return SQLITE_OK;
}

static int get_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = (sqlite3_int64)((struct cursor *)base)->number;
	return SQLITE_OK;
}

/* Without xCreate there is one table of the module's own name, in every database, and no other. */
static const sqlite3_module module = {
	.iVersion = 1,
	.xConnect = connect_table,
	.xDisconnect = disconnect_table,
	.xBestIndex = best_index,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter_rows,
	.xNext = next_row,
	.xEof = is_end,
	.xColumn = get_column,
	.xRowid = get_rowid,
};

int query_open(struct query *query)
{
	int rc = sqlite3_open_v2(":memory:", &query->db, SQLITE_OPEN_READWRITE, NULL);
	size_t i;

	for (i = 0; i < WEFT__N_TABLES && rc == SQLITE_OK; i++) {
		query->tables[i].query = query;
		query->tables[i].table = (enum weft__table_id)i;
		rc = sqlite3_create_module(query->db, weft__tables[i].name, &module, &query->tables[i]);
	}
	if (rc == SQLITE_OK)
		rc = query_percentile_add(query->db);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_limit(query->db, SQLITE_LIMIT_ATTACHED, 0); /* no file is read or written */
	/* A column that is misspelled in double quotes is an error, not a text. */
	sqlite3_db_config(query->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(query->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	return SQLITE_OK;
}

void query_close(struct query *query)
{
	size_t i;

	sqlite3_close(query->db);
	for (i = 0; i < WEFT__N_TABLES; i++)
		query_cache_clear(&query->tables[i].cache);
	weft__set_fini(&query->set);
}
