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
 * `limit` is how far resv may go before the slow path looks again at what the collector has freed. It stands a few
 * slots below the true end, since a handler can arrive between the check and the taking: each level of nesting then
 * overshoots by at most one event. */
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
	uint64_t mask;           /* slots - 1; goes up when the collector gave the ring more of them */
	uint64_t sched_due;      /* tick from which a park reads the thread's CPU time again */
	/* When all polls are recorded, the outermost one that is open, for the collector, which tells when it does
	 * not end: */
	uint64_t poll;       /* tick at which it began << 8 | how many are open, 255 at most; 0: none is */
	uint64_t poll_arg;   /* the second word of its slot */
	uint64_t park;       /* tick of the last park */
	uint64_t counted[2]; /* with WEFT_GATE_COUNTED: wakes; with WEFT_GATE_PARKS: queue depths; they only go up */
	/* With WEFT_GATE_PARKS: */
	uint64_t parks;   /* that ended; it only goes up */
	uint64_t parked;  /* ticks in these; it only goes up */
	uint64_t park_on; /* the gate's value when the open park began that is to be counted; 0: there is none */
	uint64_t reserved[2];
};

/* One page of its own that the kernel wipes in a forked child, so that no child, however it was made, writes to its
 * parent's rings. */
struct weft_gate {
	/* What polls and parks read, in one line: */
	uint32_t on;         /* 0: nothing records; else which clock ticks, and how polls are recorded: see below */
	uint32_t generation; /* of the recorder */
	uint64_t rseq_at;    /* with WEFT_GATE_RSEQ: where the detector's word is, from the thread pointer on */
	uint64_t rseq_armed; /* what it holds while the thread stays on the CPU */
	uint64_t wakes_from; /* tick since which wakes are only counted, with WEFT_GATE_COUNTED */
	uint64_t ns_scale;   /* ns of a tick, times 2^32 */
	uint64_t ms_ticks;   /* ticks of a millisecond */
	uint64_t
		/* modes slow and caught, or with trigger_poll_ns: a poll this long, or a little longer, has to be
		 * looked at */
		poll_ticks;
	uint32_t
		/* 1: this time of recording began with all polls as events; some of these may be open still */
		poll_mixed;
	uint32_t poll_cap; /* a thread records at most so many polls in second_ticks */
	uint64_t second_ticks;
	uint64_t sched_ticks;     /* between two readings of a thread's CPU time */
	uint64_t poll_slow_ns;    /* a poll is slow from here on */
	uint64_t poll_trigger_ns; /* and asks for a dump from here on */
	uint64_t wait_ticks;      /* a wait this long is recorded by itself (wait.h) */
	uint64_t step;            /* with WEFT_GATE_UNTIMED: goes up every few ms */
	char wiped[4096 - 112];
};

/* Bits of `on`. When all polls are recorded, none of WEFT_GATE_MODES is among them. */
#define WEFT_GATE_TSC 1u       /* ticks are the CPU's counter; 2: CLOCK_MONOTONIC */
#define WEFT_GATE_TICKS 3u     /* these two */
#define WEFT_GATE_SLOW 4u      /* of polls only the slow ones are recorded */
#define WEFT_GATE_CAUGHT 8u    /* only those with a sample in them */
#define WEFT_GATE_TIMED 16u    /* all, and the time that they take is looked at, too */
#define WEFT_GATE_MODES 28u    /* these three */
#define WEFT_GATE_RSEQ 32u     /* the kernel says when a thread was off the CPU (weft_stayed) */
#define WEFT_GATE_COUNTED 64u  /* wakes are counted, and remembered for polls that are recorded */
#define WEFT_GATE_PARKS 128u   /* parks are counted, with their time, and queue depths are */
#define WEFT_GATE_PLAIN 33u    /* the usual case: ticks are the CPU's, all polls, with the detector */
#define WEFT_GATE_UNTIMED 256u /* with WEFT_GATE_SLOW: polls and wakes are counted, and no clock is read for them */
#define WEFT_GATE_EPOCH 512u   /* with one of these three it goes up by this each time that recording begins */

extern WEFT_API struct weft_gate weft_gate WEFT_LAYOUT_OF(weft_gate);
extern WEFT_API __thread struct weft_ring *weft_ring_self WEFT_LAYOUT_OF(weft_ring_self)
	__attribute__((tls_model("initial-exec")));

/* Slow paths, out of line. Async-signal-safe. */
WEFT_API uint64_t weft_slow_tick(void);                                     /* CLOCK_MONOTONIC */
WEFT_API struct weft_ring *weft_slow_ring(uint32_t n_slots, uint64_t tick); /* a ring with room, or NULL: counted */
WEFT_API void weft_slow_sched(uint64_t tick);                               /* CPU time and run-queue wait */
/* Polls, however they are recorded: `on` is the gate's value, `arg` the second word of the slot that they have as
 * events. */
WEFT_API void weft_slow_poll_begin(uint64_t arg, uint32_t on);
WEFT_API void weft_slow_poll_begin_at(uint64_t arg, uint64_t tick, uint32_t on);
WEFT_API void weft_slow_poll_end(uint32_t on);
WEFT_API void weft_slow_poll_end_at(uint64_t tick, uint32_t on);
WEFT_API void weft_slow_poll_next(uint64_t arg, uint32_t on);
WEFT_API void weft_slow_poll_next_at(uint64_t arg, uint64_t tick, uint32_t on);

/* The thread was off the CPU outside of any wait that it reported; a park ended in which it was, or its CPU time is
 * due; a poll ends in which it was; a poll began in another one. */
