/* SPDX-License-Identifier: Apache-2.0 */
/* 1,200 threads at the same time, each with a loop of its own: all are recorded, or the report says how many are
 * not. */
#include "truth.h"
#include <pthread.h>

enum { LOOPS = 1200 };

static pthread_barrier_t all;
static int tids[LOOPS];

static void *run(void *arg)
{
	int loop = truth_loop(), tick;

	*(int *)arg = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&all);
	for (tick = 0; tick < 4; tick++) {
		truth_next(loop);
		truth_nap(MS);
	}
	truth_next(loop);
	pthread_barrier_wait(&all);
	close(loop);
	return NULL;
}

int main(void)
{
	pthread_t threads[LOOPS];
	pthread_attr_t attr;
	int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_barrier_init(&all, NULL, LOOPS);
	for (i = 0; i < LOOPS; i++)
		if (pthread_create(&threads[i], &attr, run, &tids[i]))
			truth_skip("so many threads cannot be made");
	for (i = 0; i < LOOPS; i++)
		pthread_join(threads[i], NULL);
	truth_note("\"loops\": [%d", tids[0]);
	for (i = 1; i < LOOPS; i++) /* the tids */
		snprintf(truth_notes + strlen(truth_notes), 16, ", %d", tids[i]);
	strcat(truth_notes, "]");
	truth_print();
	return 0;
}
