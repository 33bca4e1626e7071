/* SPDX-License-Identifier: Apache-2.0 */
/* Reading events, in stored order or merged by time.
 *
 * The merge opens blocks only as it reaches them: blocks are ordered by their first time, and a block is decoded when the next
 * event in the heap is not older than the block's first. The heap has one entry per chunk of an open block. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "segment/format.h"
#include "segment/reader.h"

struct open_block {
	struct weft__decoded decoded;
	uint32_t n_live; /* chunks not at their end */
	size_t bytes;    /* of its buffers */
	struct open_block *next;
};

struct strand {
	uint64_t time;
	uint32_t stream;
	uint32_t at; /* next event in the block */
	uint32_t end;
	uint64_t order; /* of its chunk in the file: those of one stream come in that order */
	struct open_block *block;
};

struct weft_cursor {
	struct weft_segment *seg;
	enum weft_order order;
	uint64_t from_ns;
	uint64_t upto_ns; /* inclusive */
	int everything;   /* no event is out of range */
	uint32_t *blocks; /* indexes of events blocks in range */
	size_t n_blocks;
	size_t next_block;
	struct strand *heap;
	size_t n_heap;
	size_t heap_cap;
	struct open_block *current; /* stored order */
	uint32_t chunk;
	uint32_t at, end;
	uint32_t quick_end; /* `end` when every event up to there is wanted, else 0 */
	uint32_t stream;    /* of the present chunk */
	struct open_block *spare;
	size_t bytes; /* of all open and spare blocks */
};

static int by_first_time(const void *a, const void *b, void *data)
{
	const struct weft__block *blocks = data;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (blocks[x].first_ns != blocks[y].first_ns)
		return blocks[x].first_ns < blocks[y].first_ns ? -1 : 1;
	return x < y ? -1 : 1;
}

int weft_cursor_open(struct weft_cursor **ret, struct weft_segment *seg, enum weft_order order, uint64_t from_ns,
		     uint64_t to_ns, struct weft_error *err)
{
	struct weft_cursor *cursor = weft__calloc(1, sizeof(*cursor));
	size_t i;

	if (!cursor)
		return weft__fail(err, -ENOMEM, "out of memory");
	cursor->seg = seg;
	cursor->order = order;
	cursor->from_ns = from_ns;
	cursor->upto_ns = to_ns == UINT64_MAX ? to_ns : to_ns - 1;
	cursor->everything = !from_ns && to_ns == UINT64_MAX;
	cursor->blocks = weft__calloc(seg->n_blocks + 1, sizeof(*cursor->blocks));
	if (!cursor->blocks) {
		weft_cursor_close(cursor);
		return weft__fail(err, -ENOMEM, "out of memory");
	}
	for (i = 0; i < seg->n_blocks; i++) {
		const struct weft__block *block = &seg->blocks[i];

		if (block->type == BLOCK_EVENTS && to_ns && block->last_ns >= from_ns &&
		    block->first_ns <= cursor->upto_ns)
			cursor->blocks[cursor->n_blocks++] = (uint32_t)i;
	}
	if (order == WEFT_ORDER_TIME)
		qsort_r(cursor->blocks, cursor->n_blocks, sizeof(*cursor->blocks), by_first_time, seg->blocks);
	*ret = cursor;
	return 0;
}

static void block_free(struct open_block *block)
{
	if (!block)
		return;
	weft__decoded_fini(&block->decoded);
	weft__free(block);
}

void weft_cursor_close(struct weft_cursor *cursor)
{
	size_t i;

	if (!cursor)
		return;
	for (i = 0; i < cursor->n_heap; i++) {
		struct open_block *block = cursor->heap[i].block;

		if (!--block->n_live)
			block_free(block);
	}
	block_free(cursor->current);
	while (cursor->spare) {
		struct open_block *block = cursor->spare;

		cursor->spare = block->next;
		block_free(block);
	}
	weft__free(cursor->heap);
	weft__free(cursor->blocks);
	weft__free(cursor);
}

