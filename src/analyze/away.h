/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector tells of threads: time off the CPU, looks, polls that are stuck, readings of clocks and costs.
 * Context: CALLER. */
#ifndef WEFT_ANALYZE_AWAY_H
#define WEFT_ANALYZE_AWAY_H

#include "analyze/analysis.h"
#include "analyze/map.h"

struct weft__analysis;
struct weft__event;
struct weft__names;
struct weft__stream;
struct weft__stretch;
struct weft__track;

struct weft__away {
	size_t cap_threads, cap_rows, cap_looks;
	struct weft__map row_by_key, look_by_key;
	uint64_t look_ns; /* between two looks at a thread, as the recording says */
};

int weft__off_add(struct weft__analysis *a, const struct weft__event *ev);
int weft__look_add(struct weft__analysis *a, const struct weft__event *ev);
int weft__stuck_add(struct weft__analysis *a, const struct weft__event *ev);
/* cputime.c. A reading of the CPU clock; how long the kernel's tick is, 0: not known; a thread begins to work; a
 * sample of it. */
void weft__cpu_add(struct weft__analysis *a, const struct weft__event *ev);
uint64_t weft__tick_of(const struct weft__names *names);
void weft__beat_wake(struct weft__analysis *a, struct weft__stream *s, uint64_t time_ns);
void weft__beat_sample(struct weft__analysis *a, struct weft__stream *s, uint64_t ns, uint64_t engine);
void weft__cost_add(struct weft__analysis *a, const struct weft__event *ev);
void weft__away_settle(struct weft__analysis *a, uint64_t end_ns);
void weft__away_fini(struct weft__away *away, struct weft__result *result);

/* excess.c */
void weft__excess_off(struct weft__analysis *a, struct weft__track *track, const struct weft__stretch *off,
		      uint64_t count);
void weft__excess_read(struct weft__analysis *a, const struct weft__event *ev);
void weft__excess_settle(struct weft__analysis *a);

#endif
