/* SPDX-License-Identifier: Apache-2.0 */
/* Which waits matter. One inside a poll is why that was slow, and so is a lock, whoever waits for it; but a thread that
 * does not poll mostly waits because there is nothing to do. Where some threads poll, the others' waits are only
 * summed, by thread; where none does, they are all there is, and the longest are listed. */
#include <errno.h>
#include <stdlib.h>

#include "analyze/state.h"

/* In a list of the longest, whose first is the shortest of them. */
static void sink(struct weft__wait *list, size_t n, size_t at)
{
	struct weft__wait moved = list[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && list[child + 1].rank_ns < list[child].rank_ns)
			child++;
		if (list[child].rank_ns >= moved.rank_ns)
			break;
		list[at] = list[child];
		at = child;
	}
	list[at] = moved;
}

/* Whether there is a place for it in a list, which is made when there is none. */
static int has_room(struct weft__waits *waits, struct weft__wait **list, size_t n, const struct weft__wait *wait)
{
	if (!*list)
		*list = weft__arena_new(&waits->arena, waits->opts->top, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	return n < waits->opts->top || (*list)[0].rank_ns < wait->rank_ns;
}

static void put(const struct weft__analysis_opts *opts, struct weft__wait *list, size_t *n,
		const struct weft__wait *wait)
{
	size_t at;

	if (*n == opts->top) {
		list[0] = *wait;
		sink(list, *n, 0);
		return;
	}
	for (at = (*n)++; at > 0 && list[(at - 1) / 2].rank_ns > wait->rank_ns; at = (at - 1) / 2)
		list[at] = list[(at - 1) / 2];
	list[at] = *wait;
}

static int keep_long(struct weft__analysis *a, struct weft__wait **list, size_t *n, struct weft__wait *wait,
		     const struct weft__interval *interval)
{
	int rc = has_room(&a->waits, list, *n, wait);

	if (rc <= 0)
		return rc;
	weft__holder_find(&a->holders, &a->threads, &a->timelines, interval, &wait->holder);
	put(&a->opts, *list, n, wait);
	return 0;
}

int weft__wait_rank(struct weft__analysis *a, const struct weft__thread *s, struct weft__wait *wait,
		    const struct weft__interval *interval)
{
	struct weft__wait_result *r = &a->result.wait;

	if (weft__wait_matters(wait->what) || weft__thread_works(s))
		return keep_long(a, &r->longest, &r->n_longest, wait, interval);
	/* Once somebody polls, nobody asks for these. */
	return a->result.works ? 0 : keep_long(a, &a->waits.others, &a->waits.n_others, wait, interval);
}

/* Different waits may share a key, which makes more rows of one, never one of two. */
static int of_thread_get(struct weft__waits *waits, uint32_t thread_id, const struct weft__wait_row *wait,
			 struct weft__wait_thread *ret[static 1])
{
	struct weft__wait_result *r = waits->result;
	uint64_t key = ((uint64_t)wait->what << 32 | wait->name) * UINT64_C(0x9e3779b97f4a7c15) ^ thread_id;
	uint32_t at = weft__map_get(&waits->thread_by_key, key);
	struct weft__wait_thread *row = at == WEFT__MAP_NONE ? NULL : &r->threads[at], *grown;

	*ret = row;
	if (row && row->thread_id == thread_id && row->what == wait->what && row->name == wait->name)
		return 0;
	*ret = NULL;
	if (r->n_threads >= waits->opts->max_rows) {
		r->threads_beyond++;
		return 0;
	}
	grown = weft__arena_grow(&waits->arena, r->threads, &waits->cap_threads, r->n_threads, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->threads = grown;
	if (weft__map_put(&waits->thread_by_key, key, (uint32_t)r->n_threads) < 0)
		return -ENOMEM;
	*ret = &grown[r->n_threads++];
	**ret = (struct weft__wait_thread){.thread_id = thread_id, .what = wait->what, .name = wait->name};
	return 0;
}

int weft__wait_of_thread(struct weft__waits *waits, const struct weft__thread *s, const struct weft__wait_row *more,
			 uint32_t stack)
{
	struct weft__wait_thread *row;
	int rc = of_thread_get(waits, s->id, more, &row);

	if (rc < 0 || !row)
		return rc;
	row->n = weft__sum(row->n, more->n);
	row->ns = weft__sum(row->ns, more->ns);
	if (more->longest_ns > row->longest_ns) {
		row->longest_ns = more->longest_ns;
		row->stack = stack;
	}
	return 0;
}

static int longest_first(const void *left, const void *right)
{
	const struct weft__wait *a = left, *b = right;

	if (a->rank_ns != b->rank_ns)
		return a->rank_ns > b->rank_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int thread_order(const void *left, const void *right)
{
	const struct weft__wait_thread *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->thread_id != b->thread_id)
		return a->thread_id < b->thread_id ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void weft__wait_ranks_settle(struct weft__waits *waits, bool works)
{
	struct weft__wait_result *r = waits->result;
	size_t i;

	for (i = 0; i < waits->n_others && !works; i++)
		if (has_room(waits, &r->longest, r->n_longest, &waits->others[i]) > 0)
			put(waits->opts, r->longest, &r->n_longest, &waits->others[i]);
	if (r->n_longest)
		qsort(r->longest, r->n_longest, sizeof(*r->longest), longest_first);
	if (r->n_threads)
		qsort(r->threads, r->n_threads, sizeof(*r->threads), thread_order);
}
