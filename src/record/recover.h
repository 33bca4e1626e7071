/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery: recover.c has files and names, salvage.c has what is in the shared memory, salvage_file.c what is in the
 * file. CALLER. */
#ifndef WEFT_RECORD_RECOVER_H
#define WEFT_RECORD_RECOVER_H

#include "base/clock.h"
#include "record/collect/code.h"
#include "record/ring/region.h"
#include "segment/batch.h"
#include "segment/defs.h"
#include "segment/reader.h"
#include "segment/writer.h"

#define SALVAGE_BLOCK 65536 /* events */

/* How far a ring is in the file already. */
struct weft__progress {
	uint64_t next;
	uint64_t last_ns;
	uint32_t stream;
	int counted; /* what its thread counted, by an earlier recovery */
};

struct weft__salvage {
	struct weft__region region;  /* head is NULL when only the file is left */
	int fd;                      /* of the file */
	int64_t undo_to;             /* the file's length when recovery fails; -1: nothing was written */
	struct weft_segment *active; /* the same file, for reading; NULL when it had to be begun */
	struct weft__writer writer;
	struct weft__encoder *encoder;
	struct weft__batch batch;
	struct weft__buf payload;
	struct weft__defs defs;
	struct weft__timeline timeline;
	struct weft_segment *known;      /* tables of the definitions in shared memory */
	uint32_t n_workers;              /* ids given so far */
	struct weft__progress *progress; /* per ring, then per lane of what the collector found out */
	uint32_t next_stream;
	uint32_t next_stack;
	struct weft__code code;
	uint64_t from_rings;
	uint64_t cut_bytes;
};

/* The directory of the files. */
struct weft__salvage_at {
	int dir;
	const char *path;
};

/* Puts what is left into the file `name`, and seals it. 0 or a negative error: -EPERM or -EBADF when there is a file
 * of that name that is not ours to touch, -WEFT_E_BUSY when its process lives. */
int weft__salvage_file(struct weft__salvage *s, const struct weft__salvage_at *at, const char *name,
		       struct weft_recovered *out, struct weft_error *err);
void weft__salvage_close(struct weft__salvage *s);
/* The clock readings that the process left. */
void weft__salvage_clock(struct weft__salvage *s);
/* Definitions, staging and rings into the writer. 0 or a negative error. */
int weft__salvage_memory(struct weft__salvage *s);
/* salvage_stacks.c. Modules that are known, for the frames of stacks: 0 or -ENOMEM. Ids that are taken. And the id
 * of the stack that a reference refers to, which is defined when it is new here. */
int weft__salvage_modules(struct weft__salvage *s);
void weft__salvage_pass_stacks(struct weft__salvage *s);
uint64_t weft__salvage_stack(struct weft__salvage *s, uint32_t ref);
/* salvage_counts.c. What the owner of ring `i`, of which `page` is a copy, counted, and nobody reported. 0 or a
 * negative error. */
int weft__salvage_counts(struct weft__salvage *s, uint32_t i, struct ring_page *page);
/* Writes what has been gathered as blocks. */
int weft__salvage_flush(struct weft__salvage *s);
/* How far a ring is, or what stands for one; NULL: there is no such ring. */
struct weft__progress *weft__salvage_progress(const struct weft__salvage *s, uint32_t ring);
/* Slots of a ring below `upto` are in the file. */
void weft__salvage_passed(struct weft__salvage *s, uint32_t ring, uint64_t upto, uint32_t stream, uint64_t last_ns);

#endif
