/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a sealed segment, and the trailer that points to it. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "segment/format.h"
#include "segment/hash.h"
#include "segment/reader.h"

int weft__segment_trailer(struct weft_segment *seg, uint64_t *ret_index_at)
{
	const uint8_t *bytes;

	if (seg->n_bytes < seg->blocks_at + TRAILER_BYTES)
		return 0;
	bytes = weft__segment_at(seg, seg->n_bytes - TRAILER_BYTES, TRAILER_BYTES);
	if (!bytes || memcmp(bytes, SEG_END_MAGIC, 8) ||
	    get_u64(bytes + TRAILER_HASH_AT) != weft__hash(bytes, TRAILER_HASH_AT))
		return 0;
	*ret_index_at = get_u64(bytes + TRAILER_INDEX_AT);
	return 1;
}

/* One entry, which has to lie between `from` and `to`. */
static int next_entry(struct weft__in *in, uint64_t from, uint64_t to, struct weft__block *block)
{
	uint64_t type = in_varint(in);
	uint64_t offset = in_varint(in);
	uint64_t bytes = in_varint(in);
	uint64_t count = in_varint(in);

	memset(block, 0, sizeof(*block));
	block->offset = offset;
	block->first_ns = in_varint(in);
	block->last_ns = block->first_ns + in_varint(in);
	if (in->bad || type > UINT16_MAX || count > UINT32_MAX || offset < from || offset > to ||
	    bytes < BLOCK_HEADER_BYTES || bytes > to - offset || bytes - BLOCK_HEADER_BYTES > BLOCK_PAYLOAD_MAX ||
	    block->last_ns < block->first_ns)
		return 0;
	block->type = (uint16_t)type;
	block->count = (uint32_t)count;
	block->bytes = (uint32_t)(bytes - BLOCK_HEADER_BYTES);
	return 1;
}

int weft__segment_index(struct weft_segment *seg, const struct weft__block *index, const uint8_t *payload, int add,
			uint64_t *ret_listed)
{
	struct weft__in in = weft__in(payload, index->bytes);
	uint64_t from = seg->blocks_at, listed = 0;
	struct weft__block block;
	uint32_t i;

	for (i = 0; i < index->count; i++) {
		int err = 0;

		if (!next_entry(&in, from, index->offset, &block))
			return -WEFT_E_DAMAGED;
		from = block.offset + BLOCK_HEADER_BYTES + block.bytes;
		listed += BLOCK_HEADER_BYTES + (uint64_t)block.bytes;
		if (add)
			err = weft__segment_add_block(seg, &block);
		if (err)
			return err;
	}
	*ret_listed = listed;
	return in_left(&in) ? -WEFT_E_DAMAGED : 0;
}

int weft__segment_by_index(struct weft_segment *seg)
{
	struct weft__block index;
	const uint8_t *payload;
	uint64_t at, listed;
	int err;

	if (!weft__segment_trailer(seg, &at) || !weft__segment_block_head(seg, at, &index) ||
	    index.type != BLOCK_INDEX || at + BLOCK_HEADER_BYTES + index.bytes != seg->n_bytes - TRAILER_BYTES)
		return 0;
	payload = weft__segment_whole(seg, &index);
	if (!payload)
		return 0;
	err = weft__segment_index(seg, &index, payload, 1, &listed);
	if (!err)
		seg->info.sealed = 1;
	/* Bytes that are in no block are damage that was there when it was sealed: walking finds and tells it. */
	if (err || listed != at - seg->blocks_at) {
		seg->n_blocks = 0;
		return err == -ENOMEM ? err : 0;
	}
	seg->info.recovered |= !!(index.flags & BLOCK_FLAG_RECOVERED);
	seg->good_end = at;
	return 1;
}
