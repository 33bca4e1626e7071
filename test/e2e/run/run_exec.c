/* SPDX-License-Identifier: Apache-2.0 */
/* Becomes itself again, N times, by every function there is for that. Usage: run_exec N */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void burn_ms(long ms)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	char left[16], *next[] = {argv[0], left, NULL};

	burn_ms(2);
	if (n <= 0) {
		puts("good");
		return 5;
	}
	snprintf(left, sizeof(left), "%d", n - 1);
	if (execl("/nowhere", "nowhere", (char *)NULL) != -1 || errno != ENOENT)
		return 1;
	switch (n % 7) {
	case 0:
		execv(argv[0], next);
		break;
	case 1:
		execve(argv[0], next, environ);
		break;
	case 2:
		execvp(argv[0], next);
		break;
	case 3:
		execl(argv[0], argv[0], left, (char *)NULL);
		break;
	case 4:
		execlp(argv[0], argv[0], left, (char *)NULL);
		break;
	case 5:
		execle(argv[0], argv[0], left, (char *)NULL, environ);
		break;
	default:
		syscall(SYS_execve, argv[0], next, environ);
	}
	return 2;
}
