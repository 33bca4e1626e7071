/* SPDX-License-Identifier: Apache-2.0 */
/* The public reader of rows (weft/trace.h). */
#include "weft/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "trace/trace.h"

struct weft_trace {
	struct weft__recordings list;
	struct weft__set set;
	char problem[1200];
};

struct weft_trace_rows {
	struct weft__scan *scan;
	const struct weft__table *table;
	const struct weft__row *row;
	size_t n_columns;
	uint8_t columns[WEFT__COLUMNS_MAX]; /* of the table, by the place that the caller knows */
	char *texts[WEFT__FILTERS_MAX];
	size_t n_texts;
	char text[40];
};

int weft_trace_table(size_t table, struct weft_trace_table *ret)
{
	struct weft_trace_table whole = {.size = ret->size};

	if (ret->size < offsetof(struct weft_trace_table, meaning))
		return -EINVAL;
	if (table >= WEFT__N_TABLES)
		return -ENOENT;
	whole.name = weft__tables[table].name;
	whole.meaning = weft__tables[table].meaning;
	whole.n_columns = weft__tables[table].n_columns;
	memcpy(ret, &whole, ret->size < sizeof(whole) ? ret->size : sizeof(whole));
	return 0;
}

static uint32_t public_type(enum weft__column_type type)
{
	switch (type) {
	case WEFT__INT:
		return WEFT_TRACE_NUMBER;
	case WEFT__TEXT:
		return WEFT_TRACE_TEXT;
	case WEFT__HEX:
		return WEFT_TRACE_HEX;
	case WEFT__REAL:
		return WEFT_TRACE_REAL;
	default:
		return WEFT_TRACE_ID;
	}
}

int weft_trace_column(size_t table, size_t column, struct weft_trace_column *ret)
{
	struct weft_trace_column whole = {.size = ret->size};
	const struct weft__column *of;

	if (ret->size < offsetof(struct weft_trace_column, unit))
		return -EINVAL;
	if (table >= WEFT__N_TABLES || column >= weft__tables[table].n_columns)
		return -ENOENT;
	of = &weft__tables[table].columns[column];
	whole.name = of->name;
	whole.unit = of->unit;
	whole.meaning = of->meaning;
	whole.absent = of->absent;
	whole.type = public_type(of->type);
	memcpy(ret, &whole, ret->size < sizeof(whole) ? ret->size : sizeof(whole));
	return 0;
}

/* Options as far as both know them; what the caller knows beyond must be 0. */
static int take_opts(void *to, size_t bytes, const void *from, size_t size)
{
	const uint8_t *beyond = from;
	size_t i;

	if (size < sizeof(size_t))
		return -EINVAL;
	for (i = bytes; i < size; i++)
		if (beyond[i])
			return -EINVAL;
	memcpy(to, from, size < bytes ? size : bytes);
	return 0;
}

int weft_trace_open(struct weft_trace **ret, const char *const *paths, size_t n_paths,
		    const struct weft_trace_opts *opts, struct weft_error *err)
{
	struct weft_trace_opts mine = {.size = sizeof(mine)};
	struct weft_trace *trace;
	size_t i;
	int rc = opts ? take_opts(&mine, sizeof(mine), opts, opts->size) : 0;

	if (rc < 0)
		return weft__fail(err, rc,
				  "options of weft_trace_open: size is wrong, or one that is not known is set");
	trace = weft__calloc(1, sizeof(*trace));
	if (!trace)
		return weft__fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < n_paths && rc == 0; i++)
		rc = weft__recordings_add(&trace->list, paths[i], err);
	weft__recordings_settle(&trace->list);
	if (rc == 0 && trace->list.n == 0)
		rc = weft__fail(err, -ENOENT, "no segments: %s",
				trace->list.n_refused ? trace->list.refused[0].why
						      : "give a .weft file or a directory of them");
	if (rc == 0 && weft__set_init(&trace->set, &trace->list, mine.no_symbols) < 0)
		rc = weft__fail(err, -ENOMEM, "out of memory");
	if (rc < 0) {
		weft_trace_close(trace);
		return rc;
	}
	*ret = trace;
	return 0;
}

void weft_trace_close(struct weft_trace *trace)
{
	if (!trace)
		return;
	weft__set_fini(&trace->set);
	weft__recordings_fini(&trace->list);
	weft__free(trace);
}

