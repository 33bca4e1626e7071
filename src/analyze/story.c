/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a poll, cut into parts. */
#include "analyze/story.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/pieces.h"
#include "base/alloc.h"

#define CLOSED_KEPT 256u /* with their story told: what the thread did when another waited for it */
#define PAST 16u         /* stretches behind a poll among which one may be that reaches back into it */
#define LOOKS_MAX 64u    /* in one poll that are asked what they saw */
#define OVER_MAX 64u     /* stretches at one moment */
#define CAUSES_MAX 256u

/* A look is told when the thread has been seen to run, or after a second, and some of its time may have been in
 * waits before. */
#define LOOK_BEGIN(look) ((look)->object + (look)->object / 4)
#define LOOK_END(look) (2 * LOOK_BEGIN(look))

static int gather_one(struct weft__analysis *a, const struct weft__stretch *stretch, uint64_t begin_ns, uint64_t end_ns)
{
	struct weft__piece *grown =
		weft__grow(a->stories.pieces, &a->stories.cap_pieces, a->stories.n_pieces, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	a->stories.pieces = grown;
	grown[a->stories.n_pieces++] = (struct weft__piece){.stretch = stretch, .begin_ns = begin_ns, .end_ns = end_ns};
	return 0;
}

/* The first stretch that ends behind `ns`. Polls are settled in order, and there are many between two stretches. */
static size_t first_after(struct weft__track *track, uint64_t ns)
{
	size_t at = track->settled, n = track->n_log, i;

	if (at <= n && track->settled_changes == track->n_changes && (at == 0 || track->log[at - 1].end_ns <= ns) &&
	    (at == n || track->log[at].end_ns > ns))
		return at;
	at = weft__track_after(track, ns);
	track->nearest_ns = UINT64_MAX;
	for (i = at; i < n && i - at < PAST; i++)
		if (track->log[i].begin_ns < track->nearest_ns)
			track->nearest_ns = track->log[i].begin_ns;
	track->settled = at;
	track->settled_changes = track->n_changes;
	return at;
}

/* Samples are moments; the one at the begin of a poll still belongs to it. Of looks, the part is taken that they are
 * sure of; where switches are known (`whole`), all of it, to see which stretch they belong to. */
static int gather(struct weft__analysis *a, struct weft__track *track, const struct weft__closed *poll, bool whole)
{
	size_t i = first_after(track, poll->begin_ns ? poll->begin_ns - 1 : 0), past = 0;

	a->stories.n_pieces = 0;
	if (poll->end_ns < track->nearest_ns)
		return 0;
	for (; i < track->n_log && past < PAST; i++) {
		const struct weft__stretch *stretch = &track->log[i];
		bool sure = stretch->kind == STRETCH_LOOK && !whole;
		uint64_t begin_ns = stretch->begin_ns + (sure ? LOOK_BEGIN(stretch) : 0);
		uint64_t end_ns = sure ? weft__since(stretch->end_ns, LOOK_END(stretch)) : stretch->end_ns;

		past = stretch->begin_ns > poll->end_ns ? past + 1 : 0;
		begin_ns = begin_ns > poll->begin_ns ? begin_ns : poll->begin_ns;
		end_ns = end_ns < poll->end_ns ? end_ns : poll->end_ns;
		if (stretch->kind == STRETCH_SAMPLE ? stretch->end_ns > poll->end_ns : begin_ns >= end_ns)
			continue;
		if (gather_one(a, stretch, begin_ns, end_ns) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int piece_order(const void *left, const void *right)
{
	const struct weft__piece *a = left, *b = right;

	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return a->stretch < b->stretch ? -1 : a->stretch > b->stretch;
}

/* Waits before switches before looks; of two waits the one that began last: it is inside of the other. */
static struct weft__piece *owner(struct weft__piece **over, size_t n)
{
	struct weft__piece *best = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		if (!best || over[i]->stretch->kind >= best->stretch->kind)
			best = over[i];
	return best;
}

static size_t forget_ended(struct weft__piece **over, size_t n, uint64_t now_ns)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (over[i]->end_ns > now_ns)
			over[kept++] = over[i];
	return kept;
}

static uint64_t next_end(struct weft__piece **over, size_t n, uint64_t at_most_ns)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (over[i]->end_ns < at_most_ns)
			at_most_ns = over[i]->end_ns;
	return at_most_ns;
}

/* Gives each moment of the poll to one stretch at most, looks among them unless the whole of switches is known.
 * Answers how much was given. Samples that fall into what was given are taken out: their `end_ns` becomes 0. */
static uint64_t give_out(struct weft__analysis *a, bool whole)
{
	struct weft__piece *over[OVER_MAX], *mine;
	uint64_t now_ns = 0, until_ns, given_ns = 0;
	size_t i = 0, n = 0;

	if (a->stories.n_pieces)
		qsort(a->stories.pieces, a->stories.n_pieces, sizeof(*a->stories.pieces), piece_order);
	while (i < a->stories.n_pieces || n > 0) {
		if (n == 0)
			now_ns = a->stories.pieces[i].begin_ns;
		n = forget_ended(over, n, now_ns);
		for (; i < a->stories.n_pieces && a->stories.pieces[i].begin_ns <= now_ns; i++) {
			struct weft__piece *piece = &a->stories.pieces[i];

			if (piece->stretch->kind == STRETCH_SAMPLE)
				piece->end_ns = n > 0 && piece->begin_ns > over[0]->begin_ns ? 0 : piece->end_ns;
			else if (n < OVER_MAX && !(whole && piece->stretch->kind == STRETCH_LOOK))
				over[n++] = piece;
		}
		mine = owner(over, n);
		if (!mine)
			continue;
		until_ns = next_end(over, n, i < a->stories.n_pieces ? a->stories.pieces[i].begin_ns : UINT64_MAX);
		mine->own_ns += until_ns - now_ns;
		given_ns += until_ns - now_ns;
		now_ns = until_ns;
	}
	return given_ns;
}

static enum weft__switches switches_in(const struct weft__analysis *a, const struct weft__track *track,
				       const struct weft__closed *poll)
{
	if (track->n_off == 0)
		return WEFT__SWITCHES_NONE;
	if (track->off_sampled || (track->cut_ns && poll->begin_ns < track->cut_ns) ||
	    weft__gaps_switches(&a->gaps, poll->begin_ns, poll->end_ns))
		return WEFT__SWITCHES_SOME;
	return WEFT__SWITCHES_ALL;
}

/* A thread tells of a switch when it runs again. So of one whose poll has not ended it is not known what it does
 * since it was last known to run: how long that is. When a look has found it waiting meanwhile, it still does:
 * `*ret` is that look, or NULL. */
static uint64_t unknown_end(const struct weft__analysis *a, const struct weft__track *track,
			    const struct weft__closed *poll, const struct weft__stretch **ret)
{
	uint64_t seen_ns = a->stories.extra.seen_ns, ran_ns;
	size_t i;

	*ret = NULL;
	if (!poll->running)
		return 0;
	ran_ns = seen_ns > poll->begin_ns ? seen_ns : poll->begin_ns;
	for (i = track->n_log; i-- > 0 && track->log[i].end_ns > ran_ns;) {
		const struct weft__stretch *stretch = &track->log[i];

		if (stretch->kind != STRETCH_LOOK)
			ran_ns = stretch->end_ns;
		else if (!*ret && stretch->end_ns <= poll->end_ns)
			*ret = stretch;
	}
	if (*ret && (*ret)->end_ns <= ran_ns)
		*ret = NULL;
	return weft__since(poll->end_ns, ran_ns);
}

/* The same as a stretch of its own. */
static int add_unknown_end(struct weft__analysis *a, const struct weft__closed *poll, const struct weft__stretch *look,
			   uint64_t ns, struct weft__split *split)
{
	ns = weft__least(ns, split->ns[WEFT__NOT_MEASURED]);
	if (!look || ns == 0)
		return 0;
	split->ns[WEFT__NOT_MEASURED] -= ns;
	split->ns[WEFT__BLOCKED] += ns;
	if (gather_one(a, look, poll->end_ns - ns, poll->end_ns) < 0)
		return -ENOMEM;
	a->stories.pieces[a->stories.n_pieces - 1].own_ns = a->stories.pieces[a->stories.n_pieces - 1].off_ns = ns;
	return 0;
}

static bool same_cause(const struct weft__cause *cause, const struct weft__stretch *stretch, enum weft__part part)
{
	if (cause->part != part)
		return false;
	if (stretch->kind == STRETCH_WAIT)
		return cause->what == stretch->what && cause->name == stretch->name && cause->object == stretch->object;
	return cause->what == 0 && cause->call == (stretch->kind == STRETCH_LOOK ? stretch->what : 0) &&
	       cause->stack == stretch->stack && cause->kernel == stretch->kernel;
}

static void add_cause(struct weft__analysis *a, struct weft__story *story, const struct weft__piece *piece,
		      enum weft__part part, uint64_t ns)
{
	const struct weft__stretch *stretch = piece->stretch;
	struct weft__cause *cause = story->causes, *end = cause + story->n_causes;

	while (cause < end && !same_cause(cause, stretch, part))
		cause++;
	if (cause == end) {
		if (story->n_causes == CAUSES_MAX)
			return;
		story->n_causes++;
		*cause = (struct weft__cause){.part = part};
		if (stretch->kind == STRETCH_WAIT) {
			cause->what = stretch->what;
			cause->name = stretch->name;
			cause->object = stretch->object;
		} else {
			cause->call = stretch->kind == STRETCH_LOOK ? stretch->what : 0;
			cause->stack = stretch->stack;
			cause->kernel = stretch->kernel;
		}
	}
	cause->n++;
	cause->ns += ns;
	if (ns < cause->longest_ns)
		return;
	cause->longest_ns = ns;
	if (stretch->kind == STRETCH_WAIT && stretch->stack)
		cause->stack = stretch->stack;
	if (stretch->kind == STRETCH_WAIT && (stretch->holder || stretch->holds))
		weft__holder_find(a, stretch, &cause->holder);
}

/* The longest stretch off the CPU that a look must have been in, as most of its time is there. */
static const struct weft__piece *seen_in(const struct weft__analysis *a, const struct weft__stretch *look)
{
	const struct weft__piece *best = NULL;
	size_t i;

	for (i = 0; i < a->stories.n_pieces; i++) {
		const struct weft__piece *piece = &a->stories.pieces[i];
		const struct weft__stretch *off = piece->stretch;
		uint64_t from_ns = off->begin_ns > look->begin_ns ? off->begin_ns : look->begin_ns;

		if (off->kind == STRETCH_OFF && piece->own_ns && weft__part_of(off) == WEFT__BLOCKED && !off->stack &&
		    !off->kernel && weft__since(weft__least(off->end_ns, look->end_ns), from_ns) > look->ns / 2 &&
		    (!best || piece->own_ns > best->own_ns))
			best = piece;
	}
	return best;
}

/* Where switches have no stack, a look at the thread says in what it was blocked. */
static void name_by_looks(const struct weft__analysis *a, struct weft__story *story)
{
	const struct weft__stretch *look = NULL;
	uint64_t most_ns = 0;
	size_t i, looks = 0;

	for (i = 0; i < a->stories.n_pieces && looks < LOOKS_MAX; i++) {
		const struct weft__piece *in;

		if (a->stories.pieces[i].stretch->kind != STRETCH_LOOK)
			continue;
		looks++;
		in = seen_in(a, a->stories.pieces[i].stretch);
		if (!in || in->own_ns < most_ns)
			continue;
		most_ns = in->own_ns;
		look = a->stories.pieces[i].stretch;
	}
	for (i = 0; i < story->n_causes && look; i++) {
		struct weft__cause *cause = &story->causes[i];

		if (cause->part != WEFT__BLOCKED || cause->what || cause->stack || cause->kernel)
			continue;
		cause->call = look->what;
		cause->stack = look->stack;
	}
}

static int longest_first(const void *left, const void *right)
{
	const struct weft__cause *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->part != b->part)
		return a->part < b->part ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static int find_causes(struct weft__analysis *a, struct weft__story *story)
{
	struct weft__cause *fitting;
	size_t i;

	story->causes = weft__calloc(CAUSES_MAX, sizeof(*story->causes));
	if (!story->causes)
		return -ENOMEM;
	for (i = 0; i < a->stories.n_pieces; i++) {
		const struct weft__piece *piece = &a->stories.pieces[i];

		if (piece->stretch->kind == STRETCH_SAMPLE)
			continue;
		if (piece->off_ns)
			add_cause(a, story, piece, weft__part_of(piece->stretch), piece->off_ns);
		if (piece->cpu_ns && piece->stretch->kind == STRETCH_WAIT)
			add_cause(a, story, piece, WEFT__ON_CPU, piece->cpu_ns);
	}
	if (story->switches == WEFT__SWITCHES_ALL)
		name_by_looks(a, story);
	if (story->n_causes)
		qsort(story->causes, story->n_causes, sizeof(*story->causes), longest_first);
	fitting = weft__realloc(story->causes, (story->n_causes + 1) * sizeof(*fitting));
	story->causes = fitting ? fitting : story->causes;
	return 0;
}

static struct weft__poll *in_list(struct weft__top *top, uint64_t serial)
{
	size_t i;

	for (i = 0; i < top->n; i++)
		if (top->polls[i].serial == serial)
			return &top->polls[i];
	return NULL;
}

static void add_split(struct weft__split *to, const struct weft__split *split)
{
	size_t i;

	to->n += split->n;
	for (i = 0; i < WEFT__N_PARTS; i++)
		if (split->ns[i])
			to->ns[i] += weft__least(split->ns[i], UINT64_MAX - to->ns[i]);
	to->throttled_ns += weft__least(split->throttled_ns, UINT64_MAX - to->throttled_ns);
}

/* A poll that was told of while it was stuck has come to its end. */
static void end_stuck(struct weft__analysis *a, const struct weft__closed *closed)
{
	struct weft__result *r = &a->result;
	size_t i;

	for (i = 0; i < r->n_stucks && !closed->running; i++)
		if (r->stucks[i].stream == closed->stream && r->stucks[i].task == closed->task &&
		    r->stucks[i].time_ns >= closed->begin_ns && r->stucks[i].time_ns <= closed->end_ns) {
			r->stucks[i].ended = true;
			r->stucks[i].duration_ns = closed->end_ns - closed->begin_ns;
		}
}

static void add_on_cpu(struct weft__split *to, uint64_t ns)
{
	to->n++;
	to->ns[WEFT__ON_CPU] = weft__sum(to->ns[WEFT__ON_CPU], ns);
}

/* Most polls: it ended, was on the CPU all the time, nothing else is known of that time, and no list has it. */
static bool is_plain(const struct weft__analysis *a, struct weft__track *track, const struct weft__closed *closed)
{
	if (closed->cpu != WEFT__CPU_ALL || closed->running || closed->listed || a->result.n_stucks)
		return false;
	(void)first_after(track, closed->begin_ns ? closed->begin_ns - 1 : 0);
	return closed->end_ns < track->nearest_ns;
}

static int settle_plain(struct weft__analysis *a, struct weft__track *track, const struct weft__closed *closed)
{
	uint64_t ns = weft__since(closed->end_ns, closed->begin_ns);
	struct weft__place *place;
	struct weft__story story;
	size_t i;

	if (!a->opts.rows_only) {
		if (weft__place_get(a, closed->place, &place) < 0)
			return -ENOMEM;
		add_on_cpu(&a->result.split, ns);
		add_on_cpu(&a->result.lanes[closed->lane].split, ns);
		add_on_cpu(&place->split, ns);
	}
	if (!closed->kept)
		return 0;
	a->stories.n_pieces = 0;
	story.told = true;
	story.cpu = WEFT__CPU_ALL;
	story.switches = switches_in(a, track, closed);
	story.split.n = 1;
	for (i = 0; i < WEFT__N_PARTS; i++)
		story.split.ns[i] = 0;
	story.split.ns[WEFT__ON_CPU] = ns;
	story.split.throttled_ns = 0;
	story.causes = NULL;
	story.n_causes = 0;
	return weft__rows_poll(a, track, &story);
}

static int settle_one(struct weft__analysis *a, struct weft__track *track, const struct weft__closed *closed)
{
	struct weft__poll *poll = closed->listed ? in_list(&a->polls.longest, closed->serial) : NULL;
	struct weft__story story = {.told = true};
	const struct weft__stretch *look;
	struct weft__place *place = NULL;
	uint64_t unknown_ns = unknown_end(a, track, closed, &look);
	bool whole;
	int rc;

	end_stuck(a, closed);
	if (closed->listed && !poll)
		poll = in_list(&a->polls.running, closed->serial);
	story.switches = switches_in(a, track, closed);
	story.cpu = closed->cpu;
	whole = story.switches == WEFT__SWITCHES_ALL && !closed->running;
	if (gather(a, track, closed, whole) < 0 ||
	    (!a->opts.rows_only && weft__place_get(a, closed->place, &place) < 0))
		return -ENOMEM;
	a->stories.settling = track;
	weft__parts_divide(a, closed, story.switches, give_out(a, whole), &story.split);
	if (add_unknown_end(a, closed, look, unknown_ns, &story.split) < 0)
		return -ENOMEM;
	if (!closed->running && !a->opts.rows_only) {
		add_split(&a->result.split, &story.split);
		add_split(&a->result.lanes[closed->lane].split, &story.split);
		add_split(&place->split, &story.split);
	}
	rc = closed->kept ? weft__rows_poll(a, track, &story) : 0;
	if (rc < 0 || !poll)
		return rc;
	if (find_causes(a, &story) < 0)
		return -ENOMEM;
	weft__free(poll->story.causes);
	poll->story = story;
	return 0;
}

int weft__story_settle(struct weft__analysis *a, struct weft__track *track, uint64_t now_ns)
{
	int rc = 0;

	while (rc == 0 && track->first_closed < track->n_closed) {
		const struct weft__closed *closed = weft__closed_at(track, track->first_closed);

		if (now_ns != UINT64_MAX && weft__since(now_ns, closed->end_ns) < a->stories.grace_ns &&
		    track->n_closed - track->first_closed < a->stories.max_closed)
			break;
		if (closed->cpu == WEFT__CPU_SPLIT || closed->running)
			a->stories.extra = track->extras[track->first_extra++ & (track->cap_extras - 1)];
		if (!closed->asked || (a->opts.rows_only && !closed->kept && !a->throttled.quota))
			rc = 0;
		else if (is_plain(a, track, closed))
			rc = settle_plain(a, track, closed);
		else
			rc = settle_one(a, track, closed);
		track->first_closed++;
	}
	return rc;
}

int weft__story_settle_all(struct weft__analysis *a)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < a->tracks.n && rc == 0; i++)
		if (a->tracks.at[i].used)
			rc = weft__story_settle(a, &a->tracks.at[i], UINT64_MAX);
	return rc;
}

