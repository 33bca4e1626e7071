/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a ring that the inline functions of event.h touch. Not promised: include event.h instead.
 *
 * A ring has one producer at a time, the thread that `weft_ring_self` of that thread points from, and one consumer, the
 * collector. An event is one or more 16-byte slots:
 *
 *     take     resv += n in one instruction, so that a signal handler on this thread gets slots of its own
 *     fill     the slots that were taken
 *     publish  head = resv, released; only the outermost emit does it, for itself and for the handlers that interrupted
 *              it, because what is below head must be whole
 *
 * `limit` is how far resv may go before the slow path looks again at what the collector has freed. It stands a few slots
 * below the true end, since a handler can arrive between the check and the taking: each level of nesting then overshoots
 * by at most one event. */
#ifndef WEFT_RING_H
#define WEFT_RING_H

#include <stdint.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct weft_slot {
	uint64_t w0; /* tick << 8 | kind */
	uint64_t w1; /* fields, packed by kind */
};

/* The owner's line. Everything here is written by the owner thread alone. */
struct weft_ring {
	uint64_t resv;           /* slots taken */
	uint64_t limit;          /* take nothing at or beyond this without asking */
	uint64_t head;           /* slots published; the collector reads it */
	struct weft_slot *slots; /* constant */
	uint64_t mask;           /* constant: slots - 1 */
	uint64_t sched_due;      /* tick from which a park reads the thread's CPU time again */
	uint64_t reserved[2];
};

/* One page of its own that the kernel wipes in a forked child, so that no child, however it was made, writes to its
 * parent's rings. */
struct weft_gate {
	uint32_t on;          /* 0: nothing records; 1: ticks are the TSC; 2: ticks are CLOCK_MONOTONIC */
	uint32_t generation;  /* of the recorder */
	uint64_t sched_ticks; /* between two readings of a thread's CPU time */
	uint64_t ns_scale;    /* ns of a tick, times 2^32 */
	char wiped[4096 - 24];
};

extern WEFT_API struct weft_gate weft_gate;
extern WEFT_API __thread struct weft_ring *weft_ring_self __attribute__((tls_model("initial-exec")));

/* Slow paths, out of line. Async-signal-safe. */
WEFT_API uint64_t weft_hot_tick(void);                                     /* CLOCK_MONOTONIC */
WEFT_API struct weft_ring *weft_hot_ring(uint32_t n_slots, uint64_t tick); /* a ring with room, or NULL: counted */
WEFT_API void weft_hot_sched(uint64_t tick);                               /* CPU time and run-queue wait */

/* Off is the case that must cost nothing: it falls through. */
static inline uint32_t weft_gate_on(void)
{
	return (uint32_t)__builtin_expect((long)__atomic_load_n(&weft_gate.on, __ATOMIC_RELAXED), 0);
}

static inline uint64_t weft_tick(uint32_t on)
{
#if defined(__x86_64__)
	if (WEFT_LIKELY(on == 1))
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (WEFT_LIKELY(on == 1)) {
		uint64_t tick;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(tick));
		return tick;
	}
#else
	(void)on;
#endif
	return weft_hot_tick();
}

/* A span of ticks in ns. */
static inline uint64_t weft_tick_ns(uint64_t ticks)
{
	uint64_t scale = __atomic_load_n(&weft_gate.ns_scale, __ATOMIC_RELAXED);
	uint64_t low = ticks & 0xffffffffu;

	return (ticks >> 32) * scale + low * (scale >> 32) + (low * (scale & 0xffffffffu) >> 32);
}

/* Takes n slots in a way that a signal on this thread cannot split; no other thread writes resv, so no lock prefix. */
static inline uint64_t weft_ring_take(struct weft_ring *ring, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("xaddq %0, %1" : "+r"(n), "+m"(ring->resv) : : "memory", "cc");
	return n;
#else
	return __atomic_fetch_add(&ring->resv, n, __ATOMIC_RELAXED);
#endif
}

static inline void weft_ring_publish(struct weft_ring *ring, uint64_t first, uint64_t upto)
{
	uint64_t taken;

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (WEFT_UNLIKELY(__atomic_load_n(&ring->head, __ATOMIC_RELAXED) != first))
		return; /* inside a handler: the emit that it interrupted publishes */
	for (;;) {
		__atomic_store_n(&ring->head, upto, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		taken = __atomic_load_n(&ring->resv, __ATOMIC_RELAXED);
		if (WEFT_LIKELY(taken == upto) || __atomic_load_n(&ring->head, __ATOMIC_RELAXED) != upto)
			return;
		upto = taken;
	}
}

static inline struct weft_ring *weft_ring_room(uint32_t n_slots, uint64_t tick)
{
	struct weft_ring *ring = weft_ring_self;

	if (WEFT_UNLIKELY(__atomic_load_n(&ring->resv, __ATOMIC_RELAXED) >= ring->limit))
		return weft_hot_ring(n_slots, tick);
	return ring;
}

static inline void weft_emit(uint32_t kind, uint64_t arg, uint64_t tick)
{
	struct weft_ring *ring = weft_ring_room(1, tick);
	struct weft_slot *slot;
	uint64_t first;

	if (WEFT_UNLIKELY(!ring))
		return;
	first = weft_ring_take(ring, 1);
	slot = &ring->slots[first & ring->mask];
	slot->w0 = tick << 8 | kind;
	slot->w1 = arg;
	weft_ring_publish(ring, first, first + 1);
}

#ifdef __cplusplus
}
#endif
#endif
