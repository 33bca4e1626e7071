/* SPDX-License-Identifier: Apache-2.0 */
/* Work for libuv's thread pool. A request is two tasks: the work (the request's address) and the callback after it
 * (+ 1). They are looked up by two threads, hence the lock; libuv's pool has one of its own for the same time. */
#include <pthread.h>
#include <stdlib.h>

#include "call.h"

struct work {
	uv_work_cb work;
	uv_after_work_cb after;
	uint32_t after_location;
	bool ran;
	struct weft_context context; /* of who queued it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft__uv_map queued; /* by request; under the lock */
static uint64_t waiting;           /* in the queue */
static uint32_t pool;              /* runtime */

static uint64_t task_of(const uv_work_t *req, unsigned int after)
{
	return weft__uv_key(req, after) & WEFT_TASK_MASK;
}

static uint64_t depth(void *data)
{
	(void)data;
	return __atomic_load_n(&waiting, __ATOMIC_RELAXED);
}

static void add_pool(void)
{
	struct weft_runtime_opts opts = WEFT_OPTIONS_INIT(weft_runtime_opts);

	opts.name = "uv-pool";
	opts.queue = depth;
	pool = weft_runtime_add(&opts, NULL);
}

static bool queued_put(const uv_work_t *req, struct work *work)
{
	struct weft__uv_entry *entry;

	pthread_mutex_lock(&lock);
	entry = weft__uv_map_add(&queued, weft__uv_key(req, WEFT__UV_MAIN));
	if (entry)
		entry->work = work;
	pthread_mutex_unlock(&lock);
	return entry != NULL;
}

static struct work *queued_get(const uv_work_t *req, bool remove)
{
	const struct weft__uv_entry *entry;
	struct work *work;

	pthread_mutex_lock(&lock);
	entry = weft__uv_map_get(&queued, weft__uv_key(req, WEFT__UV_MAIN));
	work = entry ? entry->work : NULL;
	if (remove && entry)
		weft__uv_map_del(&queued, entry);
	pthread_mutex_unlock(&lock);
	return work;
}

/* Threads of the pool are workers in the order in which they first come here. */
static void be_worker(void)
{
	static __thread bool is;
	static uint32_t n;

	if (!is)
		weft_worker_enter(pool, __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED), NULL);
	is = true;
}

static void on_work(uv_work_t *req)
{
	struct work *work = queued_get(req, false);
	struct weft_context outer;

	be_worker();
	work->ran = true;
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
	weft_poll_begin(task_of(req, 0), WEFT_DEPTH_UNKNOWN);
	weft_context_swap(&work->context, &outer);
	work->work(req);
	weft_context_swap(&outer, &work->context);
	if (work->after)
		weft_wake(task_of(req, 1), WEFT_WORKER_NONE);
	weft_poll_end();
	weft_task_end(task_of(req, 0));
}

static void run_after(uv_work_t *req, int status, struct work *work)
{
	struct weft__uv_loop *in = weft__uv_find(req->loop);
	struct weft_context outer;
	bool taken = in && weft__uv_take(in);

	if (taken)
		weft__uv_enter(in, task_of(req, 1));
	weft_task_end(task_of(req, 1)); /* the callback may free the request, or queue it again */
	weft_context_swap(&work->context, &outer);
	work->after(req, status);
	weft_context_swap(&outer, &work->context);
	if (taken)
		weft__uv_leave(in);
}

static void on_after(uv_work_t *req, int status)
{
	struct work *work = queued_get(req, true);

	if (!work->ran) { /* cancelled */
		__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
		weft_task_end(task_of(req, 0));
	}
	if (work->after)
		run_after(req, status, work);
	free(work);
}

/* Wakes go before the request is in the queue, so that no thread can begin the poll before them. */
static void say_queued(const uv_work_t *req, const struct work *work, uint32_t location)
{
	if (work->after)
		weft_task_spawn(task_of(req, 1), work->after_location);
	weft_task_spawn(task_of(req, 0), location);
	weft_wake(task_of(req, 0), WEFT_WORKER_NONE);
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
}

int weft_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work_cb, uv_after_work_cb after,
		       uint32_t work_location, uint32_t after_location)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct work *work = in && in->attached && work_cb ? calloc(1, sizeof(*work)) : NULL;

	if (!work || !queued_put(req, work)) {
		free(work);
		return uv_queue_work(loop, req, work_cb, after);
	}
	pthread_once(&once, add_pool);
	work->work = work_cb;
	work->after = after;
	work->after_location = after_location;
	weft_context_get(&work->context);
	say_queued(req, work, work_location);
	return uv_queue_work(loop, req, on_work, on_after); /* fails only without a callback */
}
