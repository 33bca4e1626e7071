/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/table.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

void *weft__table_add(struct weft__table *table, size_t bytes, size_t most, struct weft__in *in, int *oom)
{
	void *items;

	if (table->n >= most)
		in_fail(in);
	if (in->bad)
		return NULL;
	items = weft__grow(table->items, &table->cap, table->n, bytes);
	if (!items) {
		*oom = 1;
		return NULL;
	}
	table->items = items;
	return (char *)items + bytes * table->n++;
}

static int is_sorted(const struct weft__table *table, size_t bytes, int (*compare)(const void *, const void *))
{
	const char *items = table->items;
	size_t i;

	for (i = 1; i < table->n; i++)
		if (compare(items + (i - 1) * bytes, items + i * bytes) >= 0)
			return 0;
	return 1;
}

/* Merges runs of `width` in `from` to runs twice as long in `to`; the earlier of equal records stays the earlier. */
static void merge_runs(char *to, const char *from, size_t n, size_t width, size_t bytes,
		       int (*compare)(const void *, const void *))
{
	size_t i;

	for (i = 0; i < n; i += 2 * width) {
		size_t a = i, a_end = i + width < n ? i + width : n;
		size_t b = a_end, b_end = i + 2 * width < n ? i + 2 * width : n;
		size_t k = i;

		while (a < a_end || b < b_end) {
			int take_a = b >= b_end || (a < a_end && compare(from + a * bytes, from + b * bytes) <= 0);

			memcpy(to + k++ * bytes, from + (take_a ? a++ : b++) * bytes, bytes);
		}
	}
}

int weft__table_sort(struct weft__table *table, size_t bytes, int (*compare)(const void *, const void *))
{
	char *items = table->items;
	char *other, *from, *to;
	size_t width, i, n = 0;

	if (is_sorted(table, bytes, compare))
		return 0;
	other = weft__alloc(table->n * bytes);
	if (!other)
		return -ENOMEM;
	from = items;
	to = other;
	for (width = 1; width < table->n; width *= 2) {
		char *swap = from;

		merge_runs(to, from, table->n, width, bytes, compare);
		from = to;
		to = swap;
	}
	for (i = 0; i < table->n; i++) {
		if (n && !compare(to + (n - 1) * bytes, from + i * bytes))
			n--;
		memcpy(to + n++ * bytes, from + i * bytes, bytes);
	}
	if (to != items)
		memcpy(items, to, n * bytes);
	table->n = n;
	weft__free(other);
	return 0;
}

static uint32_t id_of(const void *record)
{
	uint32_t id;

	memcpy(&id, record, sizeof(id));
	return id;
}

static int compare_ids(const void *a, const void *b)
{
	return (id_of(a) > id_of(b)) - (id_of(a) < id_of(b));
}

int weft__table_sort_ids(struct weft__table *table, size_t bytes)
{
	return weft__table_sort(table, bytes, compare_ids);
}

/* Ids are mostly given out one after the other, so the record is looked for first where it stands when none is missing
 * before it; it cannot stand behind that. */
const void *weft__table_find(const struct weft__table *table, size_t bytes, uint32_t id)
{
	const char *items = table->items;
	size_t low = 0, high, mid;
	uint32_t first;

	if (!table->n || id < (first = id_of(items)))
		return NULL;
	high = id - first < table->n ? (size_t)(id - first) + 1 : table->n;
	for (mid = high - 1; low < high; mid = low + (high - low) / 2) {
		const char *item = items + mid * bytes;
		uint32_t at = id_of(item);

		if (at == id)
			return item;
		if (at < id)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}
