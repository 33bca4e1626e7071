/* SPDX-License-Identifier: Apache-2.0 */
/* An epoll loop that knows nothing of weft, with a sleep of 20 ms and a computation of 30 ms of CPU time in it.
 * Usage: run_loop [exit STATUS | kill SIGNAL | threads N | fork | block | cancel | wait | masked] */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "waits_for.h"

#define TICKS 20

static volatile uint64_t sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

__attribute__((noinline)) static void burn_in_the_loop(uint64_t ms)
{
	uint64_t end = cpu_ms() + ms, i;

	while (cpu_ms() < end)
		for (i = 0; i < 20000; i++)
			sink += i * i;
}

static void *loop(void *data)
{
	struct itimerspec often = {{0, 2000000}, {0, 2000000}};
	struct epoll_event ev = {.events = EPOLLIN};
	struct timespec nap = {0, 20000000};
	int ep = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0), i;
	uint64_t fired;

	(void)data;
	if (ep < 0 || timer < 0 || timerfd_settime(timer, 0, &often, NULL) < 0 ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, timer, &ev) < 0)
		exit(99);
	for (i = 0; i < TICKS; i++) {
		if (epoll_wait(ep, &ev, 1, -1) != 1 || read(timer, &fired, sizeof(fired)) != sizeof(fired))
			exit(98);
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		if (i == 8)
			nanosleep(&nap, NULL);
		if (i % 5 == 4)
			burn_in_the_loop(30);
	}
	close(timer);
	close(ep);
	return NULL;
}

static pthread_barrier_t all_done;

/* None ends before all have been loops, so that none is the worker that another one was. */
static void *loop_beside_others(void *data)
{
	loop(data);
	pthread_barrier_wait(&all_done);
	return NULL;
}

static sem_t locked;

static void *hold_the_lock(void *data)
{
	struct timespec nap = {0, 25000000};

	pthread_mutex_lock(&lock);
	sem_post(&locked);
	until_waits_for(getpid(), &lock, sizeof(lock));
	nanosleep(&nap, NULL);
	pthread_mutex_unlock(&lock);
	return data;
}

/* Ticks of an epoll loop that wait for a lock, and for one descriptor by poll. */
static void block(void)
{
	int ep = epoll_create1(0), ends[2], i;
	struct epoll_event ev;
	struct pollfd one;
	pthread_t holder;

	if (ep < 0 || pipe(ends) < 0)
		exit(96);
	one = (struct pollfd){.fd = ends[0], .events = POLLIN};
	sem_init(&locked, 0, 0);
	for (i = 0; i < 20; i++) {
		if (epoll_wait(ep, &ev, 1, 1) != 0)
			exit(95);
		if (i == 15 && poll(&one, 1, 15) != 0)
			exit(94);
		if (i != 16)
			continue;
		pthread_create(&holder, NULL, hold_the_lock, NULL);
		while (sem_wait(&locked) < 0)
			;
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		pthread_join(holder, NULL);
	}
}

static void *wait_forever(void *data)
{
	int ep = epoll_create1(0), i;
	struct epoll_event ev;

	for (i = 0; i < 5; i++)
		epoll_wait(ep, &ev, 1, 1);
	sem_post(&locked);
	for (;;)
		epoll_wait(ep, &ev, 1, -1);
	return data;
}

static int cancel(void)
{
	pthread_t thread;
	void *result;

	sem_init(&locked, 0, 0);
	pthread_create(&thread, NULL, wait_forever, NULL);
	while (sem_wait(&locked) < 0)
		;
	pthread_cancel(thread);
	pthread_join(thread, &result);
	return result == PTHREAD_CANCELED ? 0 : 93;
}

static uint32_t masked_done;

static void *burn_masked(void *data)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	burn_in_the_loop(400);
	__atomic_store_n(&masked_done, 1, __ATOMIC_RELEASE);
	return data;
}

/* A thread that blocks all signals uses the CPU while another one waits: a signal of the process would go to that. */
static int masked(void)
{
	pthread_t burner;
	int err = 0;

	pthread_create(&burner, NULL, burn_masked, NULL);
	while (!__atomic_load_n(&masked_done, __ATOMIC_ACQUIRE))
		if (poll(NULL, 0, 20) < 0)
			err = 92;
	pthread_join(burner, NULL);
	return err;
}

static void on_term(int number)
{
	(void)number;
	_exit(9);
}

int main(int argc, char **argv)
{
	int number = argc > 2 ? atoi(argv[2]) : 0, i, status;
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t threads[16];

	if (strcmp(mode, "threads") == 0 && number <= 16) {
		pthread_barrier_init(&all_done, NULL, (unsigned)number);
		for (i = 0; i < number; i++)
			pthread_create(&threads[i], NULL, loop_beside_others, NULL);
		for (i = 0; i < number; i++)
			pthread_join(threads[i], NULL);
	} else if (strcmp(mode, "fork") == 0) {
		pid_t pid;

		loop(NULL);
		pid = fork();
		if (pid == 0) {
			loop(NULL);
			exit(5);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
			return 97;
	} else if (strcmp(mode, "block") == 0) {
		block();
	} else if (strcmp(mode, "cancel") == 0) {
		if (cancel() != 0)
			return 93;
	} else if (strcmp(mode, "masked") == 0) {
		if (masked() != 0)
			return 92;
	} else if (strcmp(mode, "wait") == 0) {
		signal(SIGTERM, on_term);
		loop(NULL);
		puts("ready");
		fflush(stdout);
		wait_forever(NULL);
	} else {
		loop(NULL);
	}
	puts("done");
	fflush(stdout);
	if (strcmp(mode, "kill") == 0)
		raise(number);
	return strcmp(mode, "exit") == 0 ? number : 0;
}
