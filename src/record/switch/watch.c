/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there are so many context switches that no records are better than few. COLLECTOR, under the lock.
 *
 * A thread that ever had a perf event pays 0.1 to 0.2 us at each context switch for as long as there is a perf event
 * anywhere on the machine, also when its own is closed. Records that are on for a few percent of the time keep it so.
 * So above a limit there are none at all, and the kernel's tax ends a second later. They come back when there have
 * been few for a while; a return that was too early makes the next one later. */
#include <sys/resource.h>

#include "record/switch/state.h"

#define WATCH_MANY 10000                  /* a second, of all threads */
#define WATCH_FEW 5000
#define WATCH_PATIENCE_NS UINT64_C(4000000000)
#define WATCH_PATIENCE_FIRST_NS UINT64_C(500000000) /* what a program does as it starts is not what it is like */
#define WATCH_PATIENCE_MOST_NS UINT64_C(120000000000)

static uint64_t switches_now(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw : 0;
}

void weft__switch_watch_begin(uint64_t now_ns)
{
	weft__switch.watch = (struct weft__switch_watch){
		.at_ns = now_ns, .switches = switches_now(), .patience_ns = WATCH_PATIENCE_NS};
}

void weft__switch_watch_see(struct weft__switch_watch *watch, uint64_t now_ns, uint64_t switches)
{
	uint64_t since = now_ns - watch->at_ns, more = switches > watch->switches ? switches - watch->switches : 0;
	uint64_t rate = since ? more * UINT64_C(1000000000) / since : 0;

	watch->at_ns = now_ns;
	watch->switches = switches;
	if (rate > WATCH_MANY && !watch->many) {
		/* The one before came back too early. */
		if (!watch->looked)
			watch->patience_ns = WATCH_PATIENCE_FIRST_NS;
		else if (watch->back_ns && now_ns < watch->back_ns + 2 * watch->patience_ns)
			watch->patience_ns = 2 * watch->patience_ns < WATCH_PATIENCE_MOST_NS ? 2 * watch->patience_ns
											     : WATCH_PATIENCE_MOST_NS;
		else
			watch->patience_ns = WATCH_PATIENCE_NS;
		watch->many = 1;
	}
	if (rate > WATCH_FEW)
		watch->few_ns = 0;
	else if (!watch->few_ns)
		watch->few_ns = now_ns;
	if (watch->many && watch->few_ns && now_ns >= watch->few_ns + watch->patience_ns) {
		watch->many = 0;
		watch->back_ns = now_ns;
	}
	watch->looked = 1;
}

int weft__switch_watch_many(uint64_t now_ns)
{
	if (now_ns >= weft__switch.watch.at_ns + SWITCH_LOOK_NS)
		weft__switch_watch_see(&weft__switch.watch, now_ns, switches_now());
	return weft__switch.watch.many;
}
