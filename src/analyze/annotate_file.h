/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a segment with more definitions in it, which takes the place of the first. CALLER. */
#ifndef WEFT_ANALYZE_ANNOTATE_FILE_H
#define WEFT_ANALYZE_ANNOTATE_FILE_H

#include <stdbool.h>

#include "segment/reader.h"
#include "segment/writer.h"

struct weft__encoder;

struct weft__copy {
	struct weft_segment *seg;
	const char *to;
	int dir;             /* the directory of that */
	const char *name;    /* and the name there */
	char temporary[256]; /* its name there until it is complete; "": it has none */
	int fd;
	struct weft__writer writer;
	struct weft__encoder *encoder;
};

/* -WEFT_E_BUSY when a living process writes the segment; -WEFT_E_STATE when it was left by a dead one; -EPERM when
 * it is not a file of this user's own. */
int weft__copy_allowed(struct weft_segment *seg, const char *path, bool in_place, struct weft_error *err);

/* Begins the copy that will be at `to`, with all that is in the segment but its index. */
int weft__copy_begin(struct weft__copy *copy, struct weft_segment *seg, const char *to, struct weft_error *err);
/* Appends definitions. */
int weft__copy_defs(struct weft__copy *copy, const struct weft__defs *defs, struct weft_error *err);
/* Seals it, makes it durable and gives it its name. `replace`: the segment has to be at that name still; else a file
 * that is there already has to be this user's. */
int weft__copy_end(struct weft__copy *copy, bool replace, struct weft_error *err);
/* After begin, in any case: drops what did not get its name. */
void weft__copy_fini(struct weft__copy *copy);

#endif
