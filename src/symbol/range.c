/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/range.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int weft__ranges_add(struct weft__ranges *ranges, uint64_t lo, uint64_t hi, uint32_t value, size_t max)
{
	struct weft__range *at;

	if (lo >= hi)
		return 0;
	if (ranges->n >= max || ranges->n >= UINT32_MAX)
		return -E2BIG;
	at = weft__grow(ranges->at, &ranges->cap, ranges->n, sizeof(*at));
	if (!at)
		return -ENOMEM;
	ranges->at = at;
	at[ranges->n] = (struct weft__range){lo, hi, value, (uint32_t)ranges->n};
	ranges->n++;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct weft__range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The ranges that are open at the sweep's place, as a heap with the last added on top. */
struct heap {
	const struct weft__range **at;
	size_t n;
};

static void heap_push(struct heap *heap, const struct weft__range *range)
{
	size_t i = heap->n++;

	while (i && heap->at[(i - 1) / 2]->order < range->order) {
		heap->at[i] = heap->at[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->at[i] = range;
}

static void heap_pop(struct heap *heap)
{
	const struct weft__range *last = heap->at[--heap->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < heap->n) {
		if (child + 1 < heap->n && heap->at[child + 1]->order > heap->at[child]->order)
			child++;
		if (heap->at[child]->order < last->order)
			break;
		heap->at[i] = heap->at[child];
		i = child;
	}
	heap->at[i] = last;
}

static void cut(struct weft__ranges *ranges, uint64_t start, uint32_t value)
{
	size_t n = ranges->n_starts;

	if (n && ranges->starts[n - 1] == start)
		n = --ranges->n_starts;
	if (n ? ranges->values[n - 1] == value : value == WEFT__RANGE_NONE)
		return;
	ranges->starts[n] = start;
	ranges->values[n] = value;
	ranges->n_starts++;
}

static void sweep(struct weft__ranges *ranges, struct heap *heap)
{
	uint64_t place = 0;
	size_t i = 0;

	while (i < ranges->n || heap->n) {
		if (!heap->n)
			place = ranges->at[i].lo;
		for (; i < ranges->n && ranges->at[i].lo == place; i++)
			heap_push(heap, &ranges->at[i]);
		cut(ranges, place, heap->at[0]->value);
		place = heap->at[0]->hi;
		if (i < ranges->n && ranges->at[i].lo < place)
			place = ranges->at[i].lo;
		while (heap->n && heap->at[0]->hi <= place)
			heap_pop(heap);
		if (!heap->n)
			cut(ranges, place, WEFT__RANGE_NONE);
	}
}

static bool sorted(const struct weft__ranges *ranges)
{
	size_t i;

	for (i = 1; i < ranges->n; i++)
		if (ranges->at[i].lo < ranges->at[i - 1].lo)
			return false;
	return true;
}

int weft__ranges_seal(struct weft__ranges *ranges)
{
	size_t most = 2 * ranges->n + 1; /* each end of a range makes at most one cut */
	struct heap heap = {weft__alloc(ranges->n * sizeof(struct weft__range *)), 0};

	ranges->starts = weft__alloc(most * sizeof(*ranges->starts));
	ranges->values = weft__alloc(most * sizeof(*ranges->values));
	if (!heap.at || !ranges->starts || !ranges->values) {
		weft__free(heap.at);
		return -ENOMEM;
	}
	if (!sorted(ranges))
		qsort(ranges->at, ranges->n, sizeof(*ranges->at), by_start);
	sweep(ranges, &heap);
	weft__free(heap.at);
	weft__free(ranges->at);
	ranges->at = NULL;
	ranges->n = ranges->cap = 0;
	return 0;
}

uint32_t weft__ranges_find(const struct weft__ranges *ranges, uint64_t address)
{
	size_t low = 0, n = ranges->n_starts;

	if (!n || address < ranges->starts[0])
		return WEFT__RANGE_NONE;
	while (n > 1) {
		size_t half = n / 2;

		low = ranges->starts[low + half] <= address ? low + half : low;
		n -= half;
	}
	return ranges->values[low];
}

void weft__ranges_fini(struct weft__ranges *ranges)
{
	weft__free(ranges->at);
	weft__free(ranges->starts);
	weft__free(ranges->values);
	memset(ranges, 0, sizeof(*ranges));
}
