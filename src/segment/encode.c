/* SPDX-License-Identifier: Apache-2.0 */
/* Events to bytes.
 *
 * What makes a trace small is to give the compressor only what it can squeeze. The time between two events is mostly
 * noise: its size says something (a poll takes microseconds, a park milliseconds), its low bits do not. So the size
 * of the gap and the kind of the event share one byte, which is well predicted by its frequency, and the low bits
 * are packed as they are, in the mantissa, which no compressor ever sees. Fields go into columns of like values,
 * each in its own zstd block with its own statistics (a flush after each column), all in one frame. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/sort.h"
#include "segment/batch.h"
#include "segment/column_encode.h"
#include "segment/format.h"
#include "segment/zstd_mem.h"
#include "weft/error.h"

#define STEP_OVER 1024
#define TEXT_LEVEL 3

struct pair {
	uint32_t count;
	uint16_t kind; /* index into the batch's rows */
	uint8_t class;
};

struct weft__encoder {
	ZSTD_CCtx *cctx;
	int level;
	struct weft__body body;
	struct weft__columns columns;
	struct weft__buf mantissa;
	struct weft__buf classes;   /* of each event */
	struct weft__buf histogram; /* u32 by kind index and class */
	struct pair *pairs;
	size_t n_pairs;
	size_t pairs_cap;
	int has_escape;
};

/* What is left in the columns is mostly frequencies: looking for repetitions takes half of the time and saves a
 * fifth of the bytes. So level 1 steps over events so fast that it finds next to none, and codes every byte by its
 * frequency. Definitions are text, and few: there repetitions are what there is to find. */
static int configure(ZSTD_CCtx *cctx, int level, int is_text)
{
	ZSTD_CCtx_reset(cctx, ZSTD_reset_session_and_parameters);
	if (is_text && level < TEXT_LEVEL)
		level = TEXT_LEVEL;
	return !ZSTD_isError(ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, level)) &&
	       (level > 1 ||
		(!ZSTD_isError(ZSTD_CCtx_setParameter(cctx, ZSTD_c_targetLength, STEP_OVER)) &&
		 !ZSTD_isError(ZSTD_CCtx_setParameter(cctx, ZSTD_c_literalCompressionMode, ZSTD_ps_enable))));
}

int weft__encoder_open(struct weft__encoder **ret, int level)
{
	struct weft__encoder *enc = weft__calloc(1, sizeof(*enc));

	if (!enc)
		return -ENOMEM;
	enc->cctx = ZSTD_createCCtx_advanced(weft__zstd_mem());
	if (!enc->cctx || !configure(enc->cctx, level, 0)) {
		weft__encoder_close(enc);
		return -ENOMEM;
	}
	enc->level = level;
	*ret = enc;
	return 0;
}

void weft__encoder_close(struct weft__encoder *enc)
{
	if (!enc)
		return;
	ZSTD_freeCCtx(enc->cctx);
	weft__buf_free(&enc->body.bytes);
	weft__buf_free(&enc->body.cuts);
	weft__columns_fini(&enc->columns);
	weft__buf_free(&enc->mantissa);
	weft__buf_free(&enc->classes);
	weft__buf_free(&enc->histogram);
	weft__free(enc->pairs);
	weft__free(enc);
}

/* Gap classes of all events, their histogram by kind, and the mantissa. */
static int classify(struct weft__encoder *enc, const struct weft__batch *batch)
{
	const uint64_t *q = batch->q;
	const uint8_t *kind = batch->kind;
	uint32_t *histogram;
	uint8_t *class;
	uint8_t *bits;
	uint64_t pending = 0; /* mantissa bits not stored yet */
	uint32_t n_pending = 0;
	size_t i = 0;
	size_t c;

	weft__buf_clear(&enc->classes);
	weft__buf_clear(&enc->histogram);
	weft__buf_clear(&enc->mantissa);
	class = weft__buf_room(&enc->classes, batch->n);
	histogram = (uint32_t *)(void *)weft__buf_room(&enc->histogram, batch->n_rows * 256 * sizeof(*histogram));
	bits = weft__buf_room(&enc->mantissa, batch->n * 8 + 16);
	if (!class || !histogram || !bits)
		return -ENOMEM;
	memset(histogram, 0, batch->n_rows * 256 * sizeof(*histogram));
	for (c = 0; c < batch->n_chunks; c++) {
		size_t end = i + batch->chunks[c].n_events;
		uint64_t before = batch->chunks[c].first_q;

		for (; i < end; i++) {
			uint64_t gap = q[i] - before;
			uint32_t m = gap_bits(gap), gap_is = gap_class(gap);

			before = q[i];
			class[i] = (uint8_t)gap_is;
			histogram[kind[i] * 256u + gap_is]++;
			gap &= (UINT64_C(1) << m) - 1;
			pending |= gap << n_pending;
			put_u64(bits, pending);
			n_pending += m;
			if (__builtin_expect(n_pending >= 64, 0)) { /* a gap of years: its last bits may not have fit */
				bits += 8;
				n_pending -= 64;
				pending = gap >> (m - n_pending);
				continue;
			}
			bits += n_pending / 8;
			pending >>= n_pending & ~7u;
			n_pending &= 7;
		}
	}
	for (; n_pending > 0; n_pending -= n_pending < 8 ? n_pending : 8) {
		*bits++ = (uint8_t)pending;
		pending >>= 8;
	}
	enc->mantissa.n = (size_t)(bits - enc->mantissa.bytes);
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct pair *x = a;
	const struct pair *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->class < y->class ? -1 : x->class > y->class;
}

