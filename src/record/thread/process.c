/* SPDX-License-Identifier: Apache-2.0 */
/* CALLER and COLLECTOR. */
#include "base/clock.h"
#include "record/thread/thread.h"

#define READ_SHARE 2000 /* a reading takes one part in so many of the time, at most */

static struct {
	uint64_t ns, at_ns, rest_ns;
} process_read;

uint64_t weft__process_cpu(void)
{
	uint64_t begin = weft__clock_mono(), end, ns;
	struct timespec ts = {0, 0};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	end = weft__clock_mono();
	ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	store_relaxed(&process_read.ns, ns);
	store_relaxed(&process_read.rest_ns, READ_SHARE * (end - begin));
	store_release(&process_read.at_ns, end);
	return ns;
}

uint64_t weft__process_cpu_rest(void)
{
	return load_relaxed(&process_read.rest_ns);
}

uint64_t weft__process_cpu_about(uint64_t now_ns)
{
	uint64_t at_ns = load_acquire(&process_read.at_ns);

	return at_ns && now_ns < at_ns + weft__process_cpu_rest() ? load_relaxed(&process_read.ns)
								  : weft__process_cpu();
}
