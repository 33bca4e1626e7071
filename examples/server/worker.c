/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: threads that run tasks, and the runtime that owns them. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "runtime.h"

enum {
	GLOBAL_EVERY = 32, /* polls after which the global queue goes before the local one */
	IO_EVERY = 64,     /* polls after which a busy worker looks at its file descriptors */
};

_Thread_local struct worker *worker_self;

static struct task *pop_global(struct runtime *rt)
{
	struct task *task;

	if (!atomic_load_explicit(&rt->global_len, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&rt->global_lock);
	task = queue_pop(&rt->global);
	atomic_store(&rt->global_len, rt->global.len);
	pthread_mutex_unlock(&rt->global_lock);
	return task;
}

/* Moves the inbox to the local queue. It is a stack, so it is turned over first: those who came first run first.
 * Returns whether there was anything. */
static bool empty_inbox(struct worker *worker)
{
	struct task *task;
	struct task *oldest = NULL;
	struct task *next;

	if (!atomic_load_explicit(&worker->inbox, memory_order_relaxed))
		return false;
	for (task = atomic_exchange(&worker->inbox, NULL); task; task = next) {
		next = task->next;
		task->next = oldest;
		oldest = task;
	}
	for (task = oldest; task; task = next) {
		next = task->next;
		queue_push(&worker->local, task);
	}
	return true;
}

/* What comes from other threads may have been woken after `*now`, which then moves on: no poll begins before its
 * wake. */
static struct task *next_task(struct worker *worker, uint64_t *now)
{
	struct task *task;
	bool from_others = empty_inbox(worker);

	if (worker->polls % GLOBAL_EVERY && worker->local.len) {
		task = queue_pop(&worker->local);
	} else {
		task = pop_global(worker->runtime);
		from_others |= task != NULL;
		if (!task)
			task = queue_pop(&worker->local);
	}
	if (from_others)
		*now = weft_now_ticks();
	return task;
}

/* `now` is handed from one step to the next: where a poll ends as the next begins, one reading of the clock does for
 * both. It is 0, and costs nothing, when nothing records. */
static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct runtime *rt = worker->runtime;
	char name[16];
	uint64_t now;

	snprintf(name, sizeof(name), "worker-%u", (unsigned int)worker->index);
	pthread_setname_np(pthread_self(), name);
	worker_self = worker;
	weft_worker_enter(rt->weft_id, worker->index, NULL);
	now = weft_now_ticks();
	while (!atomic_load_explicit(&rt->stopping, memory_order_acquire)) {
		struct task *task = next_task(worker, &now);

		if (!task) {
			task_end_poll(worker);
			now = io_wait(worker, now);
			continue;
		}
		now = task_run(task, worker, now);
		if (++worker->polls % IO_EVERY == 0) {
			task_end_poll(worker);
			now = io_check(worker);
		}
	}
	task_end_poll(worker);
	weft_worker_leave();
	return NULL;
}

static uint64_t global_depth(void *data)
{
	struct runtime *rt = data;

	return atomic_load_explicit(&rt->global_len, memory_order_relaxed);
}

int runtime_init(struct runtime *rt, uint32_t n_workers)
{
	struct weft_runtime_opts opts = {.size = sizeof(opts), .name = "demo", .queue = global_depth, .data = rt};
	uint32_t i;

	memset(rt, 0, sizeof(*rt));
	pthread_mutex_init(&rt->global_lock, NULL);
	pthread_mutex_init(&rt->live_lock, NULL);
	rt->n_workers = n_workers;
	rt->weft_id = weft_runtime_add(&opts, NULL);
	for (i = 0; i < n_workers; i++)
		rt->workers[i].epoll_fd = rt->workers[i].bell_fd = -1;
	for (i = 0; i < n_workers; i++) {
		struct worker *worker = &rt->workers[i];
		int err = io_init(worker);

		if (err < 0)
			return err;
		worker->runtime = rt;
		worker->index = i;
		worker->weft_id = weft_worker_id(rt->weft_id, i, NULL);
	}
	return 0;
}

int runtime_start(struct runtime *rt)
{
	uint32_t i;

	for (i = 0; i < rt->n_workers; i++) {
		int err = pthread_create(&rt->workers[i].thread, NULL, worker_main, &rt->workers[i]);

		if (err)
			return -err;
		rt->n_started++;
	}
	return 0;
}

void runtime_stop(struct runtime *rt)
{
	uint32_t i;

	atomic_store(&rt->stopping, true);
	for (i = 0; i < rt->n_started; i++)
		worker_ring(&rt->workers[i]);
	for (i = 0; i < rt->n_started; i++)
		pthread_join(rt->workers[i].thread, NULL);
	weft_runtime_del(rt->weft_id);
	task_drop_all(rt);
	for (i = 0; i < rt->n_workers; i++)
		io_fini(&rt->workers[i]);
	pthread_mutex_destroy(&rt->global_lock);
	pthread_mutex_destroy(&rt->live_lock);
}

uint64_t runtime_requests(const struct runtime *rt)
{
	uint64_t requests = 0;
	uint32_t i;

	for (i = 0; i < rt->n_workers; i++)
		requests += atomic_load_explicit(&rt->workers[i].requests, memory_order_relaxed);
	return requests;
}
