/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/poll_counts.h"

#include <errno.h>

#include "record/collect/collector.h"
#include "record/event/park.h"
#include "record/event/poll.h"
#include "record/event/wide.h"
#include "record/ring/ring.h"

/* The collector's own ring, with room for one event. */
static struct ring_page *own_ring(struct weft__collector *c, uint64_t tick, int *ret_err)
{
	struct ring_page *ring = weft__ring_mine();

	if (!ring && weft__ring_attach(tick, 1))
		ring = weft__ring_mine();
	*ret_err = ring ? 0 : -ENOMEM;
	if (ring && !weft__ring_has_room(ring, weft__kind_slots(WEFT_KIND_POLL_COUNT)))
		*ret_err = weft__drain(c);
	return *ret_err ? NULL : ring;
}

static void report_count(struct weft__collector *c, struct ring_page *own, struct ring_page *ring, uint32_t bucket,
			 uint32_t sum, uint64_t tick)
{
	uint64_t fields[WEFT_FIELDS_OF_POLL_COUNT] = {ring->thread.stream, weft__polls_from(bucket),
						      weft__polls_below(bucket), 0};

	ring->reporting.before = load_relaxed(&ring->polls_reported[bucket]);
	ring->reporting.ring = weft__chunk_ring(c->region->map, own);
	ring->reporting.slot = load_relaxed(&own->hot.head);
	store_release(&ring->reporting.count, bucket + 1);
	fields[WEFT_FIELD_POLL_COUNT_COUNT] = weft__poll_count_take(ring, bucket, sum);
	c->coarse.passed[COARSE_ALL] += 2 * fields[WEFT_FIELD_POLL_COUNT_COUNT]; /* events */
	if (fields[WEFT_FIELD_POLL_COUNT_COUNT])
		weft__wide_emit_in(&own->hot, WEFT_KIND_POLL_COUNT, tick, fields, NULL, 0);
	store_release(&ring->reporting.count, 0u);
}

/* Until `until`, when the gate had the value `on`. */
static int report_parks(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint32_t on, uint64_t until,
			uint64_t tick)
{
	uint64_t fields[WEFT_FIELDS_OF_PARK_COUNT];
	struct ring_page *own;
	int err;

	if (load_relaxed(&ring->hot.parks) == load_relaxed(&ring->parks_reported) &&
	    !load_relaxed(&ring->hot.park_on)) {
		store_relaxed(&ring->parks_from, until);
		return 0;
	}
	err = weft__drain_define(c, i);
	own = err ? NULL : own_ring(c, tick, &err);
	if (own && weft__parks_fields(ring, ring->thread.stream, on, until, fields)) {
		c->coarse.passed[COARSE_SLOW] += 2 * fields[WEFT_FIELD_PARK_COUNT_COUNT];
		weft__wide_emit_in(&own->hot, WEFT_KIND_PARK_COUNT, tick, fields, NULL, 0);
	}
	return err;
}

/* Wakes and queue depths, of all threads. */
static int report_counted(struct weft__collector *c, uint32_t which, uint64_t tick)
{
	struct rings_head *head = c->region->head;
	uint64_t fields[WEFT_FIELDS_OF_COUNTED] = {which == WEFT_COUNTED_WAKES ? WEFT_KIND_WAKE : WEFT_KIND_QUEUE, 0,
						   c->coarse.counted_tick && tick > c->coarse.counted_tick
							   ? weft_tick_ns(tick - c->coarse.counted_tick)
							   : 0};
	uint32_t n = load_acquire(&head->n_rings), i;
	int err;
	struct ring_page *own = own_ring(c, tick, &err);

	if (!own)
		return err;
	for (i = 0; i < n; i++) {
		struct ring_page *ring = ring_page_at(c->region->map, i);
		uint64_t now = load_relaxed(&ring->hot.counted[which]);

		fields[WEFT_FIELD_COUNTED_COUNT] += now - ring->counted_seen[which];
		ring->counted_seen[which] = now;
	}
	c->coarse.passed[which == WEFT_COUNTED_WAKES ? COARSE_PARKS : COARSE_SLOW] += fields[WEFT_FIELD_COUNTED_COUNT];
	if (fields[WEFT_FIELD_COUNTED_COUNT])
		weft__wide_emit_in(&own->hot, WEFT_KIND_COUNTED, tick, fields, NULL, 0);
	return 0;
}

static int report_thread_counts(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint64_t tick)
{
	uint32_t sum[POLLS_COUNTS];
	uint32_t bucket;
	int err = 0;

	weft__polls_sum(&ring->polls, sum);
	for (bucket = 0; bucket < POLLS_COUNTS && !err; bucket++) {
		struct ring_page *own;

		if (sum[bucket] == load_relaxed(&ring->polls_reported[bucket]))
			continue;
		err = weft__drain_define(c, i);
		own = err ? NULL : own_ring(c, tick, &err);
		if (own)
			report_count(c, own, ring, bucket, sum[bucket], tick);
	}
	return err;
}

int weft__poll_counts_report(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint64_t tick = weft__clock_tick(c->timeline.source);
	uint32_t n = load_acquire(&head->n_rings), i;
	uint64_t until = tick;
	uint32_t on = weft__collector_gate_last(c, &until);
	int err = weft__drain(c);

	if (!err)
		err = report_counted(c, WEFT_COUNTED_WAKES, tick);
	if (!err)
		err = report_counted(c, WEFT_COUNTED_QUEUES, tick);
	c->coarse.counted_tick = tick;
	for (i = 0; i < n && !err; i++) {
		struct ring_page *ring = ring_page_at(c->region->map, i);
		uint32_t owner = load_acquire(&ring->owner);

		/* One that was handed on since the drain counts for a thread that is not known yet. */
		if (ring->thread.stream && (!owner || owner == ring->thread.tid))
			err = report_thread_counts(c, i, ring, tick);
		/* One that ended reported its own. */
		if (!err && ring->thread.stream && owner && owner == ring->thread.tid)
			err = report_parks(c, i, ring, on, until, tick);
	}
	return err ? err : weft__drain(c);
}

int weft__poll_counts_tend(struct weft__collector *c, uint64_t now_ns)
{
	if (!load_relaxed(&c->counts_polls) || now_ns < c->counted_ns + c->flush_ns)
		return 0;
	c->counted_ns = now_ns;
	return weft__poll_counts_report(c);
}
