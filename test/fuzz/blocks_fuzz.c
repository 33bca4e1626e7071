/* SPDX-License-Identifier: Apache-2.0 */
/* A segment whose checksums are right and whose contents are the fuzzer's: the input is a list of blocks, each a
 * byte of type and flags, a varint count, varint first time, varint span, u16 length and the payload. A last byte of
 * 0xff seals the file with its true index; a block of type index is as the fuzzer says. */
#include "base/bytes.h"
#include "fuzz/read.h"
#include "segment/format.h"
#include "segment/hash.h"

#define FILE_MAX (1u << 20)

static uint8_t file[FILE_MAX];
static uint8_t entries[FILE_MAX];

static size_t put_block(size_t at, uint32_t type, uint32_t flags, uint32_t count, uint64_t first, uint64_t last,
			const uint8_t *payload, size_t n)
{
	uint8_t *head = file + at;

	memcpy(head, SEG_BLOCK_MAGIC, 4);
	put_u16(head + BLOCK_TYPE_AT, (uint16_t)type);
	put_u16(head + BLOCK_FLAGS_AT, (uint16_t)flags);
	put_u32(head + BLOCK_LENGTH_AT, (uint32_t)n);
	put_u32(head + BLOCK_COUNT_AT, count);
	put_u64(head + BLOCK_FIRST_AT, first);
	put_u64(head + BLOCK_LAST_AT, last);
	if (n)
		memcpy(head + BLOCK_HEADER_BYTES, payload, n);
	put_u64(head + BLOCK_HASH_AT, weft__hash2(head, BLOCK_HASH_AT, head + BLOCK_HEADER_BYTES, n));
	return at + BLOCK_HEADER_BYTES + n;
}

static size_t put_header(void)
{
	memset(file, 0, SEG_HEADER_BYTES);
	memcpy(file, SEG_MAGIC, 8);
	put_u16(file + SEG_VERSION_AT, SEG_VERSION);
	put_u16(file + SEG_HEADER_BYTES_AT, SEG_HEADER_BYTES);
	put_u64(file + SEG_HASH_AT, weft__hash(file, SEG_HASH_AT));
	return SEG_HEADER_BYTES;
}

static size_t put_trailer(size_t at, uint64_t index)
{
	memcpy(file + at, SEG_END_MAGIC, 8);
	put_u64(file + at + TRAILER_INDEX_AT, index);
	put_u64(file + at + TRAILER_HASH_AT, weft__hash(file + at, TRAILER_HASH_AT));
	return at + TRAILER_BYTES;
}

static uint8_t *put_entry(uint8_t *to, uint32_t type, size_t at, size_t bytes, uint32_t count, uint64_t first,
			  uint64_t last)
{
	to = put_varint(to, type);
	to = put_varint(to, at);
	to = put_varint(to, bytes);
	to = put_varint(to, count);
	to = put_varint(to, first);
	return put_varint(to, last - first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__in in = weft__in(data, size);
	size_t at = put_header(), index_at = 0;
	uint8_t *entry = entries, *exact;
	uint32_t n_blocks = 0;

	if (size > FILE_MAX / 8)
		return 0;
	while (in_left(&in) && *in.p != 0xff) {
		uint8_t kind = in_u8(&in);
		uint32_t count = in_u32(&in);
		uint64_t first = in_varint(&in), last = first + in_varint(&in);
		const uint8_t *length = in_bytes(&in, 2);
		size_t n = length ? get_u16(length) : 0;
		const uint8_t *payload;

		n = n < in_left(&in) ? n : in_left(&in);
		payload = in_bytes(&in, n);
		if ((kind & 7) == BLOCK_INDEX)
			index_at = at;
		entry = put_entry(entry, kind & 7, at, BLOCK_HEADER_BYTES + n, count, first, last);
		n_blocks++;
		at = put_block(at, kind & 7, kind >> 3, count, first, last, payload, n);
		if (at > FILE_MAX / 2)
			return 0;
	}
	if (in_left(&in)) {
		index_at = at;
		at = put_block(at, BLOCK_INDEX, 0, n_blocks, 0, 0, entries, (size_t)(entry - entries));
	}
	if (index_at)
		at = put_trailer(at, index_at);
	exact = malloc(at); /* where ASan sees the first byte read beyond it */
	if (!exact)
		return 0;
	memcpy(exact, file, at);
	read_segment(exact, at);
	free(exact);
	return 0;
}
