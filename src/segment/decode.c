/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/decode.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "segment/format.h"
#include "segment/zstd_mem.h"
#include "weft/error.h"

struct weft__decoder {
	ZSTD_DCtx *dctx;
	uint16_t kind_index[65536]; /* kind to index into kinds, plus 1 */
};

struct symbol {
	uint64_t base;
	uint16_t kind; /* index; ESCAPE: look in the escapes */
	uint8_t bits;
};

#define ESCAPE 0xffff

/* What the parsing functions share. */
struct work {
	struct weft__decoder *dec;
	struct weft__decoded *block;
	struct weft__in in;
	struct weft__in body;
	struct symbol symbols[SYMBOLS_MAX];
	uint32_t n_symbols;
	uint64_t n_mantissa_bits;
	const char *why;
};

int weft__decoder_open(struct weft__decoder **ret)
{
	struct weft__decoder *dec = weft__calloc(1, sizeof(*dec));

	if (!dec)
		return -ENOMEM;
	dec->dctx = ZSTD_createDCtx_advanced(weft__zstd_mem());
	if (!dec->dctx) {
		weft__free(dec);
		return -ENOMEM;
	}
	*ret = dec;
	return 0;
}

void weft__decoder_close(struct weft__decoder *dec)
{
	if (!dec)
		return;
	ZSTD_freeDCtx(dec->dctx);
	weft__free(dec);
}

void weft__decoded_fini(struct weft__decoded *block)
{
	weft__buf_free(&block->chunk_mem);
	weft__buf_free(&block->time_mem);
	weft__buf_free(&block->kind_mem);
	weft__buf_free(&block->row_mem);
	weft__buf_free(&block->kinds_mem);
	weft__buf_free(&block->value_mem);
	weft__buf_free(&block->body);
	weft__buf_free(&block->mantissa);
	memset(block, 0, sizeof(*block));
}

static void *room(struct weft__buf *buf, size_t bytes)
{
	buf->n = 0;
	buf->oom = 0;
	return weft__buf_room(buf, bytes ? bytes : 1);
}

int weft__decoder_expand(struct weft__decoder *dec, const uint8_t *bytes, size_t n, size_t max, struct weft__buf *out)
{
	unsigned long long size = ZSTD_getFrameContentSize(bytes, n);
	uint8_t *to;

	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > max)
		return -WEFT_E_DAMAGED;
	to = room(out, (size_t)size);
	if (!to)
		return -ENOMEM;
	out->n = ZSTD_decompressDCtx(dec->dctx, to, (size_t)size, bytes, n);
	if (ZSTD_isError(out->n) || out->n != size) {
		out->n = 0;
		return -WEFT_E_DAMAGED;
	}
	return 0;
}

static int bad(struct work *work, const char *why)
{
	work->why = why;
	return -WEFT_E_DAMAGED;
}

static int read_chunks(struct work *work, uint32_t n_events)
{
	struct weft__decoded *block = work->block;
	uint64_t quantum = in_varint(&work->in);
	uint64_t n = in_varint(&work->in);
	uint64_t sum = 0;
	uint32_t i;

	if (quantum < 1 || quantum > 1000000000)
		return bad(work, "quantum out of range");
	if (n > n_events || n > in_left(&work->in) / 6)
		return bad(work, "more chunks than can be");
	block->quantum_ns = (uint32_t)quantum;
	block->n_chunks = (uint32_t)n;
	block->chunks = room(&block->chunk_mem, n * sizeof(*block->chunks));
	if (!block->chunks)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct weft__chunk *chunk = &block->chunks[i];
		uint64_t stream = in_varint(&work->in);
		uint64_t events = in_varint(&work->in);

		chunk->ring = (uint32_t)in_varint(&work->in);
		chunk->n_slots = in_varint(&work->in);
		chunk->first_slot = in_varint(&work->in);
		chunk->first_q = in_varint(&work->in);
		if (work->in.bad || stream > UINT32_MAX || events < 1 || events > n_events)
			return bad(work, "chunk out of range");
		chunk->stream = (uint32_t)stream;
		chunk->n_events = (uint32_t)events;
		sum += events;
	}
	return sum == n_events ? 0 : bad(work, "chunks and header disagree about the number of events");
}

