/* SPDX-License-Identifier: Apache-2.0 */
/* The intervals in a poll, while its time is divided among them. breakdown.c gives each moment to one of them, parts.c
 * says how much of that was on the CPU, ready without one, or neither, causes.c what it was spent on. CALLER. */
#ifndef WEFT_ANALYZE_SLICES_H
#define WEFT_ANALYZE_SLICES_H

#include "analyze/state.h"

struct weft__slice {
	const struct weft__interval *interval;
	uint64_t begin_ns, end_ns;
	uint64_t own_ns;                   /* how much of the poll is its own, */
	uint64_t cpu_ns, ready_ns, off_ns; /* ... which is the sum of these */
};

/* What time off the CPU in it is; of one that was preempted, there is only time ready. */
static inline enum weft__part weft__part_of(const struct weft__interval *interval)
{
	if (interval->kind == INTERVAL_WAIT)
		return weft__wait_is_call(interval->what) ? WEFT__BLOCKED : WEFT__WAITING;
	return interval->kind == INTERVAL_OFF && interval->what == WEFT_OFFCPU_PREEMPTED ? WEFT__PREEMPTED
											 : WEFT__BLOCKED;
}

static inline uint64_t weft__least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Divides the poll's time into `split`, which adds up to its length, from a->breakdowns.slices, of which `given_ns` is
 * their own. */
void weft__parts_divide(struct weft__breakdowns *breakdowns, struct weft__throttled *throttled,
			const struct weft__closed *poll, enum weft__switches switches, uint64_t given_ns,
			struct weft__split *split);

/* The causes of the parts, the longest first, of the divided slices. 0 or -ENOMEM. */
int weft__causes_find(struct weft__analysis *a, struct weft__breakdown *breakdown);

#endif
