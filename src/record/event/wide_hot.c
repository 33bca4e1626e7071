/* SPDX-License-Identifier: Apache-2.0 */
#include "record/event/wide.h"

#include "base/atomic.h"
#include "record/event/poll.h"
#include "record/ring/ring.h"
#include "record/ring/stacks.h"

static void emit_wide(struct weft_ring *ring, uint32_t kind, uint64_t tick, const uint64_t *fields)
{
	uint32_t i, n = weft__kind_fields(kind), slots = SLOTS_WORDS(n);
	uint64_t first = weft_ring_take(ring, slots);
	struct weft_slot *slot = &ring->slots[first & ring->mask];

	slot->w0 = tick << 8 | kind;
	slot->w1 = fields[0];
	for (i = 1; i < n; i += 2) {
		slot = &ring->slots[(first + 1 + i / 2) & ring->mask];
		slot->w0 = fields[i];
		slot->w1 = i + 1 < n ? fields[i + 1] : 0;
	}
	weft_ring_publish(ring, first, first + slots);
	if (kind == WEFT_KIND_WAIT)
		weft__poll_sampled(ring, tick); /* by the thread that waited */
}

struct stacks *weft__wide_refer(uint64_t tick, uint64_t *fields, const struct weft__wide_stack *stacks,
				uint32_t n_stacks)
{
	uint32_t generation, i;
	struct stacks *table = n_stacks ? weft__stacks_enter(&generation) : NULL;

	for (i = 0; i < n_stacks; i++) {
		const struct weft__wide_stack *stack = &stacks[i];
		uint64_t *field = &fields[stack->field];

		*field = table && stack->n ? weft__stacks_put(table, generation, stack->frames, stack->n, stack->flags)
					   : 0;
		if (table && stack->n && !*field)
			weft__stacks_lost(tick);
	}
	return table;
}

void weft__wide_referred(struct stacks *table)
{
	if (table)
		weft__stacks_leave(table);
}

int weft__wide_emit_in(struct weft_ring *ring, uint32_t kind, uint64_t tick, uint64_t *fields,
		       const struct weft__wide_stack *stacks, uint32_t n_stacks)
{
	struct stacks *table;

	if (!ring)
		return 0;
	table = weft__wide_refer(tick, fields, stacks, n_stacks);
	/* Published before leave: the collector must find the reference when it looks for what still refers to this
	 * generation. */
	emit_wide(ring, kind, tick, fields);
	weft__wide_referred(table);
	return 1;
}

int weft__wide_emit_stacks(uint32_t kind, uint64_t tick, uint64_t *fields, const struct weft__wide_stack *stacks,
			   uint32_t n_stacks)
{
	if (!weft_gate_on())
		return 0;
	return weft__wide_emit_in(weft_ring_room(SLOTS_WORDS(weft__kind_fields(kind)), tick), kind, tick, fields,
				  stacks, n_stacks);
}

int weft__wide_emit(uint32_t kind, uint64_t tick, const uint64_t *fields)
{
	struct weft_ring *ring = weft_gate_on() ? weft_ring_room(SLOTS_WORDS(weft__kind_fields(kind)), tick) : NULL;

	if (!ring)
		return 0;
	emit_wide(ring, kind, tick, fields);
	return 1;
}
