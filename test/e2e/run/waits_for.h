/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that know nothing of weft: whether a thread is in a wait, so that who is waited for need not hope
 * that it will be soon. */
#ifndef WEFT_TEST_WAITS_FOR_H
#define WEFT_TEST_WAITS_FOR_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The system call that a thread of this process sleeps in, and its first argument; -1: none. */
static inline long in_call(int tid, unsigned long *first)
{
	char path[64], text[256];
	ssize_t n = -1;
	long number;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return -1;
	text[n] = 0;
	return sscanf(text, "%ld %lx", &number, first) == 2 ? number : -1;
}

/* Whether the thread sleeps in futex(2) for a word inside the object. */
static inline bool waits_for(int tid, const void *object, size_t bytes)
{
	unsigned long word = 0;

	return in_call(tid, &word) == SYS_futex && word >= (uintptr_t)object && word - (uintptr_t)object < bytes;
}

/* Until it does, or half a minute has gone by. */
static inline void until_waits_for(int tid, const void *object, size_t bytes)
{
	struct timespec pause = {0, 50000};
	time_t begun = time(NULL);

	while (!waits_for(tid, object, bytes) && time(NULL) - begun < 30)
		nanosleep(&pause, NULL);
}

/* Until it sleeps in that system call, or half a minute has gone by. */
static inline void until_in_call(int tid, long number)
{
	struct timespec pause = {0, 50000};
	time_t begun = time(NULL);
	unsigned long first;

	while (in_call(tid, &first) != number && time(NULL) - begun < 30)
		nanosleep(&pause, NULL);
}

/* Until the process sleeps, whatever for, or half a minute has gone by. */
static inline void until_sleeps(pid_t pid)
{
	struct timespec pause = {0, 50000};
	time_t begun = time(NULL);
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'S' && time(NULL) - begun < 30) {
		FILE *file = fopen(path, "r");

		if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		nanosleep(&pause, NULL);
	}
}

#endif
