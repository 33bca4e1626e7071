/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tasks. A poll that is reported as a whole comes at its end, and a task may have ended in it, or may be woken
 * once more by somebody who does not know that it has: so tasks that have ended are kept for a while, and one task is
 * one row. Ticks of an event loop that weft run found are polls of no task. */
#include <errno.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "trace/inside.h"

#define TASKS_MAX (1u << 20) /* that live at one time; more are left out */

/* NULL when there are too many. */
static int task_get(struct weft__plain_tasks *tasks, uint64_t id, struct weft__plain_task **ret)
{
	uint32_t at = weft__map_get(&tasks->by_id, id);
	struct weft__plain_task *grown;

	*ret = NULL;
	if (at == WEFT__MAP_NONE && tasks->by_id.n >= TASKS_MAX)
		return 0;
	if (at == WEFT__MAP_NONE) {
		at = tasks->free;
		if (at == WEFT__MAP_NONE) {
			grown = weft__grow(tasks->at, &tasks->cap, tasks->n, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			tasks->at = grown;
			at = (uint32_t)tasks->n++;
		} else {
			tasks->free = (uint32_t)tasks->at[at].spawn_ns;
		}
		tasks->at[at] = (struct weft__plain_task){.id = id, .location = WEFT__LOCATION_UNSEEN};
		if (weft__map_put(&tasks->by_id, id, at) < 0)
			return -ENOMEM;
	}
	*ret = &tasks->at[at];
	return 0;
}

static void task_del(struct weft__plain_tasks *tasks, struct weft__plain_task *task)
{
	weft__map_del(&tasks->by_id, task->id);
	task->ended = 0;
	task->spawn_ns = tasks->free;
	tasks->free = (uint32_t)(task - tasks->at);
}

static int give_row(struct weft__scan *t, const struct weft__plain_task *task)
{
	struct weft__row *row;

	if (task->looped && weft__label_is_loop(&t->rec->names, task->location))
		return 0;
	row = weft__row_new(t);
	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_TASK_TASK, (int64_t)task->id);
	weft__set_int(row, WEFT__COL_TASK_RECORDING, (int64_t)t->number);
	if (task->location && task->location < WEFT__LOCATION_OTHER)
		weft__fill_row_location(t, row, WEFT__COL_TASK_LOCATION_ID, WEFT__COL_TASK_LOCATION, task->location);
	if (task->spawn_ns)
		weft__set_int(row, WEFT__COL_TASK_SPAWN_NS, weft__time(t, task->spawn_ns));
	if (task->end_ns)
		weft__set_int(row, WEFT__COL_TASK_END_NS, weft__time(t, task->end_ns));
	if (!t->polls_reported)
		weft__set_int(row, WEFT__COL_TASK_POLLS, (int64_t)task->polls);
	if (task->first_poll_ns)
		weft__set_int(row, WEFT__COL_TASK_FIRST_POLL_NS, weft__time(t, task->first_poll_ns));
	if (!t->plain.tasks.wakes_counted)
		weft__set_int(row, WEFT__COL_TASK_WAKES, (int64_t)task->wakes);
	weft__row_give(t, row);
	return 0;
}

static int give_task(struct weft__scan *t, struct weft__plain_task *task)
{
	int rc = give_row(t, task);

	task_del(&t->plain.tasks, task);
	return rc;
}

/* The task of that number that is meant by an event after the last one has ended. */
static int task_again(struct weft__scan *t, struct weft__plain_task **task)
{
	uint64_t id = (*task)->id;

	if (give_task(t, *task) < 0)
		return -ENOMEM;
	return task_get(&t->plain.tasks, id, task);
}

/* The one that ended ENDED_TASKS_KEPT before it is done. */
static int end_task(struct weft__scan *t, struct weft__plain_task *task, uint64_t end_ns)
{
	struct weft__plain_tasks *tasks = &t->plain.tasks;
	uint32_t *slot, at = (uint32_t)(task - tasks->at);

	if (task->ended)
		return 0;
	if (!tasks->ended)
		tasks->ended = weft__calloc(ENDED_TASKS_KEPT, sizeof(*tasks->ended));
	if (!tasks->ended)
		return -ENOMEM;
	task->end_ns = end_ns ? end_ns : 1;
	task->ended = ++tasks->n_ended;
	slot = &tasks->ended[task->ended % ENDED_TASKS_KEPT];
	if (task->ended > ENDED_TASKS_KEPT && tasks->at[*slot].ended == task->ended - ENDED_TASKS_KEPT &&
	    give_task(t, &tasks->at[*slot]) < 0)
		return -ENOMEM;
	*slot = at;
	return 0;
}

