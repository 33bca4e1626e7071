/* SPDX-License-Identifier: Apache-2.0 */
/* Polls: those reported by their begin and end, those reported as a whole at their end, and what is only counted.
 * Context: CALLER. */
#ifndef WEFT_ANALYZE_POLL_H
#define WEFT_ANALYZE_POLL_H

#include "analyze/analysis.h"
#include "analyze/top.h"
#include "base/arena.h"

struct weft__analysis;
struct weft__threads;
struct weft__sampling;
struct weft__lanes;
struct weft__event;
struct weft__thread;

struct weft__polls {
	const struct weft__analysis_opts *opts;
	struct weft__arena arena; /* of the lists, and of stacks and causes of those in them */
	struct weft__top longest, running, delayed;
	uint64_t n; /* serial numbers */
};

/* Room for one more open poll: all but its task, times, numbers and context is filled in. s->n_open stays as it is.
 * 0 or -ENOMEM. */
int weft__poll_add(struct weft__threads *threads, struct weft__thread *s, struct weft__poll **ret);
int weft__poll_begin(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
int weft__poll_end(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns);
int weft__poll_next(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
/* The innermost open poll ends. */
int weft__poll_finish(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns);
/* The open poll of `task` that began at `begin_ns` on a thread, or NULL. */
struct weft__poll *weft__poll_open(struct weft__threads *threads, uint32_t thread_id, uint64_t task, uint64_t begin_ns);
int weft__poll_woken(struct weft__analysis *a, struct weft__poll *poll, const struct weft__wake *wake);
/* What the thread says of the poll that is about to end. */
void weft__poll_cpu(struct weft__thread *s, const struct weft__event *ev);
void weft__poll_cut(struct weft__sampling *samples, struct weft__thread *s, uint64_t now_ns); /* a gap begins */
int weft__poll_leave(struct weft__analysis *a, struct weft__thread *s, uint64_t now_ns, bool thread_ended);
int weft__polls_init(struct weft__polls *polls, size_t top);
void weft__polls_fini(struct weft__polls *polls);

/* reported.c: polls that are reported as a whole, at their end, and counts of all of them */
int weft__poll_reported(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
int weft__poll_count(struct weft__threads *threads, struct weft__lanes *lanes, struct weft__result *result,
		     const struct weft__event *ev);
int weft__park_count(struct weft__analysis *a, const struct weft__event *ev);
int weft__reported_settle(struct weft__lanes *lanes, struct weft__result *result);

/* detail.c */
void weft__detail_change(struct weft__detail *d, const struct weft__event *ev);
void weft__detail_count(struct weft__detail *d, const struct weft__event *ev);
/* Whether a wake of the poll's task can be the one that it began after. */
static inline bool weft__detail_has_wake(const struct weft__detail *d, const struct weft__wake *wake, uint64_t begin_ns)
{
	return wake->known && (wake->time_ns >= d->wakes_ns || begin_ns < d->wakes_ns);
}

#endif
