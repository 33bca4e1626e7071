/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: whether the program has made any, and which are weft's. */
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "base/alloc.h"
#include "preload.h"

uint32_t weft__preload_alone PRELOAD_NEAR;
static uint32_t has_threads PRELOAD_NEAR; /* the program has made some */

/* Whether the program has one thread. Nobody can cancel that but itself, and then it is over. */
static void not_alone(void)
{
	__atomic_store_n(&has_threads, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__preload_alone, 0, __ATOMIC_RELAXED);
}

/* Of the library inside: record/sample/slots_hot.c. */
void weft__engine_thread_begin(void);
void weft__engine_thread_end(void);
/* record/last.h */
void weft__last_thread_ends(uint32_t *rounds, pthread_key_t key, const void *value);

/* What a thread is to do, on its way from who makes it. When all are taken a thread begins without us, and is found
 * later. */
#define BEGINS 64
static struct begin {
	uint32_t taken;
	void *(*start)(void *);
	thrd_start_t start_c11;
	void *data;
} begins[BEGINS];
static pthread_key_t end_key PRELOAD_NEAR;
static bool end_key_made PRELOAD_NEAR;

static void thread_ends(void *data)
{
	static __thread uint32_t rounds __attribute__((tls_model("initial-exec")));

	(void)data;
	if (weft__preload_thread.child.pid) /* its only thread: the process ends */
		return;
	weft__engine_thread_end();
	weft__preload_alternate_end();
	weft__last_thread_ends(&rounds, end_key, &end_key);
}

void weft__preload_threads_init(void)
{
	end_key_made = pthread_key_create(&end_key, thread_ends) == 0;
	if (end_key_made)
		pthread_setspecific(end_key, &end_key); /* the first thread ends by pthread_exit in some programs */
}

static struct begin *begin_take(void)
{
	uint32_t i;

	for (i = 0; i < BEGINS && __atomic_load_n(&weft__preload_on, __ATOMIC_ACQUIRE); i++)
		if (!__atomic_load_n(&begins[i].taken, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&begins[i].taken, 1, __ATOMIC_ACQUIRE))
			return &begins[i];
	return NULL;
}

static struct begin begin_give(struct begin *at)
{
	struct begin copy = *at;

	__atomic_store_n(&at->taken, 0, __ATOMIC_RELEASE);
	return copy;
}

/* On the new thread. Threads that live for less than the collector scans for them have samples, too. */
static struct begin begin_here(void *data)
{
	struct begin begin = begin_give(data);

	weft__preload_stack_theirs();
	weft__engine_thread_begin();
	if (end_key_made)
		pthread_setspecific(end_key, &end_key);
	return begin;
}

/* The last call is a jump, so that stacks have no function of ours at their end. */
static void *begin_thread(void *data)
{
	struct begin begin = begin_here(data);

	return begin.start(begin.data);
}

static int begin_thread_c11(void *data)
{
	struct begin begin = begin_here(data);

	return begin.start_c11(begin.data);
}

PRELOAD_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static void *real PRELOAD_NEAR;
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		PRELOAD_REAL(real, "pthread_create");
	struct begin *begin;
	int r;

	weft__preload_late_now();
	begin = begin_take();
	not_alone();
	if (!begin)
		return call(thread, attr, start, data);
	begin->start = start;
	begin->data = data;
	r = call(thread, attr, begin_thread, begin);
	if (r != 0)
		begin_give(begin);
	return r;
}

PRELOAD_API int thrd_create(thrd_t *thread, thrd_start_t start, void *data)
{
	static void *real PRELOAD_NEAR;
	int (*call)(thrd_t *, thrd_start_t, void *) = PRELOAD_REAL(real, "thrd_create");
	struct begin *begin;
	int r;

	weft__preload_late_now();
	begin = begin_take();
	not_alone();
	if (!begin)
		return call(thread, start, data);
	begin->start_c11 = start;
	begin->data = data;
	r = call(thread, begin_thread_c11, begin);
	if (r != thrd_success)
		begin_give(begin);
	return r;
}

PRELOAD_API int pthread_cancel(pthread_t thread)
{
	static void *real PRELOAD_NEAR;
	int (*call)(pthread_t) = PRELOAD_REAL(real, "pthread_cancel");

	not_alone();
	return call(thread);
}

/* weft's own threads do not count, and are quiet. */
struct own {
	void *(*start)(void *);
	void *data;
};

static void *begin_own(void *data)
{
	struct own own = *(struct own *)data;

	weft__free(data);
	weft__preload_thread.quiet = 1;
	weft__preload_stack_begin();
	return own.start(own.data);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static void *real PRELOAD_NEAR;
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		PRELOAD_REAL(real, "pthread_create");
	struct own *own = weft__alloc(sizeof(*own));
	int r;

	if (!own)
		return EAGAIN;
	*own = (struct own){.start = start, .data = data};
	r = call(thread, attr, begin_own, own);
	if (r != 0)
		weft__free(own);
	return r;
}

void weft__preload_alone_init(void)
{
	if (!__atomic_load_n(&has_threads, __ATOMIC_RELAXED))
		__atomic_store_n(&weft__preload_alone, 1, __ATOMIC_RELAXED);
}
