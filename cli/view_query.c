/* SPDX-License-Identifier: Apache-2.0 */
/* SQL of the page: one statement that reads, over the segments that the page shows, by the code of weft query. What the
 * page sends is not trusted: nothing but select is authorized, and length, time, memory and rows have limits. */
#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/json.h"
#include "analyze/recording.h"
#include "query.h"
#include "view.h"

#define ROWS_MAX 2000
#define ANSWER_BYTES ((long)16 << 20)
#define CELL_BYTES (1 << 20)
#define HEAP_BYTES ((sqlite3_int64)1 << 30) /* of SQLite */
#define TIME_MS 10000
#define STEPS 1000               /* of SQLite between two looks at the clock */
#define EXACT (INT64_C(1) << 53) /* what JavaScript holds in a number */
#define TOO_LONG                                                                                                       \
	"the statement took longer than 10 s and was stopped: ask for less, or use weft query, which has no limit"
#define ENDING "weft view is ending"
#define ONLY_SELECT ": only select is allowed here"

struct view_query {
	struct view_files *files;
	struct weft__recordings list;
	struct query query;
	bool loaded;
	uint64_t turn; /* of the files, as they were loaded */
	uint64_t until_ms;
	bool is_late;
	atomic_bool ends;
	pthread_mutex_t lock;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Called by SQLite now and then; true ends the statement. */
static int is_over(void *data)
{
	struct view_query *view = data;

	view->is_late = now_ms() > view->until_ms;
	return view->is_late || atomic_load(&view->ends);
}

static int authorize(void *data, int action, const char *first, const char *second, const char *database,
		     const char *trigger)
{
	(void)data;
	(void)first;
	(void)database;
	(void)trigger;
	if (action == SQLITE_FUNCTION)
		return second && strcmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE ? SQLITE_OK : SQLITE_DENY;
}

static void forget(struct view_query *view)
{
	if (view->loaded)
		query_close(&view->query);
	weft__recordings_fini(&view->list);
	memset(&view->query, 0, sizeof(view->query));
	memset(&view->list, 0, sizeof(view->list));
	view->loaded = false;
}

/* SQLite learns of a table at its first use, by what the authorizer refuses. */
static int know_tables(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	int rc = SQLITE_OK;
	char sql[128];
	size_t i;

	for (i = 0; i < WEFT__N_TABLES && rc == SQLITE_OK; i++) {
		snprintf(sql, sizeof(sql), "select 1 from \"%s\"", weft__tables[i].name);
		rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
		sqlite3_finalize(statement);
	}
	return rc;
}

/* The segments that are there now, once for all statements until they change. 0 or -ENOMEM. */
static int load(struct view_query *view)
{
	struct view_files *files = view->files;
	int rc = 0;
	size_t i;

	pthread_mutex_lock(&files->lock);
	if (view->loaded && view->turn == files->turns) {
		pthread_mutex_unlock(&files->lock);
		return 0;
	}
	forget(view);
	view->turn = files->turns;
	for (i = 0; i < files->n && rc == 0; i++)
		if (files->at[i].there && weft__recordings_add(&view->list, files->at[i].path, NULL) == -ENOMEM)
			rc = -ENOMEM;
	pthread_mutex_unlock(&files->lock);
	weft__recordings_settle(&view->list);
	view->query.quiet = true;
	view->loaded = true; /* from here on there is something to close */
	if (rc == 0)
		rc = weft__set_init(&view->query.set, &view->list, false);
	if (rc < 0 || query_open(&view->query) != SQLITE_OK || know_tables(view->query.db) != SQLITE_OK) {
		forget(view);
		return -ENOMEM;
	}
	sqlite3_hard_heap_limit64(HEAP_BYTES);
	sqlite3_limit(view->query.db, SQLITE_LIMIT_LENGTH, CELL_BYTES);
	sqlite3_set_authorizer(view->query.db, authorize, NULL);
	sqlite3_progress_handler(view->query.db, STEPS, is_over, view);
	return 0;
}

static void cell(struct weft__json *json, sqlite3_stmt *statement, int i)
{
	int64_t number;

	switch (sqlite3_column_type(statement, i)) {
	case SQLITE_INTEGER:
		number = sqlite3_column_int64(statement, i);
		if (number <= EXACT && number >= -EXACT)
			weft__json_i64(json, NULL, number);
		else
			weft__json_text(json, NULL, (const char *)sqlite3_column_text(statement, i));
		break;
	case SQLITE_FLOAT:
		weft__json_f64(json, NULL, sqlite3_column_double(statement, i));
		break;
	default:
		weft__json_text(json, NULL, (const char *)sqlite3_column_text(statement, i)); /* NULL: null */
	}
}

/* A SQLite code; SQLITE_DONE when all that fits is written. */
static int write_rows(sqlite3_stmt *statement, FILE *out)
{
	int rc, i, n = sqlite3_column_count(statement), n_rows = 0;
	struct weft__json json = {.out = out};
	bool truncated = false;

	weft__json_begin(&json, NULL, '{');
	weft__json_begin(&json, "columns", '[');
	for (i = 0; i < n; i++)
		weft__json_text(&json, NULL, sqlite3_column_name(statement, i));
	weft__json_end(&json, ']');
	weft__json_begin(&json, "rows", '[');
	while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
		truncated = n_rows++ == ROWS_MAX || ftell(out) > ANSWER_BYTES;
		if (truncated)
			break;
		weft__json_begin(&json, NULL, '[');
		for (i = 0; i < n; i++)
			cell(&json, statement, i);
		weft__json_end(&json, ']');
	}
	weft__json_end(&json, ']');
	weft__json_bool(&json, "truncated", truncated);
	weft__json_end(&json, '}');
	return truncated ? SQLITE_DONE : rc;
}