/* Whether there is one about the file, for the i-th of those that have; `*i` counts down. */
static const char *file_problem(struct weft_trace *trace, const struct weft__file *file, size_t *i)
{
	if (file->status == 0 && file->damaged_places == 0)
		return NULL;
	if ((*i)-- > 0)
		return NULL;
	snprintf(trace->problem, sizeof(trace->problem), "%s: %s", file->path,
		 file->status < 0 ? weft_strerror(file->status)
		 : file->damage   ? file->damage
				  : "damaged");
	return trace->problem;
}

const char *weft_trace_problem(struct weft_trace *trace, size_t i)
{
	const char *problem;
	size_t k, n;

	if (i < trace->list.n_refused) {
		snprintf(trace->problem, sizeof(trace->problem), "%s: %s", trace->list.refused[i].path,
			 trace->list.refused[i].why);
		return trace->problem;
	}
	i -= trace->list.n_refused;
	for (k = 0; k < trace->list.n; k++)
		for (n = 0; n < trace->list.all[k].n_files; n++) {
			problem = file_problem(trace, &trace->list.all[k].files[n], &i);
			if (problem)
				return problem;
		}
	return NULL;
}

/* Index, or the number of columns. */
static size_t find_column(const struct weft__table *table, const char *name)
{
	size_t i;

	for (i = 0; i < table->n_columns && strcmp(table->columns[i].name, name) != 0;)
		i++;
	return i;
}

static int choose_columns(struct weft_trace_rows *rows, const struct weft_trace_rows_opts *opts, uint64_t *mask,
			  struct weft_error *err)
{
	size_t i, at;

	rows->n_columns = opts->columns ? opts->n_columns : rows->table->n_columns;
	if (rows->n_columns > WEFT__COLUMNS_MAX)
		return weft__fail(err, -EINVAL, "more columns than table %s has", rows->table->name);
	for (i = 0, *mask = 0; i < rows->n_columns; i++) {
		at = opts->columns ? find_column(rows->table, opts->columns[i]) : i;
		if (at == rows->table->n_columns)
			return weft__fail(err, -ENOENT, "table %s has no column %s", rows->table->name,
					  opts->columns[i]);
		rows->columns[i] = (uint8_t)at;
		*mask |= UINT64_C(1) << at;
	}
	*mask |= *mask == 0;
	return 0;
}

static int add_filter(struct weft_trace_rows *rows, struct weft__scan_opts *to, const struct weft_trace_filter *filter,
		      struct weft_error *err)
{
	static const enum weft__op ops[] = {
		[WEFT_TRACE_EQ] = WEFT__EQ, [WEFT_TRACE_LT] = WEFT__LT, [WEFT_TRACE_LE] = WEFT__LE,
		[WEFT_TRACE_GT] = WEFT__GT, [WEFT_TRACE_GE] = WEFT__GE,
	};
	size_t at = filter->column ? find_column(rows->table, filter->column) : rows->table->n_columns;
	struct weft__filter mine = {.column = (uint32_t)at, .value.i = filter->number};
	bool text;

	if (at == rows->table->n_columns)
		return weft__fail(err, -ENOENT, "table %s has no column %s", rows->table->name,
				  filter->column ? filter->column : "without a name");
	text = rows->table->columns[at].type == WEFT__TEXT;
	if (filter->op < WEFT_TRACE_EQ || filter->op > WEFT_TRACE_GE || to->n_filters == WEFT__FILTERS_MAX ||
	    rows->table->columns[at].type == WEFT__TRACE || rows->table->columns[at].type == WEFT__REAL ||
	    (text && (filter->op != WEFT_TRACE_EQ || !filter->text)))
		return weft__fail(err, -EINVAL, "a filter of %s.%s is not possible", rows->table->name, filter->column);
	mine.op = ops[filter->op];
	if (text) {
		rows->texts[rows->n_texts] = weft__strdup(filter->text);
		if (!rows->texts[rows->n_texts])
			return weft__fail(err, -ENOMEM, "out of memory");
		mine.value.text = rows->texts[rows->n_texts++];
	}
	to->filters[to->n_filters++] = mine;
	return 0;
}

/* One of a program with smaller ones, or with larger ones of which it uses nothing that is not known here. */
static int take_filter(struct weft_trace_filter *ret, const struct weft_trace_rows_opts *opts, size_t i,
		       struct weft_error *err)
{
	const uint8_t *one = (const uint8_t *)opts->filters + i * opts->filter_size;
	size_t k;

