/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/column_decode.h"

#include <errno.h>

#include "segment/format.h"
#include "weft/error.h"

#define ROWS 64 /* made at a time: few enough to stay in the cache until they are given out */

struct column_head {
	uint64_t kind, field, n, n_dict;
	uint32_t transform, width;
};

static int column_bad(struct weft__column_reader *reader, const char *why)
{
	reader->why = why;
	return -WEFT_E_DAMAGED;
}

static struct column_head read_column_head(struct weft__in *in)
{
	struct column_head col;

	col.kind = in_varint(in);
	col.field = in_varint(in);
	col.transform = in_u8(in);
	col.width = in_u8(in);
	col.n = in_varint(in);
	col.n_dict = in_varint(in);
	return col;
}

int weft__column_heads(struct weft__column_reader *reader, struct weft__in *in)
{
	uint64_t i;

	reader->n = in_varint(in);
	if (reader->n > in_left(in) / 6)
		return column_bad(reader, "more columns than can be");
	reader->heads = *in;
	for (i = 0; i < reader->n; i++) {
		struct column_head col = read_column_head(in);

		if (in->bad || col.n < 1 || col.n > reader->block->n)
			return column_bad(reader, "column longer than the block");
	}
	return 0;
}

static const char *column_fault(const struct weft__column_reader *reader, const struct column_head *col)
{
	const struct weft__decoded_kind *kind;

	if (col->kind > UINT16_MAX || !reader->kind_index[col->kind])
		return "column of a kind that has no events";
	if (col->field >= WEFT_FIELDS_MAX || col->transform > TRANSFORM_DELTA || col->width > 8 ||
	    col->n_dict > DICT_MAX)
		return "column out of range";
	if ((col->width == 0 && col->n_dict != 1) || (col->n_dict && col->width > 1))
		return "column of no known form";
	kind = &reader->block->kinds[reader->kind_index[col->kind] - 1];
	if (col->n != kind->n || col->field != kind->n_fields)
		return "column and its kind disagree";
	return NULL;
}

static int indexes_fit(const uint8_t *index, uint64_t n, uint64_t n_dict)
{
	uint8_t most = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		most = index[i] > most ? index[i] : most;
	return most < n_dict;
}

static int read_column(struct weft__column_reader *reader, struct weft__in *body, const struct column_head *col,
		       uint32_t number)
{
	struct weft__decoded *block = reader->block;
	struct weft__column *column = &block->columns[number];
	const char *why = column_fault(reader, col);
	struct weft__decoded_kind *kind;

	if (why)
		return column_bad(reader, why);
	column->dict = in_bytes(body, col->n_dict * 8);
	column->bytes = in_bytes(body, col->n * col->width);
	if (!column->dict || !column->bytes ||
	    (col->n_dict && !indexes_fit(column->bytes, col->n * col->width, col->n_dict)))
		return column_bad(reader, "column ends early or has an index out of range");
	if (!col->n_dict)
		column->dict = NULL;
	column->value = 0;
	column->n = (uint32_t)col->n;
	column->next = 0;
	column->width = (uint8_t)col->width;
	column->transform = (uint8_t)col->transform;
	kind = &block->kinds[reader->kind_index[col->kind] - 1];
	if (kind->column)
		block->columns[kind->column - 1].next = number + 1;
	else
		kind->first_column = number + 1;
	kind->column = number + 1;
	kind->n_fields++;
	kind->is_varied |= col->width || col->transform == TRANSFORM_DELTA;
	return 0;
}

static inline __attribute__((always_inline)) void read_width(uint64_t *to, size_t step, uint32_t n,
							     const uint8_t *bytes, size_t plane, uint32_t width)
{
	uint32_t i, p;

	for (i = 0; i < n; i++, to += step) {
		uint64_t v = bytes[i];

		for (p = 1; p < width; p++)
			v |= (uint64_t)bytes[p * plane + i] << (8 * p);
		*to = v;
	}
}

static void read_planes(struct weft__column *column, uint64_t *to, size_t step, uint32_t n)
{
	switch (column->width) {
	case 1:
		read_width(to, step, n, column->bytes, column->n, 1);
		break;
	case 2:
		read_width(to, step, n, column->bytes, column->n, 2);
		break;
	case 3:
		read_width(to, step, n, column->bytes, column->n, 3);
		break;
	default:
		read_width(to, step, n, column->bytes, column->n, column->width);
	}
}

