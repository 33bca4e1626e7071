/* SPDX-License-Identifier: Apache-2.0 */
/* Polls of several parts, and many polls. */
/* run: cpu_sleep_lock mixed */
/* run: many_short_one_long many */
/* run: hundred_naps naps */
/* run: yields yields */
#include "truth.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t take, taken;

static void *holder(void *arg)
{
	for (;;) {
		while (sem_wait(&take) < 0)
			;
		pthread_mutex_lock(&lock);
		sem_post(&taken);
		truth_nap(12 * MS);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void parts(void)
{
	truth_burn(3 * MS);
	truth_nap(4 * MS);
	truth_burn(2 * MS);
	truth_wait_begin();
	pthread_mutex_lock(&lock);
	truth_wait_end();
	pthread_mutex_unlock(&lock);
	truth_burn(MS);
	truth_nap(2 * MS);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "mixed";
	int loop = truth_loop(), tick, i;
	pthread_t thread;

	sem_init(&take, 0, 0);
	sem_init(&taken, 0, 0);
	if (!strcmp(how, "mixed"))
		pthread_create(&thread, NULL, holder, NULL);
	for (tick = 0; tick < 8; tick++) {
		if (!strcmp(how, "mixed")) {
			sem_post(&take);
			while (sem_wait(&taken) < 0)
				;
		}
		for (i = 0; !strcmp(how, "many") && i < 2000; i++) {
			struct epoll_event event;
			epoll_wait(loop, &event, 1, 0);
			truth_wall();
		}
		truth_next(loop);
		struct truth_poll *poll = truth_begin(how);
		if (!strcmp(how, "mixed"))
			parts();
		for (i = 0; !strcmp(how, "naps") && i < 100; i++)
			truth_nap(100 * US);
		for (i = 0; !strcmp(how, "yields") && i < 20000; i++)
			sched_yield();
		if (!strcmp(how, "many"))
			truth_burn(8 * MS);
		if (!strcmp(how, "many"))
			truth_nap(8 * MS);
		truth_end(poll);
		truth_next(loop); /* the next wait for the holder is in a tick of its own */
	}
	truth_next(loop);
	truth_print();
	return 0;
}
