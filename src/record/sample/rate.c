/* SPDX-License-Identifier: Apache-2.0 */
/* How often samples are taken, while they are. COLLECTOR. */
#include "base/atomic.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"

#define YIELD_NS UINT64_C(1000000000) /* all events are read */

uint32_t weft__engine_slow(uint32_t level, uint32_t full)
{
	uint64_t period = (uint64_t)weft__engine.chosen_ns * full / level;
	uint32_t i, before;

	pthread_mutex_lock(&weft__engine_mutex);
	before = weft__engine.period_ns;
	store_relaxed(&weft__engine.period_ns, period < UINT32_MAX ? (uint32_t)period : UINT32_MAX);
	for (i = 0; load_relaxed(&weft__engine.on) && weft__engine.period_ns != before && i < weft__engine.n_slots;
	     i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);

		if (tid && tid != SLOT_GONE && load_acquire(&weft__engine.slots[i].state) == SLOT_COVERED)
			weft__engine.ops->tend(&weft__engine.slots[i], tid);
	}
	if (weft__engine.ops == &weft__perf_ops)
		weft__perf_duty_set(weft__engine.period_ns);
	else if (load_relaxed(&weft__engine.on) && weft__engine.period_ns != before)
		weft__precise_pace();
	pthread_mutex_unlock(&weft__engine_mutex);
	return (uint32_t)((uint64_t)weft__engine.hz * level / full);
}

int weft__engine_look(uint64_t now_ns)
{
	static uint64_t look_at_ns;
	int changed = 0;

	if (weft__engine.ops != &weft__perf_ops || now_ns < look_at_ns)
		return 0;
	look_at_ns = now_ns + YIELD_NS;
	pthread_mutex_lock(&weft__engine_mutex);
	if (load_relaxed(&weft__engine.on) && weft__engine.ops == &weft__perf_ops)
		changed = weft__perf_duty_look();
	if (changed)
		weft__perf_duty_set(weft__engine.period_ns);
	pthread_mutex_unlock(&weft__engine_mutex);
	return changed;
}

uint64_t weft__engine_turn(uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (weft__engine.ops != &weft__perf_ops)
		return next;
	pthread_mutex_lock(&weft__engine_mutex);
	if (load_relaxed(&weft__engine.on) && weft__engine.ops == &weft__perf_ops)
		next = weft__perf_duty_turn(now_ns);
	pthread_mutex_unlock(&weft__engine_mutex);
	return next;
}
