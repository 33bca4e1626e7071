/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work, bare and with events around them.
 *
 * Latency-bound: each step needs the one before it, and the CPU has nothing else to do while it waits, so that what does not
 * depend on it costs next to nothing. Throughput-bound: eight such chains beside each other, which leave no slot of the CPU
 * free, so that every instruction more is seen. Code that people write is between the two. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdint.h>

#define LATENCY_STEPS 38
#define CHAINS 8
#define THROUGHPUT_STEPS 10

struct chains {
	uint64_t x[CHAINS];
};

static inline uint64_t work_latency(uint64_t x)
{
	int i;

#pragma GCC unroll 38
	for (i = 0; i < LATENCY_STEPS; i++) {
		x = (x ^ 0x55) * 5;
		__asm__ volatile("imulq %0, %0" : "+r"(x));
	}
	return x;
}

static inline void work_throughput(struct chains *c)
{
	int i, k;

	for (i = 0; i < THROUGHPUT_STEPS; i++) {
#pragma GCC unroll 8
		for (k = 0; k < CHAINS; k++)
			__asm__("imulq $0x5bd1e995, %0, %0\n\txorq $0x55, %0" : "+r"(c->x[k]));
	}
}

typedef void work_fn(struct chains *c, uint32_t n);

work_fn latency_bare;
work_fn latency_pair;     /* poll begin and end around each unit */
work_fn latency_shared;   /* the end of one and the begin of the next with one reading of the clock */
work_fn latency_call;     /* begin and end through the library */
work_fn throughput_bare;
work_fn throughput_pair;
work_fn throughput_shared;
work_fn throughput_call;

#endif
