/* SPDX-License-Identifier: Apache-2.0 */
/* The polls of a thread in the modes slow and caught, where nothing is written when one begins and, mostly, nothing
 * when it ends.
 *
 * A thread keeps the polls that are open in a small stack behind its ring, and counts those that are over by their
 * length. Which of them are reported one by one is decided when they end: those that took long, or those in which a
 * sample was taken. Who takes a sample leaves its tick with the innermost open poll; whether that lies in the poll is
 * seen at the end, so that nothing has to be cleared.
 *
 * Handlers may have polls, too: one that is begun takes its level before it fills it, and a count goes up in one
 * instruction.
 *
 * A count whose place follows from a clock that was just read holds up the loads behind it, for as long as it takes to
 * read the clock: half of what a poll costs. So the last poll of each level is kept aside, and counted when the next
 * one ends. Whoever adds up the counts takes these along (weft__polls_sum).
 *
 * With WEFT_GATE_UNTIMED there is no clock at all: a poll that begins while no other is open here is one more in
 * `untimed`, next to what had to be looked at anyway, so that a thread that was away for long touches one line. Long
 * ones are found by the gate's step, which the collector moves on every few ms. */
#ifndef WEFT_RING_POLLS_H
#define WEFT_RING_POLLS_H

#include <stdint.h>

#include "base/atomic.h"

#define POLLS_NEST 16    /* polls within polls that are timed */
#define POLLS_OCTAVES 40 /* lengths below 2^40 ns, 18 minutes, four counts for each power of two */
#define POLLS_LONGER (4 * POLLS_OCTAVES)
#define POLLS_UNTIMED (POLLS_LONGER + 1) /* of which only the number is known */
#define POLLS_COUNTS (POLLS_UNTIMED + 1)

struct poll_open {
	uint64_t tick;    /* at which it began; 0: there is none, or it is about to begin */
	uint64_t arg;     /* task and queue depth, as in a slot */
	uint64_t sampled; /* tick of the last sample that found it innermost, or one before it */
	uint32_t over;    /* the count, plus 1, of the last poll of this level that is over; 0: none */
	uint32_t timed;   /* WEFT_GATE_TIMED: it began as an event, whatever the mode is now */
};

/* The owner's, like the ring that it lies behind; others read it. */
struct polls {
	uint32_t on; /* the value of the gate that `level` belongs to; each time that recording begins it is another */
	uint32_t level;        /* polls that are open */
	uint32_t reported;     /* one by one, in this second */
	uint32_t wakes;        /* number of its memory of wakes, plus 1; 0: it has none (record/event/wakes.h) */
	uint64_t untimed_step; /* the gate's step as that poll began; its task is in open[0] */
	/* With WEFT_GATE_UNTIMED: twice the polls that are over, plus 1 while one is open. It only goes up. */
	uint64_t untimed;
	struct poll_open open[POLLS_NEST];
	uint64_t second;                  /* tick at which the second of `reported` began */
	uint32_t count[1 + POLLS_COUNTS]; /* polls that are over, by length, from 1 on; goes round */
};

/* Which count a length below 2^POLLS_OCTAVES belongs to. */
static inline uint32_t weft__polls_bucket(uint64_t ns)
{
	uint32_t octave = 63u - (uint32_t)__builtin_clzll(ns | 1);

	return 4 * octave + (uint32_t)((ns | 1) << 2 >> octave) - 4;
}

#define POLLS_REGULAR 12 /* counts from here on follow the rule; of those before only four are in use */

/* The lengths that a count is for: [from, below) ns. */
static inline uint64_t weft__polls_from(uint32_t bucket)
{
	uint64_t from = (uint64_t)(4 + bucket % 4) << bucket / 4 >> 2;

	if (bucket == POLLS_UNTIMED)
		return 0;
	return bucket < POLLS_REGULAR ? from & ~UINT64_C(1) : from;
}

static inline uint64_t weft__polls_below(uint32_t bucket)
{
	if (bucket >= POLLS_LONGER)
		return UINT64_MAX;
	return bucket < POLLS_REGULAR ? weft__polls_from(bucket) + 2 : weft__polls_from(bucket + 1);
}

/* HOT. Adds to `untimed` in one instruction. By the owner. */
static inline void weft__polls_untimed_add(struct polls *polls, uint64_t more)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("addq %1, %0" : "+m"(polls->untimed) : "r"(more) : "cc", "memory");
#else
	add_relaxed(&polls->untimed, more);
#endif
}

/* HOT. A poll without a clock begins, at a step of the gate. Those inside of it count when they begin. */
static inline void weft__polls_untimed_begin(struct polls *polls, uint64_t arg, uint64_t step)
{
	store_relaxed(&polls->untimed_step, step);
	store_relaxed(&polls->open[0].arg, arg);
	weft__polls_untimed_add(polls, 1 + (load_relaxed(&polls->untimed) & 1));
}

/* HOT. One more, for the owner. */
static inline void weft__polls_count(struct polls *polls, uint32_t over)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("incl %0" : "+m"(polls->count[over]) : : "cc");
#else
	add_relaxed(&polls->count[over], 1u);
#endif
}

/* HOT. Counts what was kept aside. By the owner, or for a dead one. */
static inline void weft__polls_fold(struct polls *polls)
{
	uint32_t i;

	for (i = 0; i < POLLS_NEST; i++) {
		uint32_t over = polls->open[i].over;

		store_release(&polls->open[i].over, 0u);
		if (over && over <= POLLS_COUNTS)
			weft__polls_count(polls, over);
	}
}

/* Of one length, those that are not kept aside. */
static inline uint32_t weft__polls_of(const struct polls *polls, uint32_t bucket)
{
	uint32_t count = load_acquire(&polls->count[1 + bucket]);

	return bucket == POLLS_UNTIMED ? count + (uint32_t)(load_acquire(&polls->untimed) >> 1) : count;
}

/* All polls that are over, by length. While the owner goes on, one that it is counting may be missing; none is in it
 * twice, because it takes the last one off before it counts it. */
static inline void weft__polls_sum(const struct polls *polls, uint32_t sum[POLLS_COUNTS])
{
	uint32_t i;

	for (i = 0; i < POLLS_COUNTS; i++)
		sum[i] = weft__polls_of(polls, i);
	for (i = 0; i < POLLS_NEST; i++) {
		uint32_t over = load_acquire(&polls->open[i].over);

		if (over && over <= POLLS_COUNTS)
			sum[over - 1]++;
	}
}

#endif