/* The index of a kind, new or known, or -1 when memory is out. */
static int kind_index(struct work *work, uint32_t kind)
{
	struct weft__decoded *block = work->block;
	struct weft__decoded_kind *one;

	if (work->dec->kind_index[kind])
		return work->dec->kind_index[kind] - 1;
	one = (void *)weft__buf_room(&block->kinds_mem, sizeof(*one));
	if (!one)
		return -1;
	memset(one, 0, sizeof(*one));
	one->kind = (uint16_t)kind;
	block->kinds_mem.n += sizeof(*one);
	block->kinds = (void *)block->kinds_mem.bytes;
	work->dec->kind_index[kind] = (uint16_t)++block->n_kinds;
	return (int)block->n_kinds - 1;
}

static int read_symbols(struct work *work)
{
	uint64_t n = in_varint(&work->in);
	uint32_t i, escapes = 0;

	if (n > SYMBOLS_MAX)
		return bad(work, "more than 256 symbols");
	work->n_symbols = (uint32_t)n;
	for (i = 0; i < n; i++) {
		uint64_t kind = in_varint(&work->in);
		uint32_t class = in_u8(&work->in);
		int index;

		if (work->in.bad || kind > UINT16_MAX - 1 || class > CLASS_MAX)
			return bad(work, "symbol out of range");
		work->symbols[i] = (struct symbol){class_base(class), ESCAPE, (uint8_t)class_bits(class)};
		if (!kind) {
			escapes++;
			continue;
		}
		index = kind_index(work, (uint32_t)kind);
		if (index < 0)
			return -ENOMEM;
		work->symbols[i].kind = (uint16_t)index;
	}
	return escapes > 1 ? bad(work, "two escape symbols") : 0;
}

/* Up to 61 bits at bit `at` of memory that is padded by 16 bytes. */
static inline uint64_t bits_at(const uint8_t *bytes, uint64_t at, uint32_t n)
{
	uint64_t v = get_u64(bytes + (at >> 3)) >> (at & 7);

	if (__builtin_expect(n > 56, 0))
		v |= (uint64_t)bytes[(at >> 3) + 8] << (63 - (at & 7)) << 1;
	return v & ((UINT64_C(1) << n) - 1);
}

static int next_escape(struct work *work, struct weft__in *escapes, struct symbol *sym)
{
	const uint8_t *three = in_bytes(escapes, 3);
	uint32_t class;
	int index;

	if (!three)
		return bad(work, "escapes end early");
	class = three[2];
	if (class > CLASS_MAX || get_u16(three) == 0 || get_u16(three) == UINT16_MAX)
		return bad(work, "escape out of range");
	index = kind_index(work, get_u16(three));
	if (index < 0)
		return -ENOMEM;
	*sym = (struct symbol){class_base(class), (uint16_t)index, (uint8_t)class_bits(class)};
	return 0;
}

