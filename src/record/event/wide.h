/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting weft's own kinds whose packing is WORDS (weft/kind.h): rare events of several words, some with stacks.
 * HOT, all of it. */
#ifndef WEFT_EVENT_WIDE_H
#define WEFT_EVENT_WIDE_H

#include <stdint.h>

struct stacks;
struct weft_ring;

/* Addresses as the unwinder gives them, leaf first; flags as in enum weft_stack_flag. */
struct weft__wide_stack {
	const uint64_t *frames;
	uint32_t n;
	uint32_t flags;
	uint32_t field; /* of the event that is to refer to it */
};

/* On the ring of the calling thread, which gets one if it has none; the fields of the kind in order, one word each.
 * Answers 1; 0 when nothing records, or when it was dropped, which is counted. */
int weft__wide_emit(uint32_t kind, uint64_t tick, const uint64_t *fields);
/* The same with stacks, whose fields are written to. */
int weft__wide_emit_stacks(uint32_t kind, uint64_t tick, uint64_t *fields, const struct weft__wide_stack *stacks,
			   uint32_t n_stacks);
/* The same into a ring of the caller's with room for weft__kind_slots(kind) slots; NULL: 0. */
int weft__wide_emit_in(struct weft_ring *ring, uint32_t kind, uint64_t tick, uint64_t *fields,
		       const struct weft__wide_stack *stacks, uint32_t n_stacks);

/* Puts stacks into the table and references to them into their fields. What refers to them is published before
 * weft__wide_referred, which takes the answer. */
struct stacks *weft__wide_refer(uint64_t tick, uint64_t *fields, const struct weft__wide_stack *stacks,
				uint32_t n_stacks);
void weft__wide_referred(struct stacks *table);

#endif
