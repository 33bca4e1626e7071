/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/intern.h"

#define NEAR 256u

static struct {
	struct {
		const char *text;
		uint32_t id;
	} near[NEAR]; /* those that were asked for last */
	struct weft__intern by_text;
	struct weft__map by_address;
	const char **at;
	size_t n, cap;
	struct weft__texts texts;
} all;

static uint32_t text_new(const char *text, size_t bytes)
{
	const char **grown = weft__grow(all.at, &all.cap, all.n, sizeof(*grown));
	const char *kept;

	if (!grown)
		return VIEW_NONE;
	all.at = grown;
	kept = weft__texts_add_n(&all.texts, text, bytes);
	if (!kept || weft__intern_add(&all.by_text, text, bytes, (uint32_t)all.n + 1) < 0)
		return VIEW_NONE;
	grown[all.n] = kept;
	return (uint32_t)all.n++;
}

uint32_t view_text(const char *text)
{
	size_t bytes = text ? strlen(text) : 0;
	uint32_t id;

	if (!text)
		return VIEW_NONE;
	if (bytes > WEFT__TEXT_MAX)
		bytes = WEFT__TEXT_MAX;
	id = weft__intern_get(&all.by_text, text, bytes);
	return id ? id - 1 : text_new(text, bytes);
}

static uint32_t text_by_address(const char *text)
{
	uint32_t id = weft__map_get(&all.by_address, (uintptr_t)text);

	if (id != WEFT__MAP_NONE)
		return id;
	id = view_text(text);
	if (id != VIEW_NONE && weft__map_put(&all.by_address, (uintptr_t)text, id) < 0)
		return VIEW_NONE;
	return id;
}

uint32_t view_text_kept(const char *text)
{
	size_t slot = ((uintptr_t)text >> 2 ^ (uintptr_t)text >> 10) % NEAR;

	if (all.near[slot].text != text) {
		all.near[slot].id = text_by_address(text);
		all.near[slot].text = text;
	}
	return all.near[slot].id;
}

const char *view_text_at(uint32_t index)
{
	return index < all.n ? all.at[index] : NULL;
}

uint32_t view_text_count(void)
{
	return (uint32_t)all.n;
}

void view_texts_moved(void)
{
	memset(all.near, 0, sizeof(all.near));
	weft__map_fini(&all.by_address);
}

void view_texts_fini(void)
{
	weft__intern_fini(&all.by_text);
	weft__map_fini(&all.by_address);
	weft__texts_fini(&all.texts);
	weft__free(all.at);
	memset(&all, 0, sizeof(all));
}

/* Durations and moments both are ns; what is a moment is known by its name. */
bool view_is_moment(enum weft__table_id table, size_t at)
{
	const struct weft__column *column = &weft__tables[table].columns[at];
	static const char *const names[] = {"begin_ns", "end_ns",   "time_ns",      "wake_ns",
					    "first_ns", "spawn_ns", "first_poll_ns"};
	size_t i;

	if (column->form == WEFT__FORM_MOMENT)
		return true;
	if (table == WEFT__TABLE_LOSS && (!strcmp(column->name, "from_ns") || !strcmp(column->name, "to_ns")))
		return true;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(column->name, names[i]) == 0)
			return true;
	return false;
}

static size_t stride_of(const struct view_store *store)
{
	return sizeof(struct weft__row) + store->n_columns * sizeof(union weft__value);
}

static const struct weft__row *staged(const struct view_store *store, size_t i)
{
	return (const struct weft__row *)(const void *)(store->stage + i * stride_of(store));
}

int view_store_init(struct view_store *store, enum weft__table_id table, uint64_t columns)
{
	size_t i;

	memset(store, 0, sizeof(*store));
	store->table = table;
	store->n_columns = (uint32_t)weft__tables[table].n_columns;
	store->columns = columns;
	for (i = 0; i < store->n_columns; i++) {
		store->at[i].moment = view_is_moment(table, i);
	}
	store->stage = weft__alloc(VIEW_CHUNK * stride_of(store));
	store->shift_ns = weft__alloc(VIEW_CHUNK * sizeof(*store->shift_ns));
	return store->stage && store->shift_ns ? 0 : -ENOMEM;
}

static uint32_t width_of(uint64_t range)
{
	if (range < UINT8_MAX)
		return 1;
	if (range < UINT16_MAX)
		return 2;
	return range < UINT32_MAX ? 4 : 8;
}

/* NULL is the last value that the width has. */
#define PACK(type)                                                                                                     \
	for (i = 0; i < n; i++)                                                                                        \
	((type *)chunk->data)[i] = from[i] == VIEW_NULL ? (type)-1 : (type)((uint64_t)from[i] - (uint64_t)chunk->base)

static void pack_into(const struct view_chunk *chunk, const int64_t *from, size_t n)
{
	size_t i;

	if (chunk->width == 1)
		PACK(uint8_t);
	else if (chunk->width == 2)
		PACK(uint16_t);
	else if (chunk->width == 4)
		PACK(uint32_t);
	else
		memcpy(chunk->data, from, n * sizeof(*from));
}

