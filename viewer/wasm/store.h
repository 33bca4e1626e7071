/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tables, kept as columns: what a browser can hold of a trace. Rows are packed by chunks: a column that does
 * not change in a chunk takes nothing there, others one, two, four or eight bytes a row, counted from the least.
 * Texts are kept once and known by their index. Context: CALLER, one thread. */
#ifndef WEFT_VIEW_STORE_H
#define WEFT_VIEW_STORE_H

#include "trace/trace.h"

#define VIEW_CHUNK 1024u
#define VIEW_FOLLOWS 3u
#define VIEW_NULL INT64_MIN
#define VIEW_NONE UINT32_MAX

struct view_chunk {
	void *data;
	int64_t base;
	uint32_t width; /* 0: all are `base`; VIEW_FOLLOWS: they follow from two other columns */
};

struct view_column {
	struct view_chunk *chunks;
	size_t n_chunks, cap_chunks;
	bool moment; /* counted from the start of the first recording */
};

struct view_store {
	enum weft__table_id table;
	uint64_t columns;      /* that are kept */
	uint64_t derived;      /* that follow from the ids of thread and worker */
	size_t who;            /* where the columns of those begin */
	uint32_t n, n_columns; /* rows, columns of the table */
	struct view_column at[WEFT__COLUMNS_MAX];
	char *stage;       /* rows of the chunk that is being filled, as they came */
	int64_t *shift_ns; /* of their moments */
	uint64_t bytes;
};

/* Texts, for all stores. Index or VIEW_NONE when out of memory; NULL is VIEW_NONE. */
uint32_t view_text(const char *text);
/* The same of a text that lives as long as the trace: found by its address the next time. */
uint32_t view_text_kept(const char *text);
const char *view_text_at(uint32_t index);
uint32_t view_text_count(void);
void view_texts_fini(void);
/* Forgets addresses: the texts that were kept are gone. */
void view_texts_moved(void);

/* Each returns 0 or -ENOMEM. `shift_ns` is added to moments. */
int view_store_init(struct view_store *store, enum weft__table_id table, uint64_t columns);
int view_store_add(struct view_store *store, const struct weft__row *row, int64_t shift_ns);
int view_store_end(struct view_store *store);
void view_store_fini(struct view_store *store);

static inline bool view_store_has(const struct view_store *store, size_t column)
{
	return (store->columns | store->derived) >> column & 1;
}
/* Inside: a column that is not kept, or a chunk that follows from others. */
int64_t view_store_other(const struct view_store *store, size_t column, uint32_t row);

/* The value, VIEW_NULL where it is none or the column is not kept; of text its index, of a trace the index of its
 * text. Layers ask for all rows of a trace. */
static inline int64_t view_store_get(const struct view_store *store, size_t column, uint32_t row)
{
	const struct view_chunk *chunk;
	uint32_t at = row % VIEW_CHUNK, code;

	if (!(store->columns >> column & 1) || row >= store->n)
		return view_store_other(store, column, row);
	chunk = &store->at[column].chunks[row / VIEW_CHUNK];
	switch (chunk->width) {
	case 0:
		return chunk->base;
	case 1:
		code = ((const uint8_t *)chunk->data)[at];
		return code == UINT8_MAX ? VIEW_NULL : (int64_t)(code + (uint64_t)chunk->base);
	case 2:
		code = ((const uint16_t *)chunk->data)[at];
		return code == UINT16_MAX ? VIEW_NULL : (int64_t)(code + (uint64_t)chunk->base);
	case 4:
		code = ((const uint32_t *)chunk->data)[at];
		return code == UINT32_MAX ? VIEW_NULL : (int64_t)(code + (uint64_t)chunk->base);
	case 8:
		return ((const int64_t *)chunk->data)[at];
	default:
		return view_store_other(store, column, row);
	}
}
/* All values of a chunk at once, for those who need most of them. */
void view_store_read(const struct view_store *store, size_t column, uint32_t chunk, int64_t to[VIEW_CHUNK]);
/* load.c: a column that is derived: 0 tid, 1 name of the thread, 2 label of the worker. */
int64_t view_derive(int what, int64_t thread, int64_t worker);
/* The columns of who did it: recording, thread_id, tid, thread, worker_id, worker. */
enum { VIEW_WHO_RECORDING, VIEW_WHO_THREAD_ID, VIEW_WHO_TID, VIEW_WHO_THREAD, VIEW_WHO_WORKER_ID, VIEW_WHO_WORKER };
/* Whether a column is counted from the start of the first recording. */
bool view_is_moment(enum weft__table_id table, size_t column);
/* Index of the column, or the number of columns. */
size_t view_column_find(enum weft__table_id table, const char *name);

#endif
