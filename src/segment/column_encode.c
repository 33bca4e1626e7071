/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/column_encode.h"

#include <errno.h>
#include <string.h>

#define DELTA_STEP 256
#define DICT_COST 3 /* half bytes: between one byte as it is and two */

void weft__columns_fini(struct weft__columns *columns)
{
	weft__buf_free(&columns->heads);
	weft__buf_free(&columns->deltas);
	weft__buf_free(&columns->codes);
}

void weft__columns_clear(struct weft__columns *columns)
{
	weft__buf_clear(&columns->heads);
	weft__buf_clear(&columns->deltas);
	weft__buf_clear(&columns->codes);
	columns->n = 0;
}

/* Fills the dictionary with the distinct values, in order of appearance, and `codes` with the place of each value in
 * it. 0 when there are more than fit. */
static int dict_build(struct weft__dict *dict, const uint64_t *values, size_t n, uint8_t *codes)
{
	uint32_t n_entries = 0;
	size_t i;

	memset(dict->index, 0, sizeof(dict->index));
	for (i = 0; i < n; i++) {
		uint64_t value = values[i];
		uint32_t at = (uint32_t)((value * UINT64_C(0x9e3779b97f4a7c15)) >> 54);

		while (dict->index[at] && dict->key[at] != value)
			at = (at + 1) % DISTINCT_SLOTS;
		if (!dict->index[at]) {
			if (n_entries == DICT_MAX)
				return 0;
			dict->key[at] = value;
			dict->entries[n_entries] = value;
			dict->index[at] = (uint16_t)++n_entries;
		}
		codes[i] = (uint8_t)(dict->index[at] - 1);
	}
	dict->n = n_entries;
	return 1;
}

static uint32_t width_of(uint64_t ored)
{
	return ored ? (71 - (uint32_t)__builtin_clzll(ored)) / 8 : 1;
}

/* How values would be stored as they are. */
struct form {
	uint32_t width; /* 0: all are equal */
	int use_dict;
	uint32_t cost; /* half bytes a value takes before compression, for choosing between forms */
};

static struct form plain_form(uint64_t ored, uint64_t differ)
{
	struct form form = {0};

	if (differ) {
		form.width = width_of(ored);
		form.cost = form.width * 2;
	} else {
		form.use_dict = 1;
	}
	return form;
}

/* With a dictionary instead, where that is worth it. */
static void try_dict(struct weft__dict *dict, const uint64_t *values, size_t n, uint8_t *codes, struct form *form)
{
	if (form->width > 1 && dict_build(dict, values, n, codes) && n + dict->n * 8 < n * form->width) {
		form->use_dict = 1;
		form->width = 1;
		form->cost = DICT_COST;
	}
}

static struct form values_form(const uint64_t *values, size_t n)
{
	uint64_t ored = 0, differ = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		ored |= values[i];
		differ |= values[i] ^ values[0];
	}
	return plain_form(ored, differ);
}

/* The differences and their form. What costs as much as `than` is not worth going on, unless a dictionary may make
 * up for it. */
static struct form deltas_form(const uint64_t *values, uint64_t *deltas, size_t n, const struct form *than)
{
	uint64_t before = 0, ored = 0, differ = 0;
	uint64_t first = zigzag(values[0]);
	struct form form;
	size_t i = 0;

	do {
		size_t end = n - i < DELTA_STEP ? n : i + DELTA_STEP;

		for (; i < end; i++) {
			uint64_t delta = zigzag(values[i] - before);

			before = values[i];
			deltas[i] = delta;
			ored |= delta;
			differ |= delta ^ first;
		}
		form = plain_form(ored, differ);
	} while (i < n && (form.cost < than->cost || than->cost > DICT_COST));
	return form;
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
static void put_indexes(struct weft__body *body, const struct weft__dict *dict, const uint8_t *codes, size_t n,
			uint32_t width)
{
	weft__buf_put(&body->bytes, dict->entries, dict->n * sizeof(dict->entries[0]));
	if (!width)
		return;
	weft__buf_put(&body->bytes, codes, n);
	weft__body_cut(body);
}

static int put_column(struct weft__columns *columns, const struct weft__kind_rows *rows, uint32_t field,
		      struct weft__body *body)
{
	const uint64_t *values = rows->field[field];
	size_t n = rows->n;
	uint64_t *deltas = (uint64_t *)(void *)weft__buf_room(&columns->deltas, n * sizeof(*deltas));
	uint8_t *codes = weft__buf_room(&columns->codes, n);
	struct weft__dict *dict = &columns->dict;
	uint32_t transform = TRANSFORM_NONE;
	struct form form;

	if (!deltas || !codes)
		return -ENOMEM;
	form = values_form(values, n);
	try_dict(dict, values, n, codes, &form);
	if (form.cost) {
		struct form other = deltas_form(values, deltas, n, &form);

		if (form.cost > DICT_COST) /* else a dictionary of differences is no better */
			try_dict(dict, deltas, n, codes, &other);
		if (other.cost < form.cost) {
			values = deltas;
			transform = TRANSFORM_DELTA;
			form = other;
		}
	}
	if (!form.width) {
		dict->n = 1;
		dict->entries[0] = values[0];
	}
	weft__buf_varint(&columns->heads, rows->kind);
	weft__buf_varint(&columns->heads, field);
	weft__buf_u8(&columns->heads, (uint8_t)transform);
	weft__buf_u8(&columns->heads, (uint8_t)form.width);
	weft__buf_varint(&columns->heads, n);
	weft__buf_varint(&columns->heads, form.use_dict ? dict->n : 0);
	columns->n++;
	if (!form.use_dict)
		return put_planes(body, values, n, form.width);
	put_indexes(body, dict, codes, n, form.width);
	return 0;
}

int weft__columns_put(struct weft__columns *columns, const struct weft__kind_rows *rows, struct weft__body *body)
{
	uint32_t f;
	int err = 0;

	for (f = 0; !err && rows->n && f < rows->n_fields; f++)
		err = put_column(columns, rows, f, body);
	return err;
}