/* The pairs of kind and class that get a symbol, most frequent first; when there are too many, the rest share the
 * escape. */
static int choose_symbols(struct weft__encoder *enc, const struct weft__batch *batch)
{
	const uint32_t *histogram = (const uint32_t *)(const void *)enc->histogram.bytes;
	size_t i;

	enc->n_pairs = 0;
	for (i = 0; i < batch->n_rows * 256; i++) {
		struct pair *pairs;

		if (!histogram[i])
			continue;
		pairs = weft__grow(enc->pairs, &enc->pairs_cap, enc->n_pairs, sizeof(*pairs));
		if (!pairs)
			return -ENOMEM;
		enc->pairs = pairs;
		pairs[enc->n_pairs++] = (struct pair){histogram[i], (uint16_t)(i / 256), (uint8_t)(i % 256)};
	}
	if (enc->n_pairs)
		weft__sort(enc->pairs, enc->n_pairs, sizeof(*enc->pairs), by_count);
	enc->has_escape = enc->n_pairs > SYMBOLS_MAX;
	if (enc->has_escape)
		enc->n_pairs = SYMBOLS_MAX - 1;
	return 0;
}

static int put_prefixes(struct weft__encoder *enc, const struct weft__batch *batch)
{
	uint32_t *symbol_of = (uint32_t *)(void *)enc->histogram.bytes; /* counts are not needed any more */
	uint8_t *prefix = weft__buf_room(&enc->body.bytes, batch->n);
	const uint8_t *class = enc->classes.bytes, *kind = batch->kind;
	size_t i, n = batch->n;

	if (!prefix)
		return -ENOMEM;
	for (i = 0; i < batch->n_rows * 256; i++)
		symbol_of[i] = SYMBOLS_MAX - 1; /* the escape, unless chosen */
	for (i = 0; i < enc->n_pairs; i++)
		symbol_of[enc->pairs[i].kind * 256u + enc->pairs[i].class] = (uint32_t)i;
	for (i = 0; i < n; i++)
		prefix[i] = (uint8_t)symbol_of[kind[i] * 256u + class[i]];
	enc->body.bytes.n += batch->n;
	weft__body_cut(&enc->body);
	if (!enc->has_escape)
		return 0;
	for (i = 0; i < n; i++) {
		uint8_t escape[3];

		if (enc->body.bytes.bytes[i] != SYMBOLS_MAX - 1)
			continue;
		put_u16(escape, batch->rows[batch->kind[i]].kind);
		escape[2] = enc->classes.bytes[i];
		weft__buf_put(&enc->body.bytes, escape, sizeof(escape));
	}
	weft__body_cut(&enc->body);
	return 0;
}

/* Body and output stay where they are until the frame is complete, so zstd need not copy them into buffers of its
 * own. Before 1.5.4 it did not take input that becomes longer by and by. */
static int keep_in_place(ZSTD_CCtx *cctx)
{
	return ZSTD_versionNumber() < 10504 || (!ZSTD_isError(ZSTD_CCtx_setParameter(cctx, ZSTD_c_stableInBuffer, 1)) &&
						!ZSTD_isError(ZSTD_CCtx_setParameter(cctx, ZSTD_c_stableOutBuffer, 1)));
}

/* The body as one frame, with a flush after each section that is long enough to have statistics of its own. */
static int compress_body(struct weft__encoder *enc, struct weft__buf *out)
{
	const uint32_t *cuts = (const uint32_t *)(const void *)enc->body.cuts.bytes;
	size_t n_cuts = enc->body.cuts.n / sizeof(*cuts);
	ZSTD_inBuffer in = {enc->body.bytes.bytes, 0, 0};
	ZSTD_outBuffer dst;
	size_t bound = ZSTD_compressBound(enc->body.bytes.n) + n_cuts * 16 + 64;
	size_t i, left;

	dst.dst = weft__buf_room(out, bound);
	dst.size = bound;
	dst.pos = 0;
	if (!dst.dst)
		return -ENOMEM;
	if (!configure(enc->cctx, enc->level, 0) || !keep_in_place(enc->cctx) ||
	    ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(enc->cctx, enc->body.bytes.n)))
		return -WEFT_E_CODEC;
	for (i = 0; i <= n_cuts; i++) {
		size_t end = i < n_cuts ? cuts[i] : enc->body.bytes.n;
		int last = i == n_cuts;

		if (!last && (end - in.size < 256 || enc->body.bytes.n - end < 64))
			continue;
		in.size = end;
		left = ZSTD_compressStream2(enc->cctx, &dst, &in, last ? ZSTD_e_end : ZSTD_e_flush);
		if (ZSTD_isError(left))
			return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM : -WEFT_E_CODEC;
		if (left || in.pos != in.size)
			return -WEFT_E_CODEC;
	}
	out->n += dst.pos;
	return 0;
}

