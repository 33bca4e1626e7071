/* SPDX-License-Identifier: Apache-2.0 */
/* Who held a lock while another thread waited for it, and what it did meanwhile. Context: CALLER. */
#ifndef WEFT_ANALYZE_HOLDER_H
#define WEFT_ANALYZE_HOLDER_H

#include "analyze/breakdown.h"
#include "base/arena.h"

struct weft__threads;
struct weft__thread_timelines;
struct weft__event;
struct weft__thread;
struct weft__interval;

/* Who held the lock of one wait, and when. */
#define HOLDS_MAX 8
struct weft__holds {
	uint32_t n;
	struct weft__hold {
		uint32_t tid;
		uint64_t begin_ns, end_ns;
		uint64_t ns; /* of that time */
	} at[HOLDS_MAX];
};

struct weft__holders {
	struct weft__arena arena; /* of holders in chains of those who wait for one another, and of who held what */
	size_t n_links, n_holds;
};

/* Who held what a thread waited for, and what they did: the one that held it for the longest time, and by its `also`
 * the others. */
void weft__holder_find(struct weft__holders *holders, struct weft__threads *threads,
		       struct weft__thread_timelines *timelines, const struct weft__interval *wait,
		       struct weft__holder *ret);
/* The one that held it for the longest time, and nothing of others. */
void weft__holder_main(struct weft__holders *holders, struct weft__threads *threads,
		       struct weft__thread_timelines *timelines, const struct weft__interval *wait,
		       struct weft__holder *ret);
/* An event `held`, which comes before its wait; and what came for a wait of that time and object, or NULL. */
void weft__held_add(struct weft__holders *holders, struct weft__thread *s, const struct weft__event *ev);
const struct weft__holds *weft__held_take(struct weft__thread *s, uint64_t time_ns, uint64_t object);
void weft__holders_fini(struct weft__holders *holders);

#endif
