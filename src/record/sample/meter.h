/* SPDX-License-Identifier: Apache-2.0 */
/* What samples take from the program besides the handler's time: signals, the interrupts of perf events, and what
 * these add to context switches. None of that shows up in a clock of ours, so what one of each takes is tried out
 * once, and they are counted. COLLECTOR. */
#ifndef WEFT_SAMPLE_METER_H
#define WEFT_SAMPLE_METER_H

#include <stdint.h>

/* What one of each takes. */
struct weft__meter_prices {
	uint32_t interrupt_ns; /* of an event's timer; 0: not known */
	uint32_t near_ns; /* a context switch, when the event's timer is the next one of all that the CPU has set */
	uint32_t far_ns;  /* when another one is, such as that of the tick */
	uint32_t off_ns;  /* and when the event is disabled */
};

/* Counts, of all time; and how events are set. */
struct weft__meter_seen {
	uint64_t signals;    /* of ours */
	uint64_t weight_ns;  /* CPU time of threads that are sampled */
	uint64_t switches;   /* of threads of the process, without the collector */
	uint32_t step_ns;    /* CPU time from one interrupt of an event to the next; 0: there are no such events */
	uint32_t tick_ns;    /* and of the kernel's tick */
	uint32_t duty;       /* how much of the time events are on, of METER_FULL */
	int stubborn;        /* a lower rate does not make interrupts fewer */
	uint64_t precise_ns; /* CPU time of threads while they had an event beside their timer (precise.h) */
	uint64_t precise_switches;
	uint32_t period_ns; /* of these events */
};
#define METER_FULL 1024

/* Where it was not tried out: as measured in a virtual machine. */
#define METER_USUAL                                                                                                    \
	{                                                                                                              \
		.interrupt_ns = 5000, .near_ns = 4000, .far_ns = 700, .off_ns = 350                                    \
	}

struct weft__meter {
	struct weft__meter_prices prices;
	struct weft__meter_seen seen; /* at the last look */
	double all_ns;                /* so far */
	double fixed_ns;              /* of that, what no lower rate would have saved */
	uint32_t tid;                 /* who looked: a new thread has not seen the switches of the one before */
};

/* The price of an interrupt: the middle of the `expected` longest of n gaps in a loop, which are put in order. 0:
 * there are too few. */
uint32_t weft__meter_middle(uint64_t *gaps, uint32_t n, uint32_t expected);
/* What an event that comes every step_ns adds to a context switch, on average. */
double weft__meter_switch_ns(const struct weft__meter_prices *prices, uint32_t step_ns, uint32_t tick_ns);
/* Adds what came since the last look. */
void weft__meter_add(struct weft__meter *meter, const struct weft__meter_seen *now);

/* CALLER, at open. */
void weft__meter_open(void);
/* Where perf events sample, finds out what they take, once, in the thread that calls it first. 1: that was a part of
 * it, of about a millisecond; 0: there is nothing left to do for this thread. In a program whose files must keep their
 * numbers only a thread with a private table of files does it (base/private_fds.h). */
int weft__meter_try(void);
/* Any context. 0: not known. */
uint32_t weft__meter_interrupt_ns(void);
/* What was taken since open, and how much of that no lower rate would have saved. */
uint64_t weft__meter_ns(uint64_t *fixed_ns);

#endif
