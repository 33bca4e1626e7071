/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a poll's time were spent on, from its slices. */
#include <errno.h>
#include <stdlib.h>

#include "analyze/slices.h"

#define WALL_MAX 64u /* in one poll that are asked what they saw */
#define CAUSES_MAX 256u

static bool same_cause(const struct weft__cause *cause, const struct weft__interval *interval, enum weft__part part)
{
	if (cause->part != part)
		return false;
	if (interval->kind == INTERVAL_WAIT)
		return cause->what == interval->what && cause->name == interval->name &&
		       cause->object == interval->object;
	return cause->what == 0 && cause->call == (interval->kind == INTERVAL_WALL ? interval->what : 0) &&
	       cause->stack == interval->stack && cause->kernel == interval->kernel;
}

static void add_cause(struct weft__threads *threads, struct weft__thread_timelines *timelines,
		      struct weft__holders *holders, struct weft__breakdown *breakdown, const struct weft__slice *slice,
		      enum weft__part part, uint64_t ns)
{
	const struct weft__interval *interval = slice->interval;
	struct weft__cause *cause = breakdown->causes, *end = cause + breakdown->n_causes;

	while (cause < end && !same_cause(cause, interval, part))
		cause++;
	if (cause == end) {
		if (breakdown->n_causes == CAUSES_MAX)
			return;
		breakdown->n_causes++;
		*cause = (struct weft__cause){.part = part};
		if (interval->kind == INTERVAL_WAIT) {
			cause->what = interval->what;
			cause->name = interval->name;
			cause->object = interval->object;
		} else {
			cause->call = interval->kind == INTERVAL_WALL ? interval->what : 0;
			cause->stack = interval->stack;
			cause->kernel = interval->kernel;
		}
	}
	cause->n++;
	cause->ns += ns;
	if (ns < cause->longest_ns)
		return;
	cause->longest_ns = ns;
	if (interval->kind == INTERVAL_WAIT && interval->stack)
		cause->stack = interval->stack;
	if (interval->kind == INTERVAL_WAIT && (interval->holder || interval->holds))
		weft__holder_find(holders, threads, timelines, interval, &cause->holder);
}

/* The longest interval off the CPU that a wall sample must have been in, as most of its time is there. */
static const struct weft__slice *seen_in(const struct weft__breakdowns *breakdowns, const struct weft__interval *wall)
{
	const struct weft__slice *best = NULL;
	size_t i;

	for (i = 0; i < breakdowns->n_slices; i++) {
		const struct weft__slice *slice = &breakdowns->slices[i];
		const struct weft__interval *off = slice->interval;
		uint64_t from_ns = off->begin_ns > wall->begin_ns ? off->begin_ns : wall->begin_ns;

		if (off->kind == INTERVAL_OFF && slice->own_ns && weft__part_of(off) == WEFT__BLOCKED && !off->stack &&
		    !off->kernel && weft__since(weft__least(off->end_ns, wall->end_ns), from_ns) > wall->ns / 2 &&
		    (!best || slice->own_ns > best->own_ns))
			best = slice;
	}
	return best;
}

/* Where switches have no stack, a wall sample of the thread says in what it was blocked. */
static void name_by_wall(const struct weft__breakdowns *breakdowns, struct weft__breakdown *breakdown)
{
	const struct weft__interval *wall = NULL;
	uint64_t most_ns = 0;
	size_t i, walls = 0;

	for (i = 0; i < breakdowns->n_slices && walls < WALL_MAX; i++) {
		const struct weft__slice *in;

		if (breakdowns->slices[i].interval->kind != INTERVAL_WALL)
			continue;
		walls++;
		in = seen_in(breakdowns, breakdowns->slices[i].interval);
		if (!in || in->own_ns < most_ns)
			continue;
		most_ns = in->own_ns;
		wall = breakdowns->slices[i].interval;
	}
	for (i = 0; i < breakdown->n_causes && wall; i++) {
		struct weft__cause *cause = &breakdown->causes[i];

		if (cause->part != WEFT__BLOCKED || cause->what || cause->stack || cause->kernel)
			continue;
		cause->call = wall->what;
		cause->stack = wall->stack;
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

/* Some of the time off the CPU was in waits that were too short to be reported one by one: parts.c has it as waiting.
 * Such waits are the shortest, so it is taken from these. `causes` has the longest first. */
static void take_short_waits(struct weft__breakdown *breakdown)
{
	uint64_t blocked_ns = 0, excess_ns;
	size_t i, n = 0;

	for (i = 0; i < breakdown->n_causes; i++)
		if (breakdown->causes[i].part == WEFT__BLOCKED)
			blocked_ns += breakdown->causes[i].ns;
	excess_ns = weft__since(blocked_ns, breakdown->split.ns[WEFT__BLOCKED]);
	for (i = breakdown->n_causes; i-- > 0 && excess_ns;) {
		struct weft__cause *cause = &breakdown->causes[i];
		uint64_t ns = cause->part == WEFT__BLOCKED && !cause->what ? weft__least(cause->ns, excess_ns) : 0;

		cause->ns -= ns;
		excess_ns -= ns;
		cause->longest_ns = weft__least(cause->longest_ns, cause->ns);
	}
	for (i = 0; i < breakdown->n_causes; i++)
		if (breakdown->causes[i].ns)
			breakdown->causes[n++] = breakdown->causes[i];
	breakdown->n_causes = n;
}

int weft__causes_find(struct weft__analysis *a, struct weft__breakdown *breakdown)
{
	size_t i;

	breakdown->causes = weft__arena_new(&a->polls.arena, CAUSES_MAX, sizeof(*breakdown->causes));
	if (!breakdown->causes)
		return -ENOMEM;
	for (i = 0; i < a->breakdowns.n_slices; i++) {
		const struct weft__slice *slice = &a->breakdowns.slices[i];

		if (slice->interval->kind == INTERVAL_SAMPLE)
			continue;
		if (slice->off_ns)
			add_cause(&a->threads, &a->timelines, &a->holders, breakdown, slice,
				  weft__part_of(slice->interval), slice->off_ns);
		if (slice->cpu_ns && slice->interval->kind == INTERVAL_WAIT)
			add_cause(&a->threads, &a->timelines, &a->holders, breakdown, slice, WEFT__ON_CPU,
				  slice->cpu_ns);
	}
	if (breakdown->switches == WEFT__SWITCHES_ALL)
		name_by_wall(&a->breakdowns, breakdown);
	if (breakdown->n_causes)
		qsort(breakdown->causes, breakdown->n_causes, sizeof(*breakdown->causes), longest_first);
	take_short_waits(breakdown);
	breakdown->causes = weft__arena_cut(&a->polls.arena, breakdown->causes,
					    (breakdown->n_causes + 1) * sizeof(*breakdown->causes));
	return 0;
}
