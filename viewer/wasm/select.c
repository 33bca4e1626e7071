/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of any table for the page: chosen by filters, put in order, and given column by column as typed arrays. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "trace/summary.h"
#include "view.h"

#define ROWID 255u /* the pseudo column with the index of the row */

static struct {
	void *at;
	size_t cap;
} rooms[VIEW_ROOMS];

static struct {
	enum weft__table_id table;
	uint64_t columns;
	struct {
		uint32_t column;
		enum weft__op op;
		double number;
		int64_t exact; /* of text its index, of hex its number */
		bool nothing;  /* no row can have it */
	} filters[WEFT__FILTERS_MAX];
	size_t n_filters;
	bool by_index; /* indices of rows are asked for: they are those of the whole table */
	struct view_store *store;
	uint32_t *rows;
	uint32_t n, total; /* that were chosen; that there are without the limit */
} chosen;

void *view_room(size_t slot, size_t bytes)
{
	if (bytes > rooms[slot].cap) {
		weft__free(rooms[slot].at);
		rooms[slot].at = weft__alloc(bytes);
		rooms[slot].cap = rooms[slot].at ? bytes : 0;
	}
	return rooms[slot].at;
}

/* Begins to choose; 0, or -ENOENT when there is no such table. The columns are those that will be gathered. */
VIEW_EXPORT int view_select(uint32_t table, uint32_t columns_low, uint32_t columns_high)
{
	if (table >= WEFT__N_TABLES)
		return -ENOENT;
	chosen.table = (enum weft__table_id)table;
	chosen.columns = (uint64_t)columns_high << 32 | columns_low;
	chosen.n_filters = 0;
	chosen.by_index = false;
	chosen.store = NULL;
	chosen.n = 0;
	return 0;
}

/* `op`: 0 =, 1 <, 2 <=, 3 >, 4 >=. `text` for columns that have any. */
VIEW_EXPORT int view_filter(uint32_t column, uint32_t op, double number, const char *text)
{
	enum weft__column_type type = WEFT__INT;
	uint32_t at;

	if (chosen.n_filters == WEFT__FILTERS_MAX || op > WEFT__GE)
		return -EINVAL;
	if (column != ROWID) {
		if (column >= weft__tables[chosen.table].n_columns)
			return -ENOENT;
		type = weft__tables[chosen.table].columns[column].type;
	}
	memset(&chosen.filters[chosen.n_filters], 0, sizeof(chosen.filters[0]));
	chosen.filters[chosen.n_filters].column = column;
	chosen.filters[chosen.n_filters].op = (enum weft__op)op;
	chosen.filters[chosen.n_filters].number = number;
	chosen.filters[chosen.n_filters].exact = (int64_t)number;
	if (type == WEFT__HEX) {
		chosen.filters[chosen.n_filters].exact = (int64_t)strtoull(text, NULL, 16);
	} else if (type == WEFT__TEXT || type == WEFT__TRACE) {
		at = view_text(text);
		chosen.filters[chosen.n_filters].exact = at;
		chosen.filters[chosen.n_filters].nothing = at == VIEW_NONE;
	}
	if (column != ROWID)
		chosen.columns |= UINT64_C(1) << column;
	chosen.by_index |= column == ROWID;
	chosen.n_filters++;
	return 0;
}

/* The index of rows will be gathered. */
VIEW_EXPORT void view_select_index(void)
{
	chosen.by_index = true;
}

static bool holds(enum weft__op op, double left, double right)
{
	switch (op) {
	case WEFT__EQ:
		return left == right;
	case WEFT__LT:
		return left < right;
	case WEFT__LE:
		return left <= right;
	case WEFT__GT:
		return left > right;
	default:
		return left >= right;
	}
}

static double real_of(int64_t bits)
{
	union weft__value value = {.i = bits};

	return value.f;
}

