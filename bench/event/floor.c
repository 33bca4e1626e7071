/* SPDX-License-Identifier: Apache-2.0 */
#include "event/event.h"

#include "bench.h"

static inline uint64_t counter(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return weft_tick(1);
#endif
}

static inline void store(struct floor_ring *ring, uint64_t kind, uint64_t arg)
{
	struct floor_slot *slot = &ring->slots[ring->at++ & ring->mask];

	slot->w0 = counter() << 8 | kind;
	slot->w1 = arg;
	BENCH_BARRIER();
}

void burst_floor(struct floor_ring *ring, uint32_t n)
{
	struct floor_ring local = *ring;
	uint32_t i;

	for (i = 0; i < n; i++) {
		store(&local, 3, i | UINT64_C(3) << 48);
		store(&local, 4, 0);
	}
	ring->at = local.at;
}

void burst_tick(struct floor_ring *ring, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		sum += counter();
		BENCH_BARRIER();
		sum += counter();
		BENCH_BARRIER();
	}
	ring->at += sum & 1;
}

void burst_empty(struct floor_ring *ring, uint32_t n)
{
	uint32_t i;

	(void)ring;
	for (i = 0; i < n; i++)
		BENCH_BARRIER();
}
