/* SPDX-License-Identifier: Apache-2.0 */
/* the switch source: when each thread was off the CPU, and whether it was blocked or preempted, from the kernel's
 * records of context switches. No privilege is needed but for stacks. The collector makes an event of each
 * interval.
 *
 *     open     looks at what the machine allows; takes nothing yet
 *     start    events are opened for all threads; stop closes them, and what they wrote is still read after that
 *     drain    the collector reads what the kernel wrote */
#ifndef WEFT_SWITCH_SWITCH_H
#define WEFT_SWITCH_SWITCH_H

#include <pthread.h>
#include <stdint.h>

#include "base/clock.h"
#include "record/source.h"
#include "segment/defs.h"

extern const struct weft__source weft__switch_source;

/* Since open. */
struct weft__switch_counts {
	uint64_t switches; /* times that a thread left the CPU */
	uint64_t lost;     /* records that the kernel had no room for */
	uint64_t stacks;   /* samples of switches */
};

/* Any context. */
struct weft__switch_counts weft__switch_counts(void);
/* Whether intervals are recorded, or will be when recording begins: what the governor holds counts. */
int weft__switch_works(void);
/* What the records of a switch cost the thread that makes it, about; 0 when there are none now. */
uint32_t weft__switch_cost_ns(void);

/* COLLECTOR. Makes events of what there is: 0; 1: staging is full, and after a flush there is more to do. */
int weft__switch_drain(struct weft__collector *c);
/* The governor's: no records for a while, and then again, but not so soon that opening the events would cost much.
 * Reported as a loss that was not counted, once a second at the most. */
void weft__switch_hold(int hold);

#endif