/* The next `n` values of a column, `step` words apart. */
static void read_values(struct weft__column *column, uint64_t *to, size_t step, uint32_t n)
{
	uint64_t value = column->value;
	uint32_t i;

	if (column->width && !column->dict) {
		read_planes(column, to, step, n);
	} else {
		const uint8_t *index = column->bytes;

		for (i = 0; i < n; i++)
			to[i * step] = get_u64(column->dict + (column->width ? 8 * (size_t)index[i] : 0));
	}
	if (column->width)
		column->bytes += n;
	if (column->transform != TRANSFORM_DELTA)
		return;
	for (i = 0; i < n; i++)
		to[i * step] = value += unzigzag(to[i * step]);
	column->value = value;
}

static void read_rows(struct weft__decoded *block, const struct weft__decoded_kind *kind, uint64_t *to, size_t step,
		      uint32_t n)
{
	uint32_t c;

	for (c = kind->first_column; c; c = block->columns[c - 1].next)
		read_values(&block->columns[c - 1], to++, step, n);
}

void weft__column_rows(struct weft__decoded *block, struct weft__decoded_kind *kind)
{
	uint32_t n = kind->n - kind->n_made < ROWS ? kind->n - kind->n_made : ROWS;

	if (kind->is_varied || !kind->n_made) /* else they are there */
		read_rows(block, kind, kind->rows, RECORD_FIELDS, n);
	kind->n_made += n;
	kind->next = kind->rows;
	kind->end = kind->rows + (size_t)n * RECORD_FIELDS;
}

/* All rows of a kind. Some at a time here too: one column of all of them after the other goes through the cache each
 * time. */
static uint64_t *read_wide(struct weft__decoded *block, const struct weft__decoded_kind *kind, uint64_t *to)
{
	uint32_t row, n;

	for (row = 0; row < kind->n; row += n) {
		n = kind->n - row < ROWS ? kind->n - row : ROWS;
		read_rows(block, kind, to, kind->n_fields, n);
		to += (size_t)n * kind->n_fields;
	}
	return to;
}

static size_t rows_at_once(const struct weft__decoded_kind *kind)
{
	return kind->n_fields > RECORD_FIELDS ? 0 : kind->n < ROWS ? kind->n : ROWS;
}

static int prepare_kinds(struct weft__decoded *block)
{
	size_t n_rows = 0, n_wide = WEFT_FIELDS_MAX; /* that many are read from where a row begins */
	uint64_t *rows, *wide;
	uint32_t k;

	for (k = 0; k < block->n_kinds; k++) {
		const struct weft__decoded_kind *kind = &block->kinds[k];

		n_rows += rows_at_once(kind);
		n_wide += kind->n_fields > RECORD_FIELDS ? (size_t)kind->n * kind->n_fields : 0;
	}
	rows = weft__decode_room(&block->row_mem, n_rows * RECORD_FIELDS * sizeof(*rows));
	wide = weft__decode_room(&block->wide_mem, n_wide * sizeof(*wide));
	if (!rows || !wide)
		return -ENOMEM;
	memset(rows, 0, n_rows * RECORD_FIELDS * sizeof(*rows)); /* fields that a kind lacks */
	for (k = 0; k < block->n_kinds; k++) {
		struct weft__decoded_kind *kind = &block->kinds[k];

		kind->rows = rows;
		rows += rows_at_once(kind) * RECORD_FIELDS;
		if (kind->n_fields <= RECORD_FIELDS)
			continue;
		kind->wide = wide;
		wide = read_wide(block, kind, wide);
	}
	memset(wide, 0, WEFT_FIELDS_MAX * sizeof(*wide));
	return 0;
}

int weft__column_values(struct weft__column_reader *reader, struct weft__in body)
{
	struct weft__decoded *block = reader->block;
	struct weft__in heads = reader->heads;
	uint32_t i;

	if (reader->n > (uint64_t)block->n_kinds * WEFT_FIELDS_MAX)
		return column_bad(reader, "more columns than can be");
	block->columns = weft__decode_room(&block->column_mem, reader->n * sizeof(*block->columns));
	if (!block->columns)
		return -ENOMEM;
	for (i = 0; i < reader->n; i++) {
		struct column_head col = read_column_head(&heads);

		if (read_column(reader, &body, &col, i))
			return -WEFT_E_DAMAGED;
	}
	return in_left(&body) ? column_bad(reader, "bytes left over in the body") : prepare_kinds(block);
}
