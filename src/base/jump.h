/* SPDX-License-Identifier: Apache-2.0 */
/* How old files are, on a machine whose clock was set meanwhile. A file's time is CLOCK_REALTIME. When somebody sets
 * that clock forward, files of before look as much older; CLOCK_BOOTTIME, which nobody sets, shows by how much. A
 * process knows only the jumps that it has seen. COLLECTOR and the threads of targets, one struct each. */
#ifndef WEFT_BASE_JUMP_H
#define WEFT_BASE_JUMP_H

#include <stdint.h>
#include <time.h>

#define JUMP_LEAST_NS (60 * UINT64_C(1000000000)) /* less is adjustment */

struct weft__jump {
	uint64_t real_ns, boot_ns; /* when they were read last; 0: never */
	uint64_t before_ns;        /* files of before this time of CLOCK_REALTIME */
	uint64_t by_ns;            /* are younger than they look by this much */
};

/* CLOCK_BOOTTIME: goes on while the machine sleeps. */
static inline uint64_t weft__jump_boot(void)
{
	struct timespec now = {0, 0};

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Takes a reading of both clocks. */
static inline void weft__jump_note(struct weft__jump *j, uint64_t real_ns, uint64_t boot_ns)
{
	uint64_t expected = j->real_ns + (boot_ns - j->boot_ns);

	if (j->real_ns && real_ns > expected + JUMP_LEAST_NS) {
		j->before_ns = expected;
		j->by_ns += real_ns - expected;
	} else if (j->real_ns && expected > real_ns + JUMP_LEAST_NS) { /* back: as if what it added had not been */
		uint64_t back = expected - real_ns;

		j->by_ns -= back < j->by_ns ? back : j->by_ns;
	}
	j->real_ns = real_ns;
	j->boot_ns = boot_ns;
}

/* The age of a file of that time; 0 when it is of the future. */
static inline uint64_t weft__jump_age(const struct weft__jump *j, uint64_t time_ns)
{
	uint64_t age = j->real_ns > time_ns ? j->real_ns - time_ns : 0;

	if (time_ns <= j->before_ns)
		age -= age < j->by_ns ? age : j->by_ns;
	return age;
}

#endif
