/* SPDX-License-Identifier: Apache-2.0 */
/* Who left the CPU when, and when it came back. Any context, one at a time.
 *
 * Records come in order of time, but for those of one CPU that were published late: so it may be heard that a
 * thread came before it is heard that it left. A thread about which nothing is known, at the start and after a
 * loss, was off the CPU from there on if the first that is heard of it is that it came. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "record/switch/state.h"
#include "weft/kind.h"

#define PAIRS_LEAST 64

static int pairs_grow(struct weft__switch_pairs *pairs)
{
	size_t cap = pairs->cap ? 2 * pairs->cap : PAIRS_LEAST;
	struct weft__switch_thread *threads = weft__realloc(pairs->threads, cap * sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	memset(threads + pairs->cap, 0, (cap - pairs->cap) * sizeof(*threads));
	pairs->threads = threads;
	for (size_t i = cap; i-- > pairs->cap;) {
		threads[i].since_ns = pairs->free;
		pairs->free = (uint32_t)i + 1;
	}
	pairs->cap = cap;
	return 0;
}

struct weft__switch_thread *weft__pairs_get(struct weft__switch_pairs *pairs, uint32_t tid, int make)
{
	uint32_t at = weft__map_get(&pairs->map, tid);
	struct weft__switch_thread *thread;

	if (at != WEFT__MAP_NONE)
		return &pairs->threads[at];
	if (!make || !tid || (!pairs->free && pairs_grow(pairs) < 0) ||
	    weft__map_put(&pairs->map, tid, pairs->free - 1) < 0)
		return NULL;
	thread = &pairs->threads[pairs->free - 1];
	pairs->free = (uint32_t)thread->since_ns;
	*thread = (struct weft__switch_thread){.tid = tid};
	pairs->n++;
	return thread;
}

void weft__pairs_del(struct weft__switch_pairs *pairs, uint32_t tid)
{
	struct weft__switch_thread *thread = weft__pairs_get(pairs, tid, 0);

	if (!thread)
		return;
	weft__free(thread->stack.frames);
	weft__map_del(&pairs->map, tid);
	*thread = (struct weft__switch_thread){.since_ns = pairs->free};
	pairs->free = (uint32_t)(thread - pairs->threads) + 1;
	pairs->n--;
}

void weft__pairs_fini(struct weft__switch_pairs *pairs)
{
	for (size_t i = 0; i < pairs->cap; i++)
		weft__free(pairs->threads[i].stack.frames);
	weft__free(pairs->threads);
	weft__map_fini(&pairs->map);
	memset(pairs, 0, sizeof(*pairs));
}

int weft__pairs_add(struct weft__switch_pairs *pairs, uint32_t tid, uint64_t now_ns)
{
	struct weft__switch_thread *thread = weft__pairs_get(pairs, tid, 1);

	if (!thread)
		return -ENOMEM;
	thread->state = THREAD_UNKNOWN;
	thread->since_ns = now_ns;
	return 0;
}

static int interval_set(struct weft__switch_interval *ret, struct weft__switch_thread *thread, uint64_t begin_ns,
			uint64_t end_ns)
{
	struct weft__switch_stack *stack = &thread->stack;

	ret->tid = thread->tid;
	ret->reason = thread->reason ? thread->reason : WEFT_OFFCPU_BLOCKED;
	ret->begin_ns = begin_ns;
	ret->end_ns = end_ns;
	ret->stack = stack->n_user || stack->n_kernel ? stack : NULL;
	return end_ns > begin_ns;
}

int weft__pairs_in(struct weft__switch_pairs *pairs, uint32_t tid, uint64_t now_ns, struct weft__switch_interval *ret)
{
	struct weft__switch_thread *thread = weft__pairs_get(pairs, tid, 1);
	uint64_t since;
	uint8_t state;

	if (!thread)
		return -ENOMEM;
	since = thread->since_ns;
	state = thread->state;
	thread->early = state == THREAD_ON && now_ns > since;
	if (now_ns > since || state != THREAD_ON)
		thread->since_ns = now_ns;
	thread->state = THREAD_ON;
	if (state == THREAD_ON || !since)
		return 0;
	if (state == THREAD_UNKNOWN)
		thread->reason = 0;
	return interval_set(ret, thread, since, now_ns);
}

int weft__pairs_out(struct weft__switch_pairs *pairs, uint32_t tid, uint64_t now_ns, int preempted,
		    struct weft__switch_interval *ret)
{
	struct weft__switch_thread *thread = weft__pairs_get(pairs, tid, 1);

	if (!thread)
		return -ENOMEM;
	if (thread->state == THREAD_OFF) {
		thread->twice += thread->twice < UINT8_MAX;
		return 0;
	}
	thread->reason = preempted ? WEFT_OFFCPU_PREEMPTED : WEFT_OFFCPU_BLOCKED;
	if (thread->state == THREAD_ON && thread->early && now_ns <= thread->since_ns) {
		thread->early = 0;
		return interval_set(ret, thread, now_ns, thread->since_ns);
	}
	thread->early = 0;
	thread->state = THREAD_OFF;
	thread->since_ns = now_ns;
	return 0;
}

int weft__pairs_cut(struct weft__switch_pairs *pairs, size_t *cursor, uint64_t from_ns, uint64_t to_ns,
		    struct weft__switch_interval *ret)
{
	while (*cursor < pairs->cap) {
		struct weft__switch_thread *thread = &pairs->threads[(*cursor)++];
		uint64_t since = thread->since_ns;
		int was_off = thread->state == THREAD_OFF;

		if (!thread->tid)
			continue;
		thread->state = THREAD_UNKNOWN;
		thread->since_ns = to_ns > since ? to_ns : since;
		thread->early = 0;
		if (was_off && from_ns > since)
			return interval_set(ret, thread, since, from_ns);
	}
	return 0;
}
