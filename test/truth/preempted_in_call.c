/* SPDX-License-Identifier: Apache-2.0 */
/* A tick that writes to a memfd, and a thread that only computes, on one CPU: what the tick loses to it inside of
 * the call is time in which it was preempted, and not blocked. */
#include "truth.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { PIECE = 16 << 20 };

static int stop;

static void *spin(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		;
	return arg;
}

int main(void)
{
	char *data = calloc(1, PIECE);
	int fd = memfd_create("truth", MFD_CLOEXEC), loop = truth_loop(), tick, i;
	pthread_t thread;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	memset(data, 1, PIECE);
	pthread_create(&thread, NULL, spin, NULL);
	for (tick = 0; tick < 8; tick++) {
		truth_next(loop);
		struct truth_poll *poll = truth_begin("write");
		for (i = 0; i < 4; i++)
			if (pwrite(fd, data, PIECE, 0) != PIECE)
				return 1;
		truth_end(poll);
	}
	truth_next(loop);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	truth_print();
	return 0;
}