/* What the thread said of it. */
static enum weft__cpu_known cpu_of(const struct weft__analysis *a, const struct weft__stream *s,
				   const struct weft__poll *poll)
{
	if (poll->end_ns == 0)
		return WEFT__CPU_UNKNOWN;
	if (s->cpu_time_ns == poll->end_ns)
		return s->cpu.known;
	return a->stories.detects ? WEFT__CPU_ALL : WEFT__CPU_UNKNOWN;
}

static int add_extra(struct weft__track *track, const struct weft__stream *s)
{
	struct weft__closed_extra *ring =
		weft__ring_room(track->extras, &track->cap_extras, track->first_extra, track->n_extras, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	track->extras = ring;
	ring[track->n_extras++ & (track->cap_extras - 1)] = (struct weft__closed_extra){s->cpu, s->seen_ns};
	return 0;
}

int weft__story_close(struct weft__analysis *a, struct weft__stream *s, const struct weft__poll *poll, uint32_t lane,
		      bool asked, bool listed)
{
	struct weft__closed *closed;
	struct weft__track *track;
	uint64_t kept_from;
	int rc = weft__track_of(a, s, &track);

	if (rc < 0 || !track)
		return rc;
	rc = weft__story_settle(a, track, poll->end_ns ? poll->end_ns : poll->begin_ns + poll->rank_ns);
	if (rc < 0)
		return rc;
	kept_from = track->first_closed > CLOSED_KEPT ? track->first_closed - CLOSED_KEPT : 0;
	closed = weft__ring_room(track->closed, &track->cap_closed, kept_from, track->n_closed, sizeof(*closed));
	if (!closed)
		return -ENOMEM;
	track->closed = closed;
	closed = weft__closed_at(track, track->n_closed);
	closed->serial = poll->serial;
	closed->begin_ns = poll->begin_ns;
	closed->end_ns = poll->end_ns ? poll->end_ns : poll->begin_ns + poll->rank_ns;
	closed->task = poll->task;
	closed->sampled_ns = poll->sampled.ns;
	closed->place = poll->place;
	closed->lane = lane;
	closed->stream = poll->stream;
	closed->worker = poll->worker;
	closed->asked = asked;
	closed->listed = listed;
	closed->running = poll->end_ns == 0;
	closed->kept = false;
	closed->cpu = cpu_of(a, s, poll);
	if ((closed->cpu == WEFT__CPU_SPLIT || closed->running) && add_extra(track, s) < 0)
		return -ENOMEM;
	if (a->opts.rows && asked && weft__rows_keep(a, track, poll, &closed->kept) < 0)
		return -ENOMEM;
	track->n_closed++;
	return 0;
}
