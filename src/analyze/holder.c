/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread that held a lock did while another waited for it. */
#include "analyze/state.h"
#include "base/alloc.h"

#define CHAIN_LINKS 3    /* holders of what a holder waits for */
#define LINKS_MAX 65536u /* of all chains */
#define LOOK_MAX 4096u   /* stretches and polls that are looked at for what a holder did */

static uint64_t overlap(uint64_t begin_ns, uint64_t end_ns, uint64_t from_ns, uint64_t to_ns)
{
	return weft__since(end_ns < to_ns ? end_ns : to_ns, begin_ns > from_ns ? begin_ns : from_ns);
}

static void holder_in(struct weft__holder *ret, uint32_t place, uint64_t task, uint32_t worker)
{
	ret->in_poll = true;
	ret->place = place;
	ret->task = task;
	ret->worker = worker;
}

/* The poll that most of the time was in. */
static void holder_poll(const struct weft__analysis *a, const struct weft__track *track, uint64_t from_ns,
			uint64_t to_ns, struct weft__holder *ret)
{
	const struct weft__stream *s = weft__track_stream(a, track);
	uint64_t most_ns = 0, ns;
	size_t i, least = track->n_closed > LOOK_MAX ? track->n_closed - LOOK_MAX : 0;

	for (i = track->n_closed; i-- > least && track->closed[i].end_ns > from_ns;) {
		ns = overlap(track->closed[i].begin_ns, track->closed[i].end_ns, from_ns, to_ns);
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		holder_in(ret, track->closed[i].place, track->closed[i].task, track->closed[i].worker);
	}
	for (i = 0; s && i < s->n_open; i++) {
		ns = overlap(s->open[i].begin_ns, UINT64_MAX, from_ns, to_ns);
		if (ns < most_ns || ns == 0)
			continue;
		most_ns = ns;
		holder_in(ret, s->open[i].place, s->open[i].task, s->open[i].worker);
	}
	if (s && !ret->in_poll)
		ret->worker = s->worker;
}

/* Of samples the last one's stack, of the others that of the longest. Answers the wait that it was in, or NULL. */
static const struct weft__stretch *holder_did(const struct weft__track *track, uint64_t from_ns, uint64_t to_ns,
					      struct weft__holder *ret)
{
	const struct weft__stretch *sample = NULL, *off = NULL, *wait = NULL, *shown;
	uint64_t off_ns = 0, wait_ns = 0, ns;
	size_t first = weft__track_after(track, from_ns), i;

	for (i = first; i < track->n_log && i - first < LOOK_MAX; i++) {
		const struct weft__stretch *stretch = &track->log[i];

		ns = overlap(stretch->begin_ns, stretch->end_ns, from_ns, to_ns);
		if (stretch->kind == STRETCH_SAMPLE && stretch->end_ns <= to_ns) {
			sample = stretch;
			ret->cpu_ns += stretch->ns;
		} else if (stretch->kind == STRETCH_OFF && ns) {
			off = ns > off_ns ? stretch : off;
			off_ns = ns > off_ns ? ns : off_ns;
			ret->off_ns += ns;
		} else if (stretch->kind == STRETCH_WAIT && ns) {
			wait = ns > wait_ns ? stretch : wait;
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

/* A chain may be a ring, and then nobody would ever have come out of it: it is cut. */
static void find_holder(struct weft__analysis *a, uint32_t tid, uint64_t from_ns, uint64_t to_ns,
			struct weft__holder *ret, int links)
{
	const struct weft__track *track = weft__track_find(a, tid);
	const struct weft__stretch *wait;
	struct weft__link *link;

	*ret = (struct weft__holder){.tid = tid, .worker = WEFT_WORKER_NONE};
	if (!tid || !track || to_ns <= from_ns)
		return;
	ret->stream = track->stream;
	holder_poll(a, track, from_ns, to_ns, ret);
	wait = holder_did(track, from_ns, to_ns, ret);
	if (!wait || !wait->holder || wait->holder == tid || links == 0 || a->n_links >= LINKS_MAX)
		return;
	link = weft__calloc(1, sizeof(*link));
	if (!link)
		return; /* the chain is shorter, then */
	link->before = a->links;
	a->links = link;
	a->n_links++;
	find_holder(a, wait->holder, wait->begin_ns > from_ns ? wait->begin_ns : from_ns,
		    wait->end_ns < to_ns ? wait->end_ns : to_ns, &link->holder, links - 1);
	ret->next = &link->holder;
}

void weft__holder_find(struct weft__analysis *a, uint32_t tid, uint64_t from_ns, uint64_t to_ns,
		       struct weft__holder *ret)
{
	find_holder(a, tid, from_ns, to_ns, ret, CHAIN_LINKS);
}

void weft__holder_fini(struct weft__analysis *a)
{
	struct weft__link *before;

	for (; a->links; a->links = before) {
		before = a->links->before;
		weft__free(a->links);
	}
}
