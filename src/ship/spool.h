/* SPDX-License-Identifier: Apache-2.0 */
/* A directory with sealed segments as the queue of a target. What the target has of it is in a small file beside each
 * segment, SEGMENT.ship-TAG, of one line: "sent TIME", "tried N TIME WHY" or "refused TIME WHY". It is written after
 * the target has said so. So a process that is killed in between sends the segment again, under the same name.
 *
 * One process at a time works for a target in a directory: it has the lock of .weft-ship-TAG.lock. It sends the
 * segments of all processes that record there, those that live and those that do not. When it ends another takes the
 * lock. Files are opened as everywhere (base/dir.h): others may be able to put things there. */
#ifndef WEFT_SHIP_SPOOL_H
#define WEFT_SHIP_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/jump.h"
#include "base/own.h"
#include "weft/error.h"

#define SPOOL_NAME 256
#define SPOOL_TRIES 8 /* of a segment that a target does not want; then it is refused for good */

struct weft__spool {
	const char *path;
	char tag[9];
	uint64_t age_ns; /* older segments are left alone; 0: no limit */
	int again;       /* what was refused is tried, too */
	int lock_fd;     /* -1: not locked */
	struct weft__own lock_own;
	struct weft__jump jump; /* of the clock by which segments have an age */
};

struct weft__spooled {
	char name[SPOOL_NAME];
	uint64_t time_ns; /* when it was changed last: sealed, or named */
	uint64_t bytes;
	uint32_t tries;  /* that ended in a refusal */
	uint64_t due_ns; /* CLOCK_REALTIME: not before, after a refusal; 0: at any time */
};

void weft__spool_init(struct weft__spool *spool, const char *path, const char *tag);
void weft__spool_fini(struct weft__spool *spool);
/* 0, -WEFT_E_BUSY when another process has it, or a negative error. Again when it is locked already: 0. */
int weft__spool_lock(struct weft__spool *spool, struct weft_error *err);
/* A descriptor of the directory, or a negative error. */
int weft__spool_dir(const struct weft__spool *spool, struct weft_error *err);
/* What the target does not have yet, oldest first; `*ret` is the caller's, to be freed by weft__free. Removes what is
 * left of segments that are gone. `only`: that one; NULL: all. 0 or a negative error. */
int weft__spool_list(struct weft__spool *spool, int dir, const char *only, struct weft__spooled **ret, size_t *n,
		     struct weft_error *err);
/* Notes that it was sent, or refused (`why`); after SPOOL_TRIES refusals that is for good. 0 or -errno. */
int weft__spool_sent(const struct weft__spool *spool, int dir, const char *name);
int weft__spool_refused(const struct weft__spool *spool, int dir, const struct weft__spooled *one, const char *why);
/* Whether the target with that tag has it. */
int weft__spool_has(int dir, const char *name, const char *tag);
/* Removes a segment, and what is beside it. */
void weft__spool_remove(int dir, const char *name);

#endif
