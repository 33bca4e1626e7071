/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes that are only counted (WEFT_GATE_COUNTED): each thread remembers its last WAKES_KEPT wakes, so that a poll that
 * is reported still says who woke its task and when, in an event of kind woken. The memory is per waking thread: a
 * wake touches nothing that another thread writes. */
#ifndef WEFT_EVENT_WAKES_H
#define WEFT_EVENT_WAKES_H

#include <stdint.h>

#define WAKES_LOGS 32      /* threads that wake, beyond which nothing is remembered */
#define WAKES_KEPT 2048    /* of one thread; a power of two */
#define WAKES_BEFORE 256   /* how far back another wake of the same task is looked for */
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
