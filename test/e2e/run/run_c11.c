/* SPDX-License-Identifier: Apache-2.0 */
/* Locks and threads of C11, and waits for children, in a program that knows nothing of weft: what they answer, then
 * "name least most" of each wait, ns as measured here. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "waits_for.h"

#define MS 1000000L

static mtx_t lock;
static cnd_t cond;
static int stage; /* under the lock */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void nap(long ns)
{
	struct timespec ts = {0, ns};

	while (thrd_sleep(&ts, &ts) == -1)
		;
}

static struct timespec in_ns(long ns)
{
	struct timespec ts;

	timespec_get(&ts, TIME_UTC);
	ts.tv_nsec += ns;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

/* It was at least that long, as who was waited for saw it begin. */
static void told(const char *name, uint64_t begin, uint64_t least)
{
	fprintf(stderr, "wait %s %llu %llu\n", name, (unsigned long long)least, (unsigned long long)(now_ns() - begin));
}

/* Signals when the first thread has waited for the condition for 15 ms, holds the lock until that thread waited for it
 * for 15 ms, and ends when it was waited for. */
static int other(void *data)
{
	thrd_t self = thrd_current();

	mtx_lock(&lock);
	stage = 1;
	mtx_unlock(&lock);
	until_waits_for(getpid(), &cond, sizeof(cond));
	nap(15 * MS);
	mtx_lock(&lock);
	stage = 2;
	cnd_signal(&cond);
	until_waits_for(getpid(), &lock, sizeof(lock)); /* it may be kept from its CPU for longer */
	nap(15 * MS);
	mtx_unlock(&lock);
	until_waits_for(getpid(), (const void *)self, 4096); /* the C library has the word in there */
	nap(20 * MS);
	return *(int *)data;
}

static void rules(void)
{
	struct timespec past = {1, 0};
	mtx_t counts;

	mtx_init(&counts, mtx_recursive | mtx_timed);
	printf("recursive %d %d\n", mtx_lock(&counts), mtx_lock(&counts));
	printf("timed, free or ours %d\n", mtx_timedlock(&counts, &past));
	printf("unlock %d %d %d\n", mtx_unlock(&counts), mtx_unlock(&counts), mtx_unlock(&counts));
	mtx_lock(&lock);
	printf("timed, past %d\n", cnd_timedwait(&cond, &lock, &past));
	printf("held, past %d\n", mtx_timedlock(&lock, &past));
	printf("it is locked %d\n", mtx_trylock(&lock));
	mtx_unlock(&lock);
}

static void children(void)
{
	siginfo_t info;
	uint64_t begin;
	int status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		until_sleeps(getppid()); /* in the wait, or just before it */
		nap(20 * MS);
		_exit(3);
	}
	begin = now_ns();
	printf("wait %d", wait(&status) == pid);
	told("wait", begin, 15 * MS);
	printf(" %d\n", WEXITSTATUS(status));
	printf("none left %d %d\n", (int)wait3(&status, 0, NULL), errno == ECHILD);
	printf("none left %d %d\n", (int)wait4(-1, &status, 0, NULL), errno == ECHILD);
	pid = fork();
	if (!pid) {
		until_sleeps(getppid()); /* in the wait, or just before it */
		nap(20 * MS);
		_exit(4);
	}
	begin = now_ns();
	printf("waitid %d", waitid(P_PID, (id_t)pid, &info, WEXITED));
	told("waitid", begin, 15 * MS);
	printf(" %d\n", info.si_status);
}

int main(void)
{
	struct epoll_event ev;
	int ep = epoll_create1(0), answer = 42, result = 0;
	struct timespec later;
	uint64_t begin;
	thrd_t thread;

	for (int i = 0; i < 5; i++) /* a loop, inside a tick */
		epoll_wait(ep, &ev, 1, 1);
	mtx_init(&lock, mtx_timed);
	cnd_init(&cond);
	rules();
	children();
	mtx_lock(&lock);
	thrd_create(&thread, other, &answer);
	while (stage == 0)
		cnd_timedwait(&cond, &lock, &(struct timespec){1, 0});
	begin = now_ns();
	while (stage == 1)
		cnd_wait(&cond, &lock); /* it has the lock for a while after the signal */
	/* Two waits: one until it is signalled, and one for the lock. */
	told("cnd_wait", begin, 15 * MS);
	told("mtx_lock", begin, 15 * MS);
	mtx_unlock(&lock);
	begin = now_ns();
	printf("join %d", thrd_join(thread, &result));
	told("thrd_join", begin, 20 * MS);
	printf(" %d\n", result);
	later = in_ns(200 * MS); /* half of it, should this thread be late */
	mtx_lock(&lock);
	begin = now_ns();
	printf("timed out %d\n", mtx_timedlock(&lock, &later) == thrd_timedout);
	told("mtx_timedlock", begin, 100 * MS);
	mtx_unlock(&lock);
	close(ep);
	return 0;
}
