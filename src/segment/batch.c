/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/batch.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

#define EVENT_BODY_MAX (PREFIX_BODY_MAX + 8 * WEFT_FIELDS_MAX)
#define QUICK_FIELDS 2
#define QUICK_BODY_MAX (PREFIX_BODY_MAX + 8 * QUICK_FIELDS)

void weft__batch_init(struct weft__batch *batch, uint32_t quantum_ns)
{
	memset(batch, 0, sizeof(*batch));
	batch->quantum_ns = quantum_ns;
	batch->shift = (uint32_t)__builtin_ctz(quantum_ns);
}

static void rows_free(struct weft__batch *batch)
{
	size_t i;
	int f;

	for (i = 0; i < batch->n_rows; i++)
		for (f = 0; f < WEFT_FIELDS_MAX; f++)
			weft__free(batch->rows[i].field[f]);
	batch->n_rows = 0;
	memset(batch->row_of, 0, sizeof(batch->row_of));
}

void weft__batch_fini(struct weft__batch *batch)
{
	rows_free(batch);
	weft__free(batch->rows);
	weft__free(batch->q);
	weft__free(batch->kind);
	weft__free(batch->chunks);
	memset(batch, 0, sizeof(*batch));
}

void weft__batch_clear(struct weft__batch *batch)
{
	size_t i;

	batch->n = 0;
	batch->n_chunks = 0;
	batch->body_most = 0;
	if (batch->n_rows > 128) /* kinds that came by once must not crowd out those of the next block */
		rows_free(batch);
	for (i = 0; i < batch->n_rows; i++)
		batch->rows[i].n = 0;
}

static int events_grow(struct weft__batch *batch)
{
	size_t cap = batch->cap ? batch->cap * 2 : 4096;
	uint64_t *q = weft__realloc(batch->q, cap * sizeof(*q));
	uint8_t *kind;

	batch->moves++;
	if (!q)
		return -ENOMEM;
	batch->q = q;
	kind = weft__realloc(batch->kind, cap);
	if (!kind)
		return -ENOMEM;
	batch->kind = kind;
	batch->cap = cap;
	return 0;
}

static int rows_grow(struct weft__batch *batch, struct weft__kind_rows *rows)
{
	size_t cap = rows->cap ? rows->cap * 2 : 256;
	uint32_t f;

	batch->moves++; /* some may have moved even when one could not */
	for (f = 0; f < rows->n_fields; f++) {
		uint64_t *moved = weft__realloc(rows->field[f], cap * sizeof(*moved));

		if (!moved)
			return -ENOMEM;
		rows->field[f] = moved;
	}
	rows->cap = cap;
	return 0;
}

/* The rows of a kind. A kind keeps its number of fields for the life of the batch. */
static int rows_of(struct weft__batch *batch, uint32_t kind, uint32_t n_fields)
{
	struct weft__kind_rows *rows;

	if (kind >= KIND_LIMIT)
		return -EOVERFLOW;
	if (batch->row_of[kind])
		return batch->row_of[kind] - 1;
	if (batch->n_rows == 255)
		return -EOVERFLOW;
	if (batch->n_rows == batch->rows_cap) {
		rows = weft__grow(batch->rows, &batch->rows_cap, batch->n_rows, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		batch->rows = rows;
	}
	rows = &batch->rows[batch->n_rows];
	memset(rows, 0, sizeof(*rows));
	rows->kind = (uint16_t)kind;
	rows->n_fields = (uint16_t)n_fields;
	batch->row_of[kind] = (uint8_t)++batch->n_rows;
	batch->moves++;
	return (int)batch->n_rows - 1;
}

int weft__batch_begin(struct weft__batch *batch, uint32_t stream, uint32_t ring, uint64_t first_slot,
		      uint64_t not_before_ns)
{
	struct weft__chunk *chunks = weft__grow(batch->chunks, &batch->chunks_cap, batch->n_chunks, sizeof(*chunks));

	if (!chunks)
		return -ENOMEM;
	batch->chunks = chunks;
	memset(&chunks[batch->n_chunks], 0, sizeof(*chunks));
	chunks[batch->n_chunks].stream = stream;
	chunks[batch->n_chunks].ring = ring;
	chunks[batch->n_chunks].first_slot = first_slot;
	batch->n_chunks++;
	batch->last_q = not_before_ns >> batch->shift;
	return 0;
}

int weft__batch_add(struct weft__batch *batch, uint64_t time_ns, uint32_t kind, const uint64_t *fields,
		    uint32_t n_fields)
{
	struct weft__chunk *chunk = &batch->chunks[batch->n_chunks - 1];
	uint64_t q = time_ns >> batch->shift;
	struct weft__kind_rows *rows;
	int index;
	uint32_t f;

	if (batch->n >= BLOCK_EVENTS_MAX || batch->body_most > BODY_MAX - EVENT_BODY_MAX)
		return -EOVERFLOW;
	index = rows_of(batch, kind, n_fields);
	if (index < 0)
		return index;
	rows = &batch->rows[index];
	if ((rows->n == rows->cap && rows_grow(batch, rows) < 0) || (batch->n == batch->cap && events_grow(batch) < 0))
		return -ENOMEM;
	for (f = 0; f < rows->n_fields; f++)
		rows->field[f][rows->n] = f < n_fields ? fields[f] : 0;
	rows->n++;
	batch->body_most += PREFIX_BODY_MAX + 8u * rows->n_fields;
	if (q < batch->last_q)
		q = batch->last_q;
	if (!chunk->n_events++)
		chunk->first_q = q;
	batch->last_q = q;
	batch->q[batch->n] = q;
	batch->kind[batch->n] = (uint8_t)index;
	batch->n++;
	return 0;
}

int weft__batch_room(struct weft__batch *batch, size_t n)
{
	if (!batch->chunks[batch->n_chunks - 1].n_events || batch->n + n > BLOCK_EVENTS_MAX ||
	    batch->body_most + n * QUICK_BODY_MAX > BODY_MAX)
		return 0;
	while (batch->cap - batch->n < n)
		if (events_grow(batch) < 0)
			return 0;
	return 1;
}

struct weft__kind_rows *weft__batch_rows(struct weft__batch *batch, uint32_t kind, uint32_t n_fields, size_t n)
{
	struct weft__kind_rows *rows;

	if (!batch->row_of[kind])
		return NULL;
	rows = &batch->rows[batch->row_of[kind] - 1];
	if (rows->n_fields != n_fields || n_fields > QUICK_FIELDS)
		return NULL;
	while (rows->cap - rows->n < n)
		if (rows_grow(batch, rows) < 0)
			return NULL;
	return rows;
}

void weft__batch_added(struct weft__batch *batch, size_t n, uint64_t last_q)
{
	batch->n += n;
	batch->chunks[batch->n_chunks - 1].n_events += (uint32_t)n;
	batch->body_most += n * QUICK_BODY_MAX;
	batch->last_q = last_q;
}

void weft__batch_end(struct weft__batch *batch, uint64_t n_slots)
{
	struct weft__chunk *chunk = &batch->chunks[batch->n_chunks - 1];

	chunk->n_slots = n_slots;
	if (!chunk->n_events)
		batch->n_chunks--;
}
