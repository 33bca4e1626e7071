/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, conditions, semaphores and calls that block, in a program that knows nothing of weft: what they answer, and
 * errno, in cases in which that is easily got wrong. It must be the same with weft and without. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "times.h"

/* Makes this thread one with an epoll loop, inside a tick. */
static int become_a_loop(void)
{
	struct epoll_event ev;
	int ep = epoll_create1(0), i;

	for (i = 0; i < 5; i++)
		epoll_wait(ep, &ev, 1, 1);
	return ep;
}

static void say(const char *what, int answer)
{
	printf("%s: %d %d\n", what, answer, errno);
	errno = 7777;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, ready;
static const struct timespec wrong = {1, 1000000000}, past = {1, 0};

static pthread_mutex_t make_mutex(int type, int robust, int protocol)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutexattr_setrobust(&attr, robust);
	pthread_mutexattr_setprotocol(&attr, protocol);
	pthread_mutex_init(&mutex, &attr);
	return mutex;
}

static void *lock_and_die(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static void mutex_rules(void)
{
	pthread_mutex_t checks = make_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	pthread_mutex_t counts = make_mutex(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	pthread_mutex_t robust = make_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
	pthread_mutex_t passes = make_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
	pthread_mutex_t adapts = make_mutex(PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	pthread_t thread;

	say("lock", pthread_mutex_lock(&checks));
	say("lock again", pthread_mutex_lock(&checks));
	say("lock again, in time", pthread_mutex_timedlock(&checks, &past));
	say("unlock", pthread_mutex_unlock(&checks));
	say("unlock again", pthread_mutex_unlock(&checks));
	say("recursive", pthread_mutex_lock(&counts) + pthread_mutex_lock(&counts) + pthread_mutex_lock(&counts));
	say("and back", pthread_mutex_unlock(&counts) + pthread_mutex_unlock(&counts) + pthread_mutex_unlock(&counts));
	say("once too often", pthread_mutex_unlock(&counts));
	say("with priorities", pthread_mutex_lock(&passes));
	say("again", pthread_mutex_lock(&passes));
	say("unlock", pthread_mutex_unlock(&passes));
	say("adaptive", pthread_mutex_lock(&adapts) + pthread_mutex_unlock(&adapts));
	pthread_create(&thread, NULL, lock_and_die, &robust);
	pthread_join(thread, NULL);
	say("holder died", pthread_mutex_lock(&robust));
	say("unlock, not repaired", pthread_mutex_unlock(&robust));
	say("lost for good", pthread_mutex_lock(&robust));
	say("free, time is wrong", pthread_mutex_timedlock(&lock, &wrong));
	pthread_mutex_unlock(&lock);
	say("free, time is past", pthread_mutex_timedlock(&lock, &past));
	say("held, time is past", pthread_mutex_timedlock(&lock, &past));
	say("held, time is wrong", pthread_mutex_timedlock(&lock, &wrong));
	say("held, clock is wrong", pthread_mutex_clocklock(&lock, 42, &past));
	pthread_mutex_unlock(&lock);
	say("free, clock is wrong", pthread_mutex_clocklock(&lock, 42, &past));
}

static void rwlock_rules(void)
{
	say("read", pthread_rwlock_rdlock(&rwlock));
	say("read again", pthread_rwlock_rdlock(&rwlock));
	say("write, past", pthread_rwlock_timedwrlock(&rwlock, &past));
	say("unlock", pthread_rwlock_unlock(&rwlock) + pthread_rwlock_unlock(&rwlock));
	say("write", pthread_rwlock_wrlock(&rwlock));
	say("write again", pthread_rwlock_wrlock(&rwlock));
	say("read what it writes", pthread_rwlock_rdlock(&rwlock));
	say("unlock", pthread_rwlock_unlock(&rwlock));
	say("read, time is wrong", pthread_rwlock_timedrdlock(&rwlock, &wrong));
	say("write, clock is wrong", pthread_rwlock_clockwrlock(&rwlock, 42, &past));
	say("read, in time", pthread_rwlock_timedrdlock(&rwlock, &past) + pthread_rwlock_unlock(&rwlock));
}

static void on_alarm(int number)
{
	(void)number;
}

static sigjmp_buf away;

static void jump_away(int number)
{
	(void)number;
	siglongjmp(away, 1);
}

static void alarm_in(long us)
{
	struct itimerval once = {{0, 0}, {0, us}};

	setitimer(ITIMER_REAL, &once, NULL);
}

/* Again and again: the first may come before the call that it is to interrupt. */
static void alarm_every(long us)
{
	struct itimerval often = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &often, NULL);
}

static void semaphore_rules(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	struct timespec soon;
	int answer;

	sem_init(&sem, 0, 2);
	say("there is one", sem_wait(&sem));
	say("there is one, in time", sem_timedwait(&sem, &past));
	say("none, past", sem_timedwait(&sem, &past));
	say("none, time is wrong", sem_timedwait(&sem, &wrong));
	soon = in_ns(CLOCK_REALTIME, 5 * MS);
	say("none, for 5 ms", sem_timedwait(&sem, &soon));
	sigaction(SIGALRM, &act, NULL);
	alarm_every(5000);
	answer = sem_wait(&sem);
	alarm_every(0);
	say("interrupted", answer);
	pthread_mutex_lock(&lock);
	soon = in_ns(CLOCK_REALTIME, 5 * MS);
	say("condition, for 5 ms", pthread_cond_timedwait(&cond, &lock, &soon));
	say("condition, time is wrong", pthread_cond_timedwait(&cond, &lock, &wrong));
	say("it is locked", pthread_mutex_trylock(&lock));
	pthread_mutex_unlock(&lock);
}

static void call_rules(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	int ends[2], answer;
	char byte = 0;

	if (pipe(ends) < 0)
		exit(90);
	say("no such file", (int)read(1234, &byte, 1));
	say("nowhere to write", (int)write(ends[0], &byte, 1));
	say("no socket", (int)recv(ends[0], &byte, 1, 0));
	sigaction(SIGALRM, &act, NULL);
	alarm_every(5000);
	answer = (int)read(ends[0], &byte, 1);
	alarm_every(0);
	say("interrupted", answer);
	act.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &act, NULL);
	if (fork() == 0) {
		nap(15 * MS);
		_exit(write(ends[1], &byte, 1) == 1 ? 0 : 1);
	}
	alarm_every(5000);
	answer = (int)read(ends[0], &byte, 1);
	alarm_every(0); /* before the next handler is there */
	say("restarted", answer);
	wait(NULL);
	act.sa_handler = jump_away;
	sigaction(SIGALRM, &act, NULL);
	if (sigsetjmp(away, 1) == 0) {
		alarm_in(5000);
		say("not reached", (int)read(ends[0], &byte, 1));
	}
	say("jumped out", 0);
	close(ends[0]);
	close(ends[1]);
}

/* Threads that wait and are cancelled. */
static int pipe_ends[2];
static volatile int cleaned;

static void clean(void *data)
{
	cleaned = pthread_mutex_trylock(&lock) == EBUSY ? 1 : 2;
	(void)data;
	pthread_mutex_unlock(&lock);
}

static void *wait_for_condition(void *data)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(clean, NULL);
	sem_post(&ready);
	for (;;)
		pthread_cond_wait(&cond, &lock);
	pthread_cleanup_pop(1);
	return data;
}

