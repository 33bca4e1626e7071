/* SPDX-License-Identifier: Apache-2.0 */
/* Waits whose length is known, in a program that knows nothing of weft. Usage:
 *        run_waits truth   one by one: name, the least and the most ns, and who was waited for, as measured here
 *        run_waits crowd   eight threads that work under one lock: ns of work, of waits for it, of the threads' lives */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "times.h"
#include "waits_for.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, ready;

/* Somebody has it until the first thread has waited for NS, and says who that is, and for how long the other one was
 * waiting for sure. */
struct holder {
	long ns;
	int tid;
	const void *object;
	size_t bytes;
	void (*take)(void), (*give)(void);
	uint64_t least_ns;
};

static void take_mutex(void)
{
	pthread_mutex_lock(&lock);
}

static void give_mutex(void)
{
	pthread_mutex_unlock(&lock);
}

static void take_rwlock(void)
{
	pthread_rwlock_wrlock(&rwlock);
}

static void give_rwlock(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void take_nothing(void)
{
}

static void give_signal(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static void give_semaphore(void)
{
	sem_post(&sem);
}

static void *hold(void *data)
{
	struct holder *holder = data;
	uint64_t begin;

	holder->tid = (int)syscall(SYS_gettid);
	holder->take();
	sem_post(&ready);
	until_waits_for(getpid(), holder->object, holder->bytes);
	begin = now_ns(CLOCK_MONOTONIC);
	nap(holder->ns);
	holder->least_ns = now_ns(CLOCK_MONOTONIC) - begin;
	holder->give();
	return NULL;
}

static void wait_mutex(void)
{
	pthread_mutex_lock(&lock);
}

static void wait_mutex_in_time(void)
{
	struct timespec later = in_ns(CLOCK_MONOTONIC, 60000 * MS);

	pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &later);
}

static void wait_read(void)
{
	pthread_rwlock_rdlock(&rwlock);
}

static void wait_write(void)
{
	pthread_rwlock_wrlock(&rwlock);
}

static void wait_condition(void)
{
	pthread_cond_wait(&cond, &lock);
}

static void wait_semaphore(void)
{
	while (sem_wait(&sem) < 0)
		;
}

struct truth {
	const char *name;
	const void *object;
	size_t bytes;
	void (*take)(void), (*give)(void), (*before)(void), (*waits)(void), (*after)(void);
	long ns;
	int has_holder;
};

/* Says the least and the most that the wait can have been; whether they are close. */
static int truth_of(const struct truth *c)
{
	struct holder holder = {.ns = c->ns, .object = c->object, .bytes = c->bytes, .take = c->take, .give = c->give};
	uint64_t begin, most;
	pthread_t thread;

	pthread_create(&thread, NULL, hold, &holder);
	while (sem_wait(&ready) < 0)
		;
	c->before();
	begin = now_ns(CLOCK_MONOTONIC);
	c->waits();
	most = now_ns(CLOCK_MONOTONIC) - begin;
	c->after();
	pthread_join(thread, NULL);
	printf("%s %llu %llu %d\n", c->name, (unsigned long long)holder.least_ns, (unsigned long long)most,
	       c->has_holder ? holder.tid : 0);
	return most - holder.least_ns <= most / 20 || most - holder.least_ns <= MS / 5;
}

#define OBJECT(x) &(x), sizeof(x)

static int truth(void)
{
	static const struct truth cases[] = {
		{"pthread_mutex_lock", OBJECT(lock), take_mutex, give_mutex, take_nothing, wait_mutex, give_mutex,
		 12 * MS, 1},
		{"pthread_mutex_clocklock", OBJECT(lock), take_mutex, give_mutex, take_nothing, wait_mutex_in_time,
		 give_mutex, 20 * MS, 1},
		{"pthread_rwlock_rdlock", OBJECT(rwlock), take_rwlock, give_rwlock, take_nothing, wait_read,
		 give_rwlock, 25 * MS, 1},
		{"pthread_rwlock_wrlock", OBJECT(rwlock), take_rwlock, give_rwlock, take_nothing, wait_write,
		 give_rwlock, 30 * MS, 1},
		{"pthread_cond_wait", OBJECT(cond), take_nothing, give_signal, take_mutex, wait_condition, give_mutex,
		 35 * MS, 0},
		{"sem_wait", OBJECT(sem), take_nothing, give_semaphore, take_nothing, wait_semaphore, take_nothing,
		 40 * MS, 0},
	};
	size_t i;
	int tries;

	sem_init(&sem, 0, 0);
	sem_init(&ready, 0, 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (tries = 0; tries < 20 && !truth_of(&cases[i]); tries++)
			; /* the machine was elsewhere */
	return 0;
}

#define CROWD 8
static uint64_t work, waits, lives;

static void *crowd_in(void *data)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), waited = 0, t;

	while (now_ns(CLOCK_MONOTONIC) < begin + 600 * MS) {
		t = now_ns(CLOCK_MONOTONIC);
		pthread_mutex_lock(&lock);
		waited += now_ns(CLOCK_MONOTONIC) - t;
		for (t = now_ns(CLOCK_MONOTONIC); now_ns(CLOCK_MONOTONIC) < t + MS / 2;)
			;
		pthread_mutex_unlock(&lock);
	}
	__atomic_fetch_add(&waits, waited, __ATOMIC_RELAXED);
	__atomic_fetch_add(&work, now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lives, now_ns(CLOCK_MONOTONIC) - begin, __ATOMIC_RELAXED);
	return data;
}

static int crowd(void)
{
	pthread_t threads[CROWD];
	int i;

	for (i = 0; i < CROWD; i++)
		pthread_create(&threads[i], NULL, crowd_in, NULL);
	for (i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	printf("%llu %llu %llu\n", (unsigned long long)work, (unsigned long long)waits, (unsigned long long)lives);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "truth") == 0)
		return truth();
	return strcmp(mode, "crowd") == 0 ? crowd() : 2;
}
