/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/gap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/loss.h"

/* A thread's gaps in order of time: those are the order of cursors. */
static int gap_order(const void *left, const void *right)
{
	const struct weft__gap *a = left, *b = right;

	if (a->thread_id != b->thread_id)
		return a->thread_id < b->thread_id ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

/* Behind the others, which begin no later, or into the last of them. */
static void merge_gap(struct weft__gap *list, size_t *n, const struct weft__gap *gap)
{
	struct weft__gap *last = *n ? &list[*n - 1] : NULL;

	if (last && gap->from_ns <= last->to_ns)
		last->to_ns = gap->to_ns > last->to_ns ? gap->to_ns : last->to_ns;
	else
		list[(*n)++] = *gap;
}

int weft__gaps_init(struct weft__gaps *gaps, const struct weft_loss *losses, size_t n)
{
	size_t i;

	memset(gaps, 0, sizeof(*gaps));
	if (n == 0)
		return 0;
	gaps->by_thread = weft__arena_new(&gaps->arena, n, sizeof(*gaps->by_thread));
	gaps->merged = weft__arena_new(&gaps->arena, n, sizeof(*gaps->merged));
	gaps->switches = weft__arena_new(&gaps->arena, n, sizeof(*gaps->switches));
	if (!gaps->by_thread || !gaps->merged || !gaps->switches) {
		weft__gaps_fini(gaps);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		struct weft__gap gap = {losses[i].from_ns, losses[i].to_ns, losses[i].thread};
		enum weft__loss_gap whose = weft__loss_reason(losses[i].reason)->gap;

		if (gap.to_ns < gap.from_ns)
			gap.to_ns = gap.from_ns;
		if (losses[i].reason == WEFT_LOSS_SWITCH)
			merge_gap(gaps->switches, &gaps->n_switches, &gap);
		if (whose == WEFT__GAP_NONE)
			continue;
		if (losses[i].thread ||
		    whose == WEFT__GAP_ALL) /* a thread without a ring has no id: it is nobody's gap */
			gaps->by_thread[gaps->n_by_thread++] = gap;
		merge_gap(gaps->merged, &gaps->n_merged, &gap);
	}
	qsort(gaps->by_thread, gaps->n_by_thread, sizeof(*gaps->by_thread), gap_order);
	return 0;
}

void weft__gaps_fini(struct weft__gaps *gaps)
{
	weft__arena_fini(&gaps->arena);
	memset(gaps, 0, sizeof(*gaps));
}

static bool is_any(const struct weft__gap *list, size_t n, uint64_t from_ns, uint64_t to_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (list[mid].to_ns < from_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && list[low].from_ns <= to_ns;
}

bool weft__gaps_between(const struct weft__gaps *gaps, uint64_t from_ns, uint64_t to_ns)
{
	return is_any(gaps->merged, gaps->n_merged, from_ns, to_ns);
}

bool weft__gaps_switches(const struct weft__gaps *gaps, uint64_t from_ns, uint64_t to_ns)
{
	return is_any(gaps->switches, gaps->n_switches, from_ns, to_ns) || weft__gaps_between(gaps, from_ns, to_ns);
}

/* Both lists are in order of time and without overlap in themselves. */
uint64_t weft__gaps_switches_ns(const struct weft__gaps *gaps, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum_ns = 0;
	size_t i = 0, j = 0;

	while (i < gaps->n_switches || j < gaps->n_merged) {
		bool first = j == gaps->n_merged ||
			     (i < gaps->n_switches && gaps->switches[i].from_ns <= gaps->merged[j].from_ns);
		const struct weft__gap *gap = first ? &gaps->switches[i++] : &gaps->merged[j++];
		uint64_t begin_ns = gap->from_ns > from_ns ? gap->from_ns : from_ns;
		uint64_t end_ns = gap->to_ns < to_ns ? gap->to_ns : to_ns;

		if (end_ns <= begin_ns)
			continue;
		sum_ns += end_ns - begin_ns;
		from_ns = end_ns;
	}
	return sum_ns;
}

static size_t first_of(const struct weft__gaps *gaps, uint64_t thread_id)
{
	size_t low = 0, high = gaps->n_by_thread;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (gaps->by_thread[mid].thread_id < thread_id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void weft__gap_cursor_init(struct weft__gap_cursor *cursor, const struct weft__gaps *gaps, uint32_t thread_id)
{
	cursor->all = 0;
	cursor->all_end = first_of(gaps, 1);
	cursor->own = first_of(gaps, thread_id);
	cursor->own_end = first_of(gaps, (uint64_t)thread_id + 1);
	if (thread_id == 0)
		cursor->own = cursor->own_end;
	cursor->done_ns = cursor->quiet_ns = 0;
}

bool weft__gap_next(struct weft__gap_cursor *cursor, const struct weft__gaps *gaps, uint64_t now_ns,
		    struct weft__gap *gap, bool *inside)
{
	*inside = false;
	for (;;) {
		const struct weft__gap *own = cursor->own < cursor->own_end ? &gaps->by_thread[cursor->own] : NULL;
		const struct weft__gap *all = cursor->all < cursor->all_end ? &gaps->by_thread[cursor->all] : NULL;
		const struct weft__gap *next = !own || (all && all->from_ns < own->from_ns) ? all : own;

		if (!next || next->from_ns > now_ns) {
			cursor->quiet_ns = next ? next->from_ns : UINT64_MAX;
			return false;
		}
		*gap = *next;
		if (gap->from_ns < cursor->done_ns)
			gap->from_ns = cursor->done_ns;
		if (next->to_ns >= now_ns) {
			*inside = true;
			gap->to_ns = now_ns;
			cursor->done_ns = now_ns;
			return true;
		}
		if (next == own)
			cursor->own++;
		else
			cursor->all++;
		if (gap->to_ns < cursor->done_ns)
			continue;
		cursor->done_ns = gap->to_ns;
		return true;
	}
}