static int task_spawn(struct weft__scan *t, struct weft__plain_task *task, const struct weft__event *ev)
{
	/* Its number is used again, with or without an end. */
	if ((task->spawn_ns || task->ended) && task_again(t, &task) < 0)
		return -ENOMEM;
	if (!task)
		return 0;
	task->spawn_ns = ev->time_ns ? ev->time_ns : 1;
	task->location = (uint32_t)WEFT_FIELD(ev, SPAWN, LOCATION);
	return 0;
}

static int task_poll(struct weft__scan *t, struct weft__plain_task *task, const struct weft__event *ev)
{
	struct weft__plain_thread *thread;
	uint64_t begin_ns = ev->time_ns;

	if (ev->kind == WEFT_KIND_POLL)
		begin_ns =
			ev->time_ns > WEFT_FIELD(ev, POLL, DURATION) ? ev->time_ns - WEFT_FIELD(ev, POLL, DURATION) : 0;
	if (task->ended && begin_ns > task->end_ns && task_again(t, &task) < 0)
		return -ENOMEM;
	if (!task)
		return 0;
	if (!task->looped) {
		if (weft__plain_thread_get(t, ev->thread, &thread) < 0)
			return -ENOMEM;
		task->looped = weft__label_loops(&t->rec->names, thread->worker);
	}
	if (!task->first_poll_ns)
		task->first_poll_ns = begin_ns ? begin_ns : 1;
	task->polls++;
	return 0;
}

int weft__plain_task_event(struct weft__scan *t, const struct weft__event *ev)
{
	struct weft__plain_tasks *tasks = &t->plain.tasks;
	bool poll = ev->kind == WEFT_KIND_POLL_BEGIN || ev->kind == WEFT_KIND_POLL_NEXT || ev->kind == WEFT_KIND_POLL;
	struct weft__plain_task *task;

	if (ev->kind == WEFT_KIND_MODE &&
	    (WEFT_FIELD(ev, MODE, LEVEL) == WEFT_DETAIL_COUNTED || WEFT_FIELD(ev, MODE, LEVEL) == WEFT_DETAIL_UNTIMED))
		tasks->wakes_counted = true;
	if (!poll && ev->kind != WEFT_KIND_SPAWN && ev->kind != WEFT_KIND_TASK_END && ev->kind != WEFT_KIND_WAKE)
		return 0;
	if (task_get(tasks, WEFT_FIELD(ev, POLL_BEGIN, TASK), &task) < 0)
		return -ENOMEM;
	if (!task)
		return 0;
	if (poll)
		return task_poll(t, task, ev);
	if (ev->kind == WEFT_KIND_SPAWN)
		return task_spawn(t, task, ev);
	if (ev->kind == WEFT_KIND_TASK_END)
		return end_task(t, task, ev->time_ns);
	task->wakes++;
	return 0;
}

/* Those that have ended first, in that order. */
int weft__plain_tasks_end(struct weft__scan *t)
{
	struct weft__plain_tasks *tasks = &t->plain.tasks;
	uint64_t number = tasks->n_ended > ENDED_TASKS_KEPT ? tasks->n_ended - ENDED_TASKS_KEPT : 0;
	size_t i;

	while (number++ < tasks->n_ended) {
		struct weft__plain_task *task = &tasks->at[tasks->ended[number % ENDED_TASKS_KEPT]];

		if (task->ended == number && give_task(t, task) < 0)
			return -ENOMEM;
	}
	for (i = 0; i < tasks->n; i++)
		if (weft__map_get(&tasks->by_id, tasks->at[i].id) == i && give_task(t, &tasks->at[i]) < 0)
			return -ENOMEM;
	return 0;
}

void weft__plain_tasks_fini(struct weft__plain_tasks *tasks)
{
	weft__map_fini(&tasks->by_id);
	weft__free(tasks->at);
	weft__free(tasks->ended);
}