/* Times, kinds and rows of all events. Escapes follow the prefixes in the body; what is left of it are the columns. */
static int read_events(struct work *work)
{
	struct weft__decoded *block = work->block;
	const uint8_t *prefix = in_bytes(&work->body, block->n);
	const uint8_t *mantissa = block->mantissa.bytes;
	struct weft__in escapes = work->body;
	uint64_t bit = 0;
	uint32_t quantum = block->quantum_ns;
	uint32_t n_symbols = work->n_symbols;
	uint32_t i = 0, c;

	if (!prefix)
		return bad(work, "body is shorter than its prefixes");
	for (c = 0; c < block->n_chunks; c++) {
		uint64_t q = block->chunks[c].first_q;
		uint32_t end = i + block->chunks[c].n_events;

		for (; i < end; i++) {
			struct symbol sym;

			if (prefix[i] >= n_symbols)
				return bad(work, "prefix out of range");
			sym = work->symbols[prefix[i]];
			if (__builtin_expect(sym.kind == ESCAPE, 0)) {
				int err = next_escape(work, &escapes, &sym);

				if (err)
					return err;
			}
			q += sym.base;
			if (sym.bits) {
				if (bit + sym.bits > work->n_mantissa_bits)
					return bad(work, "mantissa ends early");
				q += bits_at(mantissa, bit, sym.bits);
				bit += sym.bits;
			}
			block->time[i] = q * quantum;
			block->kind[i] = sym.kind;
			block->row[i] = block->kinds[sym.kind].n++;
		}
		if (q > UINT64_MAX / quantum || q < block->chunks[c].first_q)
			return bad(work, "time out of range");
	}
	if (work->n_mantissa_bits - bit > 7)
		return bad(work, "mantissa is too long");
	work->body = escapes;
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
static int read_planes(struct work *work, uint64_t *values, uint32_t n, uint32_t width)
{
	const uint8_t *planes = in_bytes(&work->body, (uint64_t)n * width);
	uint32_t plane, i;

	if (!planes)
		return bad(work, "column ends early");
	for (i = 0; i < n; i++)
		values[i] = planes[i];
	for (plane = 1; plane < width; plane++) {
		planes += n;
		for (i = 0; i < n; i++)
			values[i] |= (uint64_t)planes[i] << (8 * plane);
	}
	return 0;
}

static int read_indexes(struct work *work, uint64_t *values, uint32_t n, const uint8_t *dict, uint32_t n_dict)
{
	const uint8_t *index = in_bytes(&work->body, n);
	uint32_t i;

	if (!index)
		return bad(work, "column ends early");
	for (i = 0; i < n; i++) {
		if (index[i] >= n_dict)
			return bad(work, "dictionary index out of range");
		values[i] = get_u64(dict + 8 * (size_t)index[i]);
	}
	return 0;
}

struct column {
	uint64_t kind, field, n, n_dict;
	uint32_t transform, width;
};

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

static int check_column(struct work *work, const struct column *col)
{
	if (work->in.bad || col->kind >= UINT16_MAX || !work->dec->kind_index[col->kind])
		return bad(work, "column of a kind that has no events");
	if (col->field >= WEFT_FIELDS_MAX || col->transform > TRANSFORM_DELTA || col->width > 8 ||
	    col->n_dict > DICT_MAX)
		return bad(work, "column out of range");
	if ((col->width == 0 && col->n_dict != 1) || (col->n_dict && col->width > 1))
		return bad(work, "column of no known form");
	return 0;
}

/* Width 0 with the difference transform is a column of equal differences: it has to be spelled out. */
static int is_constant(const struct column *col)
{
	return col->width == 0 && col->transform == TRANSFORM_NONE;
}

/* First look over the column heads: how many values there are in all, so that one allocation holds them. */
static int size_columns(struct work *work, uint64_t n, uint64_t *ret_values)
{
	struct weft__in in = work->in;
	uint64_t total = 0;
	uint64_t i;

	for (i = 0; i < n; i++) {
		struct column col = read_column_head(&in);

		if (in.bad || col.n > work->block->n)
			return bad(work, "column longer than the block");
		total += is_constant(&col) ? 1 : col.n;
	}
	if (total > (uint64_t)BLOCK_EVENTS_MAX * WEFT_FIELDS_MAX)
		return bad(work, "columns too long");
	*ret_values = total;
	return 0;
}

static int read_column(struct work *work, const struct column *col, uint64_t *values)
{
	struct weft__decoded_kind *kind = &work->block->kinds[work->dec->kind_index[col->kind] - 1];
	const uint8_t *dict = in_bytes(&work->body, col->n_dict * 8);
	uint32_t n = (uint32_t)col->n;
	int err = 0;

	if (!dict)
		return bad(work, "dictionary ends early");
	if (col->n != kind->n || col->field != kind->n_fields)
		return bad(work, "column and its kind disagree");
	if (is_constant(col))
		values[0] = get_u64(dict);
	else if (col->width == 0)
		for (uint32_t i = 0; i < n; i++)
			values[i] = get_u64(dict);
	else if (col->n_dict)
		err = read_indexes(work, values, n, dict, (uint32_t)col->n_dict);
	else
		err = read_planes(work, values, n, col->width);
	if (err)
		return err;
	if (col->transform == TRANSFORM_DELTA)
		undo_delta(values, n);
	kind->field[kind->n_fields] = values;
	kind->step[kind->n_fields] = is_constant(col) ? 0 : UINT32_MAX;
	kind->n_fields++;
	return 0;
}

/* Column heads come before the body in the payload, but their counts can be checked only after the prefixes were read. */
static int read_columns(struct work *work, struct weft__in heads, uint64_t n_columns)
{
	uint64_t *values = (void *)work->block->value_mem.bytes;
	uint64_t i;

	for (i = 0; i < n_columns; i++) {
		struct column col = read_column_head(&heads);
		int err = check_column(work, &col);

		if (!err)
			err = read_column(work, &col, values);
		if (err)
			return err;
		values += is_constant(&col) ? 1 : col.n;
	}
	return in_left(&work->body) ? bad(work, "bytes left over in the body") : 0;
}

static int read_mantissa_and_body(struct work *work)
{
	struct weft__decoded *block = work->block;
	uint64_t n = in_varint(&work->in);
	const uint8_t *bytes = in_bytes(&work->in, n);
	uint64_t body;
	uint8_t *to;

	if (!bytes)
		return bad(work, "mantissa ends early");
	to = room(&block->mantissa, n + 16);
	if (!to)
		return -ENOMEM;
	memcpy(to, bytes, n);
	memset(to + n, 0, 16);
	work->n_mantissa_bits = n * 8;
	body = in_varint(&work->in);
	if (body > BODY_MAX)
		return bad(work, "body too large");
	switch (in_u8(&work->in)) {
	case 0:
		if (work->in.bad || in_left(&work->in) != body)
			return bad(work, "stored body has the wrong length");
		work->body = work->in;
		return 0;
	case 1: {
		int err = weft__decoder_expand(work->dec, work->in.p, in_left(&work->in), body, &block->body);

		if (err == -ENOMEM)
			return err;
		if (err || block->body.n != body)
			return bad(work, "body does not decompress");
		work->body = weft__in(block->body.bytes, block->body.n);
		return 0;
	}
	}
	return bad(work, "body of no known form");
}

static int alloc_events(struct weft__decoded *block, uint64_t n_values)
{
	block->time = room(&block->time_mem, block->n * sizeof(*block->time));
	block->kind = room(&block->kind_mem, block->n * sizeof(*block->kind));
	block->row = room(&block->row_mem, block->n * sizeof(*block->row));
	return block->time && block->kind && block->row && room(&block->value_mem, n_values * 8) ? 0 : -ENOMEM;
}

static int skip_column_heads(struct work *work, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		read_column_head(&work->in);
	return work->in.bad ? bad(work, "columns end early") : 0;
}

static int decode(struct work *work, uint32_t n_events)
{
	struct weft__decoded *block = work->block;
	struct weft__in heads;
	uint64_t n_columns, n_values = 0;
	int err;

	err = read_chunks(work, n_events);
	if (!err)
		err = read_symbols(work);
	if (err)
		return err;
	n_columns = in_varint(&work->in);
	if (n_columns > in_left(&work->in) / 6)
		return bad(work, "more columns than can be");
	heads = work->in;
	err = size_columns(work, n_columns, &n_values);
	if (!err)
		err = skip_column_heads(work, n_columns);
	if (!err)
		err = alloc_events(block, n_values);
	if (!err)
		err = read_mantissa_and_body(work);
	if (!err)
		err = read_events(work);
	return err ? err : read_columns(work, heads, n_columns);
}

int weft__decoder_events(struct weft__decoder *dec, const uint8_t *payload, size_t n, uint32_t n_events,
                         struct weft__decoded *block, const char **why)
{
	struct work work = {.dec = dec, .block = block, .in = weft__in(payload, n), .why = "cannot be parsed"};
	uint32_t i;
	int err;

	if (n_events > BLOCK_EVENTS_MAX) {
		*why = "more events than a block may have";
		return -WEFT_E_DAMAGED;
	}
	block->n = n_events;
	block->n_kinds = 0;
	block->kinds_mem.n = 0;
	block->kinds_mem.oom = 0;
	block->kinds = NULL;
	err = decode(&work, n_events);
	for (i = 0; i < block->n_kinds; i++)
		dec->kind_index[block->kinds[i].kind] = 0;
	*why = work.why;
	return err;
}