static int64_t text_cell(const struct weft__row *row, enum weft__column_type type, size_t column)
{
	uint32_t text;
	char id[40];

	if (type == WEFT__TEXT) {
		text = view_text_kept(row->at[column].text);
	} else {
		snprintf(id, sizeof(id), "%016" PRIx64 "%016" PRIx64, row->trace[0], row->trace[1]);
		text = view_text(id);
	}
	return text == VIEW_NONE ? VIEW_NULL : (int64_t)text;
}

/* Reals are kept as their bits. A number that stands for NULL here is one off. */
static int64_t cell(const struct weft__row *row, enum weft__column_type type, size_t column)
{
	int64_t value;

	if (!weft__row_has(row, column))
		return VIEW_NULL;
	if (type == WEFT__TEXT || type == WEFT__TRACE)
		return text_cell(row, type, column);
	value = row->at[column].i;
	return value == VIEW_NULL ? VIEW_NULL + 1 : value;
}

struct gathered {
	int64_t at[VIEW_CHUNK];
	int64_t least, most;
	size_t n_set;
};

/* The column of the rows that are staged. */
static void gather(const struct view_store *store, size_t column, size_t n, struct gathered *to)
{
	enum weft__column_type type = weft__tables[store->table].columns[column].type;
	bool moment = store->at[column].moment;
	int64_t least = INT64_MAX, most = INT64_MIN;
	size_t i, n_set = 0;

	for (i = 0; i < n; i++) {
		int64_t value = cell(staged(store, i), type, column);

		if (value != VIEW_NULL) {
			value += moment ? store->shift_ns[i] : 0;
			least = value < least ? value : least;
			most = value > most ? value : most;
			n_set++;
		}
		to->at[i] = value;
	}
	to->least = least;
	to->most = most;
	to->n_set = n_set;
}

/* Columns that nearly always follow from a begin and a length. */
static const struct follows {
	enum weft__table_id table;
	uint8_t column, begin, length;
	int8_t sign;
} follows[] = {
	{WEFT__TABLE_POLL, WEFT__COL_POLL_END_NS, WEFT__COL_POLL_BEGIN_NS, WEFT__COL_POLL_DURATION_NS, 1},
	{WEFT__TABLE_POLL, WEFT__COL_POLL_WAKE_NS, WEFT__COL_POLL_BEGIN_NS, WEFT__COL_POLL_WAKE_DELAY_NS, -1},
	{WEFT__TABLE_PARK, WEFT__COL_PARK_END_NS, WEFT__COL_PARK_BEGIN_NS, WEFT__COL_PARK_DURATION_NS, 1},
};

static const struct follows *follows_of(const struct view_store *store, size_t column)
{
	size_t i;

	for (i = 0; i < sizeof(follows) / sizeof(follows[0]); i++)
		if (follows[i].table == store->table && follows[i].column == column &&
		    store->columns >> follows[i].begin & 1 && store->columns >> follows[i].length & 1)
			return &follows[i];
	return NULL;
}

/* Whether it does so in the rows that are staged. */
static bool all_follow(const struct view_store *store, const struct follows *of, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct weft__row *row = staged(store, i);
		bool there = weft__row_has(row, of->column);

		if (!weft__row_has(row, of->begin) || weft__row_has(row, of->length) != there)
			return false;
		if (there && row->at[of->column].i != row->at[of->begin].i + of->sign * row->at[of->length].i)
			return false;
	}
	return true;
}

static int pack(struct view_store *store, size_t at, size_t n)
{
	const struct follows *of = follows_of(store, at);
	struct view_column *column = &store->at[at];
	struct view_chunk *grown = weft__grow(column->chunks, &column->cap_chunks, column->n_chunks, sizeof(*grown));
	struct view_chunk chunk = {.base = VIEW_NULL};
	static struct gathered values;

	if (!grown)
		return -ENOMEM;
	column->chunks = grown;
	if (of && all_follow(store, of, n)) {
		grown[column->n_chunks++] = (struct view_chunk){.width = VIEW_FOLLOWS};
		return 0;
	}
	gather(store, at, n, &values);
	if (values.n_set)
		chunk.base = values.least;
	if (values.n_set && (values.n_set < n || values.least != values.most)) {
		chunk.width = width_of((uint64_t)values.most - (uint64_t)values.least);
		chunk.data = weft__alloc(n * chunk.width);
		if (!chunk.data)
			return -ENOMEM;
		pack_into(&chunk, values.at, n);
		store->bytes += n * chunk.width;
	}
	grown[column->n_chunks++] = chunk;
	return 0;
}

static int pack_all(struct view_store *store, size_t n)
{
	uint64_t columns = store->columns;
	int rc = 0;

	for (; columns && rc == 0; columns &= columns - 1)
		rc = pack(store, (size_t)__builtin_ctzll(columns), n);
	return rc;
}

