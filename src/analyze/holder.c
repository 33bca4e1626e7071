/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread that held a lock did while another waited for it. */
#include "analyze/state.h"

#define CHAIN_LINKS 3    /* holders of what a holder waits for */
#define LINKS_MAX 65536u /* of all chains */
#define SEARCH_MAX 4096u /* intervals and polls that are looked at for what a holder did */

static uint64_t overlap(uint64_t begin_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	return weft__since(end_ns < to_ns ? end_ns : to_ns, begin_ns > from_ns ? begin_ns : from_ns);
}

static void holder_in(struct weft__holder *ret, uint32_t location, uint64_t task, uint32_t worker)
{
	ret->in_poll = true;
	ret->location = location;
	ret->task = task;
	ret->worker = worker;
}

/* The poll that most of the time was in. */
static void holder_poll(const struct weft__threads *threads, const struct weft__thread_timeline *timeline,
			uint64_t from_ns, uint64_t to_ns, struct weft__holder *ret)
{
	const struct weft__thread *s = weft__thread_timeline_owner(threads, timeline);
	uint64_t most_ns = 0, ns;
	uint64_t most = timeline->cap_closed < SEARCH_MAX ? timeline->cap_closed : SEARCH_MAX;
	uint64_t i, least = timeline->n_closed > most ? timeline->n_closed - most : 0;

	for (i = timeline->n_closed; i-- > least && weft__closed_at(timeline, i)->end_ns > from_ns;) {
		const struct weft__closed *closed = weft__closed_at(timeline, i);

		ns = overlap(closed->begin_ns, closed->end_ns, from_ns, to_ns);
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		holder_in(ret, closed->location, closed->task, closed->worker);
	}
	for (i = 0; s && i < s->n_open; i++) {
		ns = overlap(s->open[i].begin_ns, UINT64_MAX, from_ns, to_ns);
		if (ns < most_ns || ns == 0)
			continue;
		most_ns = ns;
		holder_in(ret, s->open[i].location, s->open[i].task, s->open[i].worker);
	}
	if (s && !ret->in_poll)
		ret->worker = s->worker;
}

/* Of samples the last one's stack, of the others that of the longest. Answers the wait that it was in, or NULL. */
static const struct weft__interval *holder_did(const struct weft__thread_timeline *timeline, uint64_t from_ns,
					       uint64_t to_ns, struct weft__holder *ret)
{
	const struct weft__interval *sample = NULL, *off = NULL, *wait = NULL, *shown;
	uint64_t off_ns = 0, wait_ns = 0, ns;
	size_t first = weft__thread_timeline_after(timeline, from_ns), i;

	for (i = first; i < timeline->n_log && i - first < SEARCH_MAX; i++) {
		const struct weft__interval *interval = &timeline->log[i];

		ns = overlap(interval->begin_ns, interval->end_ns, from_ns, to_ns);
		if (interval->kind == INTERVAL_SAMPLE && interval->end_ns <= to_ns) {
			sample = interval;
			ret->cpu_ns += interval->ns;
		} else if (interval->kind == INTERVAL_OFF && ns) {
			off = ns > off_ns ? interval : off;
			off_ns = ns > off_ns ? ns : off_ns;
			ret->off_ns += ns;
		} else if (interval->kind == INTERVAL_WAIT && ns) {
			wait = ns > wait_ns ? interval : wait;
			wait_ns = ns > wait_ns ? ns : wait_ns;
			ret->wait_ns = wait_ns;
		}
	}
	if (wait && 2 * wait_ns >= to_ns - from_ns) {
		ret->what = wait->what;
		ret->name = wait->name;
		ret->object = wait->object;
	}
	shown = ret->what ? wait : sample && (!off || ret->cpu_ns >= ret->off_ns) ? sample : off;
	if (shown) {
		ret->stack = shown->stack;
		ret->kernel = shown->kernel;
	}
	return ret->what ? wait : NULL;
}

static struct weft__holder *new_link(struct weft__holders *holders)
{
	struct weft__holder *link =
		holders->n_links < LINKS_MAX ? weft__arena_take(&holders->arena, sizeof(*link)) : NULL;

	if (!link)
		return NULL; /* the chain is shorter, then */
	memset(link, 0, sizeof(*link));
	holders->n_links++;
	return link;
}

static void find_holders(struct weft__holders *holders, struct weft__threads *threads,
			 struct weft__thread_timelines *timelines, const struct weft__interval *wait, uint64_t from_ns,
			 uint64_t to_ns, struct weft__holder *ret, int links);

/* What one did. A chain may be a ring, and then nobody would ever have come out of it: it is cut. */
static void find_holder(struct weft__holders *holders, struct weft__threads *threads,
			struct weft__thread_timelines *timelines, uint32_t tid, uint64_t from_ns, uint64_t to_ns,
			struct weft__holder *ret, int links)
{
	const struct weft__thread_timeline *timeline = weft__thread_timeline_find(timelines, tid);
	const struct weft__interval *wait;
	struct weft__holder *next;

	*ret = (struct weft__holder){.tid = tid, .worker = WEFT_WORKER_NONE};
	if (!tid || !timeline || to_ns <= from_ns)
		return;
	ret->thread_id = timeline->thread_id;
	holder_poll(threads, timeline, from_ns, to_ns, ret);
	wait = holder_did(timeline, from_ns, to_ns, ret);
	if (!wait || links == 0 || (!wait->holds && (!wait->holder || wait->holder == tid)))
		return;
	next = new_link(holders);
	if (!next)
		return;
	find_holders(holders, threads, timelines, wait, wait->begin_ns > from_ns ? wait->begin_ns : from_ns,
		     wait->end_ns < to_ns ? wait->end_ns : to_ns, next, links - 1);
	ret->next = next;
}

