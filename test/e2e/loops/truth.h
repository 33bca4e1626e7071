/* SPDX-License-Identifier: Apache-2.0 */
/* For programs with loops that know nothing of weft: what they did, as a line of JSON for run_loops.py. */
#ifndef WEFT_LOOPS_TRUTH_H
#define WEFT_LOOPS_TRUTH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 64
#define MS 1000000L

static struct {
	const char *call;
	uint64_t begin, end;
} blocks[BLOCKS];
static int blocks_n, ticks;
static int extra;     /* polls that there may be besides */
static uint64_t over; /* the loop is, since then */

static inline uint64_t mono(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Around something in a tick that blocks in a call whose name begins so. */
#define BLOCKED(name, what)                                                                                            \
	do {                                                                                                           \
		blocks[blocks_n].call = (name);                                                                        \
		blocks[blocks_n].begin = mono();                                                                       \
		what;                                                                                                  \
		blocks[blocks_n++].end = mono();                                                                       \
	} while (0)

/* LOOP is what the report is to call it; "": there is none. */
static inline void tell(const char *loop)
{
	printf("{\"loop\": \"%s\", \"ticks\": %d, \"more\": %d, \"over\": %llu, \"blocks\": [", loop, ticks, extra,
	       (unsigned long long)over);
	for (int i = 0; i < blocks_n; i++)
		printf("%s[\"%s\", %llu, %llu]", i ? ", " : "", blocks[i].call, (unsigned long long)blocks[i].begin,
		       (unsigned long long)blocks[i].end);
	puts("]}");
	fflush(stdout);
}

static inline void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A descriptor that can be read every 2 ms, and what to do then. */
static inline int often(void)
{
	struct itimerspec time = {{0, 2 * MS}, {0, 2 * MS}};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &time, NULL) < 0)
		fail("timerfd");
	return fd;
}

static inline void drain(int fd)
{
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
}

static inline void nap(long ns)
{
	struct timespec ts = {0, ns};

	nanosleep(&ts, NULL);
}

#endif
