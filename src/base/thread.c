/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>

#include "base/atomic.h"

uint32_t weft__thread_let;

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
	int err, let = (int)load_relaxed(&weft__thread_let);
	sigset_t all, before;

	sigfillset(&all);
	if (let)
		sigdelset(&all, let);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = make_sized(ret, detached, THREAD_STACK, start, data);
	if (err == EINVAL) /* the program's thread-local memory is larger than that */
		err = make_sized(ret, detached, 0, start, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

#define SPARES 3 /* the collector, the thread that makes tables, the one that encodes */
static pthread_t spares[SPARES];
static int n_spares;

static void *spare_main(void *data)
{
	return data;
}

void weft__thread_spares(void)
{
	static int made;

	n_spares = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	made = 1; /* malloc is the sanitizer's */
#endif
	if (made++)
		return;
	while (n_spares < SPARES && weft__thread_make(&spares[n_spares], 0, spare_main, NULL) == 0)
		n_spares++;
}

void weft__thread_spares_end(void)
{
	while (n_spares)
		pthread_join(spares[--n_spares], NULL);
}