static void *wait_for_semaphore(void *data)
{
	sem_post(&ready);
	for (;;)
		sem_wait(&sem);
	return data;
}

static void *wait_for_byte(void *data)
{
	char byte;

	close(become_a_loop());
	sem_post(&ready);
	for (;;)
		(void)!read(pipe_ends[0], &byte, 1);
	return data;
}

static void *cancel_before_waiting(void *data)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sem_post(&ready);
	while (!*(volatile int *)data)
		;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	sem_wait(&sem); /* there is one, but this is where it ends */
	return data;
}

static void cancel_rules(void)
{
	static void *(*const waiters[])(void *) = {wait_for_condition, wait_for_semaphore, wait_for_byte,
						   cancel_before_waiting};
	static int go;
	pthread_t thread;
	void *result;
	size_t i;

	if (pipe(pipe_ends) < 0)
		exit(91);
	sem_init(&ready, 0, 0);
	sem_init(&sem, 0, 0);
	for (i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++) {
		if (i == 3)
			sem_post(&sem);
		__atomic_store_n(&go, 0, __ATOMIC_RELAXED);
		pthread_create(&thread, NULL, waiters[i], &go);
		while (sem_wait(&ready) < 0)
			;
		nap(2 * MS);
		pthread_cancel(thread);
		__atomic_store_n(&go, 1, __ATOMIC_RELAXED);
		pthread_join(thread, &result);
		say("cancelled", result == PTHREAD_CANCELED);
	}
	say("cleaned up", cleaned);
	say("left", sem_trywait(&sem));
	say("not locked", pthread_mutex_trylock(&lock));
	pthread_mutex_unlock(&lock);
}

/* What a program does before main. */
static int early_answers;

__attribute__((constructor)) static void be_early(void)
{
	static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
	struct timespec soon = in_ns(CLOCK_REALTIME, MS);
	pthread_t thread;

	if (!getenv("RUN_LOCKS_EARLY") || !*getenv("RUN_LOCKS_EARLY"))
		return;
	early_answers += pthread_mutex_lock(&early) == 0;
	early_answers += pthread_cond_timedwait(&cond, &early, &soon) == ETIMEDOUT;
	early_answers += pthread_mutex_unlock(&early) == 0;
	early_answers += pthread_create(&thread, NULL, lock_and_die, &early) == 0;
	early_answers += pthread_join(thread, NULL) == 0;
	early_answers += pthread_mutex_trylock(&early) == EBUSY;
}

static int rules(void)
{
	int ep = become_a_loop();

	errno = 7777;
	say("early", early_answers);
	call_rules(); /* while there is one thread */
	mutex_rules();
	rwlock_rules();
	semaphore_rules();
	cancel_rules();
	call_rules();
	close(ep);
	return 0;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return rules();
}
