/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/offcpu.h"

static uint64_t passed(const struct weft__offcpu *thread, uint64_t now_ns)
{
	return now_ns > thread->since_ns ? now_ns - thread->since_ns : 0;
}

static void set_state(struct weft__offcpu *thread, enum weft__offcpu_state state, uint64_t now_ns)
{
	if (thread->state == OFFCPU_UNKNOWN || now_ns > thread->since_ns)
		thread->since_ns = now_ns;
	thread->state = state;
}

static uint64_t claim(struct weft__offcpu *thread)
{
	uint64_t cpu_ns = thread->on_ns;

	thread->on_ns = 0;
	return cpu_ns;
}

void weft__offcpu_out(struct weft__offcpu *thread, uint64_t now_ns)
{
	if (thread->state == OFFCPU_OFF)
		return;
	if (thread->state == OFFCPU_ON)
		thread->on_ns += passed(thread, now_ns);
	set_state(thread, OFFCPU_OFF, now_ns);
}

/* The sum passed the interval at `begin`, and once more for each further interval; what is left goes on counting. */
static bool take_group(struct weft__offcpu *thread, uint64_t now_ns, struct weft__offcpu_group *group)
{
	uint64_t sum = thread->off_ns, interval = thread->interval_ns;

	if (!interval || sum < interval)
		return false;
	group->count = sum / interval;
	thread->off_ns = sum % interval;
	group->begin_ns = now_ns - (sum - interval);
	group->end_ns = now_ns - thread->off_ns;
	group->cpu_ns = claim(thread);
	return true;
}

bool weft__offcpu_in(struct weft__offcpu *thread, uint64_t now_ns, struct weft__offcpu_group *group)
{
	bool made = false;

	if (thread->state == OFFCPU_ON) {
		thread->on_ns += passed(thread, now_ns); /* the leaving in between was lost */
	} else if (thread->state == OFFCPU_OFF) {
		uint64_t end_ns = now_ns > thread->since_ns ? now_ns : thread->since_ns;

		thread->off_ns += passed(thread, now_ns);
		made = take_group(thread, end_ns, group);
	}
	set_state(thread, OFFCPU_ON, now_ns);
	return made;
}

void weft__offcpu_waited(struct weft__offcpu *thread, uint64_t begin_ns, uint64_t end_ns)
{
	weft__offcpu_out(thread, begin_ns);
	set_state(thread, OFFCPU_ON, end_ns);
}

bool weft__offcpu_sample(struct weft__offcpu *thread, uint64_t now_ns, struct weft__offcpu_group *group,
			 uint64_t *cpu_ns)
{
	bool made = weft__offcpu_in(thread, now_ns, group);

	*cpu_ns = claim(thread);
	return made;
}
