/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of 1 ms of CPU time that wait about 5 ms for another thread. */
/* run: cond_wait cond */
/* run: cond_timedwait cond_timed */
/* run: cond_relock relock */
/* run: sem_wait sem */
/* run: barrier barrier */
/* run: thread_join join */
/* run: rwlock_write rwlock_write */
/* run: rwlock_read rwlock_read */
/* run: mutex_timedlock timedlock */
/* run: futex_raw futex */
/* run: spin_wait spin */
#include "truth.h"
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t ready, done;
static int word;
static const char *how;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void *other(void *arg)
{
	if (is("rwlock_write"))
		pthread_rwlock_rdlock(&rwlock);
	else if (is("rwlock_read"))
		pthread_rwlock_wrlock(&rwlock);
	else if (is("timedlock"))
		pthread_mutex_lock(&lock);
	sem_post(&ready);
	truth_nap(5 * MS);
	if (is("rwlock_write") || is("rwlock_read"))
		pthread_rwlock_unlock(&rwlock);
	if (is("cond") || is("relock")) {
		pthread_mutex_lock(&lock);
		word = 1;
		pthread_cond_signal(&cond);
		if (is("relock"))
			truth_nap(3 * MS); /* and holds the lock on */
	}
	if (is("cond") || is("relock") || is("timedlock"))
		pthread_mutex_unlock(&lock);
	sem_post(&done);
	if (is("barrier"))
		pthread_barrier_wait(&barrier);
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	return arg;
}

static void wait_for(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += is("cond_timed") ? 0 : 10;
	until.tv_nsec += is("cond_timed") ? 5 * MS : 0;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (is("cond") || is("cond_timed") || is("relock")) {
		pthread_mutex_lock(&lock);
		while (!word && (is("cond_timed") ? pthread_cond_timedwait(&cond, &lock, &until) == 0
						  : pthread_cond_wait(&cond, &lock) == 0))
			;
		pthread_mutex_unlock(&lock);
	} else if (is("sem")) {
		while (sem_wait(&done) < 0)
			;
	} else if (is("barrier")) {
		pthread_barrier_wait(&barrier);
	} else if (is("join")) {
		pthread_join(thread, NULL);
	} else if (is("rwlock_write")) {
		pthread_rwlock_wrlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else if (is("rwlock_read")) {
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else if (is("timedlock")) {
		if (!pthread_mutex_timedlock(&lock, &until))
			pthread_mutex_unlock(&lock);
	} else {
		while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE))
			if (is("futex"))
				syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	int loop = truth_loop(), tick;
	pthread_t thread;

	how = argc > 1 ? argv[1] : "cond";
	sem_init(&ready, 0, 0);
	sem_init(&done, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	for (tick = 0; tick < 8; tick++) {
		truth_next(loop);
		word = 0;
		pthread_create(&thread, NULL, other, NULL);
		while (sem_wait(&ready) < 0)
			;
		truth_next(loop);
		struct truth_poll *poll = truth_begin(how);
		truth_burn(MS);
		truth_wait_begin();
		wait_for(thread);
		truth_wait_end();
		truth_end(poll);
		truth_next(loop);
		if (!is("join"))
			pthread_join(thread, NULL);
	}
	truth_next(loop);
	truth_print();
	return 0;
}
