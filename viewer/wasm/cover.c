/* SPDX-License-Identifier: Apache-2.0 */
#include "cover.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "lanes.h"

int64_t view_thread_of(const struct view_store *store, size_t who, uint32_t row)
{
	int64_t thread = view_store_get(store, who + VIEW_WHO_THREAD_ID, row);

	if (thread != VIEW_NULL)
		return thread;
	thread = view_store_get(store, who + VIEW_WHO_TID, row);
	return thread == VIEW_NULL
		       ? -1
		       : view_store_get(store, who + VIEW_WHO_RECORDING, row) << 44 | thread | INT64_C(1) << 62;
}

int view_cover_add(struct view_cover *cover, enum weft__table_id table)
{
	const struct view_store *s = &view_trace.stores[table];
	size_t who = view_who_at(table), begin = view_column_find(table, "begin_ns"),
	       end = view_column_find(table, "end_ns");
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		int64_t begin_ns = view_store_get(s, begin, i), end_ns = view_store_get(s, end, i);
		struct view_span *grown = weft__grow(cover->at, &cover->cap, cover->n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		cover->at = grown;
		if (begin_ns != VIEW_NULL && end_ns > begin_ns)
			grown[cover->n++] =
				(struct view_span){view_thread_of(s, who, i), (double)begin_ns, (double)end_ns, i};
	}
	return 0;
}

static int by_thread(const void *left, const void *right)
{
	const struct view_span *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

void view_cover_sort(struct view_cover *cover)
{
	weft__sort(cover->at, cover->n, sizeof(*cover->at), by_thread);
}

void view_cover_merge(struct view_cover *cover)
{
	size_t i, kept = 0;

	view_cover_sort(cover);
	for (i = 0; i < cover->n; i++) {
		struct view_span *last = kept ? &cover->at[kept - 1] : NULL, one = cover->at[i];

		if (!last || last->thread != one.thread || last->end_ns < one.begin_ns)
			cover->at[kept++] = one;
		else if (last->end_ns < one.end_ns)
			last->end_ns = one.end_ns;
	}
	cover->n = kept;
}

void view_cover_fini(struct view_cover *cover)
{
	weft__free(cover->at);
	memset(cover, 0, sizeof(*cover));
}

double view_cover_ns(const struct view_cover *cover, int64_t thread, double begin_ns, double end_ns)
{
	size_t from = 0, to = cover->n;
	double sum = 0;

	while (from < to) { /* the first that ends behind the begin */
		size_t middle = from + (to - from) / 2;
		const struct view_span *at = &cover->at[middle];

		if (at->thread < thread || (at->thread == thread && at->end_ns <= begin_ns))
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < cover->n && cover->at[from].thread == thread && cover->at[from].begin_ns < end_ns; from++) {
		const struct view_span *at = &cover->at[from];

		sum += (at->end_ns < end_ns ? at->end_ns : end_ns) -
		       (at->begin_ns > begin_ns ? at->begin_ns : begin_ns);
	}
	return sum;
}
