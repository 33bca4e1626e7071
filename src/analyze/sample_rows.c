/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of samples at the end: what is known only now is filled in, rows are put in order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/state.h"
#include "base/alloc.h"

static void move_weight(struct weft__weight *where, enum weft__where from)
{
	weft__weight_add(&where[WEFT__NEVER_POLLS], where[from].n, where[from].ns);
	where[from] = (struct weft__weight){0, 0};
}

static bool is_undecided(enum weft__where where)
{
	return where == WEFT__BETWEEN_POLLS || where == WEFT__WHERE_UNKNOWN;
}

/* A thread of which no poll was seen was between none. */
static void find_never_polls(struct weft__samples *r)
{
	size_t i, j;

	for (i = 0; i < r->n_threads; i++) {
		struct weft__sampled_thread *thread = &r->threads[i];

		for (j = 0; j < WEFT__N_WHERE && !thread->polls; j++)
			if (is_undecided((enum weft__where)j))
				move_weight(thread->where, (enum weft__where)j);
	}
	for (i = 0; i < r->n_rows; i++) {
		struct weft__sample_row *row = &r->rows[i];

		if (r->threads[row->thread].polls || !is_undecided(row->where))
			continue;
		row->where = WEFT__NEVER_POLLS;
	}
	memset(r->where, 0, sizeof(r->where));
	for (i = 0; i < r->n_threads; i++)
		for (j = 0; j < WEFT__N_WHERE; j++)
			weft__weight_add(&r->where[j], r->threads[i].where[j].n, r->threads[i].where[j].ns);
}

struct sorted_thread {
	struct weft__sampled_thread thread;
	uint32_t index;
};

static int thread_order(const void *left, const void *right)
{
	const struct weft__sampled_thread *a = left, *b = right;

	if (a->all.ns != b->all.ns)
		return a->all.ns > b->all.ns ? -1 : 1;
	if (a->measured_ns != b->measured_ns)
		return a->measured_ns > b->measured_ns ? -1 : 1;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return a->thread_id < b->thread_id ? -1 : a->thread_id > b->thread_id;
}

/* Heaviest first, without those that were not asked for. */
static int sort_threads(struct weft__samples *r)
{
	struct sorted_thread *sorted = weft__calloc(r->n_threads + 1, sizeof(*sorted));
	uint32_t *location = weft__calloc(r->n_threads + 1, sizeof(*location));
	size_t i, kept = 0;

	if (!sorted || !location) {
		weft__free(sorted);
		weft__free(location);
		return -ENOMEM;
	}
	for (i = 0; i < r->n_threads; i++)
		sorted[i] = (struct sorted_thread){r->threads[i], (uint32_t)i};
	qsort(sorted, r->n_threads, sizeof(*sorted), thread_order);
	for (i = 0; i < r->n_threads; i++)
		if (sorted[i].thread.match) {
			location[sorted[i].index] = (uint32_t)kept;
			r->threads[kept++] = sorted[i].thread;
		}
	r->n_threads = kept;
	for (i = 0; i < r->n_rows; i++)
		r->rows[i].thread = location[r->rows[i].thread];
	weft__free(sorted);
	weft__free(location);
	return 0;
}

#define COMPARE(field)                                                                                                 \
	if (a->field != b->field)                                                                                      \
	return a->field < b->field ? -1 : 1

static int row_order(const void *left, const void *right)
{
	const struct weft__sample_row *a = left, *b = right;

	COMPARE(stack);
	COMPARE(kernel);
	COMPARE(thread);
	COMPARE(location);
	COMPARE(where);
	return 0;
}

static int heaviest_row_first(const void *left, const void *right)
{
	const struct weft__sample_row *a = left, *b = right;

	if (a->weight.ns != b->weight.ns)
		return a->weight.ns > b->weight.ns ? -1 : 1;
	return row_order(left, right);
}

static void sort_rows(struct weft__samples *r)
{
	size_t i, kept = 0;

	if (r->n_rows == 0)
		return;
	qsort(r->rows, r->n_rows, sizeof(*r->rows), row_order);
	for (i = 1; i < r->n_rows; i++) {
		if (row_order(&r->rows[kept], &r->rows[i]) == 0)
			weft__weight_add(&r->rows[kept].weight, r->rows[i].weight.n, r->rows[i].weight.ns);
		else
			r->rows[++kept] = r->rows[i];
	}
	for (i = 0, kept++, r->n_rows = 0; i < kept; i++)
		if (r->rows[i].weight.n) /* those of which all was moved to another */
			r->rows[r->n_rows++] = r->rows[i];
	qsort(r->rows, r->n_rows, sizeof(*r->rows), heaviest_row_first);
}

int weft__samples_settle(struct weft__samples *r)
{
	int rc;

	find_never_polls(r);
	rc = sort_threads(r);
	if (rc == 0)
		sort_rows(r);
	return rc;
}

void weft__samples_fini(struct weft__sampling *sampling)
{
	weft__arena_fini(&sampling->arena);
	weft__map_fini(&sampling->trace_by_ids);
	weft__map_fini(&sampling->context_by_key);
	weft__map_fini(&sampling->row_by_key);
	weft__map_fini(&sampling->thread_by_key);
}
