/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>

static int make_sized(pthread_t *ret, int detached, size_t stack, void *(*start)(void *), void *data)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	if (detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(ret, &attr, start, data);
	pthread_attr_destroy(&attr);
	return err;
}

int weft__thread_make(pthread_t *ret, int detached, void *(*start)(void *), void *data)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = make_sized(ret, detached, THREAD_STACK, start, data);
	if (err == EINVAL) /* the program's thread-local memory is larger than that */
		err = make_sized(ret, detached, 0, start, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void *spare_main(void *data)
{
	return data;
}

void weft__thread_spare(void)
{
	pthread_t thread;

	if (weft__thread_make(&thread, 0, spare_main, NULL) == 0)
		pthread_join(thread, NULL);
}
