/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that were recorded while they lasted. One whose end comes is a wait like any other, and counted there; the
 * others last until the recording ends, and those among them who wait for each other are a deadlock. */
#include <errno.h>
#include <stdlib.h>

#include "analyze/state.h"

#define PENDINGS_MAX 4096u
#define SAME_NS 1000000u /* between two reckonings of when a wait began */

static bool is_same(const struct weft__pending *p, uint32_t tid, uint64_t object, uint64_t begin_ns)
{
	return p->tid == tid && p->object == object && weft__since(p->begin_ns, begin_ns) < SAME_NS &&
	       weft__since(begin_ns, p->begin_ns) < SAME_NS;
}

static struct weft__pending *find(struct weft__wait_result *r, uint32_t tid, uint64_t object, uint64_t begin_ns)
{
	size_t i;

	for (i = r->n_pendings; i-- > 0;)
		if (is_same(&r->pendings[i], tid, object, begin_ns))
			return &r->pendings[i];
	return NULL;
}

int weft__pending_add(struct weft__waits *all_waits, const struct weft__event *ev)
{
	struct weft__wait_result *r = all_waits->result;
	uint32_t tid = (uint32_t)WEFT_FIELD(ev, PENDING, TID);
	uint64_t begin_ns = weft__since(ev->time_ns, WEFT_FIELD(ev, PENDING, AGE));
	struct weft__pending *p = find(r, tid, WEFT_FIELD(ev, PENDING, OBJECT), begin_ns), *grown;

	if (!p) {
		if (r->n_pendings == PENDINGS_MAX)
			return 0;
		grown = weft__arena_grow(&all_waits->arena, r->pendings, &all_waits->cap_pendings, r->n_pendings,
					 sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->pendings = grown;
		p = &grown[r->n_pendings++];
		*p = (struct weft__pending){.tid = tid,
					    .what = (uint32_t)WEFT_FIELD(ev, PENDING, WHAT),
					    .name = (uint32_t)WEFT_FIELD(ev, PENDING, NAME),
					    .object = WEFT_FIELD(ev, PENDING, OBJECT),
					    .begin_ns = begin_ns};
	}
	/* When recording stops, waits that last are recorded with their length so far, and then once more as
	 * pending. */
	p->ended = false;
	p->seen_ns = ev->time_ns;
	p->holder = (uint32_t)WEFT_FIELD(ev, PENDING, HOLDER);
	p->stack = WEFT_FIELD(ev, PENDING, STACK) ? (uint32_t)WEFT_FIELD(ev, PENDING, STACK) : p->stack;
	p->holder_stack = WEFT_FIELD(ev, PENDING, HOLDER_STACK) ? (uint32_t)WEFT_FIELD(ev, PENDING, HOLDER_STACK)
								: p->holder_stack;
	return 0;
}

void weft__pending_end(struct weft__wait_result *result, uint32_t tid, const struct weft__interval *wait)
{
	struct weft__pending *p = result->n_pendings ? find(result, tid, wait->object, wait->begin_ns) : NULL;

	if (p)
		p->ended = p->counted = true;
}

/* A thread that did something since has got what it waited for, even if nothing says so. */
static bool has_run(struct weft__threads *threads, struct weft__thread_timelines *timelines, struct weft__pending *p)
{
	const struct weft__thread_timeline *timeline = weft__thread_timeline_find(timelines, p->tid);
	const struct weft__thread *s = timeline ? weft__thread_timeline_owner(threads, timeline) : NULL;
	size_t i;

	p->thread_id = timeline ? timeline->thread_id : 0;
	p->worker = s ? s->worker : WEFT_WORKER_NONE;
	if (timeline && timeline->ended_ns > p->seen_ns)
		return true;
	for (i = 0; i < threads->n; i++)
		if (threads->at[i].ran_ns > p->seen_ns && weft__map_get(&threads->by_id, threads->at[i].id) == i &&
		    weft__thread_timeline_key(threads->opts, &threads->at[i]) == p->tid)
			return true;
	return false;
}

/* Those that have ended go. The rest is a wait of the thread up to the end, for the polls that it is in. */
int weft__pending_settle(struct weft__analysis *a, uint64_t end_ns)
{
	struct weft__wait_result *r = &a->result.wait;
	struct weft__thread_timeline *timeline;
	size_t i, kept = 0;
	int rc = 0;

	for (i = 0; rc == 0 && i < r->n_pendings; i++) {
		struct weft__pending *p = &r->pendings[i];
		struct weft__interval interval = {.kind = INTERVAL_WAIT,
						  .begin_ns = p->begin_ns,
						  .end_ns = end_ns > p->seen_ns ? end_ns : p->seen_ns,
						  .what = p->what,
						  .name = p->name,
						  .object = p->object,
						  .holder = p->holder,
						  .stack = p->stack};

		if (p->ended || has_run(&a->threads, &a->timelines, p))
			continue;
		p->age_ns = weft__since(interval.end_ns, p->begin_ns);
		rc = weft__thread_timeline_get(a, p->tid, &timeline);
		if (rc == 0 && timeline && !p->counted)
			rc = weft__thread_timeline_add(a, timeline, &interval);
		r->pendings[kept++] = *p;
	}
	r->n_pendings = kept;
	return rc;
}

static int oldest_first(const void *left, const void *right)
{
	const struct weft__pending *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static uint32_t waiter(const struct weft__wait_result *r, uint32_t tid)
{
	size_t i;

	for (i = 0; tid && i < r->n_pendings; i++)
		if (r->pendings[i].tid == tid)
			return (uint32_t)i;
	return WEFT__NO_PENDING;
}

/* From each one along the holders: who comes back to where it began is in a ring. */
void weft__deadlocks_find(struct weft__wait_result *r)
{
	uint32_t at, steps;
	size_t i;

	if (r->n_pendings)
		qsort(r->pendings, r->n_pendings, sizeof(*r->pendings), oldest_first);
	for (i = 0; i < r->n_pendings; i++)
		r->pendings[i].next = waiter(r, r->pendings[i].holder);
	for (i = 0; i < r->n_pendings; i++) {
		if (r->pendings[i].deadlock)
			continue;
		at = r->pendings[i].next;
		for (steps = 1; at != WEFT__NO_PENDING && at != i && steps <= r->n_pendings; steps++)
			at = r->pendings[at].next;
		if (at != i)
			continue;
		r->n_deadlocks++;
		do {
			r->pendings[at].deadlock = (uint32_t)r->n_deadlocks;
			at = r->pendings[at].next;
		} while (at != i);
	}
}
