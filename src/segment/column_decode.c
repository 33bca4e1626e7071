/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/column_decode.h"

#include "segment/format.h"
#include "weft/error.h"

struct column {
	uint64_t kind, field, n, n_dict;
	uint32_t transform, width;
};

static int column_bad(struct weft__column_reader *reader, const char *why)
{
	reader->why = why;
	return -WEFT_E_DAMAGED;
}

static struct column read_column_head(struct weft__in *in)
{
	struct column col;

	col.kind = in_varint(in);
	col.field = in_varint(in);
	col.transform = in_u8(in);
	col.width = in_u8(in);
	col.n = in_varint(in);
	col.n_dict = in_varint(in);
	return col;
}

/* Width 0 with the difference transform is a column of equal differences: it has to be spelled out. */
static int is_constant(const struct column *col)
{
	return col->width == 0 && col->transform == TRANSFORM_NONE;
}

int weft__column_heads(struct weft__column_reader *reader, struct weft__in *in, uint64_t *ret_values)
{
	uint64_t total = 0;
	uint64_t i;

	reader->n = in_varint(in);
	if (reader->n > in_left(in) / 6)
		return column_bad(reader, "more columns than can be");
	reader->heads = *in;
	for (i = 0; i < reader->n; i++) {
		struct column col = read_column_head(in);

		if (in->bad || col.n < 1 || col.n > reader->block->n)
			return column_bad(reader, "column longer than the block");
		total += is_constant(&col) ? 1 : col.n;
	}
	if (total > (uint64_t)BLOCK_EVENTS_MAX * WEFT_FIELDS_MAX)
		return column_bad(reader, "columns too long");
	*ret_values = total;
	return 0;
}

static void undo_delta(uint64_t *values, uint32_t n)
{
	uint64_t value = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = value += unzigzag(values[i]);
}

/* Stored numbers of a column, planes put together. */
static int read_planes(struct weft__in *body, uint64_t *values, uint32_t n, uint32_t width)
{
	const uint8_t *planes = in_bytes(body, (uint64_t)n * width);
	uint32_t plane, i;

	if (!planes)
		return 0;
	for (i = 0; i < n; i++)
		values[i] = planes[i];
	for (plane = 1; plane < width; plane++) {
		planes += n;
		for (i = 0; i < n; i++)
			values[i] |= (uint64_t)planes[i] << (8 * plane);
	}
	return 1;
}

static int read_indexes(struct weft__in *body, uint64_t *values, uint32_t n, const uint8_t *dict, uint32_t n_dict)
{
	const uint8_t *index = in_bytes(body, n);
	uint32_t i;

	if (!index)
		return 0;
	for (i = 0; i < n; i++) {
		if (index[i] >= n_dict)
			return 0;
		values[i] = get_u64(dict + 8 * (size_t)index[i]);
	}
	return 1;
}

static int read_stored(struct weft__in *body, const struct column *col, uint64_t *values)
{
	const uint8_t *dict = in_bytes(body, col->n_dict * 8);
	uint32_t n = (uint32_t)col->n, i;

	if (!dict)
		return 0;
	if (col->width && col->n_dict)
		return read_indexes(body, values, n, dict, (uint32_t)col->n_dict);
	if (col->width)
		return read_planes(body, values, n, col->width);
	if (is_constant(col))
		n = 1;
	for (i = 0; i < n; i++)
		values[i] = get_u64(dict);
	return 1;
}

static const char *column_fault(const struct weft__column_reader *reader, const struct column *col)
{
	if (col->kind > UINT16_MAX || !reader->kind_index[col->kind])
		return "column of a kind that has no events";
	if (col->field >= WEFT_FIELDS_MAX || col->transform > TRANSFORM_DELTA || col->width > 8 ||
	    col->n_dict > DICT_MAX)
		return "column out of range";
	if ((col->width == 0 && col->n_dict != 1) || (col->n_dict && col->width > 1))
		return "column of no known form";
	return NULL;
}

static int read_column(struct weft__column_reader *reader, struct weft__in *body, const struct column *col,
		       uint64_t *values)
{
	struct weft__decoded_kind *kind;
	const char *why = column_fault(reader, col);

	if (why)
		return column_bad(reader, why);
	kind = &reader->block->kinds[reader->kind_index[col->kind] - 1];
	if (col->n != kind->n || col->field != kind->n_fields)
		return column_bad(reader, "column and its kind disagree");
	if (!read_stored(body, col, values))
		return column_bad(reader, "column ends early or has an index out of range");
	if (col->transform == TRANSFORM_DELTA)
		undo_delta(values, (uint32_t)col->n);
	kind->field[kind->n_fields] = values;
	kind->step[kind->n_fields] = is_constant(col) ? 0 : UINT32_MAX;
	kind->n_fields++;
	return 0;
}

int weft__column_values(struct weft__column_reader *reader, struct weft__in body)
{
	uint64_t *values = (void *)reader->block->value_mem.bytes;
	struct weft__in heads = reader->heads;
	uint64_t i;

	for (i = 0; i < reader->n; i++) {
		struct column col = read_column_head(&heads);

		if (read_column(reader, &body, &col, values))
			return -WEFT_E_DAMAGED;
		values += is_constant(&col) ? 1 : col.n;
	}
	return in_left(&body) ? column_bad(reader, "bytes left over in the body") : 0;
}
