/* SPDX-License-Identifier: Apache-2.0 */
/* Makes that many threads, which allocate and wait, computes for a second, and says how many KiB of address space it
 * then has: bench_space_plain N. Knows nothing of weft: for bench/run_cost.py. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *wait_on(void *data)
{
	void *volatile at = malloc(100);

	free(at);
	for (;;)
		pause();
	return data;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	struct timespec now = {0, 0};
	pthread_t thread;
	char line[256];
	FILE *file;

	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, wait_on, NULL) != 0)
			return 1;
	while (now.tv_sec < 1) {
		/* Outside of the C library, where the recording is not begun. */
		for (volatile int i = 0; i < 1000000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	}
	file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "VmSize:", 7))
			printf("%lu\n", strtoul(line + 7, NULL, 10));
	return 0;
}