static bool row_holds(const struct view_store *store, uint32_t row)
{
	size_t i;

	for (i = 0; i < chosen.n_filters; i++) {
		uint32_t column = chosen.filters[i].column;
		enum weft__column_type type =
			column == ROWID ? WEFT__INT : weft__tables[store->table].columns[column].type;
		int64_t value = column == ROWID ? row : view_store_get(store, column, row);

		if (value == VIEW_NULL || chosen.filters[i].nothing)
			return false;
		if (type == WEFT__INT || type == WEFT__REAL
			    ? !holds(chosen.filters[i].op, type == WEFT__REAL ? real_of(value) : (double)value,
				     chosen.filters[i].number)
			    : value != chosen.filters[i].exact)
			return false;
	}
	return true;
}

struct keyed {
	int64_t key;
	uint32_t row;
};
static enum weft__column_type order_type;
static bool order_descending;

static int by_key(const void *left, const void *right)
{
	const struct keyed *a = left, *b = right;
	int order;

	if (a->key == VIEW_NULL || b->key == VIEW_NULL)
		return a->key == b->key ? 0 : a->key == VIEW_NULL ? 1 : -1;
	if (order_type == WEFT__TEXT || order_type == WEFT__TRACE) {
		order = strcmp(view_text_at((uint32_t)a->key), view_text_at((uint32_t)b->key));
	} else if (order_type == WEFT__REAL) {
		double x = real_of(a->key), y = real_of(b->key);

		order = x < y ? -1 : x > y;
	} else {
		order = a->key < b->key ? -1 : a->key > b->key;
	}
	return order_descending ? -order : order;
}

static int put_in_order(uint32_t column)
{
	struct keyed *keys = weft__alloc(((size_t)chosen.n + 1) * sizeof(*keys));
	uint32_t i;

	if (!keys)
		return -ENOMEM;
	for (i = 0; i < chosen.n; i++)
		keys[i] = (struct keyed){view_store_get(chosen.store, column, chosen.rows[i]), chosen.rows[i]};
	order_type = weft__tables[chosen.table].columns[column].type;
	weft__sort(keys, chosen.n, sizeof(*keys), by_key);
	for (i = 0; i < chosen.n; i++)
		chosen.rows[i] = keys[i].row;
	weft__free(keys);
	return 0;
}

/* Reading stops behind the poll whose slices are wanted. */
static void stop_behind_poll(struct weft__scan_opts *to, int64_t id)
{
	const struct view_store *polls = &view_trace.stores[WEFT__TABLE_POLL];
	uint32_t row = view_poll_row(id);
	int64_t end_ns = row == VIEW_NONE ? VIEW_NULL : view_store_get(polls, WEFT__COL_POLL_END_NS, row);

	if (end_ns == VIEW_NULL) /* it is not known, or goes on */
		return;
	if (end_ns > view_trace.shift_ns[id >> 44])
		to->until_ns = (uint64_t)(end_ns - view_trace.shift_ns[id >> 44]);
}

/* The filters that reading can do, so that a large table is not held to find one row of it. Moments of several
 * recordings are not counted from where the segments count them. */
static void reading_filters(struct weft__scan_opts *to)
{
	size_t i;

	for (i = 0; i < chosen.n_filters; i++) {
		uint32_t column = chosen.filters[i].column;
		double number = chosen.filters[i].number;

		if (column == ROWID || weft__tables[chosen.table].columns[column].type != WEFT__INT ||
		    !(fabs(number) < 9e15) || number != floor(number) ||
		    (view_trace.list.n != 1 && view_is_moment(chosen.table, column)))
			continue;
		to->filters[to->n_filters++] =
			(struct weft__filter){column, chosen.filters[i].op, {.i = (int64_t)number}};
		if (chosen.table == WEFT__TABLE_SLICE && column == WEFT__COL_SLICE_POLL_ID &&
		    chosen.filters[i].op == WEFT__EQ)
			stop_behind_poll(to, (int64_t)number);
	}
}

