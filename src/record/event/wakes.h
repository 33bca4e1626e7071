/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes that are only counted (WEFT_GATE_COUNTED): each thread remembers which tasks it woke last, so that a poll
 * that is reported still says who woke its task and when, in an event of kind woken. The memory is per waking thread: a
 * wake touches nothing that another thread writes.
 *
 * A thread's memory is a table of sets, by task; a set has room for WAKES_WAYS tasks, and forgets the one that was
 * woken longest ago. Of a task the last two wakes are kept: the last one may have come while the poll ran. */
#ifndef WEFT_EVENT_WAKES_H
#define WEFT_EVENT_WAKES_H

#include <stdint.h>

#define WAKES_TABLES 32 /* threads that wake, beyond which nothing is remembered */
#define WAKES_SETS 256  /* a power of two */
#define WAKES_WAYS 2
#define WAKES_A_MS 128     /* of one thread; beyond that it remembers nothing */
#define WAKES_PAUSE_MS 100 /* for so long */

struct ring_page;

struct weft__woken {
	uint32_t tid;      /* of the waker */
	uint64_t by;       /* the task in whose poll it was; 0: in none */
	uint64_t tick;     /* of the last wake before the poll began */
	uint64_t no_other; /* tick since which there was no other wake before the poll, as far back as is remembered */
};

/* HOT. Who woke the task last before `begin`, since wakes are counted. 0: that is not known. */
int weft__wakes_find(uint64_t task, uint64_t begin, struct weft__woken *ret);
/* CALLER, before anything records. */
void weft__wakes_reset(void);

#endif
