/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a segment file, block by block. COLLECTOR, and CALLER in recovery.
 *
 * A block is written whole or not at all: when a write fails the file is cut back to where the block began, so that
 * the next try, when there is room again, finds a clean end. */
#ifndef WEFT_SEGMENT_WRITER_H
#define WEFT_SEGMENT_WRITER_H

#include <stdint.h>

#include "base/buf.h"
#include "segment/defs.h"

struct weft__encoder;

struct weft__writer {
	int fd;          /* not owned */
	uint64_t offset; /* where the next block goes */
	uint64_t n_events;
	uint32_t n_blocks;
	uint16_t block_flags;   /* put into every block */
	struct weft__buf index; /* entries so far */
	struct weft__buf squeezed;
};

struct weft__segment_head {
	uint32_t flags;
	uint8_t recording[16];
	uint64_t sequence;
	uint64_t mono_ns;
	uint64_t real_ns;
};

/* Writes the file header at the beginning of `fd`. 0 or a negative errno. */
int weft__writer_begin(struct weft__writer *w, int fd, const struct weft__segment_head *head);
/* Goes on in a file that has `offset` good bytes; blocks that are there are added one by one. */
void weft__writer_adopt(struct weft__writer *w, int fd, uint64_t offset);
int weft__writer_adopted(struct weft__writer *w, uint32_t type, uint64_t offset, uint64_t bytes, uint64_t count,
			 uint64_t first_ns, uint64_t last_ns);
int weft__writer_block(struct weft__writer *w, uint32_t type, uint32_t flags, uint32_t count, uint64_t first_ns,
		       uint64_t last_ns, const struct weft__buf *payload);
/* A definitions block, compressed when that helps. Nothing is written when there are no records. */
int weft__writer_defs(struct weft__writer *w, struct weft__encoder *enc, const struct weft__defs *defs);
/* Index and trailer. The file is sealed after this. */
int weft__writer_seal(struct weft__writer *w, uint32_t flags);
void weft__writer_fini(struct weft__writer *w);

#endif
