/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that emit events, and loops of the same shape to hold them against. */
#ifndef BENCH_EVENT_H
#define BENCH_EVENT_H

#include <stdint.h>

struct floor_slot {
	uint64_t w0;
	uint64_t w1;
};

struct floor_ring {
	struct floor_slot *slots;
	uint64_t mask;
	uint64_t at;
};

/* What is timed: emits, or does instead, n pairs of events. */
typedef void burst_fn(struct floor_ring *ring, uint32_t n);

burst_fn burst_inline; /* header-inline functions */
burst_fn burst_call;   /* the library's functions */
burst_fn burst_next;   /* 2n polls, each of which ends as the next begins */
burst_fn burst_floor;  /* the counter and a 16-byte store */
burst_fn burst_tick;   /* the counter alone */

/* The same with n single events. */
burst_fn burst_wake_inline;
burst_fn burst_wake_call;
burst_fn burst_empty; /* nothing */

#endif