/* A text of the row alone does not live as long as the chunk. */
static int keep_own(const struct view_store *store, const struct weft__row *from, struct weft__row *row)
{
	size_t i;

	for (i = 0; i < store->n_columns; i++)
		if (weft__row_has(row, i) && weft__tables[store->table].columns[i].type == WEFT__TEXT &&
		    row->at[i].text == from->own) {
			row->at[i].text = view_text_at(view_text(from->own));
			if (!row->at[i].text)
				return -ENOMEM;
		}
	return 0;
}

int view_store_add(struct view_store *store, const struct weft__row *row, int64_t shift_ns)
{
	size_t at = store->n % VIEW_CHUNK, stride = stride_of(store);
	void *to = store->stage + at * stride;

	memcpy(to, row, stride);
	store->shift_ns[at] = shift_ns;
	if (row->own && keep_own(store, row, to) < 0)
		return -ENOMEM;
	store->n++;
	return at + 1 == VIEW_CHUNK ? pack_all(store, VIEW_CHUNK) : 0;
}

int view_store_end(struct view_store *store)
{
	int rc = store->n % VIEW_CHUNK ? pack_all(store, store->n % VIEW_CHUNK) : 0;

	weft__free(store->stage);
	weft__free(store->shift_ns);
	store->stage = NULL;
	store->shift_ns = NULL;
	return rc;
}

void view_store_fini(struct view_store *store)
{
	size_t i, j;

	for (i = 0; i < store->n_columns; i++) {
		for (j = 0; j < store->at[i].n_chunks; j++)
			weft__free(store->at[i].chunks[j].data);
		weft__free(store->at[i].chunks);
	}
	weft__free(store->stage);
	weft__free(store->shift_ns);
	memset(store, 0, sizeof(*store));
}

/* Inverse of PACK. */
#define UNPACK(type)                                                                                                   \
	for (i = 0; i < n; i++)                                                                                        \
	to[i] = ((const type *)chunk->data)[i] == (type)-1                                                             \
			? VIEW_NULL                                                                                    \
			: (int64_t)(((const type *)chunk->data)[i] + (uint64_t)chunk->base)

static void read_following(const struct view_store *store, const struct follows *of, uint32_t number, int64_t *to)
{
	static int64_t length[VIEW_CHUNK];
	size_t i;

	view_store_read(store, of->begin, number, to);
	view_store_read(store, of->length, number, length);
	for (i = 0; i < VIEW_CHUNK; i++)
		to[i] = length[i] == VIEW_NULL ? VIEW_NULL
					       : (int64_t)((uint64_t)to[i] + (uint64_t)(of->sign * length[i]));
}

void view_store_read(const struct view_store *store, size_t column, uint32_t number, int64_t to[VIEW_CHUNK])
{
	const struct view_chunk *chunk = &store->at[column].chunks[number];
	uint32_t n = store->n - number * VIEW_CHUNK, i;

	n = n < VIEW_CHUNK ? n : VIEW_CHUNK;
	switch (store->columns >> column & 1 ? chunk->width : UINT32_MAX) {
	case 0:
		for (i = 0; i < n; i++)
			to[i] = chunk->base;
		break;
	case 1:
		UNPACK(uint8_t);
		break;
	case 2:
		UNPACK(uint16_t);
		break;
	case 4:
		UNPACK(uint32_t);
		break;
	case 8:
		memcpy(to, chunk->data, n * sizeof(*to));
		break;
	case VIEW_FOLLOWS:
		read_following(store, follows_of(store, column), number, to);
		break;
	default:
		for (i = 0; i < n; i++)
			to[i] = view_store_other(store, column, number * VIEW_CHUNK + i);
	}
}

static int64_t derive(const struct view_store *store, size_t column, uint32_t row)
{
	int what = column == store->who + VIEW_WHO_TID ? 0 : column == store->who + VIEW_WHO_THREAD ? 1 : 2;

	return view_derive(what, view_store_get(store, store->who + VIEW_WHO_THREAD_ID, row),
			   view_store_get(store, store->who + VIEW_WHO_WORKER_ID, row));
}

int64_t view_store_other(const struct view_store *store, size_t column, uint32_t row)
{
	const struct follows *of = follows_of(store, column);
	int64_t length;

	if (!view_store_has(store, column) || row >= store->n)
		return VIEW_NULL;
	if (of && store->columns >> column & 1) {
		length = view_store_get(store, of->length, row);
		return length == VIEW_NULL ? VIEW_NULL : view_store_get(store, of->begin, row) + of->sign * length;
	}
	return derive(store, column, row);
}

size_t view_column_find(enum weft__table_id table, const char *name)
{
	size_t i;

	for (i = 0; i < weft__tables[table].n_columns && strcmp(weft__tables[table].columns[i].name, name) != 0;)
		i++;
	return i;
}
