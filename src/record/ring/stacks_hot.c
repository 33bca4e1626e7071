/* SPDX-License-Identifier: Apache-2.0 */
/* Putting stacks into the shared table. HOT: from signal handlers of many threads at the same time.
 *
 * A stack is written to words that only its writer has, then put into the table with one compare-and-swap; who finds
 * an entry there finds a whole stack. When two threads put the same stack at once the loser's words are wasted. */
#include "record/ring/stacks.h"

#include <string.h>

#include "base/atomic.h"
#include "record/ring/ring.h"

#define PROBES 16

struct stacks *weft__stacks_enter(uint32_t *ret_generation)
{
	struct rings_head *head = load_acquire(&weft__hot.head);
	struct stacks *stacks;
	uint32_t generation;

	if (!head || !head->has_stacks)
		return NULL;
	for (;;) {
		generation = load_seq_cst(&head->stacks_now) & 1;
		stacks = stacks_at(head, head, generation);
		__atomic_fetch_add(&stacks->users, 1, __ATOMIC_SEQ_CST);
		/* The collector changes it, then waits for the users to go: either it sees this one, or this one
		 * sees that. */
		if (load_seq_cst(&head->stacks_now) == generation)
			break;
		weft__stacks_leave(stacks);
	}
	*ret_generation = generation;
	return stacks;
}

void weft__stacks_leave(struct stacks *stacks)
{
	__atomic_fetch_sub(&stacks->users, 1, __ATOMIC_SEQ_CST);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t stack_hash(const uint64_t *addresses, uint32_t n, uint64_t size)
{
	uint64_t hash = mix(0, size);
	uint32_t i;

	for (i = 0; i < n; i++)
		hash = mix(hash, addresses[i]);
	return hash;
}

static int same(const uint64_t *words, const uint64_t *addresses, uint32_t n, uint64_t size, uint64_t hash)
{
	uint32_t i;

	if (words[STACK_HASH] != hash || words[STACK_SIZE] != size)
		return 0;
	for (i = 0; i < n; i++)
		if (words[STACK_ADDRESSES + i] != addresses[i])
			return 0;
	return 1;
}

/* Words of one's own with the stack in them: the first's number + 1, or 0. */
static uint32_t write_words(struct stacks *stacks, const uint64_t *addresses, uint32_t n, uint64_t size, uint64_t hash)
{
	uint64_t need = STACK_ADDRESSES + n;
	uint64_t at;

	if (load_relaxed(&stacks->used) + need > STACK_WORDS)
		return 0;
	at = __atomic_fetch_add(&stacks->used, need, __ATOMIC_RELAXED);
	if (at + need > STACK_WORDS)
		return 0;
	stacks->words[at + STACK_HASH] = hash;
	stacks->words[at + STACK_SIZE] = size;
	stacks->words[at + STACK_ID] = 0;
	memcpy(&stacks->words[at + STACK_ADDRESSES], addresses, n * sizeof(*addresses));
	if (at <= STACK_WORDS / 2 && at + need > STACK_WORDS / 2)
		weft__collector_wake();
	return (uint32_t)at + 1;
}

uint32_t weft__stacks_put(struct stacks *stacks, uint32_t generation, const uint64_t *addresses, uint32_t n,
			  uint32_t flags)
{
	uint64_t size = (uint64_t)flags << 32 | n;
	uint64_t hash = stack_hash(addresses, n, size);
	uint32_t mine = 0;
	uint32_t i;

	for (i = 0; i < PROBES; i++) {
		uint32_t *entry = &stacks->table[(hash + i) % STACK_TABLE];
		uint32_t found = load_acquire(entry);

		if (!found) {
			mine = mine ? mine : write_words(stacks, addresses, n, size, hash);
			if (!mine)
				return 0;
			if (cas_acq_rel(entry, &found, mine))
				return STACK_REF(generation, mine - 1);
		}
		if (same(&stacks->words[found - 1], addresses, n, size, hash))
			return STACK_REF(generation, found - 1);
	}
	/* A crowded part of the table: the stack is there, and will not be found again. */
	mine = mine ? mine : write_words(stacks, addresses, n, size, hash);
	return mine ? STACK_REF(generation, mine - 1) : 0;
}

void weft__stacks_lost(uint64_t tick)
{
	struct rings_head *head = load_acquire(&weft__hot.head);

	if (!head)
		return;
	if (load_relaxed(&head->no_stack) == load_relaxed(&head->no_stack_seen))
		store_relaxed(&head->no_stack_from, tick);
	store_relaxed(&head->no_stack_to, tick);
	__atomic_fetch_add(&head->no_stack, 1, __ATOMIC_RELEASE);
	weft__collector_wake();
}

const uint64_t *weft__stacks_get(void *base, const struct rings_head *head, uint32_t ref)
{
	uint64_t at = STACK_WORD(ref);
	const uint64_t *words;

	if (!head->has_stacks || !(ref & 0x7fffffffu) || at + STACK_ADDRESSES > STACK_WORDS)
		return NULL;
	words = &stacks_at(base, head, STACK_GENERATION(ref))->words[at];
	return (uint32_t)words[STACK_SIZE] <= STACK_WORDS - at - STACK_ADDRESSES ? words : NULL;
}
