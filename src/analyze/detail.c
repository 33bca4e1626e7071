/* SPDX-License-Identifier: Apache-2.0 */
/* When the recorder recorded less by itself, and what that does to wakes: one that was before a time in which wakes
 * were not recorded, or in which polls were not listed, may belong to a poll that is not here. */
#include "analyze/state.h"

static bool counts_wakes(uint32_t level)
{
	return level == WEFT_DETAIL_COUNTED || level == WEFT_DETAIL_UNTIMED;
}

void weft__detail_change(struct weft__detail *d, const struct weft__event *ev)
{
	uint32_t level = WEFT_FIELD(ev, MODE, LEVEL) <= WEFT_DETAIL_UNTIMED ? (uint32_t)WEFT_FIELD(ev, MODE, LEVEL)
									    : WEFT_DETAIL_COUNTED;
	struct weft__detail_change change = {ev->time_ns ? ev->time_ns : 1, WEFT_FIELD(ev, MODE, SLOW),
					     WEFT_FIELD(ev, MODE, EVENTS), WEFT_FIELD(ev, MODE, COST),
					     WEFT_FIELD(ev, MODE, ALLOWED)};

	if (level != WEFT_DETAIL_ALL && !d->coarser.ns)
		d->coarser = change;
	if ((level == WEFT_DETAIL_PARKS || level == WEFT_DETAIL_UNTIMED) && !d->parked.ns)
		d->parked = change;
	if (level == WEFT_DETAIL_UNTIMED && !d->untimed.ns)
		d->untimed = change;
	if (level != WEFT_DETAIL_UNTIMED)
		d->timed_ns = ev->time_ns;
	if (level == WEFT_DETAIL_ALL || level == WEFT_DETAIL_SLOW)
		d->parks_ns = ev->time_ns;
	if (counts_wakes(level) && !d->counted.ns)
		d->counted = change;
	if (level == WEFT_DETAIL_ALL && !d->finer_ns)
		d->finer_ns = change.ns;
	d->times += level != WEFT_DETAIL_ALL && d->level == WEFT_DETAIL_ALL;
	if (level == WEFT_DETAIL_ALL || counts_wakes(level) || counts_wakes(d->level))
		d->wakes_ns = ev->time_ns;
	d->level = level;
	d->n++;
}

void weft__detail_count(struct weft__detail *d, const struct weft__event *ev)
{
	uint64_t *sum = WEFT_FIELD(ev, COUNTED, KIND) == WEFT_KIND_WAKE    ? &d->wakes
			: WEFT_FIELD(ev, COUNTED, KIND) == WEFT_KIND_QUEUE ? &d->queues
									   : NULL;

	if (sum && !__builtin_add_overflow(*sum, WEFT_FIELD(ev, COUNTED, COUNT), sum))
		return;
	if (sum)
		*sum = UINT64_MAX;
}
