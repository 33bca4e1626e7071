/* SPDX-License-Identifier: Apache-2.0 */
/* Names and symbols as definitions that are added to a segment, each name once in it. CALLER. */
#ifndef WEFT_ANALYZE_ANNOTATE_NAMES_H
#define WEFT_ANALYZE_ANNOTATE_NAMES_H

#include "base/intern.h"
#include "segment/defs.h"
#include "segment/reader.h"
#include "symbol/symbol.h"

struct weft__naming {
	struct weft__intern ids; /* of names, those that the segment has included */
	uint32_t next_id;
	struct weft__defs *blocks;
	size_t n_blocks;
	size_t cap_blocks;
	uint64_t n_names, n_symbols, n_frames, text_bytes; /* in the segment when it is written: readers have limits */
	struct weft__buf clean;
};

/* 0 or -ENOMEM. */
int weft__naming_init(struct weft__naming *out, const struct weft_segment *seg);
/* 1; 0 when a segment takes no more; or -ENOMEM. */
int weft__naming_add(struct weft__naming *out, uint32_t module, uint64_t offset,
		     const struct weft__symbol_frames *frames);
void weft__naming_fini(struct weft__naming *out);

#endif