/* Decodes a block whose payload is at hand. -WEFT_E_DAMAGED when it cannot be, or is not what its header says. */
static int decode_checked(struct weft_cursor *cursor, const struct weft__block *block, const uint8_t *payload,
			  struct weft__decoded *decoded, const char **why)
{
	int err = weft__decoder_events(cursor->seg->decoder, payload, block->bytes, block->count, decoded, why);

	if (!err && (decoded->first_ns != block->first_ns || decoded->last_ns != block->last_ns)) {
		*why = "the times of a block are not those of its events";
		return -WEFT_E_DAMAGED;
	}
	return err;
}

/* A small block can stand for many megabytes of events, and a hostile file has very many that overlap in time. */
static int within_bounds(struct weft_cursor *cursor, struct open_block *open)
{
	cursor->bytes -= open->bytes;
	open->bytes = weft__decoded_bytes(&open->decoded);
	cursor->bytes += open->bytes;
	return cursor->bytes <= cursor->seg->open_bytes_max;
}

/* Decodes one block, or passes it over: NULL with *err 0 when it is damaged. */
static struct open_block *load(struct weft_cursor *cursor, uint32_t index, int *err)
{
	struct weft__block *block = &cursor->seg->blocks[index];
	struct open_block *open = cursor->spare;
	const uint8_t *payload;
	const char *why;
	int oom;

	*err = 0;
	if (open)
		cursor->spare = open->next;
	else
		open = weft__calloc(1, sizeof(*open));
	if (!open) {
		*err = -ENOMEM;
		return NULL;
	}
	payload = weft__segment_payload(cursor->seg, block, &oom);
	if (payload) {
		*err = decode_checked(cursor, block, payload, &open->decoded, &why);
		if (!within_bounds(cursor, open) && !*err)
			*err = -ENOMEM;
		if (!*err)
			return open;
		if (*err != -ENOMEM)
			weft__segment_block_bad(cursor->seg, block, why);
	}
	*err = oom || *err == -ENOMEM ? -ENOMEM : 0;
	open->next = cursor->spare;
	cursor->spare = open;
	return NULL;
}

static __attribute__((noinline)) int fill_more(const struct weft__decoded_kind *kind, uint32_t row,
					       struct weft_event_view *ev)
{
	uint32_t f;

	for (f = 2; f < kind->n_fields; f++)
		ev->fields[f] = kind->field[f][row & kind->step[f]];
	return 1;
}

/* Most kinds have up to two fields, and which kind comes next cannot be predicted: two are always copied. Answers 1. */
static inline int fill(const struct weft__decoded *block, uint32_t stream, uint32_t i, struct weft_event_view *ev)
{
	const struct weft__decoded_kind *kind = &block->kinds[block->kind[i]];
	uint32_t row = block->row[i];

	ev->time_ns = block->time[i];
	ev->thread = stream;
	memcpy(&ev->kind, &kind->kind, sizeof(ev->kind) + sizeof(ev->n_fields));
	ev->fields[0] = kind->field[0][row & kind->step[0]];
	ev->fields[1] = kind->field[1][row & kind->step[1]];
	return __builtin_expect(kind->n_fields > 2, 0) ? fill_more(kind, row, ev) : 1;
}

/* The next event in stored order when more than the next of the present chunk is asked for. */
static void enter_chunk(struct weft_cursor *cursor, uint32_t chunk)
{
	const struct weft__decoded *block = &cursor->current->decoded;

	cursor->chunk = chunk;
	cursor->stream = block->chunks[chunk].stream;
	cursor->end = cursor->at + block->chunks[chunk].n_events;
	cursor->quick_end = cursor->everything ? cursor->end : 0;
}

static int enter_block(struct weft_cursor *cursor)
{
	int err;

	cursor->current = load(cursor, cursor->blocks[cursor->next_block++], &err);
	cursor->at = cursor->end = cursor->quick_end = 0;
	if (cursor->current && cursor->current->decoded.n_chunks)
		enter_chunk(cursor, 0);
	return err;
}

