/* SPDX-License-Identifier: Apache-2.0 */
/* Polls in the modes slow and caught, for those who are not the emit path. */
#ifndef WEFT_EVENT_POLL_H
#define WEFT_EVENT_POLL_H

#include "record/ring/hooks.h"

/* HOT. The owner of a ring recorded something that makes its innermost open poll one to report in mode caught. */
static inline void weft__poll_sampled(struct weft_ring *ring, uint64_t tick)
{
	struct polls *polls = &((struct ring_page *)(void *)ring)->polls;
	uint32_t level = load_relaxed(&polls->level) - 1;

	if (level < POLLS_NEST)
		store_relaxed(&polls->open[level].sampled, tick);
}

/* COLLECTOR. The same for another thread, which was seen at `tick` in whatever poll was open then: the innermost, or
 * the outermost. A poll that has ended meanwhile, and one that began later, are not caught by it: their times do not
 * hold the tick. The owner's own mark is not put back. */
static inline void weft__poll_seen(struct ring_page *ring, uint64_t tick, int outermost)
{
	struct polls *polls = &ring->polls;
	uint32_t level = load_relaxed(&polls->level) - 1;
	uint64_t before;

	if (level >= POLLS_NEST)
		return;
	level = outermost ? 0 : level;
	before = load_relaxed(&polls->open[level].sampled);
	if ((int64_t)(tick - before) > 0)
		cas_relaxed(&polls->open[level].sampled, &before, tick);
}

/* HOT and COLLECTOR. Claims the unreported part of a count that stands at `sum`. 0:
 * nothing. */
static inline uint32_t weft__poll_count_take(struct ring_page *ring, uint32_t bucket, uint32_t sum)
{
	uint32_t reported = load_relaxed(&ring->polls_reported[bucket]);

	if ((int32_t)(sum - reported) <= 0) /* somebody else has reported more */
		return 0;
	return cas_acq_rel(&ring->polls_reported[bucket], &reported, sum) ? sum - reported : 0;
}

/* HOT. The calling thread's ring when it has had polls with the gate at `on`, as a thread in one of WEFT_GATE_MODES
 * has; else NULL. */
static inline struct ring_page *weft__polls_mine(uint32_t on)
{
	struct ring_page *ring = (struct ring_page *)(void *)weft_ring_self; /* which may be the ring of no thread */

	return WEFT_LIKELY(ring->polls.on == on) ? ring : NULL;
}

/* COLLECTOR. Moves the gate's step on, by which polls without a clock are found that are long. */
void weft__polls_step(uint64_t tick);
/* HOT and COLLECTOR. The tick by which such a poll was under way that began at a step. */
uint64_t weft__polls_step_after(uint64_t step);
/* HOT. At the end of one, in which the step moved on twice: records it. By the owner. */
void weft__untimed_report(const struct polls *polls, uint64_t tick);
/* HOT. Whether one more poll may be recorded in this second, and then it counts; else it is counted as left out. */
int weft__poll_under_cap(struct ring_page *ring, uint64_t tick);
/* HOT. The calling thread's ring, with polls of this time of recording; NULL when there is none or nothing records. */
struct ring_page *weft__polls_ready(uint32_t on, uint64_t tick);

#endif
