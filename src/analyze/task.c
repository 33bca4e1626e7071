/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: where each was spawned and the wake that waits for its next poll. An id may be used again once its task has
 * ended.
 *
 * What causes a poll may carry a time behind it. Runtimes hand one reading of the clock from the end of a poll to
 * the begin of the next, and the task of that next one may have been spawned or woken in between, on another thread.
 * Taken as it stands, such a wake would wait for the poll after, and make a delay of however long that takes. So a
 * wake from another thread, soon after a poll that nothing woke, is that poll's. How soon: within LATE_NS in
 * general, and within LATE_OPEN_NS while the poll is open, unless it is the first of its task, which some runtimes
 * begin without a wake. */
#include <errno.h>
#include <string.h>

#include "analyze/state.h"

#define LATE_NS 1000
#define LATE_OPEN_NS 100000

static __attribute__((noinline)) int task_new(struct weft__tasks *tasks, uint64_t id, struct weft__task **ret)
{
	struct weft__task *grown;
	uint32_t at;

	*ret = NULL;
	if (tasks->by_id.n >= tasks->opts->max_tasks) {
		tasks->result->untracked++;
		return 0;
	}
	at = tasks->free;
	if (at == WEFT__MAP_NONE) {
		grown = weft__arena_grow(&tasks->arena, tasks->at, &tasks->cap, tasks->n, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		tasks->at = grown;
		at = (uint32_t)tasks->n++;
		memset(&grown[at], 0, sizeof(grown[at]));
		grown[at].next_free = WEFT__MAP_NONE;
	}
	if (weft__map_put(&tasks->by_id, id, at) < 0) {
		if (at != tasks->free)
			tasks->n--;
		return -ENOMEM;
	}
	if (at == tasks->free)
		tasks->free = tasks->at[at].next_free;
	tasks->at[at] = (struct weft__task){.id = id, .location = WEFT__LOCATION_UNSEEN, .live = true};
	*ret = &tasks->at[at];
	return 0;
}

/* The task, made when it is new; NULL when there are too many. */
static inline int task_get(struct weft__tasks *tasks, uint64_t id, struct weft__task **ret)
{
	uint32_t at = weft__map_get(&tasks->by_id, id);

	if (at == WEFT__MAP_NONE)
		return task_new(tasks, id, ret);
	*ret = &tasks->at[at];
	return 0;
}

static void task_del(struct weft__tasks *tasks, uint32_t at)
{
	weft__map_del(&tasks->by_id, tasks->at[at].id);
	tasks->at[at].live = false;
	tasks->at[at].next_free = tasks->free;
	tasks->free = at;
}

/* Whether the spawn is that of a task whose first poll has just begun on another thread. */
static bool is_late_spawn(const struct weft__task *task, const struct weft__event *ev)
{
	return task->seen && !task->spawned && task->first && task->poll_thread != ev->thread &&
	       weft__since(ev->time_ns, task->poll_ns) <= LATE_OPEN_NS;
}

static void set_spawned(struct weft__tasks *tasks, struct weft__threads *threads, struct weft__task *task,
			const struct weft__event *ev)
{
	uint32_t location = (uint32_t)WEFT_FIELD(ev, SPAWN, LOCATION);
	struct weft__poll *poll;

	if (is_late_spawn(task, ev)) {
		tasks->result->late_causes++;
		poll = weft__poll_open(threads, task->poll_thread, task->id, task->poll_ns);
		if (poll)
			poll->location = location;
	} else if (task->seen) {
		if (ev->time_ns >= threads->opts->from_ns)
			tasks->result->ids_reused++;
		*task = (struct weft__task){.id = task->id, .live = true};
	}
	/* A wake that was seen before the spawn stays: it is of this task. */
	task->location = location;
	task->seen = true;
	task->spawned = true;
	task->base_ns = ev->time_ns ? ev->time_ns : 1;
}

int weft__task_spawn(struct weft__tasks *tasks, struct weft__threads *threads, struct weft__lanes *lanes,
		     const struct weft__event *ev)
{
	struct weft__location *location;
	struct weft__task *task;
	int rc = task_get(tasks, WEFT_FIELD(ev, SPAWN, TASK), &task);

	if (rc < 0)
		return rc;
	if (task)
		set_spawned(tasks, threads, task, ev);
	rc = weft__location_get(lanes, (uint32_t)WEFT_FIELD(ev, SPAWN, LOCATION), &location);
	if (rc == 0 && ev->time_ns >= tasks->opts->from_ns)
		location->spawned++;
	return rc;
}

/* Whether the last wake is the only one since the task's last poll that is here, or its spawn: no poll in between is
 * missing, then. */
static bool single_wake(const struct weft__detail *detail, const struct weft__task *task)
{
	return task->n_wakes == 1 && task->base_ns && task->base_ns >= detail->wakes_ns;
}

static int remember(struct weft__tasks *tasks, const struct weft__task *task)
{
	struct weft__ended *slot;

	if (!tasks->ended)
		tasks->ended = weft__arena_new(&tasks->arena, ENDED_TASKS, sizeof(*tasks->ended));
	if (!tasks->ended)
		return -ENOMEM;
	slot = &tasks->ended[tasks->n_ended % ENDED_TASKS];
	if (tasks->n_ended >= ENDED_TASKS &&
	    weft__map_get(&tasks->ended_by_id, slot->id) == tasks->n_ended % ENDED_TASKS)
		weft__map_del(&tasks->ended_by_id, slot->id);
	*slot = (struct weft__ended){task->id, task->location, task->last, single_wake(tasks->detail, task),
				     task->base_ns};
	return weft__map_put(&tasks->ended_by_id, task->id, (uint32_t)(tasks->n_ended++ % ENDED_TASKS));
}

int weft__task_end(struct weft__tasks *tasks, struct weft__lanes *lanes, const struct weft__event *ev)
{
	uint32_t at = weft__map_get(&tasks->by_id, WEFT_FIELD(ev, TASK_END, TASK));
	uint32_t id = at != WEFT__MAP_NONE           ? tasks->at[at].location
		      : tasks->result->untracked > 0 ? WEFT__LOCATION_UNTRACKED
						     : WEFT__LOCATION_UNSEEN;
	struct weft__location *location;
	int rc = weft__location_get(lanes, id, &location);

	if (rc < 0)
		return rc;
	if (ev->time_ns >= tasks->opts->from_ns)
		location->ended++;
	if (at == WEFT__MAP_NONE)
		return 0;
	rc = tasks->opts->polls_reported ? remember(tasks, &tasks->at[at]) : 0;
	task_del(tasks, at);
	return rc;
}

/* Whether the wake caused the poll that the task has just begun on another thread; `*poll` is that one if it is
 * open. */
static bool is_late_wake(struct weft__threads *threads, const struct weft__task *task, const struct weft__event *ev,
			 struct weft__poll **poll)
{
	uint64_t late_ns = weft__since(ev->time_ns, task->poll_ns);

	if (!task->unwoken || task->poll_thread == ev->thread || late_ns > LATE_OPEN_NS)
		return false;
	*poll = weft__poll_open(threads, task->poll_thread, task->id, task->poll_ns);
	return late_ns <= LATE_NS || (*poll && !(task->first && task->spawned));
}

/* Field by field, where it is to be: a copy of what was written just now is slow. */
static inline void set_wake(struct weft__wake *to, const struct weft__analysis_opts *opts,
			    const struct weft__detail *detail, const struct weft__thread *s,
			    const struct weft__poll *from, uint64_t time_ns)
{
	to->known = true;
	to->measured = to->again = false;
	to->in_poll = from != NULL;
	to->unlisted = !from && opts->polls_reported && (!detail->n || detail->level != WEFT_DETAIL_ALL);
	to->thread_id = s->id;
	to->worker = s->worker;
	to->location = from ? from->location : WEFT__LOCATION_UNSEEN;
	to->task = from ? from->task : 0;
	to->time_ns = time_ns;
}

int weft__task_wake(struct weft__analysis *a, struct weft__thread *s, const struct weft__event *ev)
{
	struct weft__poll *from = s->n_open ? &s->open[s->n_open - 1] : NULL, *poll = NULL;
	struct weft__task *task;
	int rc = task_get(&a->tasks, WEFT_FIELD(ev, WAKE, TASK), &task);

	if (from)
		from->n_wakes++;
	if (rc < 0 || !task)
		return rc;
	set_wake(&task->last, &a->opts, &a->result.detail, s, from, ev->time_ns);
	task->n_wakes += task->n_wakes < UINT32_MAX;
	if (is_late_wake(&a->threads, task, ev, &poll)) {
		a->result.task.late_causes++;
		task->unwoken = false;
		return poll ? weft__poll_woken(a, poll, &task->last) : 0;
	}
	if (task->wake.known && task->wake.time_ns >= a->result.detail.wakes_ns) {
		if (ev->time_ns >= a->opts.from_ns)
			a->result.task.wakes_again++;
		return 0;
	}
	set_wake(&task->wake, &a->opts, &a->result.detail, s, from, ev->time_ns);
	return 0;
}

int weft__task_poll(struct weft__tasks *tasks, struct weft__poll *poll)
{
	struct weft__task *task;
	int rc = task_get(tasks, poll->task, &task);

	poll->location = WEFT__LOCATION_UNTRACKED;
	if (rc < 0 || !task)
		return rc;
	poll->location = task->location;
	if (weft__detail_has_wake(tasks->detail, &task->wake, poll->begin_ns))
		poll->wake = task->wake;
	task->unwoken = !poll->wake.known;
	task->first = task->poll_ns == 0;
	task->poll_ns = poll->begin_ns;
	task->poll_thread = poll->thread_id;
	task->seen = true;
	task->n_wakes = 0;
	task->base_ns = poll->begin_ns ? poll->begin_ns : 1;
	memset(&task->wake, 0, sizeof(task->wake));
	return 0;
}

/* Polls in between may not have been reported. Of several wakes since the last poll that is here the last one is the
 * one that the poll must have had, and it is not known which one began the wait; a single one did. */
static void reported_wake(struct weft__gaps *gaps, const struct weft__detail *detail, struct weft__poll *poll,
			  const struct weft__wake *last, bool single)
{
	if (last->time_ns > poll->begin_ns || !weft__detail_has_wake(detail, last, poll->begin_ns))
		return;
	poll->wake = *last;
	poll->wake.again = !single;
	poll->wake.measured = single && !weft__gaps_between(gaps, last->time_ns, poll->begin_ns);
}

/* The wake that the recorder remembered for the poll, from a time in which wakes were counted. One that is here as
 * an event may be younger. `base_ns`: the task was not polled since, that is known; 0: nothing is. */
static void remembered_wake(struct weft__tasks *tasks, struct weft__threads *threads, struct weft__gaps *gaps,
			    struct weft__thread *s, struct weft__poll *poll, uint64_t base_ns)
{
	const struct weft__remembered *woken = &s->woken;
	uint64_t time_ns = weft__since(poll->begin_ns, woken->ago_ns);
	uint32_t thread_id = weft__names_thread_of(tasks->opts->names, (uint32_t)woken->tid), at;
	const struct weft_thread *thread = thread_id ? weft__names_thread(tasks->opts->names, thread_id) : NULL;
	bool here = woken->time_ns == poll->end_ns && woken->time_ns && time_ns;

	s->woken.time_ns = 0;
	if (!here || (poll->wake.known && poll->wake.time_ns >= time_ns))
		return;
	at = thread_id ? weft__map_get(&threads->by_id, thread_id) : WEFT__MAP_NONE;
	poll->wake = (struct weft__wake){
		.known = true,
		.in_poll = woken->by != 0,
		.again = !base_ns || base_ns < tasks->detail->wakes_ns || poll->wake.known ||
			 weft__since(poll->begin_ns, woken->alone_ns) > base_ns,
		.thread_id = thread_id,
		.worker = at != WEFT__MAP_NONE ? threads->at[at].last_worker
			  : thread             ? thread->worker
					       : WEFT_WORKER_NONE,
		.location = woken->by ? weft__task_location(tasks, woken->by) : WEFT__LOCATION_UNSEEN,
		.task = woken->by,
		.time_ns = time_ns,
	};
	poll->wake.measured = !poll->wake.again && !weft__gaps_between(gaps, time_ns, poll->begin_ns);
}

int weft__task_reported(struct weft__tasks *tasks, struct weft__threads *threads, struct weft__gaps *gaps,
			struct weft__thread *s, struct weft__poll *poll)
{
	uint32_t ended = weft__map_get(&tasks->ended_by_id, poll->task);
	struct weft__task *task;
	int rc;

	if (ended != WEFT__MAP_NONE && weft__map_get(&tasks->by_id, poll->task) == WEFT__MAP_NONE) {
		poll->location = tasks->ended[ended].location;
		reported_wake(gaps, tasks->detail, poll, &tasks->ended[ended].last, tasks->ended[ended].single);
		remembered_wake(tasks, threads, gaps, s, poll, tasks->ended[ended].base_ns);
		return 0;
	}
	rc = task_get(tasks, poll->task, &task);
	poll->location = WEFT__LOCATION_UNTRACKED;
	if (rc < 0 || !task)
		return rc;
	poll->location = task->location;
	reported_wake(gaps, tasks->detail, poll, &task->last, single_wake(tasks->detail, task));
	remembered_wake(tasks, threads, gaps, s, poll, task->base_ns);
	task->seen = true;
	task->n_wakes = task->last.time_ns > poll->begin_ns;
	task->base_ns = poll->begin_ns ? poll->begin_ns : 1;
	memset(&task->wake, 0, sizeof(task->wake));
	return 0;
}

uint32_t weft__task_location(const struct weft__tasks *tasks, uint64_t task)
{
	uint32_t at = weft__map_get(&tasks->by_id, task);

	return at == WEFT__MAP_NONE ? WEFT__LOCATION_UNSEEN : tasks->at[at].location;
}

void weft__tasks_fini(struct weft__tasks *tasks)
{
	weft__map_fini(&tasks->by_id);
	weft__map_fini(&tasks->ended_by_id);
	weft__arena_fini(&tasks->arena);
}
