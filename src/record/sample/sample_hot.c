/* SPDX-License-Identifier: Apache-2.0 */
#include "record/sample/sample.h"

#include "base/atomic.h"
#include "record/event/poll.h"
#include "record/ring/ring.h"
#include "record/ring/stacks.h"
#include "record/sample/state.h"
#include "weft/segment.h"

static void emit_sample(struct weft_ring *ring, const struct weft__sample *sample, uint32_t user, uint32_t kernel)
{
	uint64_t first = weft_ring_take(ring, 2);
	struct weft_slot *slot = &ring->slots[first & ring->mask];

	slot->w0 = sample->tick << 8 | WEFT_KIND_SAMPLE;
	slot->w1 = (uint64_t)kernel << 32 | user;
	slot = &ring->slots[(first + 1) & ring->mask];
	slot->w0 = sample->weight_ns;
	slot->w1 = (uint64_t)sample->engine << 32 | sample->cpu;
	weft_ring_publish(ring, first, first + 2);
	weft__poll_sampled(ring, sample->tick);
}

int weft__sample_emit_in(struct weft_ring *ring, const struct weft__sample *sample)
{
	struct stacks *stacks;
	uint32_t generation, user, kernel = 0;

	if (!ring)
		return 0;
	stacks = weft__stacks_enter(&generation);
	if (!stacks)
		return 0;
	user = weft__stacks_put(stacks, generation, sample->user, sample->n_user, sample->user_flags);
	if (sample->n_kernel)
		kernel = weft__stacks_put(stacks, generation, sample->kernel, sample->n_kernel,
					  WEFT_STACK_KERNEL | WEFT_STACK_COMPLETE);
	/* Published before leave: the collector must find the reference when it looks for what still refers to this
	 * generation. */
	if (user && (kernel || !sample->n_kernel))
		emit_sample(ring, sample, user, kernel);
	else
		weft__stacks_lost(sample->tick);
	weft__stacks_leave(stacks);
	return user && (kernel || !sample->n_kernel);
}

int weft__sample_emit(const struct weft__sample *sample)
{
	return weft_gate_on() && weft__engine.ops ? weft__sample_emit_in(weft_ring_room(2, sample->tick), sample) : 0;
}
