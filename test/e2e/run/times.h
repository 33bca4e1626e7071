/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TEST_RUN_TIMES_H
#define WEFT_TEST_RUN_TIMES_H

#include <stdint.h>
#include <time.h>

#define MS 1000000L

static inline uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline struct timespec in_ns(clockid_t clock, long ns)
{
	uint64_t at = now_ns(clock) + (uint64_t)ns;

	return (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
}

static inline void nap(long ns)
{
	struct timespec ts = {0, ns};

	while (nanosleep(&ts, &ts) < 0)
		;
}

/* On the CPU all the while. */
static inline void spin(long ns)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)ns;

	while (now_ns(CLOCK_MONOTONIC) < end)
		;
}

#endif
