/* SPDX-License-Identifier: Apache-2.0 */
/* Staging to the segment file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "record/collect/unpack.h"
#include "record/event/registry.h"
#include "segment/format.h"

_Static_assert(sizeof(((struct rings_head *)0)->active) == NAME_BYTES, "names of segments fit the head");

static struct staged_run *run_at(struct weft__collector *c, uint64_t at)
{
	return (struct staged_run *)(void *)(c->region->base + c->region->head->staging_at + at);
}

static uint64_t run_end(const struct staged_run *run, uint64_t at)
{
	size_t payload = run->type == RUN_EVENTS ? run->n * sizeof(struct weft_slot) : run->n;

	return at + sizeof(*run) + (payload + 7) / 8 * 8;
}

static void tell_bad(struct weft__collector *c, uint64_t tick)
{
	uint64_t when = weft__timeline_mono(&c->timeline, tick);
	struct weft_loss loss = {WEFT_LOSS_BAD_EVENT, c->batch.chunks[c->batch.n_chunks - 1].stream, 1, when, when};

	weft__defs_loss(&c->defs, &loss);
	c->n_bad++;
}

/* One event into the batch. What makes no sense is counted, not kept. */
static int add_event(struct weft__collector *c, const struct weft_slot *slots)
{
	struct weft__unpacked ev;
	int err;

	weft__unpack(slots, &ev);
	if (ev.kind == WEFT_KIND_WORKER)
		ev.fields[0] = ev.fields[0] == WORKER_LEFT
				       ? WEFT_WORKER_NONE
				       : weft__registry_worker((uint32_t)(ev.fields[0] >> 32), (uint32_t)ev.fields[0]);
	if (ev.kind == WEFT_KIND_SAMPLE) {
		err = weft__stack_ids_get(c, (uint32_t)ev.fields[0], &ev.fields[0]);
		if (!err)
			err = weft__stack_ids_get(c, (uint32_t)ev.fields[1], &ev.fields[1]);
		if (err)
			return err;
	}
	if (ev.kind >= WEFT_KIND_USER) {
		int n = weft__registry_kind_fields(ev.kind);

		if (n < 0) {
			tell_bad(c, slots->w0 >> 8);
			return 0;
		}
		while (ev.n_fields < (uint32_t)n)
			ev.fields[ev.n_fields++] = 0;
		ev.n_fields = (uint32_t)n;
	}
	err = weft__batch_add(&c->batch, weft__slot_ns(&c->timeline, slots), ev.kind, ev.fields, ev.n_fields);
	if (err == -EOVERFLOW) {
		tell_bad(c, slots->w0 >> 8);
		err = 0;
	}
	return err;
}

/* The events of which a trace is full, without the detour. 0: not one of them, or not ready for it. */
static inline int add_quick(struct weft__collector *c, const struct weft_slot *slot)
{
	uint64_t w1 = slot->w1;
	uint64_t ns = weft__slot_ns(&c->timeline, slot);
	uint32_t kind = (uint32_t)(slot->w0 & 0xff);

	switch (kind) {
	case WEFT_KIND_POLL_END:
		return weft__batch_quick(&c->batch, ns, WEFT_KIND_POLL_END, 0, 0, 0);
	case WEFT_KIND_POLL_BEGIN:
	case WEFT_KIND_WAKE:
	case WEFT_KIND_SPAWN:
		return weft__batch_quick(&c->batch, ns, kind, w1 & WEFT_TASK_MASK, w1 >> WEFT_TASK_BITS, 2);
	case WEFT_KIND_PARK:
	case WEFT_KIND_UNPARK:
	case WEFT_KIND_TASK_END:
		return weft__batch_quick(&c->batch, ns, kind, w1, 0, 1);
	}
	return 0;
}

static int add_run(struct weft__collector *c, const struct staged_run *run)
{
	const struct weft_slot *slots = (const struct weft_slot *)(const void *)(run + 1);
	uint32_t i = 0;
	int err = 0;

	while (i < run->n && !err) {
		if (add_quick(c, &slots[i])) {
			i++;
			continue;
		}
		err = add_event(c, &slots[i]);
		i += event_slots(&slots[i]);
	}
	return err;
}

/* The run at `at` and all later ones that go on where it ends become one chunk; they are marked as done. */
static int add_chunk(struct weft__collector *c, uint64_t at, uint64_t used)
{
	struct staged_run *run = run_at(c, at);
	struct weft__ring_note *note = &c->notes[run->ring];
	uint64_t not_before = note->last_stream == run->stream ? note->last_ns : 0;
	uint64_t next = run->first_slot;
	uint64_t slots = 0;
	uint32_t ring = run->ring, stream = run->stream;
	int err = weft__batch_begin(&c->batch, stream, ring, run->first_slot, not_before);

	if (err)
		return err;
	while (at < used && !err) {
		run = run_at(c, at);
		at = run_end(run, at);
		if (run->type != RUN_EVENTS || run->ring != ring)
			continue;
		if (run->stream != stream || run->first_slot != next)
			break; /* the ring was handed on: a chunk of its own */
		err = add_run(c, run);
		next += run->n;
		slots += run->n;
	}
	note->last_stream = stream;
	note->last_ns = weft__batch_last_ns(&c->batch);
	weft__batch_end(&c->batch, slots);
	return err;
}

