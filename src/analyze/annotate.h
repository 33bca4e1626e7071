/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the stacks of segments. CALLER, one thread.
 *
 * An annotator looks up every place in code that the stacks of a segment go through and adds what it finds to the
 * segment as definitions, each name once. It keeps what it read and answered, so that the segments of a recording,
 * which are about the same places, cost little after the first. A place that nobody knows gets no definition.
 *
 * A segment is never changed: a complete new file is written beside it and takes its name, so that whoever looks,
 * even after a crash in the middle, finds the old one or the new one. Bytes that are damaged stay as they are, and
 * stay reported. */
#ifndef WEFT_ANALYZE_ANNOTATE_H
#define WEFT_ANALYZE_ANNOTATE_H

#include "symbol/symbol.h"
#include "weft/segment.h"

struct weft__annotator;
struct weft__defs;

struct weft__annotate_opts {
	struct weft__symbolizer_opts symbols; /* copied */
	bool again;                           /* also places that have names */
	void (*progress)(void *data, uint64_t done, uint64_t total);
	void *data;
	/* NULL, or what else is to be in the segment. 0 or -ENOMEM. */
	int (*more)(void *data, const struct weft_segment *segment, struct weft__defs *defs);
	void *more_data;
};

/* How it went with the places of one module, each counted once. */
struct weft__annotated_module {
	const char *path; /* "" for code in no module that is known */
	uint32_t kind;    /* enum weft_module_kind; 0: no module */
	uint64_t places;
	uint64_t named;
	uint64_t lined;  /* of these, with a line */
	const char *why; /* it has fewer names than it could, for people; "" when there is nothing to say */
};

struct weft__annotated {
	uint64_t stacks;
	uint64_t places; /* different places in code, all stacks together */
	uint64_t named;
	uint64_t lined;
	uint64_t added;  /* of the named, those that had no names before or other ones */
	uint64_t frames; /* of the named, inlined ones counted too */
	bool full;       /* the segment takes no more names: some are missing */
	bool written;    /* a new file: false when there was nothing to add and nowhere else to write it */
	uint32_t damaged_places;
	char damage[300];
	const struct weft__annotated_module *modules; /* until the next call */
	size_t n_modules;
};

int weft__annotator_open(struct weft__annotator **ret, const struct weft__annotate_opts *opts, struct weft_error *err);
void weft__annotator_close(struct weft__annotator *annotator);

/* Adds names to the segment at `path`. `out` NULL: in place; else there, where nothing is touched at `path`. 0, or a
 * negative error with a message: -WEFT_E_BUSY for a segment that a living process writes, -WEFT_E_STATE for one that
 * has to be recovered first. `*ret` is filled on success. */
int weft__annotator_run(struct weft__annotator *annotator, const char *path, const char *out,
			struct weft__annotated *ret, struct weft_error *err);

#endif
