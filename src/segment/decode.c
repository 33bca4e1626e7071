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
	uint16_t kind_index[65536]; /* kind to index into kinds, plus 1 */
	struct weft__buf mantissa;  /* of the block that is being decoded, where it has to be copied */
};

/* What a prefix stands for, and how many events have it. */
struct symbol {
	uint64_t base; /* of the gap */
	uint32_t mask; /* of its bits in the mantissa */
	uint32_t bits; /* RARE: needs a closer look */
	uint32_t n;
	uint32_t kind; /* index, or ESCAPED */
	uint32_t class;
};

#define RARE 64      /* an escape, a prefix that stands for nothing, or */
#define BITS_MOST 24 /* more bits than this: those of two gaps are read at once */

/* Events between two looks at whether the mantissa has ended, and the bytes behind it that they may read. */
#define STEP 256
#define MANTISSA_PAD (STEP * 8 + 16)

/* What the parsing functions share. */
struct work {
	struct weft__decoder *dec;
	struct weft__decoded *block;
	struct weft__in in;
	struct weft__in body;
	struct symbol symbols[SYMBOLS_MAX];
	uint32_t n_symbols;
	const uint8_t *mantissa; /* MANTISSA_PAD bytes more than it has can be read */
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
	weft__buf_free(&dec->mantissa);
	weft__free(dec);
}

