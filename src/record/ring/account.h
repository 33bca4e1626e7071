/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's account of its CPU time, in the page of its ring. record/event/account_hot.c keeps it and says how. */
#ifndef WEFT_RING_ACCOUNT_H
#define WEFT_RING_ACCOUNT_H

#include <stdint.h>

#define ACCOUNT_NEST 4 /* polls in polls of which there is an account, the outermost among them */

/* What was known at the begin of a poll or wait. */
struct account_begin {
	uint64_t tick; /* 0: nothing */
	uint64_t cpu_ns, ready_ns, voluntary, unsure_ticks;
	uint64_t counted, counted_off_ticks, spared_ticks;
	uint64_t waited_ns; /* since then, in waits that are too short to be reported by themselves, but for calls */
	uint32_t offs;      /* offs_counted */
	uint32_t spared;
};

struct account {
	/* What the end of a park needs, in one line: */
	_Alignas(64) uint32_t busy; /* being changed: a handler leaves it alone */
	uint32_t generation;        /* of the recorder, with which the readings were made; 0: none was */
	uint64_t tick;              /* of the last reading of the CPU clock; what is known since: */
	uint64_t off_ticks;         /* in parks and waits that left the CPU */
	uint64_t unsure_ticks;      /* in which it left the CPU for part of the time */
	uint32_t offs;              /* how many parks and waits */
	uint32_t offs_counted;      /* ... since the last reading of what the scheduler counts, */
	uint64_t counted_off_ticks; /* how long they were */
	uint64_t checked;           /* tick of the last operation here */
	uint64_t armed;             /* tick at which the detector was armed */

	uint64_t spent;      /* ticks that the account itself has taken so far */
	uint32_t crowded;    /* it waited for CPUs for a while before that reading */
	uint32_t off_cpu_ns; /* CPU time that a park or wait takes, on average */
	/* Of the polls that are open, from the outermost on; of that one if it has been off the CPU. */
	struct account_begin polls[ACCOUNT_NEST];
	uint64_t cpu_ns; /* the last reading */
	/* The last reading of what the scheduler counts: */
	uint64_t ready_ns;        /* waited for a CPU; WEFT_NOT_MEASURED: not known */
	uint64_t ready_before_ns; /* ... in the reading before */
	uint64_t voluntary;       /* switches */
	uint64_t counted;         /* tick of that reading */
	uint32_t off_ready_ns;    /* wait for a CPU that a park or wait takes, on average */
	uint32_t spared;          /* 1: since then it was off the CPU, unforeseen, and nothing was read */
	uint64_t spared_ticks;    /* since then, in polls that are only counted and left the CPU */
	uint64_t watched;         /* from here to `tick` it stayed on the CPU */
	uint64_t counted_from;    /* and from here to `counted` */
};

#endif
