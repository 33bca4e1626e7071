/* SPDX-License-Identifier: Apache-2.0 */
/* Parks where the recorder may choose to count them (record/event/park.h). One that began as an event ends as one,
 * and one that is counted stays it, whatever the mode is when it ends. HOT. */
#include "record/event/park.h"

#include "record/event/poll.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define LONG_NS UINT64_C(1000000) /* such a park is an event, too */

/* The calling thread's ring, or NULL when there is none to be had. */
static struct ring_page *parks_ring(uint32_t on, uint64_t tick)
{
	struct ring_page *ring = weft__polls_mine(on);

	if (WEFT_LIKELY(ring != NULL))
		return ring;
	ring = weft__ring_mine();
	if (!ring && weft_slow_ring(1, tick))
		ring = weft__ring_mine();
	return ring;
}

void weft_slow_park_mode(uint64_t arg, uint64_t tick, uint32_t on)
{
	struct ring_page *ring = on & WEFT_GATE_PARKS ? parks_ring(on, tick) : NULL;

	if (WEFT_UNLIKELY(load_relaxed(&weft_ring_self->park_on)))
		weft__park_drop((struct ring_page *)(void *)weft_ring_self);
	if (!ring)
		weft_emit(WEFT_KIND_PARK, arg, tick);
	store_relaxed(&weft_ring_self->park, tick);
	if (ring)
		store_release(&ring->hot.park_on, (uint64_t)on);
	weft_check_park(on, tick);
}

/* Whether the park that ends was counted. */
static int park_over(struct ring_page *ring, uint64_t tick, uint32_t on)
{
	uint64_t began = load_relaxed(&ring->hot.park_on), took = tick - load_relaxed(&ring->hot.park), ns = 0;

	if (WEFT_UNLIKELY(!began))
		return 0;
	if (WEFT_UNLIKELY((began ^ on) & ~GATE_CHANGES)) { /* of an earlier time of recording */
		weft__park_drop(ring);
		return 0;
	}
	took = (int64_t)took > 0 ? took : 0;
	if (took >= load_relaxed(&weft_gate.ms_ticks))
		ns = weft_tick_ns(took);
	store_relaxed(&ring->hot.park_on, 0);
	store_release(&ring->hot.parked, load_relaxed(&ring->hot.parked) + took);
	store_release(&ring->hot.parks, load_relaxed(&ring->hot.parks) + 1);
	if (ns >= LONG_NS)
		weft__wide_emit(WEFT_KIND_PARKED, tick, &ns);
	return 1;
}

void weft_slow_unpark_mode(uint64_t arg, uint64_t tick, uint32_t on)
{
	struct ring_page *ring = weft__polls_mine(on);

	if (WEFT_UNLIKELY(!ring))
		ring = weft__ring_mine();
	if (!ring || !park_over(ring, tick, on))
		weft_emit(WEFT_KIND_UNPARK, arg, tick);
	if (WEFT_UNLIKELY(tick >= weft_ring_self->sched_due) || ((on & WEFT_GATE_RSEQ) && !weft_stayed()))
		weft_slow_unpark(tick);
}

void weft__park_counts_end(struct ring_page *ring, uint64_t tick)
{
	uint64_t fields[WEFT_FIELDS_OF_PARK_COUNT];

	if (load_relaxed(&ring->hot.parked) == load_relaxed(&ring->parked_reported) &&
	    load_relaxed(&ring->hot.parks) == load_relaxed(&ring->parks_reported) && !load_relaxed(&ring->hot.park_on))
		return;
	if (weft__ring_has_room(ring, weft__kind_slots(WEFT_KIND_PARK_COUNT)) &&
	    weft__parks_fields(ring, 0, (uint32_t)load_relaxed(&ring->hot.park_on), tick, fields))
		weft__wide_emit_in(&ring->hot, WEFT_KIND_PARK_COUNT, tick, fields, NULL, 0);
}
