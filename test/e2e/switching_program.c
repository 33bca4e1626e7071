/* SPDX-License-Identifier: Apache-2.0 */
/* A program for switching.py: two threads on one CPU hand a futex to and fro, 100,000 times a second and more, and
 * say what their clocks say. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 2

static uint32_t turn, over;

static unsigned long long read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000u + (unsigned long long)ts.tv_nsec;
}

static void *player(void *data)
{
	unsigned long long wall = read_ns(CLOCK_MONOTONIC), cpu = read_ns(CLOCK_THREAD_CPUTIME_ID);
	uint32_t me = data != NULL, now;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != me &&
		       !__atomic_load_n(&over, __ATOMIC_RELAXED))
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	wall = read_ns(CLOCK_MONOTONIC) - wall;
	cpu = read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%d %llu %llu\n", (int)syscall(SYS_gettid), wall, cpu);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, player, i ? &turn : NULL))
			return 1;
	sleep(SECONDS);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
