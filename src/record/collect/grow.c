/* SPDX-License-Identifier: Apache-2.0 */
/* Rings that grow. A ring holds what its thread emits while the collector does not get to run, which on a busy or
 * shared machine can be 10 ms and more, and the fewer slots it has the more often the collector has to be woken. The
 * slots that a ring begins with are enough for 40,000 events a second; a thread that emits more gets more, up to a
 * bound for each ring and one for all. The collector finds the memory and the owner, when it next looks up, takes it
 * (ring_hot.c). A ring keeps what it got.
 *
 * The collector is woken when half of a ring is filled. A thread that would fill all of its ring within some tens of
 * milliseconds wakes it earlier, and then the collector asks to run soon after that (thread.c). */
#include <sys/mman.h>

#include "base/atomic.h"
#include "record/collect/collector.h"
#include "record/ring/ring.h"

#define HOLD_NS 100000000u      /* events of this time have room */
#define FAST_NS 50000000u       /* a ring that is full within this time needs the collector soon */
#define GROWN_BYTES (16u << 20) /* of all rings */

/* Memory behind the slots from `from` up to `upto`, and in the page tables, so that the owner does not have to wait
 * for it. */
static int back_slots(const struct rings_head *head, uint32_t i, struct ring_page *ring, uint64_t from, uint64_t upto)
{
	uint64_t skip = RING_PAGE + from * sizeof(struct weft_slot);
	char *begin = (char *)ring + skip;
	uint64_t bytes = (upto - from) * sizeof(struct weft_slot);

	if (!weft__ring_back(&weft__hot.file, begin, head->rings_at + head->ring_stride * i + skip, bytes))
		return 0;
	madvise(begin, bytes, MADV_POPULATE_WRITE);
	return 1;
}

/* When the owner wakes the collector. True when the ring is full soon after that. */
static int set_wake(struct ring_page *ring, uint64_t slots, uint64_t since)
{
	uint64_t has = load_relaxed(&ring->hot.mask) + 1;
	int fast = slots * FAST_NS / (since + 1) > has;
	uint32_t wake = (uint32_t)(fast ? ring->slots_first : has) / 2;

	if (wake != load_relaxed(&ring->wake))
		store_relaxed(&ring->wake, wake);
	return fast;
}

void weft__grow_ring(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint64_t slots)
{
	const struct rings_head *head = c->region->head;
	struct weft__ring_note *note = &c->notes[i];
	uint64_t now, has, more, since;

	if (!slots)
		return;
	now = weft__clock_mono();
	since = now - note->drained_ns;
	note->drained_ns = now;
	/* A burst says little about a rate, and the owner has to take what it was given first. */
	if (slots < head->ring_slots / 4)
		return;
	if (set_wake(ring, slots, since))
		c->fast_ns = now;
	has = load_relaxed(&ring->hot.mask) + 1;
	if (has >= head->ring_most || note->grown > has || slots * HOLD_NS / (since + 1) <= has)
		return;
	more = has * sizeof(struct weft_slot);
	note->grown = (uint32_t)(2 * has);
	if (c->grown_bytes + more > GROWN_BYTES || !back_slots(head, i, ring, has, 2 * has))
		return;
	c->grown_bytes += more;
	store_release(&ring->granted, note->grown);
}
