/* SPDX-License-Identifier: Apache-2.0 */
/* What the collector reports of threads: time off the CPU, wall samples, polls that are stuck, readings of clocks and
 * costs. Context: CALLER. */
#ifndef WEFT_ANALYZE_THREAD_STATE_H
#define WEFT_ANALYZE_THREAD_STATE_H

#include "analyze/analysis.h"
#include "base/arena.h"
#include "base/map.h"

struct weft__analysis;
struct weft__thread_timelines;
struct weft__gaps;
struct weft__event;
struct weft__names;
struct weft__thread;
struct weft__interval;
struct weft__thread_timeline;

struct weft__thread_state {
	const struct weft__analysis_opts *opts;
	struct weft__off_result *result;
	struct weft__arena arena;
	size_t cap_threads, cap_rows, cap_wall_rows;
	struct weft__map row_by_key, wall_by_key;
	uint64_t wall_ns; /* between two wall samples of a thread, as the recording says */
};

int weft__off_add(struct weft__analysis *a, const struct weft__event *ev);
int weft__wall_add(struct weft__analysis *a, const struct weft__event *ev);
int weft__stuck_add(struct weft__analysis *a, const struct weft__event *ev);
/* cputime.c. A reading of the CPU clock; how long the kernel's tick is, 0: not known; a thread begins to work; a
 * sample of it. */
void weft__cpu_add(const struct weft__analysis_opts *opts, struct weft__result *result, const struct weft__event *ev);
uint64_t weft__tick_of(const struct weft__names *names);
void weft__beat_wake(const struct weft__analysis_opts *opts, struct weft__thread *s, uint64_t time_ns);
void weft__beat_sample(const struct weft__analysis_opts *opts, struct weft__result *result, struct weft__thread *s,
		       uint64_t ns, uint64_t engine);
void weft__cost_add(const struct weft__analysis_opts *opts, struct weft__result *result, const struct weft__event *ev);
void weft__thread_state_settle(struct weft__gaps *gaps, const struct weft__analysis_opts *opts,
			       struct weft__off_result *result, uint64_t end_ns);
void weft__thread_state_fini(struct weft__thread_state *thread_state);

/* excess.c */
void weft__excess_off(struct weft__thread_timeline *timeline, const struct weft__interval *off, uint64_t count);
void weft__excess_read(struct weft__thread_timelines *timelines, struct weft__gaps *gaps, const struct weft__event *ev);
void weft__excess_settle(struct weft__off_result *result);

#endif
