/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a recording: the active segment, sealing it, keeping the sealed ones within limits. COLLECTOR. In
 * memory-only mode the files are memfds that nobody else sees. */
#ifndef WEFT_COLLECT_SEGMENTS_H
#define WEFT_COLLECT_SEGMENTS_H

#include "base/jump.h"
#include "base/own.h"
#include "segment/writer.h"
#include "weft/recorder.h"

#define NAME_BYTES 256

struct weft__kept { /* a sealed segment in memory */
	int fd;
	struct weft__own own;
	uint64_t bytes;
	uint64_t sequence;
	uint64_t real_ns;
	char name[NAME_BYTES];
};

struct weft__segments {
	/* set at open, then constant */
	const char *dir; /* NULL: memory only */
	char stem[128];
	uint8_t recording[16];
	uint64_t segment_bytes;
	uint64_t segment_ns;
	uint64_t keep_bytes;
	uint64_t keep_ns;
	int sync;
	unsigned mode;                     /* of files; 0: FILE_MODE */
	struct weft__symbolize *symbolize; /* who puts names into sealed ones; NULL: nobody */
	struct weft__ship *ship;           /* who sends sealed ones; NULL: nobody */

	/* collector */
	int fd;     /* of the active one; -1: none */
	int early;  /* it was begun before there was anything to write */
	int pinned; /* it cannot get its final name: the program has given away the right to the directory */
	struct weft__own own;
	uint64_t sequence;
	struct weft_clock from; /* what is in the next one is later; all 0: than its file */
	uint64_t begin_ns;
	uint64_t synced_ns, synced_bytes; /* when writing back was started last, and up to where */
	char active[NAME_BYTES];
	char sealed[NAME_BYTES]; /* the last one */
	struct weft__writer writer;
	struct weft__kept *kept;
	size_t n_kept;
	size_t kept_cap;
	uint64_t n_sealed;
	uint64_t n_deleted;
	struct weft__jump jump; /* of the clock by which they have an age */
	struct weft_loss
		gone; /* events of a segment that was lost before it was sealed, yet to be reported; count 0: none */
	uint64_t total_bytes; /* written to segments that are sealed */
};

/* Begins a segment: the file, locked, with its header. The directory is made when it is gone. 0 or -errno. */
int weft__segments_begin(struct weft__segments *s);
/* The same before anything is to be written: the program may give away the right to do so later. */
void weft__segments_early(struct weft__segments *s);
/* Index, trailer, and the name that says it is whole. 0 or -errno; then the segment is still active. */
int weft__segments_seal(struct weft__segments *s);
/* True when the active file was deleted by somebody, or is in memory and was closed by the program. Another one that
 * was closed is opened again. */
int weft__segments_gone(struct weft__segments *s);
/* Forgets the active segment; its file stays as it is. */
void weft__segments_drop(struct weft__segments *s);
/* Forgets it and removes its file. */
void weft__segments_abandon(struct weft__segments *s);
/* True when it is time for the next one. One that cannot be followed goes on up to the limit for all together. */
int weft__segments_due(const struct weft__segments *s, uint64_t now_ns);
/* Deletes sealed segments, oldest first, until what is kept is within the limits. */
void weft__segments_retain(struct weft__segments *s);
/* Starts writing back what was written, once a second, since that costs as much as making a block; or, with the sync
 * option, finishes it each time. */
void weft__segments_sync(struct weft__segments *s);
/* Whether there is some room on the disk again. */
int weft__segments_room(const struct weft__segments *s);
/* Memory only: writes the kept ones into `dir`. The number, or -errno. */
int weft__segments_save(const struct weft__segments *s, const char *dir, struct weft_error *err);
void weft__segments_fini(struct weft__segments *s);

#endif
