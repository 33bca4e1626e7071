/* SPDX-License-Identifier: Apache-2.0 */
/* A library that takes its time to begin: for test/e2e/run/run_small.c. It says so, and waits to be told to go on;
 * or makes a thread. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *nothing(void *data)
{
	return data;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;
	const char *says = getenv("RUN_SLOW_SAYS"), *waits = getenv("RUN_SLOW_WAITS");
	char byte = 0;

	if (says && waits) {
		(void)!write(atoi(says), &byte, 1);
		(void)!read(atoi(waits), &byte, 1);
	} else if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
		pthread_join(thread, NULL);
	}
}
