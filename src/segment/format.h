/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of the segment format, version 1. docs/FORMAT.md says what they mean; test/unit/segment/format_test.c
 * holds the two together. */
#ifndef WEFT_SEGMENT_FORMAT_H
#define WEFT_SEGMENT_FORMAT_H

#include <stdint.h>

#define SEG_MAGIC "WEFTSEG1"
#define SEG_END_MAGIC "WEFTEND1"
#define SEG_BLOCK_MAGIC "WBK1"
#define SEG_VERSION 1

enum { SEG_FLAG_RECOVERED = 1 };

/* Offsets in the file header. */
enum {
	SEG_VERSION_AT = 8,
	SEG_HEADER_BYTES_AT = 10,
	SEG_FLAGS_AT = 12,
	SEG_RECORDING_AT = 16,
	SEG_SEQUENCE_AT = 32,
	SEG_MONO_AT = 40,
	SEG_REAL_AT = 48,
	SEG_HASH_AT = 56,
	SEG_HEADER_BYTES = 64
};

enum { BLOCK_DEFS = 1, BLOCK_EVENTS = 2, BLOCK_INDEX = 3 };
enum { BLOCK_FLAG_ZSTD = 1, BLOCK_FLAG_RECOVERED = 2 };

/* Offsets in a block header. */
enum {
	BLOCK_TYPE_AT = 4,
	BLOCK_FLAGS_AT = 6,
	BLOCK_LENGTH_AT = 8,
	BLOCK_COUNT_AT = 12,
	BLOCK_FIRST_AT = 16,
	BLOCK_LAST_AT = 24,
	BLOCK_HASH_AT = 32,
	BLOCK_HEADER_BYTES = 40
};

enum { TRAILER_INDEX_AT = 8, TRAILER_HASH_AT = 16, TRAILER_BYTES = 24 };

enum {
	DEF_STRING = 1,
	DEF_LOCATION = 2,
	DEF_RUNTIME = 3,
	DEF_WORKER = 4,
	DEF_THREAD = 5,
	DEF_KIND = 6,
	DEF_CLOCK = 7,
	DEF_LOSS = 8,
	DEF_FACT = 9,
	DEF_MODULE = 10,
	DEF_STACK = 11,
	DEF_NAME = 12,
	DEF_SYMBOL = 13
};

#define BLOCK_PAYLOAD_MAX (32u << 20)
#define BLOCK_EVENTS_MAX (1u << 18)
#define BODY_MAX (16u << 20)
#define DEFS_MAX (16u << 20)
#define SYMBOLS_MAX 256
#define CLASS_MAX 251
#define CLASS_SMALL 8 /* gaps below this are a class of their own */
#define DICT_MAX 256
#define QUANTUM_MAX 1000000000u

/* What a reader takes of one file: a small one can expand into very many definitions. Records that replace others
 * count. */
#define RECORDS_MAX (1u << 20) /* of one tag, but for these */
#define KIND_RECORDS_MAX 8192
#define FACT_RECORDS_MAX 4096
#define MODULE_RECORDS_MAX (1u << 16)
#define STACK_FRAMES_MAX (1u << 24) /* of all stacks together: 256 MiB in memory */
#define SYMBOL_FRAMES_MAX (1u << 22)
#define TEXT_BYTES_MAX (64u << 20)

enum { TRANSFORM_NONE = 0, TRANSFORM_DELTA = 1 };

/* Gap to class, and the number of low bits that go to the mantissa. */
static inline uint32_t gap_bits(uint64_t gap)
{
	return 61 - (uint32_t)__builtin_clzll(gap | (CLASS_SMALL - 1));
}

static inline uint32_t gap_class(uint64_t gap)
{
	uint32_t m = gap_bits(gap);

	return m * 4 + (uint32_t)(gap >> m); /* what is left of a gap with bits in the mantissa is 4 to 7 */
}

static inline uint32_t class_bits(uint32_t class)
{
	return class < CLASS_SMALL ? 0 : (class - CLASS_SMALL) / 4 + 1;
}

static inline uint64_t class_base(uint32_t class)
{
	return class < CLASS_SMALL ? class : (uint64_t)(4 + (class - CLASS_SMALL) % 4) << class_bits(class);
}

static inline uint64_t zigzag(uint64_t delta)
{
	return delta << 1 ^ (uint64_t)((int64_t)delta >> 63);
}

static inline uint64_t unzigzag(uint64_t z)
{
	return z >> 1 ^ (0 - (z & 1));
}

#endif
