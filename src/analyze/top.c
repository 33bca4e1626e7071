/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int weft__top_init(struct weft__top *top, struct weft__arena *arena, size_t max)
{
	memset(top, 0, sizeof(*top));
	top->polls = weft__arena_new(arena, max ? max : 1, sizeof(*top->polls));
	if (!top->polls)
		return -ENOMEM;
	top->max = max;
	top->arena = arena;
	return 0;
}

static bool below(const struct weft__poll *a, const struct weft__poll *b)
{
	if (a->rank_ns != b->rank_ns)
		return a->rank_ns < b->rank_ns;
	return a->begin_ns > b->begin_ns;
}

static void sink(struct weft__top *top, const struct weft__poll *poll)
{
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= top->n)
			break;
		if (child + 1 < top->n && below(&top->polls[child + 1], &top->polls[child]))
			child++;
		if (!below(&top->polls[child], poll))
			break;
		top->polls[at] = top->polls[child];
		at = child;
	}
	top->polls[at] = *poll;
}

bool weft__top_takes(const struct weft__top *top, const struct weft__poll *poll)
{
	return top->n < top->max || (top->max > 0 && below(&top->polls[0], poll));
}

void weft__top_add(struct weft__top *top, const struct weft__poll *poll)
{
	size_t at;

	if (!weft__top_takes(top, poll))
		return;
	if (top->n == top->max) {
		weft__arena_del(top->arena, top->polls[0].stacks);
		weft__arena_del(top->arena, top->polls[0].breakdown.causes);
		sink(top, poll);
		return;
	}
	for (at = top->n++; at > 0 && below(poll, &top->polls[(at - 1) / 2]); at = (at - 1) / 2)
		top->polls[at] = top->polls[(at - 1) / 2];
	top->polls[at] = *poll;
}

static int worst_first(const void *left, const void *right)
{
	return below(left, right) ? 1 : below(right, left) ? -1 : 0;
}

void weft__top_sort(struct weft__top *top)
{
	if (top->n)
		qsort(top->polls, top->n, sizeof(*top->polls), worst_first);
}
