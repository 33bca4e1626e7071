/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the emit path shares with the rest of the recorder, and its life cycle. */
#ifndef WEFT_RING_RING_H
#define WEFT_RING_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/own.h"
#include "record/ring/chunks.h"
#include "record/ring/layout.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* HOT reads it; CALLER writes it while the gate is off and nobody is attaching. */
struct weft__hot {
	char *base; /* of the mapping */
	struct rings_head *head;
	struct rings_map map;       /* of the rings; of no use without a base */
	struct weft__own_file file; /* of the rings; -1: private memory */
	uint32_t *free_next;        /* per ring: next on the free list, plus 1 */
	uint32_t threads_now;
	int key_made; /* thread exit is heard of through a pthread key */
	unsigned key;
	uint32_t n_runtimes; /* whom to ask who a thread is, from 1 on; see registry.h */

	_Alignas(64) uint64_t free_list; /* tag << 32 | ring + 1 */
	_Alignas(64) uint32_t attaching; /* threads inside attach or detach */
	uint32_t open;                   /* 0: detach leaves the rings alone, close is at them */
	_Alignas(64) uint32_t asleep;    /* futex: 1 while the collector sleeps */
};
extern struct weft__hot weft__hot;

/* The ring of no thread: what weft_ring_self points to before the first event. Its limit is 0. */
extern struct ring_page weft__ring_none;

/* HOT. Memory behind a part of the ring file, from `at` on, that is mapped there, so that a store to it can never
 * fail for want of space. */
int weft__ring_back(const struct weft__own_file *file, void *memory, uint64_t at, uint64_t bytes);
/* HOT. Counts an event of a thread for which there is no ring, or no place for its waits. */
void weft__ring_missed(uint64_t tick);
/* HOT. Wakes the collector if it sleeps. */
void weft__collector_wake(void);
/* HOT. Gives the calling thread a ring, or NULL. */
struct weft_ring *weft__ring_attach(uint64_t tick);
/* HOT. By the owner. */
int weft__ring_has_room(struct ring_page *ring, uint32_t n_slots);
/* HOT. For a thread that shares the thread-local memory of another, as a bare clone makes them: a ring with room, or
 * NULL: counted. `kept` is where the caller keeps it for the thread; NULL in it at first. */
struct weft_ring *weft__ring_foreign(struct weft_ring **kept, uint32_t tid, uint32_t n_slots, uint64_t tick);
/* HOT. Ends the ownership of a ring by `tid`, if it has it. By the owner, or by the collector for a dead owner. */
void weft__ring_detach(struct ring_page *ring, uint32_t tid, uint64_t tick);
/* HOT. The ring of the calling thread in the present session, or NULL. */
struct ring_page *weft__ring_mine(void);
/* HOT. Emits, from the thread that owns the ring. Two-slot form: second slot from `more`. */
int weft__ring_emit(struct ring_page *ring, uint32_t kind, uint64_t arg, uint64_t tick, const struct weft_slot *more);

/* HOT, in registry_hot.c: asks the runtimes who the calling thread is, once each. */
void weft__worker_resolve(struct ring_page *ring, uint64_t tick);

#endif
