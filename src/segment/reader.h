/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct weft_segment, for the files of the reader and for recovery. CALLER. */
#ifndef WEFT_SEGMENT_READER_H
#define WEFT_SEGMENT_READER_H

#include "base/arena.h"
#include "base/buf.h"
#include "segment/decode.h"
#include "segment/table.h"
#include "weft/segment.h"

struct weft__block {
	uint64_t offset; /* of its header */
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t bytes; /* of its payload */
	uint32_t count;
	uint16_t type;
	uint16_t flags;
	uint8_t bad; /* found damaged, and counted */
};

struct weft_segment {
	int fd; /* or -1: in memory */
	const uint8_t *memory;
	uint64_t n_bytes;
	struct weft_segment_info info;
	struct weft__block *blocks;
	size_t n_blocks;
	size_t blocks_cap;
	uint64_t blocks_at; /* where the first block begins */
	uint64_t good_end;  /* where the last whole block ends */
	struct weft__decoder *decoder;
	size_t open_bytes_max;    /* of decoded blocks that a cursor may hold at one time */
	struct weft__buf scratch; /* a payload read from the file */
	int oom;                  /* memory ran out while reading the file */
	struct weft__buf expanded;

	struct weft_damage damage;
	char damage_text[300];

	struct weft__table threads, workers, runtimes, locations, kinds, strings, clocks, losses, facts;
	struct weft__table modules, stacks, names, symbols;
	struct weft__arena texts;  /* every string of the tables */
	struct weft__arena frames; /* of stacks and symbols */
	uint64_t text_bytes;
	uint64_t n_stack_frames; /* read, those of stacks that were replaced too */
	uint64_t n_symbol_frames;
};

/* The segment `name` in a directory, which must not be a link; `path` is for messages. */
int weft__segment_open_at(struct weft_segment **ret, int dir, const char *name, const char *path,
			  struct weft_error *err);
/* A segment by the descriptor of its file, which stays the caller's. */
int weft__segment_open_fd(struct weft_segment **ret, int fd, const char *name, struct weft_error *err);

/* `n` bytes at `offset`, in memory that is good until the next call; NULL when they are not there or memory is out. */
const uint8_t *weft__segment_at(struct weft_segment *seg, uint64_t offset, size_t n);
/* The payload of a block, its checksum verified; NULL with the damage noted. `*oom` is set when memory was the
 * reason. */
const uint8_t *weft__segment_payload(struct weft_segment *seg, struct weft__block *block, int *oom);
/* The block header at `offset`, if there is a plausible one. */
int weft__segment_block_head(struct weft_segment *seg, uint64_t offset, struct weft__block *block);
/* The payload of a block if its checksum is right. */
const uint8_t *weft__segment_whole(struct weft_segment *seg, const struct weft__block *block);
/* 0, -ENOMEM, or -WEFT_E_LIMIT. */
int weft__segment_add_block(struct weft_segment *seg, const struct weft__block *block);
void weft__segment_damaged(struct weft_segment *seg, uint64_t offset, uint64_t bytes, const char *why);
/* Notes a whole block as damage, once. */
void weft__segment_block_bad(struct weft_segment *seg, struct weft__block *block, const char *why);

/* Whether the file ends in a trailer, and where that says the index is. */
int weft__segment_trailer(struct weft_segment *seg, uint64_t *ret_index_at);
/* Reads an index block's entries, adding the blocks or just looking; answers the sum of their bytes. 0,
 * -WEFT_E_DAMAGED, -ENOMEM or -WEFT_E_LIMIT. */
int weft__segment_index(struct weft_segment *seg, const struct weft__block *index, const uint8_t *payload, int add,
			uint64_t *ret_listed);
/* Blocks as the index says: 1. 0 when there is none that is whole and lists every byte: walk. Or -ENOMEM. */
int weft__segment_by_index(struct weft_segment *seg);
/* Definitions of one block into the tables. 0, -ENOMEM, or -WEFT_E_DAMAGED. */
int weft__segment_read_defs(struct weft_segment *seg, const uint8_t *bytes, size_t n);
/* Once, after the last of them. 0 or -ENOMEM. */
int weft__segment_sort_defs(struct weft_segment *seg);
void weft__segment_free_defs(struct weft_segment *seg);
/* A text of a record, which the segment keeps. */
const char *weft__segment_text(struct weft_segment *seg, struct weft__in *in, int *oom);
/* The part of these that is about code: modules, stacks, names and symbols. */
void weft__segment_read_code(struct weft_segment *seg, uint64_t tag, struct weft__in *in, int *oom);
int weft__segment_sort_code(struct weft_segment *seg);

/* The next events of a cursor in order of time, as many as are stored one after the other: of one thread. They are
 * good until the next call. 1, 0 at the end, or -ENOMEM. Not together with weft_cursor_next. */
int weft__cursor_run(struct weft_cursor *cursor, const struct weft__record **ret, const struct weft__record **end);

#endif
