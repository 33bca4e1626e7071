/* SPDX-License-Identifier: Apache-2.0 */
/* Each segment stands alone: what a thread's context is when a segment begins is reported before its first event in
 * there. COLLECTOR. */
#ifndef WEFT_COLLECT_CONTEXTS_H
#define WEFT_COLLECT_CONTEXTS_H

#include "record/ring/layout.h"

struct weft__collector;

/* The chunk that was just begun: reports the context that its thread has, if the segment does not have it yet, as of
 * the event in `slots`. 0 or the error of the batch. */
int weft__contexts_begin(struct weft__collector *c, const struct weft_slot *slots);
/* An event of the open chunk, with these fields. */
void weft__contexts_saw(struct weft__collector *c, const uint64_t *fields);
/* The block was written, or it was not and comes again. */
void weft__contexts_settle(struct weft__collector *c, int written);

/* Any context. Whether there is one. */
static inline int ring_context_any(const struct ring_context *context)
{
	uint64_t any = 0;

	for (int i = 0; i < CONTEXT_FIELDS; i++)
		any |= context->fields[i];
	return any != 0;
}

#endif
