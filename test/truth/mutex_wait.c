/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks that wait for a mutex which another thread holds for 5 ms, and compute for 2 ms. */
#include "truth.h"
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t take, taken;

static void *holder(void *arg)
{
	for (;;) {
		while (sem_wait(&take) < 0)
			;
		pthread_mutex_lock(&cache_lock);
		sem_post(&taken);
		truth_nap(5 * MS);
		pthread_mutex_unlock(&cache_lock);
	}
	return arg;
}

int main(void)
{
	int loop = truth_loop(), tick;
	pthread_t thread;

	sem_init(&take, 0, 0);
	sem_init(&taken, 0, 0);
	pthread_create(&thread, NULL, holder, NULL);
	for (tick = 0; tick < 10; tick++) {
		sem_post(&take);
		while (sem_wait(&taken) < 0)
			;
		truth_next(loop);
		struct truth_poll *poll = truth_begin("lock");
		truth_burn(MS);
		truth_wait_begin();
		pthread_mutex_lock(&cache_lock);
		truth_wait_end();
		pthread_mutex_unlock(&cache_lock);
		truth_burn(MS);
		truth_end(poll);
		truth_next(loop); /* the next wait for the holder is in a tick of its own */
	}
	truth_next(loop);
	truth_note("\"waits\": [\"pthread_mutex_lock\"]");
	truth_print();
	return 0;
}
