/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an analysis. Each part has its state, its arena and its functions in a header of its own, and knows
 * what is asked for (opts) and where its figures go (result). Functions take the parts that they use. Those that take
 * all of the analysis lead from part to part: a poll that ends goes to its lane, its task, its samples and its
 * breakdown. analysis.c hands each event on, and finish.c closes the books. Context: CALLER. */
#ifndef WEFT_ANALYZE_STATE_H
#define WEFT_ANALYZE_STATE_H

#include "analyze/context.h"
#include "analyze/custom.h"
#include "analyze/holder.h"
#include "analyze/lane.h"
#include "analyze/poll.h"
#include "analyze/sample.h"
#include "analyze/task.h"
#include "analyze/thread.h"
#include "analyze/thread_state.h"
#include "analyze/throttled.h"
#include "analyze/timeline.h"
#include "analyze/waits.h"

struct weft__analysis {
	struct weft__analysis_opts opts;
	struct weft__result result;
	struct weft__arena arena; /* of the list of losses in the result; each part below has one of its own */
	struct weft__gaps gaps;
	uint64_t now_ns; /* latest time seen, window or not */

	struct weft__threads threads;
	struct weft__tasks tasks;
	struct weft__lanes lanes;
	struct weft__polls polls;
	struct weft__sampling samples;
	struct weft__thread_timelines timelines;
	struct weft__breakdowns breakdowns;
	struct weft__throttled throttled;
	struct weft__waits waits;
	struct weft__holders holders;
	struct weft__thread_state thread_state;
	struct weft__customs customs;
};

/* How much of [from, to) lies in the window. */
static inline uint64_t weft__window_ns(const struct weft__analysis_opts *opts, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < opts->from_ns)
		from_ns = opts->from_ns;
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static inline uint64_t weft__sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The thread has polls, and so has what its samples are summed in. */
static inline void weft__thread_polls(struct weft__result *result, struct weft__thread *s)
{
	if (s->polls)
		return;
	s->polls = true;
	result->works = true;
	if (s->row != NO_ROW)
		result->samples.threads[s->row].polls = true;
}

static inline uint64_t weft__since(uint64_t now_ns, uint64_t then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

static inline int weft__thread_lane(struct weft__lanes *lanes, struct weft__thread *s, struct weft__lane **ret)
{
	int rc = s->lane == NO_LANE ? weft__lane_get(lanes, s->worker, s->id, &s->lane) : 0;

	if (rc < 0)
		return rc;
	*ret = &lanes->result->lanes[s->lane];
	return 0;
}

/* The timeline of the thread. 0 or -ENOMEM; `*ret` is NULL where there are too many. A tid may have become another
 * thread's since. What others report for a thread has another id than its own. */
static inline int weft__thread_timeline_of(struct weft__analysis *a, struct weft__thread *s,
					   struct weft__thread_timeline **ret)
{
	struct weft__thread_timeline *timeline = s->timeline == NO_TIMELINE ? NULL : &a->timelines.at[s->timeline];

	if (!timeline || !timeline->used || timeline->thread_id != s->id)
		return weft__thread_timeline_find_of(a, s, ret);
	*ret = timeline;
	return 0;
}

/* analysis.c. Whether an event of that kind says that its thread was active until then, where that was not known. */
bool weft__kind_active(uint32_t kind);

/* finish.c. 0 or -ENOMEM. */
int weft__finish(struct weft__analysis *a, uint64_t end_ns);

#endif
