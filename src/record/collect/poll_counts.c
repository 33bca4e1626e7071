/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/poll_counts.h"

#include "record/collect/collector.h"
#include "record/event/park.h"
#include "record/event/poll.h"
#include "record/ring/ring.h"

#define COUNTS_RINGS 256u

static int report_count(struct weft__collector *c, struct ring_page *ring, uint32_t bucket, uint32_t sum, uint64_t ns)
{
	uint64_t fields[WEFT_FIELDS_OF_POLL_COUNT] = {ring->thread.stream, weft__polls_from(bucket),
						      weft__polls_below(bucket), 0};
	int err = 0;

	ring->reporting.before = load_relaxed(&ring->polls_reported[bucket]);
	ring->reporting.slot = c->found.lanes[FOUND_NOW].next;
	store_release(&ring->reporting.count, bucket + 1);
	fields[WEFT_FIELD_POLL_COUNT_COUNT] = weft__poll_count_take(ring, bucket, sum);
	if (bucket == POLLS_UNTIMED)
		c->coarse.passed[COARSE_COUNTED] += fields[WEFT_FIELD_POLL_COUNT_COUNT];
	else
		c->coarse.passed[COARSE_ALL] += 2 * fields[WEFT_FIELD_POLL_COUNT_COUNT]; /* events */
	if (fields[WEFT_FIELD_POLL_COUNT_COUNT])
		err = weft__found_add(c, FOUND_NOW, &(struct weft__found){ns, WEFT_KIND_POLL_COUNT, fields, NULL, 0});
	store_release(&ring->reporting.count, 0u);
	return err;
}

/* Until `until`, when the gate had the value `on`. */
static int report_parks(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint32_t on, uint64_t until,
			uint64_t ns)
{
	uint64_t fields[WEFT_FIELDS_OF_PARK_COUNT];
	int err;

	if (load_relaxed(&ring->hot.parks) == load_relaxed(&ring->parks_reported) &&
	    !load_relaxed(&ring->hot.park_on)) {
		store_relaxed(&ring->parks_from, until);
		return 0;
	}
	err = weft__drain_define(c, i);
	if (!err)
		err = weft__found_need(c);
	if (!err && weft__parks_fields(ring, ring->thread.stream, on, until, fields)) {
		c->coarse.passed[COARSE_SLOW] += 2 * fields[WEFT_FIELD_PARK_COUNT_COUNT];
		err = weft__found_add(c, FOUND_NOW, &(struct weft__found){ns, WEFT_KIND_PARK_COUNT, fields, NULL, 0});
	}
	return err;
}

/* Wakes and queue depths, of all threads. */
static int report_counted(struct weft__collector *c, uint32_t which, uint64_t tick, uint64_t ns)
{
	struct rings_head *head = c->region->head;
	uint64_t fields[WEFT_FIELDS_OF_COUNTED] = {which == WEFT_COUNTED_WAKES ? WEFT_KIND_WAKE : WEFT_KIND_QUEUE, 0,
						   c->coarse.counted_tick && tick > c->coarse.counted_tick
							   ? weft_tick_ns(tick - c->coarse.counted_tick)
							   : 0};
	uint32_t n = load_acquire(&head->n_rings), i;
	int err = weft__found_need(c);

	for (i = 0; i < n && !err; i++) {
		struct ring_page *ring = ring_page_at(c->region->map, i);
		uint64_t now = load_relaxed(&ring->hot.counted[which]);

		fields[WEFT_FIELD_COUNTED_COUNT] += now - ring->counted_seen[which];
		ring->counted_seen[which] = now;
	}
	c->coarse.passed[which == WEFT_COUNTED_WAKES ? COARSE_PARKS : COARSE_SLOW] += fields[WEFT_FIELD_COUNTED_COUNT];
	return !err && fields[WEFT_FIELD_COUNTED_COUNT]
		       ? weft__found_add(c, FOUND_NOW, &(struct weft__found){ns, WEFT_KIND_COUNTED, fields, NULL, 0})
		       : err;
}

static int report_thread_counts(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint64_t ns)
{
	uint32_t sum[POLLS_COUNTS];
	uint32_t bucket;
	int err = 0;

	weft__polls_sum(&ring->polls, sum);
	for (bucket = 0; bucket < POLLS_COUNTS && !err; bucket++) {
		if (sum[bucket] == load_relaxed(&ring->polls_reported[bucket]))
			continue;
		err = weft__drain_define(c, i);
		if (!err)
			err = weft__found_need(c);
		if (!err)
			err = report_count(c, ring, bucket, sum[bucket], ns);
	}
	return err;
}

int weft__poll_counts_report(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint64_t tick = weft__clock_tick(c->timeline.source), ns = weft__timeline_mono(&c->timeline, tick);
	uint32_t n = load_acquire(&head->n_rings), i;
	uint64_t until = tick;
	uint32_t on = weft__collector_gate_last(c, &until);
	int err = weft__drain(c);

	if (!err)
		err = report_counted(c, WEFT_COUNTED_WAKES, tick, ns);
	if (!err)
		err = report_counted(c, WEFT_COUNTED_QUEUES, tick, ns);
	c->coarse.counted_tick = tick;
	for (i = 0; i < n && !err; i++) {
		struct ring_page *ring = ring_page_at(c->region->map, i);
		uint32_t owner = load_acquire(&ring->owner);

		/* One that was handed on since the drain counts for a thread that is not known yet. */
		if (ring->thread.stream && (!owner || owner == ring->thread.tid))
			err = report_thread_counts(c, i, ring, ns);
		/* One that ended reported its own. */
		if (!err && ring->thread.stream && owner && owner == ring->thread.tid)
			err = report_parks(c, i, ring, on, until, ns);
	}
	return err;
}

/* The counts of a thread are in no cache. Where hundreds of threads have too many polls to time them, what weft does
 * about that is settled, and the counts can wait. */
static uint64_t counts_pace(const struct weft__collector *c)
{
	uint32_t n = load_acquire(&c->region->head->n_rings);

	return c->flush_ns * (c->coarse.level == COARSE_UNTIMED ? 1 + n / COUNTS_RINGS : 1);
}

void weft__poll_counts_soon(struct weft__collector *c, uint64_t now_ns, uint64_t in_ns)
{
	uint64_t pace = counts_pace(c), ago = pace > in_ns ? pace - in_ns : 0;

	c->counted_ns = now_ns > ago ? now_ns - ago : 0;
}

int weft__poll_counts_tend(struct weft__collector *c, uint64_t now_ns)
{
	int err;

	if (!load_relaxed(&c->counts_polls) || now_ns < c->counted_ns + counts_pace(c))
		return 0;
	c->counted_ns = now_ns;
	err = weft__poll_counts_report(c);
	weft__coarse_counted(c, now_ns);
	return err;
}
