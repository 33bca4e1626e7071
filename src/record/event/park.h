/* SPDX-License-Identifier: Apache-2.0 */
/* Parks that are only counted (WEFT_GATE_PARKS). Their owner adds up how many ended and how long they took; whoever
 * raises what was reported to these sums reports the difference: the collector once in a while, or the owner when it
 * ends. Of a park that is open the collector reports the part that is over. */
#ifndef WEFT_EVENT_PARK_H
#define WEFT_EVENT_PARK_H

#include "base/atomic.h"
#include "record/ring/hooks.h"

/* Bits of the gate that change while it is open: what is open goes on. The others say what time of recording it is. */
#define GATE_CHANGES (WEFT_GATE_MODES | WEFT_GATE_COUNTED | WEFT_GATE_PARKS | WEFT_GATE_UNTIMED)

/* HOT and COLLECTOR. Ticks in parks until `tick`, when the gate had the value `on`. The owner ends a park before it
 * adds the park's time, so that none is there twice; one that ends meanwhile may be missing, and is there the next
 * time. */
static inline uint64_t weft__parked_sum(const struct ring_page *ring, uint32_t on, uint64_t tick)
{
	uint64_t sum = load_acquire(&ring->hot.parked), began = load_acquire(&ring->hot.park_on);
	uint64_t since = load_relaxed(&ring->hot.park);

	return began && !((began ^ on) & ~GATE_CHANGES) && (int64_t)(tick - since) > 0 ? sum + (tick - since) : sum;
}

/* HOT and COLLECTOR. Claims the unreported part of a sum. 0: nothing. */
static inline uint64_t weft__parks_take(uint64_t *reported, uint64_t sum)
{
	uint64_t before = load_relaxed(reported);

	if ((int64_t)(sum - before) <= 0)
		return 0;
	return cas_acq_rel(reported, &before, sum) ? sum - before : 0;
}

/* HOT and COLLECTOR. The fields of kind park_count; answers whether there is something to report. `thread` 0 means the
 * one whose ring it is in. */
static inline int weft__parks_fields(struct ring_page *ring, uint32_t thread, uint32_t on, uint64_t tick,
				     uint64_t fields[WEFT_FIELDS_OF_PARK_COUNT])
{
	uint64_t from = load_relaxed(&ring->parks_from);

	fields[WEFT_FIELD_PARK_COUNT_THREAD] = thread;
	fields[WEFT_FIELD_PARK_COUNT_COUNT] = weft__parks_take(&ring->parks_reported, load_acquire(&ring->hot.parks));
	fields[WEFT_FIELD_PARK_COUNT_TIME] =
		weft_tick_ns(weft__parks_take(&ring->parked_reported, weft__parked_sum(ring, on, tick)));
	fields[WEFT_FIELD_PARK_COUNT_SPAN] = from && tick > from ? weft_tick_ns(tick - from) : 0;
	if (fields[WEFT_FIELD_PARK_COUNT_SPAN] < fields[WEFT_FIELD_PARK_COUNT_TIME])
		fields[WEFT_FIELD_PARK_COUNT_SPAN] = fields[WEFT_FIELD_PARK_COUNT_TIME];
	store_relaxed(&ring->parks_from, tick);
	return fields[WEFT_FIELD_PARK_COUNT_COUNT] || fields[WEFT_FIELD_PARK_COUNT_TIME];
}

#endif