static void write_error(FILE *out, const char *why, const char *more, int offset)
{
	char text[1024];
	struct weft__json json = {.out = out};

	snprintf(text, sizeof(text), "%s%s", why, more);
	weft__json_begin(&json, NULL, '{');
	weft__json_text(&json, "error", text);
	if (offset >= 0)
		weft__json_i64(&json, "offset", offset);
	weft__json_end(&json, '}');
}

/* Why the last call of SQLite failed. */
static void write_why(struct view_query *view, FILE *out)
{
	sqlite3 *db = view->query.db;
	int code = sqlite3_errcode(db);

	if (code == SQLITE_INTERRUPT)
		write_error(out, view->is_late ? TOO_LONG : ENDING, "", -1);
	else
		write_error(out, sqlite3_errmsg(db), code == SQLITE_AUTH ? ONLY_SELECT : "", sqlite3_error_offset(db));
}

/* Whether there is anything but blanks and comments. */
static bool has_more(sqlite3 *db, const char *rest)
{
	sqlite3_stmt *statement = NULL;
	bool more = false;

	while (*rest && !more) {
		const char *from = rest;

		more = sqlite3_prepare_v2(db, from, -1, &statement, &rest) != SQLITE_OK || statement;
		sqlite3_finalize(statement);
		if (rest <= from)
			break;
	}
	return more;
}

/* With what one statement needs. */
static void run(struct view_query *view, const char *sql, FILE *out)
{
	sqlite3_stmt *statement = NULL;
	const char *rest = sql;
	long begin = ftell(out);
	size_t i;
	int rc;

	for (i = 0; i < WEFT__N_TABLES; i++)
		view->query.tables[i].n_scans = 0;
	view->is_late = false;
	view->until_ms = now_ms() + TIME_MS;
	rc = sqlite3_prepare_v2(view->query.db, sql, -1, &statement, &rest);
	if (rc != SQLITE_OK) {
		write_why(view, out);
	} else if (!statement) {
		write_error(out, "there is no statement", "", -1);
	} else if (has_more(view->query.db, rest)) {
		write_error(out, "this is more than one statement: ask one at a time", "", (int)(rest - sql));
	} else if (!sqlite3_stmt_readonly(statement) || sqlite3_column_count(statement) == 0) {
		write_error(out, "not authorized", ONLY_SELECT, -1);
	} else if (write_rows(statement, out) != SQLITE_DONE) {
		fseek(out, begin, SEEK_SET);
		write_why(view, out);
	}
	sqlite3_finalize(statement);
	for (i = 0; i < WEFT__N_TABLES; i++) { /* the page may stay open for days */
		query_cache_clear(&view->query.tables[i].cache);
		view->query.tables[i].planned = 0;
	}
}

int view_query_run(struct view_query *view, const char *sql, FILE *out)
{
	int rc;

	if (pthread_mutex_trylock(&view->lock) != 0)
		return -EBUSY;
	rc = load(view);
	if (rc == 0)
		run(view, sql, out);
	pthread_mutex_unlock(&view->lock);
	return rc;
}

void view_query_saved(FILE *out)
{
	struct weft__json json = {.out = out};
	const struct query_saved *saved;

	weft__json_begin(&json, NULL, '[');
	for (saved = query_saved; saved->name; saved++) {
		weft__json_begin(&json, NULL, '{');
		weft__json_text(&json, "name", saved->name);
		weft__json_text(&json, "what", saved->what);
		weft__json_text(&json, "sql", saved->sql);
		weft__json_end(&json, '}');
	}
	weft__json_end(&json, ']');
}

struct view_query *view_query_new(struct view_files *files)
{
	struct view_query *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->files = files;
	pthread_mutex_init(&view->lock, NULL);
	return view;
}

void view_query_end(struct view_query *view)
{
	atomic_store(&view->ends, true);
}

void view_query_free(struct view_query *view)
{
	if (!view)
		return;
	forget(view);
	pthread_mutex_destroy(&view->lock);
	free(view);
}
