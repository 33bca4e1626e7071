/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of weft: inside the tick of an epoll loop it reads a byte, or takes a lock that is
 * free and gives it back, again and again, and prints what one of these takes, in ns. interpose.py runs it with and
 * without libweft-preload.so. usage: bench_interpose_plain read|lock BURSTS CALLS [threaded] */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void *sleep_on(void *data)
{
	for (;;)
		pause();
	return data;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void read_often(int fd, int calls)
{
	char byte;

	while (calls-- > 0)
		if (read(fd, &byte, 1) != 1)
			exit(1);
}

static void lock_often(int calls)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	while (calls-- > 0)
		if (pthread_mutex_lock(&lock) != 0 || pthread_mutex_unlock(&lock) != 0)
			exit(1);
}

int main(int argc, char **argv)
{
	int locks = argc > 1 && strcmp(argv[1], "lock") == 0;
	int bursts = argc > 2 ? atoi(argv[2]) : 200, calls = argc > 3 ? atoi(argv[3]) : 1000, i;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC), ep = epoll_create1(EPOLL_CLOEXEC);
	double *ns = malloc((size_t)bursts * sizeof(*ns));
	struct epoll_event ev;
	pthread_t thread;

	if (fd < 0 || ep < 0 || !ns || bursts < 1)
		return 1;
	if (argc > 4 && pthread_create(&thread, NULL, sleep_on, NULL) != 0)
		return 1;
	for (i = 0; i < bursts; i++) {
		uint64_t begin;

		epoll_wait(ep, &ev, 1, i < 5 ? 1 : 0); /* a tick ends, and another begins */
		begin = now_ns();
		if (locks)
			lock_often(calls);
		else
			read_often(fd, calls);
		ns[i] = (double)(now_ns() - begin) / calls;
	}
	qsort(ns, (size_t)bursts, sizeof(*ns), by_size);
	printf("%.3f\n", ns[bursts / 4]); /* what others do to the machine only ever adds */
	return 0;
}
