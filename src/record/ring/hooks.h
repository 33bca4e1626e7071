/* SPDX-License-Identifier: Apache-2.0 */
/* What others do when a thread gets a ring, emits into it and ends. Rings are below all of them and include none:
 * what they are called for is declared here, and each is in the file that is named. HOT. */
#ifndef WEFT_RING_HOOKS_H
#define WEFT_RING_HOOKS_H

#include "base/atomic.h"
#include "record/ring/layout.h"

/* The calling thread got a ring. sample/slots_hot.c: it is sampled from now on; event/account_hot.c: the first
 * reading of its CPU time; wait/context_hot.c: its ring does not have its context. */
void weft__engine_thread_here(uint32_t tid);
void weft__account_begin(struct ring_page *ring, uint64_t since);
void weft__context_attached(void);

/* wait/context_hot.c. Whether the calling thread has a context that its ring does not have; and emits it, in a ring
 * of the thread with room for it. */
int weft__context_unsaid(void);
void weft__context_report(struct weft_ring *ring, uint64_t tick);
/* A poll that began at `since` is about to be recorded: emits the context that it had and that nothing has said. */
void weft__context_passed(uint64_t since, uint64_t tick);

/* The calling thread ends. wait/wait_hot.c: its waits. */
void weft__wait_leave(void);
/* event/poll_hot.c, event/park_hot.c. Its counts, on its own ring as far as there is room; their `thread` is 0,
 * which means this one. */
void weft__poll_counts_end(struct ring_page *ring, uint64_t tick);
void weft__park_counts_end(struct ring_page *ring, uint64_t tick);
/* event/wakes_hot.c. By the owner of a ring or for a dead one: another thread may have its table. */
void weft__wakes_leave(struct ring_page *ring);

/* HOT, its owner, or who is about to be. The park that is open, if there is one, is no more than was reported of it. */
static inline void weft__park_drop(struct ring_page *ring)
{
	uint64_t reported = load_relaxed(&ring->parked_reported);

	store_relaxed(&ring->hot.park_on, 0);
	if ((int64_t)(reported - load_relaxed(&ring->hot.parked)) > 0)
		store_release(&ring->hot.parked, reported);
}

#endif
