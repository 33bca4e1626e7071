/* SPDX-License-Identifier: Apache-2.0 */
/* A small task runtime: the part of the demo that any event loop has, and the part that weft looks into.
 *
 * A task is a state machine with one function, `poll`, that a worker calls whenever the task is ready. Poll does what
 * it can without waiting and says whether the task is done. A worker is a thread with an epoll instance; its queues:
 *
 *     local    tasks ready to run here; touched by the worker alone, so it needs no lock
 *     inbox    tasks that other threads made ready for this worker; a lock-free stack that the worker empties at once
 *     global   tasks that any worker may run; one per runtime, with a lock
 *
 * A task with a `home` runs only there (its file descriptor is in that worker's epoll); one without runs anywhere. A
 * worker with nothing to do waits in epoll_wait, and whoever gives it work rings its eventfd.
 *
 * weft sees: each task from spawn to end, each poll, each wake with its target, each wait in epoll, and how long the
 * queues are. The calls are in task.c, worker.c and io.c; grep for weft_. */
#ifndef DEMO_RUNTIME_H
#define DEMO_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WORKERS_MAX = 64 };

struct worker;
struct runtime;

enum task_status { TASK_WAITING, TASK_DONE };

/* A task is embedded as the first member of what it works on. */
struct task {
	enum task_status (*poll)(struct task *task, struct worker *worker);
	void (*drop)(struct task *task); /* frees it, once the last reference is gone */
	struct runtime *runtime;
	struct worker *home; /* the one worker that polls it, or NULL */
	uint64_t id;         /* what weft knows it by */
	uint32_t io_ready;   /* EPOLL* bits seen since the task cleared them; home worker only */
	atomic_uint state;
	atomic_uint refs;
	struct task *next;      /* in the queue that it waits in */
	struct task *live_prev; /* in the list of all tasks */
	struct task *live_next;
};

struct task_queue {
	struct task *head;
	struct task *tail;
	uint32_t len;
};

struct worker {
	struct runtime *runtime;
	uint32_t index;
	uint32_t weft_id; /* of weft_worker_id: the target of wakes */
	int epoll_fd;
	int bell_fd;                    /* eventfd that ends an epoll_wait */
	uint32_t polls;                 /* run so far; paces the looks at I/O and at the global queue */
	atomic_uint_least64_t requests; /* answered here; the handlers count, nobody else writes */
	struct task_queue local;
	bool in_poll;   /* weft knows of a poll and not yet of its end, */
	uint64_t ended; /* which was then */
	pthread_t thread;
	_Atomic(struct task *) inbox __attribute__((aligned(64))); /* written by all threads: a cache line of its own */
	atomic_bool asleep;                                        /* waits in epoll, or is about to */
} __attribute__((aligned(64)));

struct runtime {
	uint32_t n_workers;
	uint32_t n_started;
	uint32_t weft_id;
	atomic_bool stopping;
	atomic_uint_least64_t next_task_id;
	pthread_mutex_t global_lock;
	struct task_queue global; /* under global_lock */
	atomic_uint global_len;   /* = global.len, readable without the lock */
	pthread_mutex_t live_lock;
	struct task *live; /* every task that is not dropped, under live_lock */
	struct worker workers[WORKERS_MAX];
};

/* Makes a runtime with `n_workers` workers that do not run yet, so that first tasks can be spawned in peace. Start runs
 * them; stop ends and joins them, and drops every task that is left. Each returns 0 or a negative errno. */
int runtime_init(struct runtime *rt, uint32_t n_workers);
int runtime_start(struct runtime *rt);
void runtime_stop(struct runtime *rt);

/* Requests that the workers have counted so far. Any thread. */
uint64_t runtime_requests(const struct runtime *rt);

/* Hands a new task to the runtime, ready to run on `home`, or anywhere when NULL. poll, drop and refs must be set:
 * one reference is the runtime's until the task is done, the others are whoever's the caller says. `location` is the
 * place that spawns it, from WEFT_HERE. The task may be done, and gone, before this returns. */
void task_spawn(struct runtime *rt, struct task *task, struct worker *home, uint32_t location);

/* Makes a task ready: it is polled once more, however often it is woken before. Any thread that has a reference. */
void task_wake(struct task *task);

/* The same, at an instant that was read before (weft_now_ticks): many tasks that one epoll_wait woke share one
 * reading. */
void task_wake_at(struct task *task, uint64_t now);

void task_ref(struct task *task);
void task_unref(struct task *task);

/* Wakes `task` whenever `fd` becomes ready; edge-triggered. Closing the fd ends it, which only the home worker of the
 * task may do. Returns 0 or a negative errno. */
int io_add(struct worker *worker, int fd, struct task *task);

/* Between the files of the runtime. */
int io_init(struct worker *worker);
void io_fini(struct worker *worker);
uint64_t io_check(struct worker *worker);              /* takes what is ready, does not wait */
uint64_t io_wait(struct worker *worker, uint64_t now); /* waits until something is ready */
void worker_ring(struct worker *worker);
uint64_t task_run(struct task *task, struct worker *worker, uint64_t now);
void task_end_poll(struct worker *worker); /* before anything that is no poll */
void task_drop_all(struct runtime *rt);
void queue_push(struct task_queue *queue, struct task *task);
struct task *queue_pop(struct task_queue *queue);

/* The worker that this thread is, or NULL. */
extern _Thread_local struct worker *worker_self;

#endif
