/* SPDX-License-Identifier: Apache-2.0 */
/* References to stacks in shared memory become ids of stacks in segments, and each stack is defined once in each
 * segment that needs it. An id stays with its stack for the recording. COLLECTOR. */
#ifndef WEFT_COLLECT_STACK_IDS_H
#define WEFT_COLLECT_STACK_IDS_H

#include "base/intern.h"
#include "record/collect/code.h"
#include "record/ring/layout.h"
#include "segment/defs.h"

/* How far the generation before this one is on its way out. */
enum weft__retiring { RETIRING_NONE, RETIRING_USED, RETIRING_IN_RINGS, RETIRING_STAGED };

struct weft__stack_ids {
	struct weft__code code;
	uint32_t named;          /* module of frames that a binding names; 0: none yet */
	uint32_t module_seen;    /* newest module of the unwinder that is in `code` */
	uint32_t n_modules;      /* of its set: one less says that one went */
	struct weft__intern ids; /* frames to id */
	size_t interned_bytes;
	uint64_t *defined; /* by id - first_id: in which segment it is defined last, plus 1 */
	size_t n_defined, defined_cap;
	uint32_t first_id;
	uint64_t n_frames; /* of the stacks defined in the active segment */
	uint32_t *fresh;   /* ids defined in the block that is being made */
	size_t n_fresh, fresh_cap;
	enum weft__retiring retiring;
	uint64_t drains; /* when RETIRING_IN_RINGS began */
	int turn;        /* modules changed: a new generation is wanted */
	struct weft_frame frames[STACK_DEPTH_MAX];
	uint64_t key[2 * STACK_DEPTH_MAX + 1];
};

struct weft__collector;

void weft__stack_ids_fini(struct weft__stack_ids *ids);

/* Looks at the unwinder's modules and defines new ones. */
int weft__stack_ids_modules(struct weft__collector *c);
/* The id of the stack that `ref` refers to, 0 for none; its definition is added to the block's when the segment has
 * it not yet. 0 or -ENOMEM. */
int weft__stack_ids_get(struct weft__collector *c, uint32_t ref, uint64_t *ret_id);
/* The block was written, or it was not and its definitions with it. */
void weft__stack_ids_settle(struct weft__collector *c, int written);
/* A new segment: memory of stacks that were not seen for long is given back. */
void weft__stack_ids_begin_segment(struct weft__collector *c);
/* True when the segment has about as many frames as a reader takes: it is time for the next one. */
int weft__stack_ids_full(const struct weft__collector *c);
/* Moves the change of generations on. After a drain without error. */
void weft__stack_ids_step(struct weft__collector *c);
/* True when the generation that handlers fill is half full and the other one is free. */
int weft__stack_ids_pressing(const struct weft__collector *c);
/* True when it is half full and the other one is not free yet: a flush would help. */
int weft__stack_ids_crowded(const struct weft__collector *c);

#endif