static __attribute__((noinline)) int next_stored(struct weft_cursor *cursor, struct weft_event_view *ev)
{
	for (;;) {
		struct open_block *open = cursor->current;
		int err;

		while (open && cursor->at < cursor->end) {
			uint32_t i = cursor->at++;

			if (open->decoded.time[i] < cursor->from_ns || open->decoded.time[i] > cursor->upto_ns)
				continue;
			return fill(&open->decoded, cursor->stream, i, ev);
		}
		if (open && cursor->chunk + 1 < open->decoded.n_chunks) {
			enter_chunk(cursor, cursor->chunk + 1);
			continue;
		}
		if (open) {
			open->next = cursor->spare;
			cursor->spare = open;
			cursor->current = NULL;
		}
		cursor->quick_end = 0;
		if (cursor->next_block == cursor->n_blocks)
			return 0;
		err = enter_block(cursor);
		if (err)
			return err;
	}
}

static int before(const struct strand *a, const struct strand *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->stream != b->stream)
		return a->stream < b->stream;
	return a->order < b->order;
}

static void sift_down(struct weft_cursor *cursor, size_t i)
{
	struct strand *heap = cursor->heap;
	struct strand moving = heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= cursor->n_heap)
			break;
		if (child + 1 < cursor->n_heap && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &moving))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moving;
}

static int heap_add(struct weft_cursor *cursor, const struct strand *strand)
{
	struct strand *heap = weft__grow(cursor->heap, &cursor->heap_cap, cursor->n_heap, sizeof(*heap));
	size_t i;

	if (!heap)
		return -ENOMEM;
	cursor->heap = heap;
	for (i = cursor->n_heap++; i && before(strand, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = *strand;
	return 0;
}

static void release(struct weft_cursor *cursor, struct open_block *block)
{
	if (--block->n_live)
		return;
	block->next = cursor->spare;
	cursor->spare = block;
}

/* Skips events before from_ns, and puts what is left of a chunk on the heap. */
static int add_strand(struct weft_cursor *cursor, struct open_block *block, uint64_t order, uint32_t stream,
		      uint32_t at, uint32_t end)
{
	struct strand strand = {.stream = stream, .order = order, .end = end, .block = block};
	int err;

	while (at < end && block->decoded.time[at] < cursor->from_ns)
		at++;
	if (at == end)
		return 0;
	strand.at = at;
	strand.time = block->decoded.time[at];
	err = heap_add(cursor, &strand);
	if (!err)
		block->n_live++;
	return err;
}

static int open_next(struct weft_cursor *cursor)
{
	uint32_t index = cursor->blocks[cursor->next_block++];
	struct open_block *block;
	uint32_t c, at = 0;
	int err;

	block = load(cursor, index, &err);
	if (!block)
		return err;
	block->n_live = 1; /* held while chunks are added */
	for (c = 0; !err && c < block->decoded.n_chunks; c++) {
		uint32_t end = at + block->decoded.chunks[c].n_events;

		err = add_strand(cursor, block, (uint64_t)index << 32 | c, block->decoded.chunks[c].stream, at, end);
		at = end;
	}
	release(cursor, block);
	return err;
}

static __attribute__((noinline)) int next_by_time(struct weft_cursor *cursor, struct weft_event_view *ev)
{
	struct strand *top;

	while (cursor->next_block < cursor->n_blocks &&
	       (!cursor->n_heap ||
		cursor->seg->blocks[cursor->blocks[cursor->next_block]].first_ns <= cursor->heap[0].time)) {
		int err = open_next(cursor);

		if (err)
			return err;
	}
	if (!cursor->n_heap || cursor->heap[0].time > cursor->upto_ns)
		return 0;
	top = &cursor->heap[0];
	fill(&top->block->decoded, top->stream, top->at, ev);
	if (++top->at < top->end) {
		top->time = top->block->decoded.time[top->at];
	} else {
		release(cursor, top->block);
		cursor->heap[0] = cursor->heap[--cursor->n_heap];
	}
	if (cursor->n_heap)
		sift_down(cursor, 0);
	return 1;
}

int weft_cursor_next(struct weft_cursor *cursor, struct weft_event_view *ev)
{
	/* Here only while all events of a stored chunk are wanted; next_stored sets it up. */
	if (cursor->at < cursor->quick_end)
		return fill(&cursor->current->decoded, cursor->stream, cursor->at++, ev);
	return cursor->order == WEFT_ORDER_TIME ? next_by_time(cursor, ev) : next_stored(cursor, ev);
}