	if (opts->filter_size < offsetof(struct weft_trace_filter, text) + sizeof(ret->text))
		return weft__fail(err, -EINVAL, "set filter_size to sizeof(struct weft_trace_filter)");
	for (k = sizeof(*ret); k < opts->filter_size; k++)
		if (one[k])
			return weft__fail(err, -E2BIG, "a filter has something that this version does not know");
	memcpy(ret, one, sizeof(*ret));
	return 0;
}

static int open_scan(struct weft_trace_rows *rows, struct weft_trace *trace, const struct weft_trace_rows_opts *opts,
		     struct weft_error *err)
{
	struct weft__scan_opts scan = {.table = (enum weft__table_id)(rows->table - weft__tables)};
	size_t i;
	int rc = choose_columns(rows, opts, &scan.columns, err);

	for (i = 0; i < opts->n_filters && rc == 0; i++) {
		struct weft_trace_filter filter = {0};

		rc = take_filter(&filter, opts, i, err);
		if (rc == 0)
			rc = add_filter(rows, &scan, &filter, err);
	}
	if (rc == 0 && weft__scan_open(&rows->scan, &trace->set, &scan) < 0)
		rc = weft__fail(err, -ENOMEM, "out of memory");
	return rc;
}

int weft_trace_rows_open(struct weft_trace_rows **ret, struct weft_trace *trace, const char *table,
			 const struct weft_trace_rows_opts *opts, struct weft_error *err)
{
	struct weft_trace_rows_opts mine = {.size = sizeof(mine)};
	enum weft__table_id id = weft__tables_find(table);
	struct weft_trace_rows *rows;
	int rc = opts ? take_opts(&mine, sizeof(mine), opts, opts->size) : 0;

	if (rc < 0)
		return weft__fail(err, rc,
				  "options of weft_trace_rows_open: size is wrong, or one that is not known is set");
	if (id == WEFT__N_TABLES)
		return weft__fail(err, -ENOENT, "there is no table %s", table);
	rows = weft__calloc(1, sizeof(*rows));
	if (!rows)
		return weft__fail(err, -ENOMEM, "out of memory");
	rows->table = &weft__tables[id];
	rc = open_scan(rows, trace, &mine, err);
	if (rc < 0) {
		weft_trace_rows_close(rows);
		return rc;
	}
	*ret = rows;
	return 0;
}

int weft_trace_rows_next(struct weft_trace_rows *rows)
{
	int rc = weft__scan_next(rows->scan, &rows->row);

	if (rc <= 0)
		rows->row = NULL;
	return rc;
}

int weft_trace_rows_is_null(const struct weft_trace_rows *rows, size_t column)
{
	return column >= rows->n_columns || !rows->row || !weft__row_has(rows->row, rows->columns[column]);
}

int64_t weft_trace_rows_number(const struct weft_trace_rows *rows, size_t column)
{
	enum weft__column_type type;

	if (weft_trace_rows_is_null(rows, column))
		return 0;
	type = rows->table->columns[rows->columns[column]].type;
	return type == WEFT__INT || type == WEFT__HEX ? rows->row->at[rows->columns[column]].i : 0;
}

double weft_trace_rows_real(const struct weft_trace_rows *rows, size_t column)
{
	if (weft_trace_rows_is_null(rows, column))
		return 0;
	return rows->table->columns[rows->columns[column]].type == WEFT__REAL
		       ? rows->row->at[rows->columns[column]].f
		       : (double)weft_trace_rows_number(rows, column);
}

const char *weft_trace_rows_text(struct weft_trace_rows *rows, size_t column)
{
	const union weft__value *value;

	if (weft_trace_rows_is_null(rows, column))
		return NULL;
	value = &rows->row->at[rows->columns[column]];
	switch (rows->table->columns[rows->columns[column]].type) {
	case WEFT__TEXT:
		return value->text;
	case WEFT__INT:
		snprintf(rows->text, sizeof(rows->text), "%" PRId64, value->i);
		break;
	case WEFT__REAL:
		snprintf(rows->text, sizeof(rows->text), "%.17g", value->f);
		break;
	case WEFT__HEX:
		snprintf(rows->text, sizeof(rows->text), "%016" PRIx64, (uint64_t)value->i);
		break;
	default:
		snprintf(rows->text, sizeof(rows->text), "%016" PRIx64 "%016" PRIx64, rows->row->trace[0],
			 rows->row->trace[1]);
	}
	return rows->text;
}

void weft_trace_rows_close(struct weft_trace_rows *rows)
{
	if (!rows)
		return;
	weft__scan_close(rows->scan);
	while (rows->n_texts > 0)
		weft__free(rows->texts[--rows->n_texts]);
	weft__free(rows);
}
