/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/decode.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "segment/column_decode.h"
#include "segment/format.h"
#include "segment/zstd_mem.h"
#include "weft/error.h"

struct weft__decoder {
	ZSTD_DCtx *dctx;
	uint16_t kind_index[65536];      /* kind to index into kinds, plus 1 */
	struct weft__buf body, mantissa; /* of the block that is being decoded */
	struct weft__buf rows;           /* u32: rows of each kind so far, by that index */
};

struct symbol {
	uint64_t base;
	uint16_t kind; /* index; ESCAPE: look in the escapes */
	uint8_t bits;
};

#define ESCAPE 0xffff /* no index: there are at most 65,535 kinds */

/* Events between two looks at whether the mantissa has ended, and the bytes behind it that they may read. */
#define STEP 64
#define MANTISSA_PAD (STEP * 8 + 16)

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
	weft__buf_free(&dec->body);
	weft__buf_free(&dec->mantissa);
	weft__buf_free(&dec->rows);
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
	memset(block, 0, sizeof(*block));
}

size_t weft__decoded_bytes(const struct weft__decoded *block)
{
	return block->chunk_mem.cap + block->time_mem.cap + block->kind_mem.cap + block->row_mem.cap +
	       block->kinds_mem.cap + block->value_mem.cap;
}

static void *room(struct weft__buf *buf, size_t bytes)
{
	weft__buf_clear(buf);
	return weft__buf_room(buf, bytes ? bytes : 1);
}

/* Decompresses one whole frame of `size` bytes. zstd itself would take several frames, and skippable ones. */
static int expand_to(struct weft__decoder *dec, const uint8_t *bytes, size_t n, size_t size, struct weft__buf *out)
{
	uint8_t *to;

	if (n < 4 || get_u32(bytes) != ZSTD_MAGICNUMBER || ZSTD_findFrameCompressedSize(bytes, n) != n)
		return -WEFT_E_DAMAGED;
	to = room(out, size);
	if (!to)
		return -ENOMEM;
	out->n = ZSTD_decompressDCtx(dec->dctx, to, size, bytes, n);
	if (ZSTD_isError(out->n) || out->n != size) {
		out->n = 0;
		return -WEFT_E_DAMAGED;
	}
	return 0;
}

int weft__decoder_expand(struct weft__decoder *dec, const uint8_t *bytes, size_t n, size_t max, struct weft__buf *out)
{
	unsigned long long size = ZSTD_getFrameContentSize(bytes, n);

	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > max)
		return -WEFT_E_DAMAGED;
	return expand_to(dec, bytes, n, (size_t)size, out);
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

	if (quantum < 1 || quantum > QUANTUM_MAX)
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
		uint64_t ring = in_varint(&work->in);

		chunk->n_slots = in_varint(&work->in);
		chunk->first_slot = in_varint(&work->in);
		chunk->first_q = in_varint(&work->in);
		if (work->in.bad || stream > UINT32_MAX || ring > UINT32_MAX || events < 1 || events > n_events)
			return bad(work, "chunk out of range");
		chunk->stream = (uint32_t)stream;
		chunk->ring = (uint32_t)ring;
		chunk->n_events = (uint32_t)events;
		sum += events;
	}
	return sum == n_events ? 0 : bad(work, "chunks and header disagree about the number of events");
}

/* What the first two fields of a kind that lacks them read as, so that a cursor need not ask. */
static uint64_t no_value;

