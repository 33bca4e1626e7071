/* SPDX-License-Identifier: Apache-2.0 */
/* Reading events, in stored order or merged by time.
 *
 * The merge opens blocks only as it reaches them: blocks are ordered by their first time, and a block is decoded
 * when the next event in the heap is not older than the block's first. Then all its events are made at once. The
 * heap has one entry per chunk of an open block. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "segment/format.h"
#include "segment/reader.h"

/* The events of a block that is being merged. */
struct open_block {
	struct weft__record *records;
	struct weft__buf record_mem, wide_mem; /* records, and the fields that they point to */
	uint32_t n_live;                       /* chunks not at their end */
	size_t bytes;                          /* of its buffers */
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
	/* In order of time: what is left of the strand on top of the heap, of which all before `run_below` come
	 * next. NULL: none. */
	const struct weft__record *run, *run_end;
	uint64_t run_below;
	enum weft_order order;
	uint64_t from_ns;
	uint64_t upto_ns; /* inclusive */
	int everything;   /* no event is out of range */
	uint32_t *blocks; /* indexes of events blocks in range */
	size_t n_blocks;
	size_t next_block;
	uint32_t quick_end;         /* stored order: end of the present chunk when all its events are wanted, else 0 */
	struct weft__decoded block; /* the last that was decoded */
	size_t block_bytes;
	struct strand *heap;
	size_t n_heap;
	size_t heap_cap;
	struct open_block *spare;
	size_t bytes; /* of the block, and of all open and spare ones */
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
	weft__buf_free(&block->record_mem);
	weft__buf_free(&block->wide_mem);
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
	while (cursor->spare) {
		struct open_block *block = cursor->spare;

		cursor->spare = block->next;
		block_free(block);
	}
	weft__decoded_fini(&cursor->block);
	weft__free(cursor->heap);
	weft__free(cursor->blocks);
	weft__free(cursor);
}

/* Decodes a block whose payload is at hand. -WEFT_E_DAMAGED when it cannot be, or is not what its header says. */
static int decode_checked(struct weft_cursor *cursor, const struct weft__block *block, const uint8_t *payload,
			  const char **why)
{
	struct weft__decoded *decoded = &cursor->block;
	int err = weft__decoder_events(cursor->seg->decoder, payload, block->bytes, block->count, decoded, why);

	if (!err && (decoded->first_ns != block->first_ns || decoded->last_ns != block->last_ns)) {
		*why = "the times of a block are not those of its events";
		return -WEFT_E_DAMAGED;
	}
	return err;
}

/* A small block can stand for many megabytes of events, and a hostile file has very many that overlap in time. */
static int within_bounds(struct weft_cursor *cursor, size_t *counted, size_t bytes)
{
	cursor->bytes += bytes - *counted;
	*counted = bytes;
	return cursor->bytes <= cursor->seg->open_bytes_max;
}

/* Decodes one block: 1, or 0 when it is damaged and passed over, or -ENOMEM. */
static int load(struct weft_cursor *cursor, uint32_t index)
{
	struct weft__block *block = &cursor->seg->blocks[index];
	const uint8_t *payload;
	const char *why;
	int err, oom;

	payload = weft__segment_payload(cursor->seg, block, &oom);
	if (!payload)
		return oom ? -ENOMEM : 0;
	err = decode_checked(cursor, block, payload, &why);
	if (!within_bounds(cursor, &cursor->block_bytes, weft__decoded_bytes(&cursor->block)) && !err)
		err = -ENOMEM;
	if (err)
		cursor->block.n = cursor->block.at = cursor->block.chunk_end = 0; /* none of its events are given out */
	if (err && err != -ENOMEM)
		weft__segment_block_bad(cursor->seg, block, why);
	return err == -ENOMEM ? err : !err;
}

static __attribute__((noinline)) int next_rare(struct weft__decoded *block, struct weft_event_view *ev)
{
	if (weft__decoded_rare(block, ev) > RECORD_FIELDS)
		weft__record_wide(ev->fields[0], ev);
	return 1;
}

/* The next event of the present chunk. Answers 1. */
static inline int next_of_chunk(struct weft__decoded *block, struct weft_event_view *ev)
{
	return __builtin_expect(weft__decoded_quick(block, ev), 1) ? 1 : next_rare(block, ev);
}

