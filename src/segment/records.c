/* SPDX-License-Identifier: Apache-2.0 */
/* The second step of decoding: events out of a block that was checked. */
#include "base/alloc.h"
#include "segment/column_decode.h"

void weft__decoded_fini(struct weft__decoded *block)
{
	weft__buf_free(&block->chunk_mem);
	weft__buf_free(&block->time_mem);
	weft__buf_free(&block->kinds_mem);
	weft__buf_free(&block->column_mem);
	weft__buf_free(&block->row_mem);
	weft__buf_free(&block->wide_mem);
	weft__buf_free(&block->body);
	weft__buf_free(&block->escaped);
	memset(block, 0, sizeof(*block));
}

size_t weft__decoded_bytes(const struct weft__decoded *block)
{
	return block->chunk_mem.cap + block->time_mem.cap + block->kinds_mem.cap + block->column_mem.cap +
	       block->row_mem.cap + block->wide_mem.cap + block->body.cap + block->escaped.cap;
}

void *weft__decode_room(struct weft__buf *buf, size_t bytes)
{
	if (buf->cap <= bytes) {
		size_t cap = bytes + bytes / 8 + 64; /* the next block is about as large */

		weft__buf_free(buf);
		buf->bytes = weft__alloc(cap);
		buf->cap = buf->bytes ? cap : 0;
	}
	weft__buf_clear(buf);
	return buf->bytes;
}

static uint64_t head_of(const struct weft__decoded_kind *kind)
{
	return (uint64_t)kind->kind << 32 | (uint64_t)kind->n_fields << 48;
}

void weft__decoded_symbol(struct weft__decoded *block, uint32_t prefix, uint32_t index)
{
	static struct weft__decoded_kind escape; /* never has a row */
	struct weft__decoded_kind *kind = index == ESCAPED ? &escape : &block->kinds[index];

	block->symbols[prefix] = (struct weft__prefix){head_of(kind), kind};
}

int weft__decoded_chunk(struct weft__decoded *block)
{
	const struct weft__chunk *chunk;

	if (block->chunk_end == block->n)
		return 0;
	chunk = &block->chunks[block->chunk++];
	block->thread = chunk->stream;
	block->chunk_end += chunk->n_events;
	return 1;
}

/* No record is put together first: copying one that was just stored in pieces takes long. */
uint32_t weft__decoded_rare(struct weft__decoded *block, void *to)
{
	struct weft__decoded_kind *kind = block->symbols[block->prefix[block->at]].kind;
	uint64_t head;

	if (!kind->n) {
		const uint16_t *escaped = (const void *)block->escaped.bytes;

		kind = &block->kinds[escaped[block->n_escaped++]];
	}
	head = head_of(kind) | block->thread;
	memcpy(to, &block->time[block->at++], 8);
	memcpy((uint8_t *)to + 8, &head, 8);
	if (kind->wide) {
		uint64_t address = (uintptr_t)(kind->wide + (size_t)kind->n_made++ * kind->n_fields);

		memcpy((uint8_t *)to + 16, &address, 8);
		return kind->n_fields;
	}
	if (kind->next == kind->end)
		weft__column_rows(block, kind);
	memcpy((uint8_t *)to + 16, kind->next, RECORD_FIELDS * 8);
	kind->next += RECORD_FIELDS;
	return kind->n_fields;
}

int weft__decoded_event(struct weft__decoded *block, struct weft_event_view *ev)
{
	if (block->at == block->chunk_end && !weft__decoded_chunk(block))
		return 0;
	if (!weft__decoded_quick(block, ev) && weft__decoded_rare(block, ev) > RECORD_FIELDS)
		weft__record_wide(ev->fields[0], ev);
	return 1;
}