/* Holds of one thread together, as much of them as is between two moments, the longest time first; begin and end are
 * those of its longest. Answers how many threads there are. */
static uint32_t by_thread(const struct weft__holds *holds, uint64_t from_ns, uint64_t to_ns, struct weft__hold *ret)
{
	uint32_t i, at, n = 0;

	for (i = 0; i < holds->n; i++) {
		struct weft__hold hold = holds->at[i], moved;
		uint64_t whole_ns = weft__since(hold.end_ns, hold.begin_ns), longest_ns;

		hold.ns = overlap(hold.begin_ns, hold.end_ns, from_ns, to_ns) < hold.ns
				  ? overlap(hold.begin_ns, hold.end_ns, from_ns, to_ns)
				  : hold.ns;
		if (hold.ns == 0)
			continue;
		for (at = 0; at < n && ret[at].tid != hold.tid;)
			at++;
		if (at == n) {
			ret[n++] = hold;
		} else {
			longest_ns = weft__since(ret[at].end_ns, ret[at].begin_ns);
			ret[at].ns += hold.ns;
			ret[at].begin_ns = whole_ns > longest_ns ? hold.begin_ns : ret[at].begin_ns;
			ret[at].end_ns = whole_ns > longest_ns ? hold.end_ns : ret[at].end_ns;
		}
		for (moved = ret[at]; at > 0 && ret[at - 1].ns < moved.ns; at--)
			ret[at] = ret[at - 1];
		ret[at] = moved;
	}
	return n;
}

static void find_holders(struct weft__holders *holders, struct weft__threads *threads,
			 struct weft__thread_timelines *timelines, const struct weft__interval *wait, uint64_t from_ns,
			 uint64_t to_ns, struct weft__holder *ret, int links)
{
	struct weft__hold holds[HOLDS_MAX];
	uint32_t i, n = wait->holds ? by_thread(wait->holds, from_ns, to_ns, holds) : 0;

	if (n == 0) {
		find_holder(holders, threads, timelines, wait->holder, from_ns, to_ns, ret, links);
		return;
	}
	for (i = 0; i < n && ret; i++) {
		struct weft__holder *also = i + 1 < n ? new_link(holders) : NULL;

		find_holder(holders, threads, timelines, holds[i].tid,
			    holds[i].begin_ns > from_ns ? holds[i].begin_ns : from_ns,
			    holds[i].end_ns < to_ns ? holds[i].end_ns : to_ns, ret, i == 0 ? links : 0);
		ret->held_ns = holds[i].ns;
		ret->also = also;
		ret = also;
	}
}

void weft__holder_find(struct weft__holders *holders, struct weft__threads *threads,
		       struct weft__thread_timelines *timelines, const struct weft__interval *wait,
		       struct weft__holder *ret)
{
	find_holders(holders, threads, timelines, wait, wait->begin_ns, wait->end_ns, ret, CHAIN_LINKS);
}

void weft__holder_main(struct weft__holders *holders, struct weft__threads *threads,
		       struct weft__thread_timelines *timelines, const struct weft__interval *wait,
		       struct weft__holder *ret)
{
	struct weft__hold holds[HOLDS_MAX];
	uint64_t from_ns = wait->begin_ns, to_ns = wait->end_ns;
	uint32_t n = wait->holds ? by_thread(wait->holds, from_ns, to_ns, holds) : 0;

	if (n == 0) {
		find_holder(holders, threads, timelines, wait->holder, from_ns, to_ns, ret, 0);
		return;
	}
	find_holder(holders, threads, timelines, holds[0].tid,
		    holds[0].begin_ns > from_ns ? holds[0].begin_ns : from_ns,
		    holds[0].end_ns < to_ns ? holds[0].end_ns : to_ns, ret, 0);
	ret->held_ns = holds[0].ns;
}

void weft__held_add(struct weft__holders *holders, struct weft__thread *s, const struct weft__event *ev)
{
	uint64_t object = WEFT_FIELD(ev, HELD, OBJECT), end_ns = weft__since(ev->time_ns, WEFT_FIELD(ev, HELD, AGO));

	if (s->held && (s->held_ns != ev->time_ns || s->held_object != object))
		s->held = NULL;
	if (!s->held) {
		s->held = holders->n_holds < LINKS_MAX ? weft__arena_take(&holders->arena, sizeof(*s->held)) : NULL;
		if (!s->held)
			return; /* then the last holder is known, as the wait says */
		memset(s->held, 0, sizeof(*s->held));
		holders->n_holds++;
		s->held_ns = ev->time_ns;
		s->held_object = object;
	}
	if (s->held->n < HOLDS_MAX)
		s->held->at[s->held->n++] = (struct weft__hold){(uint32_t)WEFT_FIELD(ev, HELD, HOLDER),
								weft__since(end_ns, WEFT_FIELD(ev, HELD, SPAN)), end_ns,
								WEFT_FIELD(ev, HELD, TIME)};
}

const struct weft__holds *weft__held_take(struct weft__thread *s, uint64_t time_ns, uint64_t object)
{
	const struct weft__holds *held = s->held_ns == time_ns && s->held_object == object ? s->held : NULL;

	s->held = NULL;
	return held;
}

void weft__holders_fini(struct weft__holders *holders)
{
	weft__arena_fini(&holders->arena);
}
