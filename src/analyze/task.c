/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: where each was spawned and the wake that waits for its next poll. An id may be used again once its task has ended. */
#include <errno.h>
#include <string.h>

#include "analyze/state.h"
#include "base/alloc.h"

/* The task, made when it is new; NULL when there are too many. */
static int task_get(struct weft__analysis *a, uint64_t id, struct weft__task **ret)
{
	uint32_t at = weft__map_get(&a->task_by_id, id);
	struct weft__task *grown;

	*ret = NULL;
	if (at != WEFT__MAP_NONE) {
		*ret = &a->tasks[at];
		return 0;
	}
	if (a->task_by_id.n >= a->opts.max_tasks) {
		a->result.tasks_untracked++;
		return 0;
	}
	at = a->free_task;
	if (at == WEFT__MAP_NONE) {
		grown = weft__grow(a->tasks, &a->cap_tasks, a->n_tasks, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		a->tasks = grown;
		at = (uint32_t)a->n_tasks++;
		memset(&grown[at], 0, sizeof(grown[at]));
		grown[at].next_free = WEFT__MAP_NONE;
	}
	if (weft__map_put(&a->task_by_id, id, at) < 0) {
		if (at != a->free_task)
			a->n_tasks--;
		return -ENOMEM;
	}
	if (at == a->free_task)
		a->free_task = a->tasks[at].next_free;
	a->tasks[at] = (struct weft__task){.id = id, .place = WEFT__PLACE_UNSEEN, .live = true};
	*ret = &a->tasks[at];
	return 0;
}

static void task_del(struct weft__analysis *a, uint32_t at)
{
	weft__map_del(&a->task_by_id, a->tasks[at].id);
	a->tasks[at].live = false;
	a->tasks[at].next_free = a->free_task;
	a->free_task = at;
}

int weft__task_spawn(struct weft__analysis *a, const struct weft_event_view *ev)
{
	bool in_window = ev->time_ns >= a->opts.from_ns;
	struct weft__place *place;
	struct weft__task *task;
	int rc = task_get(a, ev->fields[0], &task);

	if (rc < 0)
		return rc;
	if (task) {
		if (task->seen && in_window)
			a->result.ids_reused++;
		/* A wake that arrived before its spawn did is of this task: threads race. */
		if (task->seen)
			memset(&task->wake, 0, sizeof(task->wake));
		task->place = (uint32_t)ev->fields[1];
		task->seen = true;
	}
	rc = weft__place_get(a, (uint32_t)ev->fields[1], &place);
	if (rc == 0 && in_window)
		place->spawned++;
	return rc;
}

int weft__task_end(struct weft__analysis *a, const struct weft_event_view *ev)
{
	uint32_t at = weft__map_get(&a->task_by_id, ev->fields[0]);
	uint32_t id = at != WEFT__MAP_NONE            ? a->tasks[at].place
		      : a->result.tasks_untracked > 0 ? WEFT__PLACE_UNTRACKED
						      : WEFT__PLACE_UNSEEN;
	struct weft__place *place;
	int rc = weft__place_get(a, id, &place);

	if (rc < 0)
		return rc;
	if (ev->time_ns >= a->opts.from_ns)
		place->ended++;
	if (at != WEFT__MAP_NONE)
		task_del(a, at);
	return 0;
}

int weft__task_wake(struct weft__analysis *a, struct weft__stream *s, const struct weft_event_view *ev)
{
	struct weft__poll *poll = s->n_open ? &s->open[s->n_open - 1] : NULL;
	struct weft__task *task;
	int rc = task_get(a, ev->fields[0], &task);

	if (poll)
		poll->n_wakes++;
	if (rc < 0 || !task)
		return rc;
	if (task->wake.known) {
		if (ev->time_ns >= a->opts.from_ns)
			a->result.wakes_again++;
		return 0;
	}
	task->wake = (struct weft__wake){
		.known = true,
		.in_poll = poll != NULL,
		.stream = s->id,
		.worker = s->worker,
		.place = poll ? poll->place : WEFT__PLACE_UNSEEN,
		.task = poll ? poll->task : 0,
		.time_ns = ev->time_ns,
	};
	return 0;
}

int weft__task_poll(struct weft__analysis *a, uint64_t id, uint32_t *place, struct weft__wake *wake)
{
	struct weft__task *task;
	int rc = task_get(a, id, &task);

	memset(wake, 0, sizeof(*wake));
	*place = WEFT__PLACE_UNTRACKED;
	if (rc < 0 || !task)
		return rc;
	*place = task->place;
	*wake = task->wake;
	memset(&task->wake, 0, sizeof(task->wake));
	task->seen = true;
	return 0;
}
