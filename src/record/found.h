/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector itself finds out: intervals off the CPU, wall samples, polls and waits that do not end, depths of
 * queues, counts. It goes to staging at once, with its time in ns; no ring and no clock of ticks is between. Staging
 * is in shared memory, so what was found outlives the process as what threads emitted does. COLLECTOR, all of it. */
#ifndef WEFT_RECORD_FOUND_H
#define WEFT_RECORD_FOUND_H

#include <stdint.h>

struct weft__collector;
struct weft__wide_stack;

/* Events of a lane are one stream, in order of time. To readers it is a thread "weft-collector". */
enum weft__found_lane {
	FOUND_NOW,    /* found out at the time of the event */
	FOUND_SWITCH, /* intervals off the CPU, which are older */
	FOUND_OTHER,  /* in streams of other threads: weft__found_of */
	FOUND_LANES
};

struct weft__found {
	uint64_t ns;
	uint32_t kind;
	uint64_t *fields;                      /* all of its kind; those of stacks are written to */
	const struct weft__wide_stack *stacks; /* record/event/wide.h */
	uint32_t n_stacks;
};

/* Flushes when staging is full. 0, or the error of that flush: then the event is counted as lost, reason "ring
 * full". */
int weft__found_add(struct weft__collector *c, enum weft__found_lane lane, const struct weft__found *event);
/* Whether weft__found_add has no need to flush. Who holds a lock asks first, and answers SOURCE_MORE when not. */
int weft__found_room(const struct weft__collector *c);
/* After 0 it has none and cannot fail: for what must not be taken before it can be kept. Else the error of a flush. */
int weft__found_need(struct weft__collector *c);
/* The same as weft__found_add in a stream of thread `tid`. The stream is defined for it, with the name that the thread
 * has now: so a thread that never emitted anything has one. NULL: only the name. */
int weft__found_of(struct weft__collector *c, uint32_t tid, uint64_t ns, const struct weft__found *event);

#endif