/* The index of a kind, new or known, or -1 when memory is out. */
static int kind_index(struct work *work, uint32_t kind)
{
	struct weft__decoded *block = work->block;
	struct weft__decoded_kind *one;

	if (work->dec->kind_index[kind])
		return work->dec->kind_index[kind] - 1;
	one = (void *)weft__buf_room(&block->kinds_mem, sizeof(*one));
	weft__buf_put(&work->dec->rows, &(uint32_t){0}, sizeof(uint32_t));
	if (!one || work->dec->rows.oom)
		return -1;
	memset(one, 0, sizeof(*one));
	one->kind = (uint16_t)kind;
	one->field[0] = one->field[1] = &no_value;
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
	for (i = (uint32_t)n; i < SYMBOLS_MAX; i++) /* as rare as the escape, and looked at where that is */
		work->symbols[i] = (struct symbol){0, ESCAPE, 0};
	for (i = 0; i < n; i++) {
		uint64_t kind = in_varint(&work->in);
		uint32_t class = in_u8(&work->in);
		int index;

		if (work->in.bad || kind > UINT16_MAX || class > CLASS_MAX)
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

/* Up to 61 bits at bit `at` of memory that goes on for 16 bytes. */
static inline uint64_t bits_at(const uint8_t *bytes, uint64_t at, uint32_t n)
{
	uint64_t v = get_u64(bytes + (at >> 3)) >> (at & 7);

	if (__builtin_expect(n > 56, 0))
		v |= (uint64_t)bytes[(at >> 3) + 8] << (63 - (at & 7)) << 1;
	return v & ((UINT64_C(1) << n) - 1);
}

static int next_escape(struct work *work, uint32_t prefix, struct weft__in *escapes, struct symbol *sym)
{
	const uint8_t *three;
	uint32_t class;
	int index;

	if (prefix >= work->n_symbols)
		return bad(work, "prefix out of range");
	three = in_bytes(escapes, 3);
	if (!three)
		return bad(work, "escapes end early");
	class = three[2];
	if (class > CLASS_MAX || get_u16(three) == 0)
		return bad(work, "escape out of range");
	index = kind_index(work, get_u16(three));
	if (index < 0)
		return -ENOMEM;
	*sym = (struct symbol){class_base(class), (uint16_t)index, (uint8_t)class_bits(class)};
	return 0;
}

static void widen(struct weft__decoded *block, uint64_t first_ns, uint64_t last_ns)
{
	if (first_ns < block->first_ns)
		block->first_ns = first_ns;
	if (last_ns > block->last_ns)
		block->last_ns = last_ns;
}

/* Where reading events has come to. */
struct place {
	const uint8_t *prefix;
	struct weft__in escapes;
	uint64_t bit; /* of the mantissa */
	uint64_t q;
	uint32_t i; /* event */
};

/* Times, kinds and rows of the events up to `end`, which are at most STEP. Where the mantissa has ended the padding is read; the
 * caller refuses them. */
static int read_step(struct work *work, struct place *place, uint32_t end)
{
	const struct weft__decoded *block = work->block;
	const uint8_t *mantissa = work->dec->mantissa.bytes, *prefix = place->prefix;
	uint32_t *rows = (void *)work->dec->rows.bytes;
	uint64_t *time = block->time;
	uint16_t *kind = block->kind;
	uint32_t *row = block->row;
	uint64_t bit = place->bit, q = place->q, quantum = block->quantum_ns;
	uint32_t i, wrapped = 0;

	for (i = place->i; i < end; i++) {
		struct symbol sym = work->symbols[prefix[i]];
		uint64_t before = q;

		if (__builtin_expect(sym.kind == ESCAPE, 0)) {
			int err = next_escape(work, prefix[i], &place->escapes, &sym);

			if (err)
				return err;
			rows = (void *)work->dec->rows.bytes;
		}
		q += sym.base + bits_at(mantissa, bit, sym.bits); /* no bits read as zero */
		bit += sym.bits;
		wrapped |= q < before;
		time[i] = q * quantum;
		kind[i] = sym.kind;
		row[i] = rows[sym.kind]++;
	}
	place->bit = bit;
	place->q = q;
	place->i = i;
	return wrapped ? bad(work, "time out of range") : 0;
}

/* All events. Escapes follow the prefixes in the body; what is left of it are the columns. */
static int read_events(struct work *work)
{
	struct weft__decoded *block = work->block;
	struct place place = {.prefix = in_bytes(&work->body, block->n)};
	uint64_t n_bits = work->n_mantissa_bits;
	const uint32_t *rows;
	uint32_t i, c;

	if (!place.prefix)
		return bad(work, "body is shorter than its prefixes");
	place.escapes = work->body;
	for (c = 0; c < block->n_chunks; c++) {
		uint32_t begin = place.i, end = begin + block->chunks[c].n_events;

		place.q = block->chunks[c].first_q;
		while (place.i < end) {
			int err = read_step(work, &place, end - place.i < STEP ? end : place.i + STEP);

			if (place.bit > n_bits)
				return bad(work, "mantissa ends early");
			if (err)
				return err;
		}
		if (place.q > UINT64_MAX / block->quantum_ns)
			return bad(work, "time out of range");
		if (block->time[begin] != block->chunks[c].first_q * block->quantum_ns)
			return bad(work, "first event of a chunk has a gap");
		widen(block, block->time[begin], block->time[end - 1]);
	}
	if (n_bits - place.bit > 7)
		return bad(work, "mantissa is too long");
	rows = (const void *)work->dec->rows.bytes;
	for (i = 0; i < block->n_kinds; i++)
		block->kinds[i].n = rows[i];
	work->body = place.escapes;
	return 0;
}

static int read_mantissa_and_body(struct work *work)
{
	struct weft__decoder *dec = work->dec;
	uint64_t n = in_varint(&work->in);
	const uint8_t *bytes = in_bytes(&work->in, n);
	uint64_t body;
	uint8_t *to;

	if (!bytes)
		return bad(work, "mantissa ends early");
	to = room(&dec->mantissa, n + MANTISSA_PAD);
	if (!to)
		return -ENOMEM;
	memcpy(to, bytes, n);
	memset(to + n, 0, MANTISSA_PAD);
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
		int err = expand_to(dec, work->in.p, in_left(&work->in), body, &dec->body);

		if (err)
			return err == -ENOMEM ? err : bad(work, "body does not decompress");
		work->body = weft__in(dec->body.bytes, dec->body.n);
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

static int decode(struct work *work, uint32_t n_events)
{
	struct weft__decoded *block = work->block;
	struct weft__column_reader reader = {.block = block, .kind_index = work->dec->kind_index};
	uint64_t n_values = 0;
	int err;

	err = read_chunks(work, n_events);
	if (!err)
		err = read_symbols(work);
	if (err)
		return err;
	if (weft__column_heads(&reader, &work->in, &n_values))
		return bad(work, reader.why);
	err = alloc_events(block, n_values);
	if (!err)
		err = read_mantissa_and_body(work);
	if (!err)
		err = read_events(work);
	if (!err && weft__column_values(&reader, work->body))
		err = bad(work, reader.why);
	return err;
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
	block->first_ns = n_events ? UINT64_MAX : 0;
	block->last_ns = 0;
	weft__buf_clear(&dec->rows);
	block->n_kinds = 0;
	weft__buf_clear(&block->kinds_mem);
	block->kinds = NULL;
	err = decode(&work, n_events);
	for (i = 0; block->kinds && i < block->n_kinds; i++)
		dec->kind_index[block->kinds[i].kind] = 0;
	*why = work.why;
	return err;
}
