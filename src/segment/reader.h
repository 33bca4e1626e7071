/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct weft_segment, for the files of the reader and for recovery. CALLER. */
#ifndef WEFT_SEGMENT_READER_H
#define WEFT_SEGMENT_READER_H

#include "base/buf.h"
#include "segment/decode.h"
#include "weft/segment.h"

struct weft__block {
	uint64_t offset;     /* of its header */
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t bytes;      /* of its payload */
	uint32_t count;
	uint16_t type;
	uint16_t flags;
	uint8_t bad;         /* found damaged, and counted */
};

struct weft__table {
	void *items;
	size_t n;
	size_t cap;
};

struct weft_segment {
	int fd;                   /* or -1: in memory */
	const uint8_t *memory;
	uint64_t n_bytes;
	struct weft_segment_info info;
	struct weft__block *blocks;
	size_t n_blocks;
	size_t blocks_cap;
	uint64_t blocks_at;       /* where the first block begins */
	uint64_t good_end;        /* where the last whole block ends */
	struct weft__decoder *decoder;
	struct weft__buf scratch; /* a payload read from the file */
	struct weft__buf expanded;

	struct weft_damage damage;
	char damage_text[300];

	struct weft__table threads, workers, runtimes, locations, kinds, strings, clocks, losses, facts;
	char **texts;             /* every string of the tables, owned */
	size_t n_texts;
	size_t texts_cap;
	uint64_t text_bytes;
};

/* `n` bytes at `offset`, in memory that is good until the next call; NULL when they are not there or memory is out. */
const uint8_t *weft__segment_at(struct weft_segment *seg, uint64_t offset, size_t n);
/* The payload of a block, its checksum verified; NULL with the damage noted. `*oom` is set when memory was the reason. */
const uint8_t *weft__segment_payload(struct weft_segment *seg, struct weft__block *block, int *oom);
void weft__segment_damaged(struct weft_segment *seg, uint64_t offset, uint64_t bytes, const char *why);
/* Definitions of one block into the tables. 0, -ENOMEM, or -WEFT_E_DAMAGED. */
int weft__segment_read_defs(struct weft_segment *seg, const uint8_t *bytes, size_t n);
int weft__segment_sort_defs(struct weft_segment *seg);
void weft__segment_free_defs(struct weft_segment *seg);

#endif
