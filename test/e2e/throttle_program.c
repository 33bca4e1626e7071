/* SPDX-License-Identifier: Apache-2.0 */
/* A program for throttle.py: one worker computes in polls of 30 ms of CPU each, for as long as asked, and says what
 * its clocks say.
 *
 * usage: throttle_program DIR SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "weft/weft.h"

static unsigned long long read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000u + (unsigned long long)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .switches = WEFT_SWITCH_INTERVALS};
	unsigned long long wall_ns = 0, cpu_ns = 0, begin_ns;
	struct weft_recorder *rec;
	struct weft_error err;
	unsigned polls = 0;

	if (argc != 3)
		return 2;
	opts.dir = argv[1];
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (begin_ns = read_ns(CLOCK_MONOTONIC);
	     read_ns(CLOCK_MONOTONIC) - begin_ns < strtoull(argv[2], NULL, 10) * 1000000000u; polls++) {
		unsigned long long wall = read_ns(CLOCK_MONOTONIC), cpu = read_ns(CLOCK_THREAD_CPUTIME_ID);

		weft_poll_begin(1, WEFT_DEPTH_UNKNOWN);
		while (read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu < 30000000)
			;
		weft_poll_end();
		wall_ns += read_ns(CLOCK_MONOTONIC) - wall;
		cpu_ns += read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	}
	weft_recorder_close(rec, NULL);
	printf("{\"polls\": %u, \"wall_ns\": %llu, \"cpu_ns\": %llu}\n", polls, wall_ns, cpu_ns);
	return 0;
}
