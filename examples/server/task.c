/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: spawning, waking, running, and who frees them.
 *
 * The state of a task is two bits. READY says that it shall be polled; whoever sets it first puts the task into a
 * queue. RUNNING says that a worker is polling it; a wake that comes meanwhile only sets READY, and the worker queues
 * the task again after the poll. Wakers always write the state, never just look at it, so a poll that clears READY sees
 * everything that those wakers did before. */
#include "runtime.h"

#include <weft/weft.h>

enum { READY = 1, RUNNING = 2 };

void queue_push(struct task_queue *queue, struct task *task)
{
	task->next = NULL;
	if (queue->tail)
		queue->tail->next = task;
	else
		queue->head = task;
	queue->tail = task;
	queue->len++;
}

struct task *queue_pop(struct task_queue *queue)
{
	struct task *task = queue->head;

	if (!task)
		return NULL;
	queue->head = task->next;
	if (!queue->head)
		queue->tail = NULL;
	queue->len--;
	return task;
}

static void push_inbox(struct worker *worker, struct task *task)
{
	struct task *head = atomic_load(&worker->inbox);

	do
		task->next = head;
	while (!atomic_compare_exchange_weak(&worker->inbox, &head, task));
	worker_ring(worker);
}

static void push_global(struct runtime *rt, struct task *task)
{
	uint32_t i;

	pthread_mutex_lock(&rt->global_lock);
	queue_push(&rt->global, task);
	atomic_store(&rt->global_len, rt->global.len);
	pthread_mutex_unlock(&rt->global_lock);

	for (i = 0; i < rt->n_workers; i++) {
		if (atomic_load(&rt->workers[i].asleep)) {
			worker_ring(&rt->workers[i]);
			return;
		}
	}
}

static void enqueue(struct task *task)
{
	if (!task->home)
		push_global(task->runtime, task);
	else if (task->home == worker_self)
		queue_push(&task->home->local, task);
	else
		push_inbox(task->home, task);
}

void task_spawn(struct runtime *rt, struct task *task, struct worker *home, uint32_t location)
{
	task->runtime = rt;
	task->home = home;
	task->id = atomic_fetch_add_explicit(&rt->next_task_id, 1, memory_order_relaxed) + 1;
	atomic_init(&task->state, 0);

	pthread_mutex_lock(&rt->live_lock);
	task->live_prev = NULL;
	task->live_next = rt->live;
	if (rt->live)
		rt->live->live_prev = task;
	rt->live = task;
	pthread_mutex_unlock(&rt->live_lock);

	weft_task_spawn(task->id, location);
	task_wake(task);
}

/* Told before the task is in a queue, so that no worker can begin the poll before the wake. */
static void wake_up(struct task *task, unsigned int before, uint64_t now)
{
	weft_wake_at(task->id, task->home ? task->home->weft_id : WEFT_WORKER_NONE, now);
	if (!(before & RUNNING))
		enqueue(task);
}

/* The time is taken before the task is ready: a worker that runs it already may poll it again at once. */
void task_wake(struct task *task)
{
	task_wake_at(task, weft_now_ticks());
}

void task_wake_at(struct task *task, uint64_t now)
{
	unsigned int before = atomic_fetch_or(&task->state, READY);

	if (!(before & READY))
		wake_up(task, before, now);
}

/* weft is told that a poll has ended when it is known whether another begins at the same time. */
void task_end_poll(struct worker *worker)
{
	if (worker->in_poll)
		weft_poll_end_at(worker->ended);
	worker->in_poll = false;
}

static void begin_poll(const struct task *task, struct worker *worker, uint64_t now)
{
	if (worker->in_poll && worker->ended == now) {
		weft_poll_next_at(task->id, worker->local.len, now);
	} else {
		task_end_poll(worker);
		weft_poll_begin_at(task->id, worker->local.len, now);
	}
	worker->in_poll = true;
}

/* Runs one poll that begins at `now` and returns the time after it, for what comes next. */
uint64_t task_run(struct task *task, struct worker *worker, uint64_t now)
{
	enum task_status status;

	atomic_exchange(&task->state, RUNNING);
	begin_poll(task, worker, now);
	status = task->poll(task, worker);
	now = worker->ended = weft_now_ticks();

	if (status == TASK_DONE) {
		/* RUNNING stays set, so that late wakes do nothing. */
		weft_task_end_at(task->id, now);
		task_unref(task);
		return now;
	}
	if (!(atomic_fetch_and(&task->state, ~(unsigned int)RUNNING) & READY))
		return now;
	enqueue(task);
	return weft_now_ticks(); /* the wake may be younger than `now` */
}

void task_ref(struct task *task)
{
	atomic_fetch_add_explicit(&task->refs, 1, memory_order_relaxed);
}

void task_unref(struct task *task)
{
	struct runtime *rt = task->runtime;

	if (atomic_fetch_sub_explicit(&task->refs, 1, memory_order_acq_rel) > 1)
		return;
	pthread_mutex_lock(&rt->live_lock);
	if (task->live_prev)
		task->live_prev->live_next = task->live_next;
	else
		rt->live = task->live_next;
	if (task->live_next)
		task->live_next->live_prev = task->live_prev;
	pthread_mutex_unlock(&rt->live_lock);
	task->drop(task);
}

/* For the end, when no worker runs: references do not matter any more. */
void task_drop_all(struct runtime *rt)
{
	while (rt->live) {
		struct task *task = rt->live;

		rt->live = task->live_next;
		task->drop(task);
	}
}
