/* SPDX-License-Identifier: Apache-2.0 */
/* Polls that are counted without a clock (WEFT_GATE_UNTIMED) and turn out to be long. HOT.
 *
 * The collector moves a step of the gate on every few ms, and keeps the tick of each. A poll that ends two steps after
 * the one it began at was under way from the tick of the step between on, at the latest. */
#include "record/event/account.h"
#include "record/event/poll.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"
#include "record/trigger.h"
#include "weft/event.h"

#define UNTIMED_STEPS 1024 /* whose ticks are kept */

static uint64_t step_ticks[UNTIMED_STEPS];

void weft__polls_step(uint64_t tick)
{
	uint64_t step = load_relaxed(&weft_gate.step) + 1;

	store_relaxed(&step_ticks[step % UNTIMED_STEPS], tick);
	store_release(&weft_gate.step, step);
}

uint64_t weft__polls_step_after(uint64_t step)
{
	uint64_t now = load_acquire(&weft_gate.step);

	if (now - step >= UNTIMED_STEPS)
		step = now - UNTIMED_STEPS + 1;
	return load_relaxed(&step_ticks[(now > step ? step + 1 : step) % UNTIMED_STEPS]);
}

/* What it was spent on is for others to say. */
void weft__untimed_report(const struct polls *polls, uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	uint64_t arg = load_relaxed(&polls->open[0].arg), begin = weft__polls_step_after(polls->untimed_step);
	uint64_t ns = weft_tick_ns((int64_t)(tick - begin) > 0 ? tick - begin : 0);
	uint64_t fields[WEFT_FIELDS_OF_POLL] = {arg & WEFT_TASK_MASK, arg >> WEFT_TASK_BITS, ns, 0, WEFT_POLL_SLOW};

	if (!ring || &ring->polls != polls)
		return;
	if (ns >= load_relaxed(&weft_gate.poll_slow_ns) && weft__poll_under_cap(ring, tick)) {
		weft__context_passed(begin, tick);
		weft__wide_emit(WEFT_KIND_POLL_CPU, tick, WEFT__SPLIT_FIELDS(WEFT__SPLIT_UNKNOWN));
		weft__wide_emit(WEFT_KIND_POLL, tick, fields);
	}
	if (ns >= load_relaxed(&weft_gate.poll_trigger_ns))
		weft__trigger_poll(arg & WEFT_TASK_MASK, ns, ring->owner);
}
