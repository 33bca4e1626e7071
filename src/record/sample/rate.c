/* SPDX-License-Identifier: Apache-2.0 */
/* How often samples are taken, while they are. COLLECTOR. */
#include "base/atomic.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"

#define YIELD_NS UINT64_C(1000000000) /* all events are read */

static struct {
	uint32_t hz;      /* in force, as the governor set it; 0: it has not */
	uint64_t look_ns; /* when it is looked what interrupts are worth */
	uint64_t due_ns;  /* when perf events have to be switched */
} sample_rate = {.due_ns = UINT64_MAX};

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

/* Whether perf events interrupt for nothing most of the time. Then they are on for less of it. */
static void duty_look(uint64_t now_ns)
{
	if (weft__engine.ops != &weft__perf_ops || now_ns < sample_rate.look_ns)
		return;
	sample_rate.look_ns = now_ns + YIELD_NS;
	pthread_mutex_lock(&weft__engine_mutex);
	if (load_relaxed(&weft__engine.on) && weft__engine.ops == &weft__perf_ops && weft__perf_duty_look()) {
		weft__perf_duty_set(weft__engine.period_ns);
		sample_rate.due_ns = 0;
	}
	pthread_mutex_unlock(&weft__engine_mutex);
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

/* Looking at rates is not worth a wakeup. */
uint64_t weft__rate_due(int awake)
{
	uint64_t look_ns = awake && weft__engine.ops == &weft__perf_ops ? sample_rate.look_ns : UINT64_MAX;

	if (!sample_rate.hz)
		return UINT64_MAX;
	return sample_rate.due_ns < look_ns ? sample_rate.due_ns : look_ns;
}

void weft__rate_turn(uint64_t now_ns)
{
	duty_look(now_ns);
	if (now_ns >= sample_rate.due_ns)
		sample_rate.due_ns = weft__engine_turn(now_ns);
}

void weft__rate_open(void)
{
	sample_rate.hz = 0;
	sample_rate.due_ns = UINT64_MAX;
}

uint32_t weft__rate_hz(void)
{
	return sample_rate.hz;
}

uint32_t weft__rate_limit(uint32_t level)
{
	if (!weft__engine_hz())
		return 0;
	sample_rate.due_ns = 0;
	sample_rate.hz = weft__engine_slow(level, SOURCE_FULL);
	return sample_rate.hz;
}