static void put_head(struct weft__encoder *enc, const struct weft__batch *batch, struct weft__buf *out)
{
	size_t i;

	weft__buf_varint(out, batch->quantum_ns);
	weft__buf_varint(out, batch->n_chunks);
	for (i = 0; i < batch->n_chunks; i++) {
		weft__buf_varint(out, batch->chunks[i].stream);
		weft__buf_varint(out, batch->chunks[i].n_events);
		weft__buf_varint(out, batch->chunks[i].ring);
		weft__buf_varint(out, batch->chunks[i].n_slots);
		weft__buf_varint(out, batch->chunks[i].first_slot);
		weft__buf_varint(out, batch->chunks[i].first_q);
	}
	weft__buf_varint(out, enc->n_pairs + (size_t)enc->has_escape);
	for (i = 0; i < enc->n_pairs; i++) {
		weft__buf_varint(out, batch->rows[enc->pairs[i].kind].kind);
		weft__buf_u8(out, enc->pairs[i].class);
	}
	if (enc->has_escape) {
		weft__buf_varint(out, 0);
		weft__buf_u8(out, 0);
	}
	weft__buf_varint(out, enc->columns.n);
	weft__buf_put(out, enc->columns.heads.bytes, enc->columns.heads.n);
	weft__buf_varint(out, enc->mantissa.n);
	weft__buf_put(out, enc->mantissa.bytes, enc->mantissa.n);
	weft__buf_varint(out, enc->body.bytes.n);
}

static void time_range(const struct weft__batch *batch, uint64_t *first_ns, uint64_t *last_ns)
{
	uint64_t first = batch->n_chunks ? UINT64_MAX : 0;
	uint64_t last = 0;
	size_t i, end = 0;

	for (i = 0; i < batch->n_chunks; i++) {
		end += batch->chunks[i].n_events;
		if (batch->chunks[i].first_q < first)
			first = batch->chunks[i].first_q;
		if (batch->q[end - 1] > last)
			last = batch->q[end - 1];
	}
	*first_ns = first << batch->shift;
	*last_ns = last << batch->shift;
}

int weft__encoder_events(struct weft__encoder *enc, const struct weft__batch *batch, struct weft__buf *out,
			 uint64_t *first_ns, uint64_t *last_ns)
{
	const struct weft__buf *body = &enc->body.bytes;
	size_t mark, r;
	int err;

	weft__buf_clear(out);
	weft__buf_clear(&enc->body.bytes);
	weft__buf_clear(&enc->body.cuts);
	weft__columns_clear(&enc->columns);
	err = classify(enc, batch);
	if (!err)
		err = choose_symbols(enc, batch);
	if (!err)
		err = put_prefixes(enc, batch);
	for (r = 0; !err && r < batch->n_rows; r++)
		err = weft__columns_put(&enc->columns, &batch->rows[r], &enc->body);
	if (err)
		return err;
	put_head(enc, batch, out);
	weft__buf_u8(out, 1);
	if (out->oom || body->oom || enc->columns.heads.oom || enc->body.cuts.oom)
		return -ENOMEM;
	mark = out->n;
	err = compress_body(enc, out);
	if (err)
		return err;
	if (out->n - mark >= body->n) {
		out->n = mark - 1;
		weft__buf_u8(out, 0);
		weft__buf_put(out, body->bytes, body->n);
	}
	time_range(batch, first_ns, last_ns);
	return out->oom ? -ENOMEM : 0;
}

int weft__encoder_squeeze(struct weft__encoder *enc, const struct weft__buf *in, struct weft__buf *out)
{
	size_t bound = ZSTD_compressBound(in->n);
	uint8_t *room;
	size_t n;

	weft__buf_clear(out);
	room = weft__buf_room(out, bound);
	if (!room)
		return -ENOMEM;
	if (!configure(enc->cctx, enc->level, 1))
		return -WEFT_E_CODEC;
	n = ZSTD_compress2(enc->cctx, room, bound, in->bytes, in->n);
	if (ZSTD_isError(n))
		return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? -ENOMEM : -WEFT_E_CODEC;
	out->n = n;
	return n < in->n;
}
