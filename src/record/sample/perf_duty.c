/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the time perf events are on, where timers take samples beside them. CALLER and COLLECTOR, under the
 * engine's lock.
 *
 * The period of an event that was inherited cannot be changed: it would interrupt as often as ever, whatever the
 * governor wants. But all of a family can be switched off and on by the file of the first one. So when there are to
 * be fewer samples, events are on for a part of the time, and as often then as at first; the timers go on. What a
 * sample stands for is the CPU time since the one before, so the sums stay right. An event that is off adds next to
 * nothing to a context switch, either.
 *
 * An interrupt that finds the thread in the kernel gives nothing and costs as much as any. Where most of them do, as
 * in a server, events are on for as much of the time as their interrupts are worth: of what is saved more than half
 * would have been for nothing. */
#include "base/atomic.h"
#include "base/clock.h"
#include "record/sample/perf_state.h"

#define WHOLE_NS 100000000.0 /* once on and once off */
#define WHOLE_MOST_NS 5e9
#define ON_NS 5000000.0 /* at least: some samples */
#define TOOK_MOST 2000  /* switching takes one part in so many at most */
#define NEARLY_ALL (METER_FULL - METER_FULL / 32)
#define LOOK_LEAST 200 /* interrupts, or they say nothing */
#define CAP_LEAST (METER_FULL / 8)
#define CAP_STEP (METER_FULL / 16) /* less is no change */

static double duty_took_ns; /* switching, the last time */
static uint64_t seen_ns, seen_hits;

void weft__perf_duty_start(void)
{
	store_relaxed(&weft__perf.duty, (uint32_t)METER_FULL);
	weft__perf.held = 0;
	weft__perf.turn_ns = UINT64_MAX;
	store_relaxed(&weft__perf.inherited, 0u);
	store_relaxed(&weft__perf.timerless, 0u);
	weft__perf.cap = METER_FULL;
	seen_ns = 0;
	seen_hits = load_relaxed(&weft__perf.hits);
}

void weft__perf_duty_set(uint32_t period_ns)
{
	uint64_t full = weft__perf_step_ns(weft__engine.chosen_ns), step = weft__perf_step_ns(period_ns);
	uint64_t duty = step > full ? METER_FULL * full / step : METER_FULL;

	duty = duty < weft__perf.cap ? duty : weft__perf.cap;
	duty = !weft__perf_holds() || duty >= NEARLY_ALL ? METER_FULL : duty ? duty : 1;
	store_relaxed(&weft__perf.duty, (uint32_t)duty);
	if (duty == METER_FULL ? weft__perf.held : weft__perf.turn_ns == UINT64_MAX)
		weft__perf.turn_ns = 0;
}

int weft__perf_duty_look(void)
{
	uint64_t ns = weft__perf_holds() ? weft__perf_sum() : 0, hits = load_relaxed(&weft__perf.hits), cap;
	uint64_t interrupts = ns > seen_ns ? (ns - seen_ns) / weft__perf_event_ns() : 0;
	uint64_t gave = hits - seen_hits;

	if (ns >= seen_ns && interrupts < LOOK_LEAST)
		return 0;
	seen_ns = ns; /* it may be less: a thread ended, and its event is closed */
	seen_hits = hits;
	if (!interrupts)
		return 0;
	cap = 2 * gave >= interrupts ? METER_FULL : METER_FULL * gave / interrupts;
	cap = cap < CAP_LEAST ? CAP_LEAST : cap;
	if (cap < METER_FULL && cap + CAP_STEP > weft__perf.cap && cap < weft__perf.cap + CAP_STEP)
		return 0;
	if (cap == weft__perf.cap)
		return 0;
	weft__perf.cap = (uint32_t)cap;
	return 1;
}

/* How long they are to stay as they are. What was on for too long, because nobody came to switch it off, is made up
 * for. */
static double next_ns(double was_ns)
{
	double duty = (double)weft__perf.duty / METER_FULL, whole = WHOLE_NS;

	whole = whole * duty < ON_NS ? ON_NS / duty : whole;
	whole = whole < TOOK_MOST * duty_took_ns ? TOOK_MOST * duty_took_ns : whole;
	whole = whole < WHOLE_MOST_NS ? whole : WHOLE_MOST_NS;
	if (weft__perf.held)
		return was_ns > 0 ? was_ns * (1 - duty) / duty : whole * (1 - duty);
	/* Nothing that repeats runs in step. */
	return whole * duty * (0.75 + weft__random(512) / 1024.0);
}

uint64_t weft__perf_duty_turn(uint64_t now_ns)
{
	int all;
	uint64_t was = weft__perf.turn_ns ? now_ns - weft__perf.held_ns : 0;
	double next;

	if (now_ns < weft__perf.turn_ns)
		return weft__perf.turn_ns;
	/* A thread that came meanwhile may have got no timer. */
	if (!weft__perf_holds())
		store_relaxed(&weft__perf.duty, (uint32_t)METER_FULL);
	all = weft__perf.duty == METER_FULL;
	if (!all || weft__perf.held) {
		uint64_t begin = weft__clock_mono();

		weft__perf.held = !weft__perf.held;
		weft__perf_hold((int)weft__perf.held);
		duty_took_ns = (double)(weft__clock_mono() - begin);
	}
	weft__perf.held_ns = now_ns;
	next = next_ns((double)was);
	weft__perf.turn_ns = all ? UINT64_MAX : now_ns + (uint64_t)(next < WHOLE_MOST_NS ? next : WHOLE_MOST_NS);
	return weft__perf.turn_ns;
}
