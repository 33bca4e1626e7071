/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps: times at which events are missing, from the loss records. What began before a gap and what ends after it
 * cannot be put together (the end in between may be what was lost), so every figure that would span one is left out
 * and counted instead. Context: CALLER. */
#ifndef WEFT_ANALYZE_GAP_H
#define WEFT_ANALYZE_GAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "weft/segment.h"

struct weft__gap {
	uint64_t from_ns, to_ns; /* both included */
	uint32_t thread_id;      /* 0: all threads */
};

struct weft__gaps {
	struct weft__arena arena;
	struct weft__gap *by_thread; /* in order of thread, then time */
	size_t n_by_thread;
	struct weft__gap *merged; /* whatever the thread; in order of time, without overlap */
	size_t n_merged;
	struct weft__gap *switches; /* in which only switches of threads are missing; likewise */
	size_t n_switches;
};

/* Losses in order of time. Returns 0 or -ENOMEM. */
int weft__gaps_init(struct weft__gaps *gaps, const struct weft_loss *losses, size_t n);
void weft__gaps_fini(struct weft__gaps *gaps);

/* Whether anything of any thread is missing between two moments. */
bool weft__gaps_between(const struct weft__gaps *gaps, uint64_t from_ns, uint64_t to_ns);

/* Whether a switch of any thread may be missing. */
bool weft__gaps_switches(const struct weft__gaps *gaps, uint64_t from_ns, uint64_t to_ns);

/* How much of the time between two moments switches are missing in, or all events are. */
uint64_t weft__gaps_switches_ns(const struct weft__gaps *gaps, uint64_t from_ns, uint64_t to_ns);

/* Where one thread stands among its gaps and those of all threads. */
struct weft__gap_cursor {
	size_t own, own_end, all, all_end;
	uint64_t done_ns;  /* gaps were given up to here */
	uint64_t quiet_ns; /* before this there is none to give */
};
void weft__gap_cursor_init(struct weft__gap_cursor *cursor, const struct weft__gaps *gaps, uint32_t thread_id);

/* The part of a gap that lies between the last call and `now_ns`. Returns true while there is one, with where it
 * begins and ends (cut at now_ns, where `inside` is set). */
bool weft__gap_next(struct weft__gap_cursor *cursor, const struct weft__gaps *gaps, uint64_t now_ns,
		    struct weft__gap *gap, bool *inside);

#endif