/* Chooses. `order` -1: as in the table; a limit of 0 is none. Returns the number of rows or a negative error. */
VIEW_EXPORT int view_select_run(uint32_t limit, int order, int descending)
{
	struct weft__scan_opts where = {.n_filters = 0};
	uint32_t i;

	if (order >= 0 && (size_t)order >= weft__tables[chosen.table].n_columns)
		return -ENOENT;
	if (order >= 0)
		chosen.columns |= UINT64_C(1) << order;
	if (!chosen.by_index)
		reading_filters(&where);
	chosen.store = view_table_where(chosen.table, chosen.columns, &where);
	chosen.rows =
		chosen.store ? view_room(VIEW_ROOM_SELECT, ((size_t)chosen.store->n + 1) * sizeof(uint32_t)) : NULL;
	if (!chosen.rows)
		return -ENOMEM;
	for (i = 0; i < chosen.store->n; i++) {
		if (!row_holds(chosen.store, i))
			continue;
		chosen.rows[chosen.n++] = i;
		if (order < 0 && limit && chosen.n == limit)
			break;
	}
	chosen.total = chosen.n;
	order_descending = descending;
	if (order >= 0 && put_in_order((uint32_t)order) < 0)
		return -ENOMEM;
	if (limit && chosen.n > limit)
		chosen.n = limit;
	return (int)chosen.n;
}

static uint32_t hex_text(uint64_t value)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return view_text(text);
}

/* The column of the rows that were chosen: doubles of numbers, NaN for NULL; indices of texts else. */
VIEW_EXPORT const void *view_gather(uint32_t column)
{
	enum weft__column_type type = column == ROWID ? WEFT__INT : weft__tables[chosen.table].columns[column].type;
	void *room = view_room(VIEW_ROOM_GATHER, ((size_t)chosen.n + 1) * sizeof(double));
	uint32_t i;

	for (i = 0; room && i < chosen.n; i++) {
		uint32_t row = chosen.rows[i];
		int64_t value = column == ROWID ? row : view_store_get(chosen.store, column, row);

		if (type == WEFT__INT)
			((double *)room)[i] = value == VIEW_NULL ? NAN : (double)value;
		else if (type == WEFT__REAL)
			((double *)room)[i] = value == VIEW_NULL ? NAN : real_of(value);
		else if (type == WEFT__HEX)
			((uint32_t *)room)[i] = value == VIEW_NULL ? VIEW_NONE : hex_text((uint64_t)value);
		else
			((uint32_t *)room)[i] = value == VIEW_NULL ? VIEW_NONE : (uint32_t)value;
	}
	return room;
}

/* Texts for the page. */
VIEW_EXPORT uint32_t view_texts(void)
{
	return view_text_count();
}

VIEW_EXPORT const char *view_text_get(uint32_t index)
{
	return view_text_at(index);
}

/* The tables and columns, as one text: a line a table or column, fields between tabs. */
VIEW_EXPORT const char *view_schema(void)
{
	static const char types[] = {
		[WEFT__INT] = 'n', [WEFT__TEXT] = 't', [WEFT__HEX] = 'h', [WEFT__TRACE] = 'i', [WEFT__REAL] = 'r'};
	size_t i, j, n = 0, bytes = 128 * 1024;
	char *to = view_room(VIEW_ROOM_TEXT, bytes);

	for (i = 0; to && i < WEFT__N_TABLES; i++) {
		const struct weft__table *table = &weft__tables[i];

		n += (size_t)snprintf(to + n, bytes - n, "T\t%s\t%s\n", table->name, table->meaning);
		for (j = 0; j < table->n_columns; j++) {
			const struct weft__column *column = &table->columns[j];

			n += (size_t)snprintf(to + n, bytes - n, "C\t%s\t%c\t%s\t%s\t%s\n", column->name,
					      types[column->type], column->unit, column->meaning, column->absent);
		}
	}
	return to;
}
