/* SPDX-License-Identifier: Apache-2.0 */
/* What a CPU quota took from the program, as events. Not worth a wakeup; done if the collector is awake. */
#include "record/collect/collector.h"
#include "weft/event.h"

#define FIRST_NS UINT64_C(20000000) /* a program that lives for a moment is not asked for its quota */
#define READ_NS UINT64_C(1000000000)
#define AGAIN_NS UINT64_C(200000000)  /* while the quota stops it */
#define FIND_NS UINT64_C(10000000000) /* a quota may be set at any time, and the process moved */

static int find_quota(struct weft__collector *c, uint64_t now_ns)
{
	if (!weft__throttle_find(&c->throttle, "/proc/self/cgroup", "/proc/self/mountinfo", now_ns))
		return 0;
	weft__throttle_facts(&c->throttle, &c->news);
	return weft__stage_news(c);
}

static bool report_throttled(struct weft__collector *c, uint64_t now_ns)
{
	struct weft__throttled got;

	if (!weft__throttle_read(&c->throttle, now_ns, &got))
		return false;
	weft__costs_event(&c->costs, &(struct weft__cost){now_ns,
							  WEFT_KIND_THROTTLED,
							  {got.span_ns, got.more.throttled_ns, got.more.times,
							   got.more.periods, got.more.pressure_ns}});
	return true;
}

int weft__throttled_tend(struct weft__collector *c, uint64_t now_ns)
{
	int err = 0;

	if (!weft_gate_on() || now_ns < c->throttle_due_ns)
		return 0;
	if (!c->throttle_due_ns) {
		c->throttle_due_ns = now_ns + FIRST_NS;
		return 0;
	}
	c->throttle_due_ns = now_ns + READ_NS;
	if (c->throttle.n_levels && report_throttled(c, now_ns))
		c->throttle_due_ns = now_ns + AGAIN_NS;
	if (!c->throttle.found_ns || now_ns >= c->throttle.found_ns + FIND_NS)
		err = find_quota(c, now_ns);
	return err;
}

void weft__throttled_report(struct weft__collector *c)
{
	if (c->throttle.n_levels)
		report_throttled(c, weft__clock_mono());
}
