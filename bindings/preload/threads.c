/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: whether the program has made any, and which are weft's. */
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "preload.h"

uint32_t weft__preload_alone;
static uint32_t has_threads; /* the program has made some */

/* Whether the program has one thread. Nobody can cancel that but itself, and then it is over. */
static void not_alone(void)
{
	__atomic_store_n(&has_threads, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&weft__preload_alone, 0, __ATOMIC_RELAXED);
}

PRELOAD_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static void *real;
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		PRELOAD_REAL(real, "pthread_create");

	not_alone();
	return call(thread, attr, start, data);
}

PRELOAD_API int thrd_create(thrd_t *thread, thrd_start_t start, void *data)
{
	static void *real;
	int (*call)(thrd_t *, thrd_start_t, void *) = PRELOAD_REAL(real, "thrd_create");

	not_alone();
	return call(thread, start, data);
}

PRELOAD_API int pthread_cancel(pthread_t thread)
{
	static void *real;
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

	free(data);
	weft__preload_thread.quiet = 1;
	return own.start(own.data);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *data)
{
	static void *real;
	int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		PRELOAD_REAL(real, "pthread_create");
	struct own *own = malloc(sizeof(*own));
	int r;

	if (!own)
		return EAGAIN;
	*own = (struct own){.start = start, .data = data};
	r = call(thread, attr, begin_own, own);
	if (r != 0)
		free(own);
	return r;
}

/* A library between this one and the C library may have functions of its own that are not to be passed by. */
void weft__preload_alone_init(void)
{
	static const char *const bare[] = {"read",    "readv",   "pread",      "pread64",     "write",
					   "writev",  "pwrite",  "pwrite64",   "recv",        "recvfrom",
					   "recvmsg", "send",    "sendto",     "sendmsg",     "accept",
					   "accept4", "connect", "epoll_wait", "epoll_pwait", "poll"};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	bool all = libc != NULL;
	size_t i;

	for (i = 0; all && i < sizeof(bare) / sizeof(bare[0]); i++)
		all = dlsym(RTLD_NEXT, bare[i]) == dlsym(libc, bare[i]);
	if (libc)
		dlclose(libc);
	if (all && !__atomic_load_n(&has_threads, __ATOMIC_RELAXED))
		__atomic_store_n(&weft__preload_alone, 1, __ATOMIC_RELAXED);
}
