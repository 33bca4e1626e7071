/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks, runtimes and calls: sums, the longest, and those that do not end. Context: CALLER. */
#ifndef WEFT_ANALYZE_WAITS_H
#define WEFT_ANALYZE_WAITS_H

#include "analyze/analysis.h"
#include "base/arena.h"
#include "base/map.h"
#include "weft/wait.h"

struct weft__analysis;
struct weft__event;
struct weft__thread;
struct weft__interval;

struct weft__waits {
	const struct weft__analysis_opts *opts;
	struct weft__wait_result *result;
	struct weft__arena arena;
	size_t cap, cap_objects, cap_threads, cap_pendings;
	struct weft__map by_key, object_by_key, thread_by_key;
	struct weft__wait *others; /* as long_waits, of threads that are no workers */
	size_t n_others;
};

int weft__wait_add(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
int weft__wait_sum(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev);
void weft__waits_settle(struct weft__waits *waits, bool works);
/* Nobody waits for these because there is nothing to do. */
static inline bool weft__wait_matters(uint32_t what)
{
	return what == WEFT_WAIT_LOCK || what == WEFT_WAIT_RWLOCK || what == WEFT_WAIT_RUNTIME ||
	       what == WEFT_WAIT_GC || what == WEFT_WAIT_PAUSE;
}

/* pending.c: waits for locks that do not end */
int weft__pending_add(struct weft__waits *all_waits, const struct weft__event *ev);
/* A wait has ended that may have been pending. */
void weft__pending_end(struct weft__wait_result *result, uint32_t tid, const struct weft__interval *wait);
int weft__pending_settle(struct weft__analysis *a, uint64_t end_ns);
void weft__deadlocks_find(struct weft__wait_result *result);

/* waits_rank.c */
int weft__wait_rank(struct weft__analysis *a, const struct weft__thread *s, struct weft__wait *wait,
		    const struct weft__interval *interval);
int weft__wait_of_thread(struct weft__waits *waits, const struct weft__thread *s, const struct weft__wait_row *more,
			 uint32_t stack);
void weft__wait_ranks_settle(struct weft__waits *waits, bool works);

static inline bool weft__wait_is_call(uint32_t what)
{
	return what == WEFT_WAIT_CALL;
}
void weft__waits_fini(struct weft__waits *waits);

#endif
