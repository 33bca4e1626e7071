/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that are not polled as the recording ends: those that were woken and wait for their poll first, then by the
 * time since their last poll. One whose waker was lost is among the latter. Known only where every poll is recorded. */
#include <errno.h>

#include "analyze/state.h"

int weft__task_waits(struct weft__tasks *tasks, const struct weft__event *ev)
{
	uint32_t at = weft__map_get(&tasks->by_id, WEFT_FIELD(ev, TASK_WAIT, TASK));

	if (at != WEFT__MAP_NONE)
		tasks->at[at].wait_stack = (uint32_t)WEFT_FIELD(ev, TASK_WAIT, STACK);
	return 0;
}

static int longest_first(const void *left, const void *right)
{
	const struct weft__waiting *a = left, *b = right;

	if (a->woken != b->woken)
		return a->woken ? -1 : 1;
	if (a->silent_ns != b->silent_ns)
		return a->silent_ns > b->silent_ns ? -1 : 1;
	return a->task < b->task ? -1 : a->task > b->task;
}

static bool is_polled(struct weft__threads *threads, const struct weft__task *task)
{
	return task->poll_ns && weft__poll_open(threads, task->poll_thread, task->id, task->poll_ns);
}

/* Into the list, which is in order, if it is longer than the last one there. */
static void insert(struct weft__task_result *r, size_t top, const struct weft__waiting *one)
{
	size_t at = r->n_waiting;

	if (at == top) {
		if (longest_first(one, &r->waiting[at - 1]) >= 0)
			return;
		at--;
	} else {
		r->n_waiting++;
	}
	for (; at > 0 && longest_first(one, &r->waiting[at - 1]) < 0; at--)
		r->waiting[at] = r->waiting[at - 1];
	r->waiting[at] = *one;
}

int weft__waiting_find(struct weft__tasks *tasks, struct weft__threads *threads, bool all, uint64_t end_ns)
{
	struct weft__task_result *r = tasks->result;
	size_t i;

	r->waiting_known = !tasks->opts->polls_reported && all;
	if (!r->waiting_known || tasks->opts->top == 0)
		return 0;
	r->waiting = weft__arena_new(&tasks->arena, tasks->opts->top, sizeof(*r->waiting));
	if (!r->waiting)
		return -ENOMEM;
	for (i = 0; i < tasks->n; i++) {
		const struct weft__task *task = &tasks->at[i];
		struct weft__waiting one = {.task = task->id,
					    .location = task->location,
					    .silent_ns = weft__since(end_ns, task->base_ns),
					    .since_wake_ns = weft__since(end_ns, task->last.time_ns),
					    .polled = task->poll_ns != 0,
					    .woken = task->wake.known,
					    .wake = task->last,
					    .stack = task->wait_stack};

		if (!task->live || !task->seen || is_polled(threads, task))
			continue;
		r->n_waiting_all++;
		insert(r, tasks->opts->top, &one);
	}
	return 0;
}
