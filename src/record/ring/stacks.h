/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of samples, in shared memory, each once.
 *
 * Handlers add to the generation that is current; nothing is ever taken out of it. When it fills up, or when modules
 * have come or gone and addresses mean something else, the collector makes the other one current. The old one is
 * emptied when nobody can refer to it any more: no handler is inside, all rings have been drained since, and what
 * was staged is in the file. */
#ifndef WEFT_RING_STACKS_H
#define WEFT_RING_STACKS_H

#include "record/ring/layout.h"

/* HOT. The generation to put stacks into, which stays as it is until leave; NULL: there is none. */
struct stacks *weft__stacks_enter(uint32_t *ret_generation);
void weft__stacks_leave(struct stacks *stacks);
/* HOT. A reference to the stack, or 0 when there is no room. */
uint32_t weft__stacks_put(struct stacks *stacks, uint32_t generation, const uint64_t *addresses, uint32_t n,
			  uint32_t flags);
/* HOT. Counts a sample that had no room. */
void weft__stacks_lost(uint64_t tick);

/* COLLECTOR and CALLER. The words of the stack that `ref` refers to, all of them within bounds; NULL when there is
 * none. */
const uint64_t *weft__stacks_get(void *base, const struct rings_head *head, uint32_t ref);

/* COLLECTOR. */
static inline int weft__stacks_filling(const struct stacks *stacks)
{
	return __atomic_load_n(&stacks->used, __ATOMIC_RELAXED) > STACK_WORDS / 2;
}

#endif
