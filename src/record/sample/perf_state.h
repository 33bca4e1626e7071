/* SPDX-License-Identifier: Apache-2.0 */
/* Between perf.c and perf_hot.c. */
#ifndef WEFT_SAMPLE_PERF_STATE_H
#define WEFT_SAMPLE_PERF_STATE_H

#include <linux/perf_event.h>

#include "record/sample/meter.h"
#include "record/sample/state.h"

#define PERF_MAGIC UINT64_C(0x77656674) /* in front of the numbers of slots in sig_data */
#define PERF_RING_PAGES 2               /* the kernel's page about the ring, and one for data */
#define PERF_RING_BYTES 4096u

struct weft__perf {
	struct perf_event_attr attr; /* but for the period and sig_data */
	int counts_time;             /* the weight is CPU time that passed, and known exactly */
	int starting;                /* threads that are found now have not inherited an event */
	int private_fds;    /* events are in the private table of files of weft's threads (base/private_fds.h) */
	int timer_why;      /* HOT: the last error of a timer that could not be had */
	uint32_t timerless; /* HOT: some thread got no timer beside its event */
	uint32_t inherited; /* HOT: some thread has its creator's event */
	uint32_t duty;      /* COLLECTOR: how much of the time events are to be on, of METER_FULL */
	uint32_t held;      /* they are off now */
	uint64_t held_ns;   /* since when they are, or are not */
	uint64_t turn_ns;   /* when that is to change; UINT64_MAX: it is not */
	uint64_t hits;      /* HOT: signals of events */
	uint32_t cap;       /* COLLECTOR: the most that `duty` may be, because they mostly interrupt the kernel */
};
extern struct weft__perf weft__perf;

/* perf_duty.c, CALLER and COLLECTOR under the engine's lock. Events are on, all of the time. */
void weft__perf_duty_start(void);
/* As much of the time as samples that come so often need them; where timers take samples, too. */
void weft__perf_duty_set(uint32_t period_ns);
/* Switches them when that is due. Answers when to ask again. */
uint64_t weft__perf_duty_turn(uint64_t now_ns);
/* Looks how many interrupts gave a sample. Answers whether the time that events are on has to change. */
int weft__perf_duty_look(void);
/* perf.c. Switches all of them. What all of them have counted. COLLECTOR: how they are set. */
void weft__perf_hold(int hold);
uint64_t weft__perf_sum(void);
void weft__perf_meter(struct weft__meter_seen *now);

/* HOT. A file descriptor, or a negative error. */
int weft__perf_open(uint32_t tid, uint32_t number);
int weft__perf_cover(struct weft__slot *slot, uint32_t number, uint32_t tid);
/* HOT. Whether an event is needed and the calling thread cannot open it: the program would see its file. */
int weft__perf_later(void);
/* Any context. The timer that gives the thread samples beside its event, if there are to be such. 0 or a negative
 * error. */
int weft__perf_ride(struct weft__slot *slot, uint32_t number, uint32_t tid);
/* Any context. How long from one overflow to the next, when samples come so often. */
uint32_t weft__perf_step_ns(uint32_t period_ns);
/* Any context. How long between two overflows of an event while it is on. */
uint32_t weft__perf_event_ns(void);
/* Any context. Whether all threads have timers, too, so that events may be held for a part of the time. */
int weft__perf_holds(void);
/* Of the calling thread: what it used so far is in a sample already. */
void weft__perf_counted(struct weft__slot *slot);
int weft__perf_mine(const siginfo_t *info);
void weft__perf_match(const siginfo_t *info, struct weft__hit *hit);
uint32_t weft__perf_kernel(struct weft__slot *slot, uint64_t *out, uint32_t max);

#endif
