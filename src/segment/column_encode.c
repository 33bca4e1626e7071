/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/column_encode.h"

#include <errno.h>
#include <string.h>

void weft__columns_fini(struct weft__columns *columns)
{
	weft__buf_free(&columns->heads);
	weft__buf_free(&columns->deltas);
}

void weft__columns_clear(struct weft__columns *columns)
{
	weft__buf_clear(&columns->heads);
	weft__buf_clear(&columns->deltas);
	columns->n = 0;
}

/* Fills the dictionary with the distinct values, in order of appearance. 0 when there are more than fit. */
static int dict_build(struct weft__dict *dict, const uint64_t *values, size_t n)
{
	size_t i;

	memset(dict->index, 0, sizeof(dict->index));
	dict->n = 0;
	for (i = 0; i < n; i++) {
		uint32_t at = (uint32_t)((values[i] * UINT64_C(0x9e3779b97f4a7c15)) >> 54);

		while (dict->index[at] && dict->key[at] != values[i])
			at = (at + 1) % DISTINCT_SLOTS;
		if (dict->index[at])
			continue;
		if (dict->n == DICT_MAX)
			return 0;
		dict->key[at] = values[i];
		dict->entries[dict->n] = values[i];
		dict->index[at] = (uint16_t)++dict->n;
	}
	return 1;
}

static uint8_t dict_find(const struct weft__dict *dict, uint64_t value)
{
	uint32_t at = (uint32_t)((value * UINT64_C(0x9e3779b97f4a7c15)) >> 54);

	while (dict->key[at] != value || !dict->index[at])
		at = (at + 1) % DISTINCT_SLOTS;
	return (uint8_t)(dict->index[at] - 1);
}

static uint32_t width_of(uint64_t ored)
{
	return ored ? (71 - (uint32_t)__builtin_clzll(ored)) / 8 : 1;
}

/* How many bytes a value costs before compression, for choosing between the raw values and their differences. */
static uint32_t cost_of(struct weft__dict *dict, const uint64_t *values, size_t n, uint32_t *ret_width, int *ret_dict)
{
	uint64_t ored = 0;
	uint32_t width;
	size_t i;

	for (i = 0; i < n; i++)
		ored |= values[i];
	width = width_of(ored);
	*ret_dict = 0;
	*ret_width = width;
	if (!dict_build(dict, values, n))
		return width * 2;
	if (dict->n == 1) {
		*ret_dict = 1;
		*ret_width = 0;
		return 0;
	}
	if (width > 1 && n + dict->n * 8 < n * width) {
		*ret_dict = 1;
		*ret_width = 1;
		return 3; /* between one byte as it is and two */
	}
	return width * 2;
}

static int put_planes(struct weft__body *body, const uint64_t *values, size_t n, uint32_t width)
{
	uint32_t plane;
	size_t i;

	for (plane = 0; plane < width; plane++) {
		uint8_t *bytes = weft__buf_room(&body->bytes, n);

		if (!bytes)
			return -ENOMEM;
		for (i = 0; i < n; i++)
			bytes[i] = (uint8_t)(values[i] >> (8 * plane));
		body->bytes.n += n;
		weft__body_cut(body);
	}
	return 0;
}

/* The dictionary, then an index per value unless all are equal. */
static int put_indexes(struct weft__body *body, const struct weft__dict *dict, const uint64_t *values, size_t n,
		       uint32_t width)
{
	uint8_t *bytes;
	size_t i;

	weft__buf_put(&body->bytes, dict->entries, dict->n * sizeof(dict->entries[0]));
	if (!width)
		return 0;
	bytes = weft__buf_room(&body->bytes, n);
	if (!bytes)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		bytes[i] = dict_find(dict, values[i]);
	body->bytes.n += n;
	weft__body_cut(body);
	return 0;
}

static int put_column(struct weft__columns *columns, const struct weft__kind_rows *rows, uint32_t field,
		      struct weft__body *body)
{
	const uint64_t *values = rows->field[field];
	size_t n = rows->n;
	uint64_t *deltas = (uint64_t *)(void *)weft__buf_room(&columns->deltas, n * sizeof(*deltas));
	uint32_t width, delta_width, transform = TRANSFORM_NONE;
	int use_dict, delta_dict;
	size_t i;

	if (!deltas)
		return -ENOMEM;
	if (cost_of(&columns->dict, values, n, &width, &use_dict) > 0) {
		uint32_t cost = use_dict ? 3 : width * 2;

		deltas[0] = zigzag(values[0]);
		for (i = 1; i < n; i++)
			deltas[i] = zigzag(values[i] - values[i - 1]);
		if (cost_of(&columns->dict, deltas, n, &delta_width, &delta_dict) < cost) {
			values = deltas;
			transform = TRANSFORM_DELTA;
			width = delta_width;
			use_dict = delta_dict;
		} else if (use_dict) {
			dict_build(&columns->dict, values, n);
		}
	}
	weft__buf_varint(&columns->heads, rows->kind);
	weft__buf_varint(&columns->heads, field);
	weft__buf_u8(&columns->heads, (uint8_t)transform);
	weft__buf_u8(&columns->heads, (uint8_t)width);
	weft__buf_varint(&columns->heads, n);
	weft__buf_varint(&columns->heads, use_dict ? columns->dict.n : 0);
	columns->n++;
	if (use_dict)
		return put_indexes(body, &columns->dict, values, n, width);
	return put_planes(body, values, n, width);
}

int weft__columns_put(struct weft__columns *columns, const struct weft__kind_rows *rows, struct weft__body *body)
{
	uint32_t f;
	int err = 0;

	for (f = 0; !err && rows->n && f < rows->n_fields; f++)
		err = put_column(columns, rows, f, body);
	return err;
}