/* Decompresses one whole frame of `size` bytes. zstd itself would take several frames, and skippable ones. */
static int expand_to(struct weft__decoder *dec, const uint8_t *bytes, size_t n, size_t size, struct weft__buf *out)
{
	uint8_t *to;

	if (n < 4 || get_u32(bytes) != ZSTD_MAGICNUMBER || ZSTD_findFrameCompressedSize(bytes, n) != n)
		return -WEFT_E_DAMAGED;
	to = weft__decode_room(out, size);
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
	block->chunks = weft__decode_room(&block->chunk_mem, n * sizeof(*block->chunks));
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

static int read_prefix(struct work *work, struct symbol *symbol)
{
	uint64_t kind = in_varint(&work->in);
	uint32_t class = in_u8(&work->in);
	int index;

	if (work->in.bad || kind > UINT16_MAX || class > CLASS_MAX)
		return bad(work, "symbol out of range");
	if (!kind)
		return 0;
	index = kind_index(work, (uint32_t)kind);
	if (index < 0)
		return -ENOMEM;
	symbol->kind = (uint32_t)index;
	symbol->class = class;
	if (class_bits(class) > BITS_MOST)
		return 0;
	symbol->base = class_base(class);
	symbol->bits = class_bits(class);
	symbol->mask = (1u << symbol->bits) - 1;
	return 0;
}

static int read_symbols(struct work *work)
{
	uint64_t n = in_varint(&work->in);
	uint32_t i, escapes = 0;

	if (n > SYMBOLS_MAX)
		return bad(work, "more than 256 symbols");
	work->n_symbols = (uint32_t)n;
	for (i = 0; i < SYMBOLS_MAX; i++)
		work->symbols[i] = (struct symbol){.bits = RARE, .kind = ESCAPED};
	for (i = 0; i < n; i++) {
		int err = read_prefix(work, &work->symbols[i]);

		if (err)
			return err;
		escapes += work->symbols[i].kind == ESCAPED;
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
	uint64_t sure_q; /* what it was when it was last known not to have gone round */
	uint32_t i;      /* event */
};

static int next_escape(struct work *work, struct weft__in *escapes, uint32_t *ret_class)
{
	const uint8_t *three = in_bytes(escapes, 3);
	uint16_t index16;
	int index;

	if (!three)
		return bad(work, "escapes end early");
	*ret_class = three[2];
	if (*ret_class > CLASS_MAX || get_u16(three) == 0)
		return bad(work, "escape out of range");
	index = kind_index(work, get_u16(three));
	if (index < 0)
		return -ENOMEM;
	work->block->kinds[index].n++;
	index16 = (uint16_t)index;
	weft__buf_put(&work->block->escaped, &index16, sizeof(index16));
	return work->block->escaped.oom ? -ENOMEM : 0;
}

/* The time of the next event, whatever it is. */
static __attribute__((noinline)) int read_one(struct work *work, struct place *place)
{
	uint32_t prefix = place->prefix[place->i], class = work->symbols[prefix].class;

	if (prefix >= work->n_symbols)
		return bad(work, "prefix out of range");
	work->symbols[prefix].n++;
	if (work->symbols[prefix].kind == ESCAPED) {
		int err = next_escape(work, &place->escapes, &class);

		if (err)
			return err;
	}
	if (place->q < place->sure_q)
		return bad(work, "time out of range");
	place->sure_q = place->q;
	place->q += class_base(class) + bits_at(work->mantissa, place->bit, class_bits(class));
	place->bit += class_bits(class);
	if (place->q < place->sure_q)
		return bad(work, "time out of range");
	place->sure_q = place->q;
	work->block->time[place->i++] = place->q * work->block->quantum_ns;
	return 0;
}

/* Times of events, two by two, up to `end` or up to something rare. They are at most STEP and have gaps of at most
 * BITS_MOST bits, so that their sum cannot go round once. */
static __attribute__((noinline)) void read_common(struct work *work, struct place *place, uint32_t end)
{
	const uint8_t *mantissa = work->mantissa, *prefix = place->prefix;
	uint64_t bit = place->bit, q = place->q, quantum = work->block->quantum_ns;
	struct symbol *symbols = work->symbols;
	uint64_t *restrict time = work->block->time;
	size_t i = place->i, stop = end - 1;

	for (; i < stop; i += 2) {
		struct symbol *one = symbols + prefix[i], *two = symbols + prefix[i + 1];
		uint64_t bits = get_u64(mantissa + (bit >> 3)) >> (bit & 7);
		uint32_t n_bits = one->bits + two->bits;

		if (__builtin_expect(n_bits > 2 * BITS_MOST, 0))
			break;
		bit += n_bits;
		q += one->base;
		q += (uint32_t)bits & one->mask;
		time[i] = q * quantum;
		q += two->base;
		q += (uint32_t)(bits >> one->bits) & two->mask;
		time[i + 1] = q * quantum;
		one->n++;
		two->n++;
	}
	place->bit = bit;
	place->q = q;
	place->i = (uint32_t)i;
}

/* Times of the events up to `end`, which are at most STEP. Where the mantissa has ended what is behind it is read;
 * the caller refuses it. */
static int read_step(struct work *work, struct place *place, uint32_t end)
{
	int err = 0;

	place->sure_q = place->q;
	while (!err && place->i < end) {
		read_common(work, place, end);
		if (place->i < end)
			err = read_one(work, place);
		if (!err && place->i < end)
			err = read_one(work, place);
	}
	return !err && place->q < place->sure_q ? bad(work, "time out of range") : err;
}

/* The times of all events, and how many there are of each kind. Escapes follow the prefixes in the body; what is
 * left of it are the columns. */
static int read_events(struct work *work)
{
	struct weft__decoded *block = work->block;
	struct place place = {.prefix = in_bytes(&work->body, block->n)};
	uint64_t n_bits = work->n_mantissa_bits;
	uint32_t i, c;

	if (!place.prefix)
		return bad(work, "body is shorter than its prefixes");
	block->prefix = place.prefix;
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
	for (i = 0; i < work->n_symbols; i++)
		if (work->symbols[i].kind != ESCAPED)
			block->kinds[work->symbols[i].kind].n += work->symbols[i].n;
	work->body = place.escapes;
	return 0;
}

/* Where enough follows it the mantissa is read where it is. */
static int read_mantissa(struct work *work)
{
	uint64_t n = in_varint(&work->in);
	const uint8_t *bytes = in_bytes(&work->in, n);
	uint8_t *to;

	if (!bytes)
		return bad(work, "mantissa ends early");
	work->n_mantissa_bits = n * 8;
	work->mantissa = bytes;
	if (in_left(&work->in) >= MANTISSA_PAD)
		return 0;
	to = weft__decode_room(&work->dec->mantissa, n + MANTISSA_PAD);
	if (!to)
		return -ENOMEM;
	memcpy(to, bytes, n);
	memset(to + n, 0, MANTISSA_PAD);
	work->mantissa = to;
	return 0;
}

/* The body, into memory of the block. */
static int read_body(struct work *work)
{
	uint64_t n = in_varint(&work->in);
	struct weft__buf *body = &work->block->body;
	uint8_t *to;
	int err;

	if (n > BODY_MAX)
		return bad(work, "body too large");
	switch (in_u8(&work->in)) {
	case 0:
		if (work->in.bad || in_left(&work->in) != n)
			return bad(work, "stored body has the wrong length");
		to = weft__decode_room(body, n);
		if (!to)
			return -ENOMEM;
		memcpy(to, work->in.p, n);
		body->n = n;
		break;
	case 1:
		err = expand_to(work->dec, work->in.p, in_left(&work->in), n, body);
		if (err)
			return err == -ENOMEM ? err : bad(work, "body does not decompress");
		break;
	default:
		return bad(work, "body of no known form");
	}
	work->body = weft__in(body->bytes, body->n);
	return 0;
}

static int decode(struct work *work, uint32_t n_events)
{
	struct weft__decoded *block = work->block;
	struct weft__column_reader reader = {.block = block, .kind_index = work->dec->kind_index};
	uint32_t i;
	int err;

	err = read_chunks(work, n_events);
	if (!err)
		err = read_symbols(work);
	if (err)
		return err;
	if (weft__column_heads(&reader, &work->in))
		return bad(work, reader.why);
	block->time = weft__decode_room(&block->time_mem, block->n * sizeof(*block->time));
	err = block->time ? read_mantissa(work) : -ENOMEM;
	if (!err)
		err = read_body(work);
	if (!err)
		err = read_events(work);
	if (err)
		return err;
	err = weft__column_values(&reader, work->body);
	if (err)
		return err == -ENOMEM ? err : bad(work, reader.why);
	for (i = 0; i < SYMBOLS_MAX; i++)
		weft__decoded_symbol(block, i, work->symbols[i].kind);
	block->at = block->chunk_end = block->chunk = block->n_escaped = 0;
	return 0;
}

int weft__decoder_events(struct weft__decoder *dec, const uint8_t *payload, size_t n, uint32_t n_events,
			 struct weft__decoded *block, const char **why)
{
	struct work work;
	uint32_t i;
	int err;

	if (n_events > BLOCK_EVENTS_MAX) {
		*why = "more events than a block may have";
		return -WEFT_E_DAMAGED;
	}
	work.dec = dec;
	work.block = block;
	work.in = weft__in(payload, n);
	work.why = "cannot be parsed";
	block->n = n_events;
	block->first_ns = n_events ? UINT64_MAX : 0;
	block->last_ns = 0;
	block->n_kinds = 0;
	block->kinds = NULL;
	weft__buf_clear(&block->kinds_mem);
	weft__buf_clear(&block->escaped);
	err = decode(&work, n_events);
	for (i = 0; block->kinds && i < block->n_kinds; i++)
		dec->kind_index[block->kinds[i].kind] = 0;
	*why = work.why;
	return err;
}
