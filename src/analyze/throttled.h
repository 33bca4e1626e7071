/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time that the quota of a cgroup withheld. Context: CALLER. */
#ifndef WEFT_ANALYZE_THROTTLED_H
#define WEFT_ANALYZE_THROTTLED_H

#include "analyze/analysis.h"

struct weft__thread_timelines;
struct weft__breakdowns;
struct weft__event;
struct weft__closed;
struct weft__thread_timeline;

/* Between two readings of what a CPU quota withheld. */
struct weft__throttled_span {
	uint64_t from_ns, to_ns, throttled_ns, times;
	uint64_t number; /* from 1 on */
};
#define THROTTLED_SPANS 64u

/* A ring of the last spans. */
struct weft__throttled {
	const struct weft__analysis_opts *opts;
	struct weft__result *result;
	struct weft__throttled_span spans[THROTTLED_SPANS];
	uint64_t n;
	bool quota; /* there is one: what it took is given to one poll after the other */
};

void weft__throttled_init(struct weft__throttled *throttled, struct weft__breakdowns *breakdowns);
void weft__throttled_add(struct weft__throttled *throttled, struct weft__thread_timelines *timelines,
			 const struct weft__event *ev);
/* Of a time that a poll's thread was ready without a CPU, of which no switch says when: what the quota took. */
uint64_t weft__throttled_rest(struct weft__throttled *throttled, struct weft__breakdowns *breakdowns,
			      const struct weft__closed *poll, uint64_t ns);
/* A time off the CPU that ended then has come to the timeline, perhaps behind the reading of its span. */
void weft__throttled_late(struct weft__throttled *throttled, struct weft__thread_timeline *timeline, uint64_t end_ns);

#endif