static __attribute__((noinline)) int next_stored(struct weft_cursor *cursor, struct weft_event_view *ev)
{
	struct weft__decoded *block = &cursor->block;

	for (;;) {
		while (block->at < block->chunk_end) {
			next_of_chunk(block, ev);
			if (ev->time_ns >= cursor->from_ns && ev->time_ns <= cursor->upto_ns)
				return 1;
		}
		cursor->quick_end = 0;
		if (!weft__decoded_chunk(block)) {
			int loaded;

			if (cursor->next_block == cursor->n_blocks)
				return 0;
			loaded = load(cursor, cursor->blocks[cursor->next_block++]);
			if (loaded < 0)
				return loaded;
		} else if (cursor->everything) {
			cursor->quick_end = block->chunk_end;
		}
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

	while (at < end && block->records[at].time_ns < cursor->from_ns)
		at++;
	if (at == end)
		return 0;
	strand.at = at;
	strand.time = block->records[at].time_ns;
	err = heap_add(cursor, &strand);
	if (!err)
		block->n_live++;
	return err;
}

static void make_records(struct weft__decoded *block, struct weft__record *to)
{
	while (weft__decoded_chunk(block))
		for (; block->at < block->chunk_end; to++)
			if (!weft__decoded_quick(block, to))
				weft__decoded_rare(block, to);
}

/* All events of the block that was decoded, apart from it. */
static struct open_block *make_all(struct weft_cursor *cursor)
{
	struct weft__decoded *decoded = &cursor->block;
	struct open_block *block = cursor->spare;
	struct weft__buf wide;
	int fits;

	if (block)
		cursor->spare = block->next;
	else
		block = weft__calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->n_live = 1; /* held while chunks are added */
	block->records = weft__decode_room(&block->record_mem, decoded->n * sizeof(*block->records));
	if (block->records)
		make_records(decoded, block->records);
	wide = block->wide_mem;
	block->wide_mem = decoded->wide_mem;
	decoded->wide_mem = wide;
	within_bounds(cursor, &cursor->block_bytes, weft__decoded_bytes(decoded));
	fits = within_bounds(cursor, &block->bytes, block->record_mem.cap + block->wide_mem.cap);
	if (fits && block->records)
		return block;
	release(cursor, block);
	return NULL;
}

static int open_next(struct weft_cursor *cursor)
{
	uint32_t index = cursor->blocks[cursor->next_block++];
	const struct weft__decoded *decoded = &cursor->block;
	struct open_block *block;
	uint32_t c, at = 0;
	int err = load(cursor, index);

	if (err <= 0)
		return err;
	block = make_all(cursor);
	err = block ? 0 : -ENOMEM;
	for (c = 0; !err && c < decoded->n_chunks; c++) {
		uint32_t end = at + decoded->chunks[c].n_events;

		err = add_strand(cursor, block, (uint64_t)index << 32 | c, decoded->chunks[c].stream, at, end);
		at = end;
	}
	if (block)
		release(cursor, block);
	return err;
}

/* The strand on top was followed for a while: its place in the heap is found again. */
static void end_run(struct weft_cursor *cursor)
{
	struct strand *top = &cursor->heap[0];

	if (cursor->run < cursor->run_end) {
		top->at = (uint32_t)(cursor->run - top->block->records);
		top->time = cursor->run->time_ns;
	} else {
		release(cursor, top->block);
		cursor->heap[0] = cursor->heap[--cursor->n_heap];
	}
	cursor->run = cursor->run_end = NULL;
	if (cursor->n_heap)
		sift_down(cursor, 0);
}

/* Events of the strand on top that are earlier than this come next, whatever the others have. */
static uint64_t run_limit(const struct weft_cursor *cursor)
{
	uint64_t limit = cursor->upto_ns < UINT64_MAX ? cursor->upto_ns + 1 : UINT64_MAX, first_ns;
	size_t i;

	for (i = 1; i < cursor->n_heap && i < 3; i++)
		limit = cursor->heap[i].time < limit ? cursor->heap[i].time : limit;
	if (cursor->next_block == cursor->n_blocks)
		return limit;
	first_ns = cursor->seg->blocks[cursor->blocks[cursor->next_block]].first_ns;
	return first_ns < limit ? first_ns : limit;
}

static inline void give(const struct weft__record *record, struct weft_event_view *ev)
{
	memcpy(ev, record, sizeof(*record));
	if (record->n_fields > RECORD_FIELDS)
		weft__record_wide(record->fields[0], ev);
}

/* Begins a run with the next event in order of time: 1, or 0 when there is none. */
static int begin_run(struct weft_cursor *cursor)
{
	struct strand *top;

	if (cursor->run)
		end_run(cursor);
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
	cursor->run = &top->block->records[top->at];
	cursor->run_end = &top->block->records[top->end];
	cursor->run_below = run_limit(cursor);
	return 1;
}

static __attribute__((noinline)) int next_by_time(struct weft_cursor *cursor, struct weft_event_view *ev)
{
	int rc = begin_run(cursor);

	if (rc > 0)
		give(cursor->run++, ev);
	return rc;
}

int weft__cursor_run(struct weft_cursor *cursor, const struct weft__record **ret, const struct weft__record **end)
{
	const struct weft__record *at;
	int rc = begin_run(cursor);

	if (rc <= 0)
		return rc;
	at = *ret = cursor->run;
	do
		at++;
	while (at < cursor->run_end && at->time_ns < cursor->run_below);
	cursor->run = *end = at;
	return 1;
}

int weft_cursor_next(struct weft_cursor *cursor, struct weft_event_view *ev)
{
	/* Here only while all events of a stored chunk are wanted; next_stored sets it up. */
	if (cursor->block.at < cursor->quick_end)
		return next_of_chunk(&cursor->block, ev);
	if (cursor->run < cursor->run_end && cursor->run->time_ns < cursor->run_below) {
		give(cursor->run++, ev);
		return 1;
	}
	return cursor->order == WEFT_ORDER_TIME ? next_by_time(cursor, ev) : next_stored(cursor, ev);
}