WEFT_API void weft_slow_off(uint64_t tick);
WEFT_API void weft_slow_unpark(uint64_t tick);
WEFT_API void weft_slow_poll_off(uint64_t tick);
WEFT_API void weft_slow_nested(uint64_t tick);
WEFT_API void weft_slow_count(uint32_t which);                           /* the thread has no ring, or it is full */
WEFT_API void weft_slow_wake(uint64_t task, uint64_t tick, uint32_t on); /* it was counted: with WEFT_GATE_COUNTED */
/* Parks in one of WEFT_GATE_MODES, where they may be counted; `arg` is the second word of the slot. */
WEFT_API void weft_slow_park_mode(uint64_t arg, uint64_t tick, uint32_t on);
WEFT_API void weft_slow_unpark_mode(uint64_t arg, uint64_t tick, uint32_t on);

/* Off is the case that must cost nothing: it falls through. */
static inline uint32_t weft_gate_on(void)
{
	return (uint32_t)__builtin_expect((long)__atomic_load_n(&weft_gate.on, __ATOMIC_RELAXED), 0);
}

static inline uint64_t weft_tick(uint32_t on)
{
#if defined(__x86_64__)
	if (WEFT_LIKELY(on & WEFT_GATE_TSC))
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (WEFT_LIKELY(on & WEFT_GATE_TSC)) {
		uint64_t tick;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(tick));
		return tick;
	}
#else
	(void)on;
#endif
	return weft_slow_tick();
}

/* The detector: the kernel clears the word `rseq_cs` of a thread when it takes the thread off the CPU or delivers a
 * signal to it. While it holds what was stored there, the thread has stayed on the CPU. It holds rseq_armed, or
 * WEFT_RSEQ_OFF besides when the poll that is open has been off the CPU before. */
#define WEFT_RSEQ_OFF 32u

static inline uint64_t weft_rseq_word(void)
{
	uint64_t at = __atomic_load_n(&weft_gate.rseq_at, __ATOMIC_RELAXED);
	uint64_t word = 0;
#if defined(__x86_64__)
	__asm__ volatile("movq %%fs:(%1), %0" : "=r"(word) : "r"(at));
#elif defined(__aarch64__)
	__asm__ volatile("mrs %0, tpidr_el0\n\tldr %0, [%0, %1]" : "=&r"(word) : "r"(at));
#else
	(void)at;
#endif
	return word;
}

/* Whether the thread was on the CPU since its poll began, or since the last wait or park outside of one. */
static inline int weft_stayed(void)
{
	return WEFT_LIKELY(weft_rseq_word() == __atomic_load_n(&weft_gate.rseq_armed, __ATOMIC_RELAXED));
}

/* Whether it was since this was last asked, or the detector was armed. */
static inline int weft_stayed_since(void)
{
	uint64_t armed = __atomic_load_n(&weft_gate.rseq_armed, __ATOMIC_RELAXED);

	return WEFT_LIKELY((weft_rseq_word() & ~(uint64_t)WEFT_RSEQ_OFF) == armed);
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
	n = __atomic_fetch_add(&ring->resv, n, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the mask is read after */
	return n;
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
		return weft_slow_ring(n_slots, tick);
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

enum { WEFT_COUNTED_WAKES = 0, WEFT_COUNTED_QUEUES = 1 };

/* Whether an event of a kind that the gate has `bit` for is only counted, and then it is. */
static inline int weft_counted(uint32_t on, uint32_t bit, uint32_t which)
{
	struct weft_ring *ring = weft_ring_self;

	if (WEFT_LIKELY(!(on & bit)))
		return 0;
	if (WEFT_UNLIKELY(__atomic_load_n(&ring->resv, __ATOMIC_RELAXED) >= ring->limit)) {
		weft_slow_count(which);
		return 1;
	}
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("incq %0" : "+m"(ring->counted[which]) : : "cc");
#else
	__atomic_fetch_add(&ring->counted[which], 1, __ATOMIC_RELAXED);
#endif
	return 1;
}

/* The marks of a poll that begins, ends, or goes over into the next. */
static inline void weft_poll_mark_set(struct weft_ring *ring, uint64_t arg, uint64_t tick)
{
	__atomic_store_n(&ring->poll_arg, arg, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->poll, tick << 8 | 1, __ATOMIC_RELEASE);
}
static inline void weft_poll_mark_begin(uint64_t arg, uint64_t tick)
{
	struct weft_ring *ring = weft_ring_self;
	uint64_t poll = __atomic_load_n(&ring->poll, __ATOMIC_RELAXED);

	if (WEFT_LIKELY(!(poll & 0xff)))
		weft_poll_mark_set(ring, arg, tick);
	else if (WEFT_LIKELY((poll & 0xff) != 0xff)) {
		__atomic_store_n(&ring->poll, poll + 1, __ATOMIC_RELAXED);
		weft_slow_nested(tick);
	}
}
static inline void weft_poll_mark_end(void)
{
	struct weft_ring *ring = weft_ring_self;
	uint64_t poll = __atomic_load_n(&ring->poll, __ATOMIC_RELAXED);

	__atomic_store_n(&ring->poll, (poll & 0xff) > 1 ? poll - 1 : 0, __ATOMIC_RELAXED);
}
static inline void weft_poll_mark_next(uint64_t arg, uint64_t tick)
{
	struct weft_ring *ring = weft_ring_self;

	if (WEFT_LIKELY((__atomic_load_n(&ring->poll, __ATOMIC_RELAXED) & 0xff) <= 1))
		weft_poll_mark_set(ring, arg, tick);
	else
		weft_slow_nested(tick);
}

#ifdef __cplusplus
}
#endif
#endif
