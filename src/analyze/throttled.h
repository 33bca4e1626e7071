/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time that the quota of a cgroup withheld. Context: CALLER. */
#ifndef WEFT_ANALYZE_THROTTLED_H
#define WEFT_ANALYZE_THROTTLED_H

#include "analyze/analysis.h"

struct weft__analysis;
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
	struct weft__throttled_span spans[THROTTLED_SPANS];
	uint64_t n;
	bool quota; /* there is one: what it took is given to one poll after the other */
};

void weft__throttled_init(struct weft__analysis *a);
void weft__throttled_add(struct weft__analysis *a, const struct weft__event *ev);
/* Of a time that a poll's thread was ready without a CPU, of which no switch says when: what the quota took. */
uint64_t weft__throttled_rest(struct weft__analysis *a, const struct weft__closed *poll, uint64_t ns);
/* A time off the CPU that ended then has come to the timeline, perhaps behind the reading of its span. */
void weft__throttled_late(struct weft__analysis *a, struct weft__thread_timeline *timeline, uint64_t end_ns);

#endif
