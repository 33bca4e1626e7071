/* SPDX-License-Identifier: Apache-2.0 */
/* Forks that many children, one after the other, which end at once or exec true, and says how many seconds that took:
 * bench_forks_plain fork|exec N. Knows nothing of weft: for bench/run_cost.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int execs = argc > 1 && strcmp(argv[1], "exec") == 0, n = argc > 2 ? atoi(argv[2]) : 500, i, status;
	double begin = now();

	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (execs)
				execl("/bin/true", "true", NULL);
			_exit(execs);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	printf("%.6f\n", now() - begin);
	return 0;
}
