/* SPDX-License-Identifier: Apache-2.0 */
/* What threads counted and the collector had not reported when the process ended: polls, parks, wakes and queue
 * depths. */
#include <string.h>

#include "record/event/park.h"
#include "record/found.h"
#include "record/recover.h"

static int add_poll_counts(struct weft__salvage *s, const struct ring_page *page, const uint32_t sum[POLLS_COUNTS])
{
	int err = 0;

	for (uint32_t bucket = 0; bucket < POLLS_COUNTS && !err; bucket++) {
		uint64_t fields[WEFT_FIELDS_OF_POLL_COUNT] = {page->thread.stream, weft__polls_from(bucket),
							      weft__polls_below(bucket),
							      sum[bucket] - page->polls_reported[bucket]};

		if (fields[WEFT_FIELD_POLL_COUNT_COUNT])
			err = weft__batch_add(&s->batch, s->timeline.last.mono_ns, WEFT_KIND_POLL_COUNT, fields,
					      WEFT_FIELDS_OF_POLL_COUNT);
	}
	return err;
}

static uint64_t salvage_ns(const struct weft__salvage *s, uint64_t ticks)
{
	int64_t ns = ticks < INT64_MAX ? weft__ticks_ns((int64_t)ticks, s->timeline.scale) : 0;

	return ns > 0 ? (uint64_t)ns : 0;
}

static int add_park_counts(struct weft__salvage *s, const struct ring_page *page, uint64_t parked)
{
	uint64_t span = page->parks_from && s->timeline.last.tick > page->parks_from
				? s->timeline.last.tick - page->parks_from
				: 0;
	uint64_t fields[WEFT_FIELDS_OF_PARK_COUNT] = {
		page->thread.stream, page->hot.parks - page->parks_reported,
		salvage_ns(s, parked > page->parked_reported ? parked - page->parked_reported : 0),
		salvage_ns(s, span)};

	if (fields[WEFT_FIELD_PARK_COUNT_SPAN] < fields[WEFT_FIELD_PARK_COUNT_TIME])
		fields[WEFT_FIELD_PARK_COUNT_SPAN] = fields[WEFT_FIELD_PARK_COUNT_TIME];
	return fields[WEFT_FIELD_PARK_COUNT_COUNT] || fields[WEFT_FIELD_PARK_COUNT_TIME]
		       ? weft__batch_add(&s->batch, s->timeline.last.mono_ns, WEFT_KIND_PARK_COUNT, fields,
					 WEFT_FIELDS_OF_PARK_COUNT)
		       : 0;
}

static int add_counted(struct weft__salvage *s, const struct ring_page *page)
{
	int err = 0;

	for (uint32_t which = 0; which < 2 && !err; which++) {
		uint64_t fields[WEFT_FIELDS_OF_COUNTED] = {which == WEFT_COUNTED_WAKES ? WEFT_KIND_WAKE
										       : WEFT_KIND_QUEUE,
							   page->hot.counted[which] - page->counted_seen[which], 0};

		if (fields[WEFT_FIELD_COUNTED_COUNT])
			err = weft__batch_add(&s->batch, s->timeline.last.mono_ns, WEFT_KIND_COUNTED, fields,
					      WEFT_FIELDS_OF_COUNTED);
	}
	return err;
}

int weft__salvage_counts(struct weft__salvage *s, uint32_t i, struct ring_page *page)
{
	const struct poll_reporting *reporting = &page->reporting;
	uint64_t parked = weft__parked_sum(page, (uint32_t)page->hot.park_on, s->timeline.last.tick);
	uint32_t sum[POLLS_COUNTS];
	int err = 0;

	if (reporting->count && reporting->count <= POLLS_COUNTS &&
	    weft__salvage_progress(s, FOUND_RING(s->region.head, FOUND_NOW))->next <= reporting->slot)
		page->polls_reported[reporting->count - 1] = reporting->before; /* it came no further */
	weft__polls_sum(&page->polls, sum);
	if (!page->thread.stream || s->progress[i].counted ||
	    (!memcmp(sum, page->polls_reported, sizeof(sum)) && parked <= page->parked_reported &&
	     page->hot.parks == page->parks_reported &&
	     !memcmp(page->hot.counted, page->counted_seen, sizeof(page->counted_seen))))
		return 0;
	err = weft__batch_begin(&s->batch, page->thread.stream, i, page->hot.head,
				s->progress[i].stream == page->thread.stream ? s->progress[i].last_ns : 0);
	if (!err)
		err = add_poll_counts(s, page, sum);
	if (!err)
		err = add_park_counts(s, page, parked);
	if (!err)
		err = add_counted(s, page);
	weft__batch_end(&s->batch, 0);
	return err || s->batch.n < SALVAGE_BLOCK ? err : weft__salvage_flush(s);
}