/* Whether an earlier run of the same ring and stream has taken this one along. */
static int taken_along(struct weft__collector *c, uint64_t at)
{
	const struct staged_run *run = run_at(c, at);
	size_t i;

	for (i = c->batch.n_chunks; i-- > 0;) {
		const struct weft__chunk *chunk = &c->batch.chunks[i];

		if (chunk->ring == run->ring)
			return run->first_slot < chunk->first_slot + chunk->n_slots;
	}
	return 0;
}

static int gather(struct weft__collector *c)
{
	uint64_t used = c->region->head->staging_used;
	uint64_t at = 0;
	int err = 0;

	weft__batch_clear(&c->batch);
	c->n_bad = 0;
	while (at < used && !err) {
		const struct staged_run *run = run_at(c, at);

		if (run->type == RUN_DEFS)
			weft__defs_raw(&c->defs, (const uint8_t *)(run + 1), run->n, run->stream);
		else if (!taken_along(c, at))
			err = add_chunk(c, at, used);
		at = run_end(run, at);
	}
	return err;
}

/* What stands in front of every segment. */
static int begin_segment(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	int err = weft__segments_begin(&c->segments);

	if (err)
		return err;
	weft__region_relink(c->region);
	head->sequence = c->segments.sequence;
	memcpy(head->active, c->segments.active, sizeof(head->active));
	c->registry_at = 0;
	weft__stack_ids_begin_segment(c);
	weft__defs_clear(&c->defs);
	weft__defs_raw(&c->defs, c->facts.out.bytes, c->facts.out.n, c->facts.n);
	weft__defs_clock(&c->defs, &c->timeline.before);
	return 0;
}

static int write_blocks(struct weft__collector *c, uint64_t *ret_events)
{
	struct weft__writer *w = &c->segments.writer;
	uint64_t mark = w->offset;
	size_t mark_index = w->index.n;
	uint32_t mark_blocks = w->n_blocks;
	uint64_t first, last;
	int err;

	weft__registry_read(&c->registry_at, &c->defs);
	weft__defs_clock(&c->defs, &c->timeline.last);
	if (weft__defs_oom(&c->defs))
		return -ENOMEM;
	if (c->batch.n) {
		err = weft__encoder_events(c->encoder, &c->batch, &c->payload, &first, &last);
		if (err)
			return err;
	}
	err = weft__writer_defs(w, c->encoder, &c->defs);
	if (!err && c->batch.n)
		err = weft__writer_block(w, BLOCK_EVENTS, 0, (uint32_t)c->batch.n, first, last, &c->payload);
	if (err &&
	    w->offset != mark) { /* definitions without their events: the losses among them would be told twice */
		(void)!ftruncate(w->fd, (off_t)mark);
		w->offset = mark;
		w->index.n = mark_index;
		w->n_blocks = mark_blocks;
	}
	*ret_events = c->batch.n;
	weft__segments_sync(&c->segments);
	return err;
}

/* The directory was deleted under us: what was in the file is gone with it, recording goes on in a new one. */
static void forget_deleted(struct weft__collector *c)
{
	weft__log(WEFT_LOG_WARN, "%s: the active segment was deleted; beginning a new one", c->segments.dir);
	weft__segments_drop(&c->segments);
	c->segments.sequence++;
}

int weft__flush(struct weft__collector *c)
{
	uint64_t registry_mark = c->registry_at;
	int gone = weft__segments_gone(&c->segments);
	uint64_t n = 0;
	int err = 0;

	if (gone)
		forget_deleted(c);
	if (c->segments.fd < 0) {
		err = begin_segment(c);
		registry_mark = 0;
		if (!err && gone)
			weft__drain_retell(c);
	} else {
		weft__defs_clear(&c->defs);
	}
	if (!err)
		err = weft__stack_ids_modules(c);
	if (!err)
		err = gather(c);
	if (!err)
		err = write_blocks(c, &n);
	weft__stack_ids_settle(c, !err);
	if (err) {
		/* Staging still holds everything: the next try begins again. A segment without its opening definitions is no use. */
		c->registry_at = registry_mark;
		if (c->segments.fd >= 0 && !c->segments.writer.n_blocks)
			weft__segments_abandon(&c->segments);
		return err;
	}
	c->stats.events += n;
	c->stats.lost += c->n_bad;
	store_release(&c->region->head->staging_used, 0);
	c->staged_ns = 0;
	c->flushed_ns = weft__clock_mono();
	return 0;
}

int weft__flush_seal(struct weft__collector *c)
{
	int err = weft__flush(c);

	if (!err)
		err = weft__segments_seal(&c->segments);
	if (!err)
		c->stats.segments = c->segments.n_sealed;
	return err;
}
