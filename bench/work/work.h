/* SPDX-License-Identifier: Apache-2.0 */
/* Units of work, to put events around.
 *
 * Latency-bound: each step needs the one before it, and the CPU has nothing else to do while it waits, so that what
 * does not depend on the chain costs next to nothing. Throughput-bound: eight chains of simple steps beside each other,
 * which keep the CPU's adders busy, so that every instruction more is seen. Code that people write is between the
 * two. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdint.h>

#define LATENCY_STEPS 40
#define CHAINS 8

struct chains {
	uint64_t x[CHAINS];
};

typedef void work_fn(struct chains *c, uint32_t n);

/* n units each. With a pair: poll begin and end around each. Shared: the end of one and the begin of the next with one
 * reading of the clock. Call: the pair through the library. */
work_fn latency_floor, throughput_floor;
work_fn latency_bare, latency_pair, latency_shared, latency_call;
work_fn throughput_bare, throughput_pair, throughput_shared, throughput_call;

static inline void unit_latency(struct chains *c)
{
	uint64_t x = c->x[0];

#pragma GCC unroll 40
	for (int i = 0; i < LATENCY_STEPS; i++)
		x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	c->x[0] = x;
}

static inline void unit_throughput(struct chains *c)
{
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) {
#pragma GCC unroll 8
		for (int k = 0; k < CHAINS; k++) {
			uint64_t x = c->x[k] + 0x55;

			x ^= x >> 7;
			__asm__("" : "+r"(x)); /* no vectors: they would leave the adders alone */
			c->x[k] = x;
		}
	}
}

#endif
