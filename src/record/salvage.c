/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery from shared memory: the memory was written by a process that died at any moment, and nothing in it is
 * trusted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "record/collect/contexts.h"
#include "record/collect/unpack.h"
#include "record/event/poll.h"
#include "record/recover.h"
#include "segment/format.h"
#include "weft/runtime.h"

void weft__salvage_clock(struct weft__salvage *s)
{
	const struct rings_head *head = s->region.head;
	const struct weft_clock *last = &head->clocks[head->clock_at % CLOCKS];
	const struct weft_clock *before = &head->clocks[(head->clock_at + CLOCKS - 1) % CLOCKS];

	s->timeline.source = (enum weft__tick_source)head->tick_source;
	weft__timeline_set(&s->timeline, before, last);
}

static void salvage_loss(struct weft__salvage *s, uint32_t reason, uint32_t stream, uint64_t count, uint64_t from,
			 uint64_t to)
{
	struct weft_loss loss = {
		.reason = reason,
		.thread = stream,
		.count = count,
		.from_ns = weft__timeline_mono(&s->timeline, from),
		.to_ns = weft__timeline_mono(&s->timeline, to),
	};

	weft__defs_loss(&s->defs, &loss);
}

static void salvage_thread(struct weft__salvage *s, const struct ring_thread *thread)
{
	char name[sizeof(thread->name)];
	struct weft_thread def = {
		.id = thread->stream,
		.tid = thread->tid,
		.worker = thread->worker,
		.name = name,
		.first_ns = thread->first_ns,
	};

	memcpy(name, thread->name, sizeof(name));
	name[sizeof(name) - 1] = 0;
	weft__defs_thread(&s->defs, &def);
}

/* The registry's log, both into the segment and into tables for looking up. A log that does not parse is left out. */
static int take_definitions(struct weft__salvage *s)
{
	const struct rings_head *head = s->region.head;
	const uint8_t *log = (const uint8_t *)s->region.base + head->defs_at;
	const uint8_t *facts = (const uint8_t *)s->region.base + head->facts_at;
	int err = weft__segment_read_defs(s->known, facts, head->facts_used);

	if (err == -ENOMEM)
		return err;
	if (!err)
		weft__defs_raw(&s->defs, facts, head->facts_used, head->facts_count);
	err = weft__segment_read_defs(s->known, log, head->defs_used);

	if (err == -ENOMEM)
		return err;
	if (!err)
		weft__defs_raw(&s->defs, log, head->defs_used, head->defs_count);
	err = weft__segment_sort_defs(s->known);
	return err ? err : weft__salvage_modules(s);
}

/* Numbers that an earlier recovery, killed on its way, gave out are in the file and not in the shared memory. */
static void pass_numbers(struct weft__salvage *s)
{
	const struct weft_segment *from[] = {s->known, s->active};
	size_t n, i, k;

	s->next_stream = s->region.head->next_stream;
	for (k = 0; k < 2 && from[k]; k++) {
		const struct weft_thread *threads = weft_segment_threads(from[k], &n);
		const struct weft_worker *workers;

		for (i = 0; i < n; i++)
			if (threads[i].id >= s->next_stream)
				s->next_stream = threads[i].id + 1;
		workers = weft_segment_workers(from[k], &n);
		for (i = 0; i < n; i++)
			if (workers[i].id >= s->n_workers)
				s->n_workers = workers[i].id + 1;
	}
}

static int find_worker(const struct weft_segment *seg, uint32_t runtime, uint32_t index, uint32_t *ret)
{
	const struct weft_worker *workers;
	size_t n, i;

	if (!seg)
		return 0;
	workers = weft_segment_workers(seg, &n);
	for (i = 0; i < n; i++) {
		if (workers[i].runtime == runtime && workers[i].index == index) {
			*ret = workers[i].id;
			return 1;
		}
	}
	return 0;
}

/* The id of a worker; one that its process had no time to register is registered now. */
static uint32_t worker_id(struct weft__salvage *s, uint32_t runtime, uint32_t index)
{
	struct weft__defs one = {0};
	uint32_t id;

	if (find_worker(s->known, runtime, index, &id) || find_worker(s->active, runtime, index, &id))
		return id;
	if (s->n_workers >= WEFT_WORKER_NONE)
		return WEFT_WORKER_NONE;
	id = s->n_workers++;
	weft__defs_worker(&one, id, runtime, index);
	weft__defs_raw(&s->defs, one.out.bytes, one.out.n, 1);
	if (weft__defs_oom(&one) || weft__segment_read_defs(s->known, one.out.bytes, one.out.n) < 0)
		s->defs.out.oom = 1;
	weft__defs_fini(&one);
	return id;
}

static int left_stack(void *who, uint64_t *field)
{
	*field = weft__salvage_stack(who, (uint32_t)*field);
	return 0;
}

static int left_worker(void *who, uint32_t runtime, uint32_t index, uint64_t *field)
{
	*field = worker_id(who, runtime, index);
	return 0;
}

static int left_kind(void *who, uint32_t kind, uint32_t *n_fields)
{
	const struct weft__salvage *s = who;
	const struct weft_kind_def *def = kind < KIND_LIMIT ? weft_segment_kind(s->known, kind) : NULL;

	*n_fields = def ? def->n_fields : 0;
	return !def;
}

static const struct weft__resolver left_resolver = {left_stack, left_worker, left_kind};

static int salvage_event(struct weft__salvage *s, const struct weft_slot *slots, uint64_t ns)
{
	struct weft__unpacked ev;
	int err = weft__resolve(&left_resolver, s, s->batch.chunks[s->batch.n_chunks - 1].stream, slots, &ev);

	if (err > 0)
		weft__defs_loss(&s->defs, &(struct weft_loss){WEFT_LOSS_BAD_EVENT, 0, 1, ns, ns});
	if (err)
		return err < 0 ? err : 0;
	return weft__batch_add(&s->batch, ns, ev.kind, ev.fields, ev.n_fields);
}

/* One slice of a ring: whole events of one stream, in order, from `first` on. */
struct slice {
	uint32_t ring;
	uint32_t stream;
	uint64_t first;
	uint64_t n;
	const struct weft_slot *slots;
	uint64_t mask; /* of the slots; UINT64_MAX in staging */
	int found;     /* by the collector: slots have ns */
};

static uint64_t slice_ns(const struct weft__salvage *s, const struct slice *p, const struct weft_slot *slots)
{
	return p->found ? weft__found_ns(&s->timeline, slots) : weft__slot_ns(&s->timeline, slots);
}

static const struct weft_slot *slice_event(const struct slice *p, uint64_t i, struct weft_slot *copy)
{
	uint64_t k, at = p->mask == UINT64_MAX ? i : p->first + i;

	for (k = 0; k < EVENT_SLOTS_MAX && i + k < p->n; k++)
		copy[k] = p->slots[(at + k) & p->mask];
	return copy;
}

/* The context that the thread had before, unless the file has events of it, which say so. */
static int add_context(struct weft__salvage *s, const struct slice *p, const struct weft_slot *first)
{
	const struct ring_context *context = p->found ? NULL : &ring_page_at(s->region.map, p->ring)->context;
	int err;

	if (!context || s->progress[p->ring].stream == p->stream || context->stream != p->stream ||
	    !ring_context_any(context))
		return 0;
	err = weft__batch_add(&s->batch, weft__slot_ns(&s->timeline, first), WEFT_KIND_CONTEXT, context->fields,
			      CONTEXT_FIELDS);
	return err == -EOVERFLOW ? 0 : err;
}

/* Adds events of a slice from *at on, as many as a block takes, and writes the block when it is full. */
static int add_part(struct weft__salvage *s, const struct slice *p, uint64_t *at, int *broken)
{
	const struct weft__progress *progress = weft__salvage_progress(s, p->ring);
	uint64_t begun = *at;
	int err = weft__batch_begin(&s->batch, p->stream, p->ring, p->first + begun,
				    progress->stream == p->stream ? progress->last_ns : 0);
	struct weft_slot copy[EVENT_SLOTS_MAX] = {{0, 0}};
	int full = 0;

	if (err)
		return err;
	err = add_context(s, p, slice_event(p, *at, copy));
	while (*at < p->n && !err && !full) {
		uint32_t n = event_slots(slice_event(p, *at, copy));

		if (!n || *at + n > p->n) {
			*broken = 1;
			break;
		}
		err = salvage_event(s, copy, slice_ns(s, p, copy));
		if (err == -EOVERFLOW) {
			err = 0;
			full = 1;
			if (s->batch.n)
				break;
			weft__defs_loss(&s->defs, &(struct weft_loss){WEFT_LOSS_BAD_EVENT, p->stream, 1,
								      slice_ns(s, p, copy), slice_ns(s, p, copy)});
		}
		*at += n;
		full |= s->batch.n >= SALVAGE_BLOCK;
	}
	weft__salvage_passed(s, p->ring, p->first + *at, p->stream, weft__batch_last_ns(&s->batch));
	weft__batch_end(&s->batch, *at - begun);
	return err || !full ? err : weft__salvage_flush(s);
}

/* Adds the events of a slice that are not in the file yet. *broken when something in it is no event. */
static int add_slice(struct weft__salvage *s, const struct slice *p, int *broken)
{
	uint64_t next = weft__salvage_progress(s, p->ring)->next;
	uint64_t at = p->first < next ? next - p->first : 0;
	int err = 0;

	*broken = 0;
	while (at < p->n && !err && !*broken)
		err = add_part(s, p, &at, broken);
	return err;
}

static int loss_reported(const struct weft_segment *seg, const struct weft_loss *loss)
{
	const struct weft_loss *losses;
	size_t n, i;

	if (!seg)
		return 0;
	losses = weft_segment_losses(seg, &n);
	for (i = 0; i < n; i++)
		if (losses[i].reason == loss->reason && losses[i].thread == loss->thread &&
		    losses[i].count == loss->count && losses[i].from_ns == loss->from_ns &&
		    losses[i].to_ns == loss->to_ns)
			return 1;
	return 0;
}

/* Staged definitions. Those of a block that was written just before the kill are in the file too, which matters for
 * losses: they add up. */
static void take_staged_defs(struct weft__salvage *s, const uint8_t *bytes, size_t n)
{
	struct weft__in in = weft__in(bytes, n);

	while (in_left(&in)) {
		const uint8_t *record = in.p;
		uint64_t tag = in_varint(&in);
		uint64_t length = in_varint(&in);
		const uint8_t *body = in_bytes(&in, length);
		struct weft__in fields = weft__in(body, body ? length : 0);
		struct weft_loss loss;

		if (in.bad)
			return;
		if (tag == DEF_LOSS) {
			loss.reason = (uint32_t)in_varint(&fields);
			loss.thread = (uint32_t)in_varint(&fields);
			loss.count = in_varint(&fields);
			loss.from_ns = in_varint(&fields);
			loss.to_ns = in_varint(&fields);
			if (loss_reported(s->active, &loss))
				continue;
		}
		/* One that does not parse would take its whole block with it. */
		if (weft__segment_read_defs(s->known, record, (size_t)(in.p - record)) != -WEFT_E_DAMAGED)
			weft__defs_raw(&s->defs, record, (size_t)(in.p - record), 1);
	}
}

static int take_half(struct weft__salvage *s, uint32_t half)
{
	const struct rings_head *head = s->region.head;
	const char *base = staging_half(s->region.base, head, half);
	uint64_t at = 0, used = head->staging_used[half];
	int err = 0;

	while (!err && at + sizeof(struct staged_run) <= used) {
		struct staged_run run;
		uint64_t bytes;
		int broken;

		memcpy(&run, base + at, sizeof(run));
		at += sizeof(run);
		if (run.type == RUN_FOUND && run.n > (used - at) / sizeof(struct weft_slot))
			run.n = (uint32_t)((used - at) / sizeof(struct weft_slot)); /* it was just growing */
		bytes = run.type == RUN_DEFS ? run.n : (uint64_t)run.n * sizeof(struct weft_slot);
		if (bytes > used - at)
			break;
		if (run.type == RUN_DEFS)
			take_staged_defs(s, (const uint8_t *)base + at, run.n);
		else if (run.type == (run.ring < head->n_rings ? RUN_EVENTS : RUN_FOUND) &&
			 weft__salvage_progress(s, run.ring))
			err = add_slice(s,
					&(struct slice){run.ring, run.stream, run.first_slot, run.n,
							(const struct weft_slot *)(const void *)(base + at), UINT64_MAX,
							run.type == RUN_FOUND},
					&broken);
		at += (bytes + 7) / 8 * 8;
	}
	return err;
}

/* The older half first. */
static int take_staging(struct weft__salvage *s)
{
	uint32_t now = s->region.head->staging_now;
	int err = take_half(s, now ^ 1);

	return err ? err : take_half(s, now);
}

/* A thread that began in the ring and was never drained. */
static void salvage_begin(struct weft__salvage *s, struct ring_thread *thread, const struct weft_slot *slots)
{
	weft__thread_begin(thread, s->next_stream++, &s->timeline, &slots[0], &slots[1]);
	salvage_thread(s, thread);
}

/* From `at`, the end of the events of one thread; a thread_begin there starts one. */
static uint64_t slice_end(struct weft__salvage *s, struct ring_page *ring, uint64_t at, uint64_t head, uint64_t mask,
			  const struct weft_slot *slots)
{
	uint64_t from = at;

	while (at < head) {
		struct slice rest = {.first = at, .n = head - at, .slots = slots, .mask = mask};
		struct weft_slot copy[EVENT_SLOTS_MAX] = {{0, 0}};
		uint32_t n = event_slots(slice_event(&rest, 0, copy));
		uint32_t kind = (uint32_t)(copy[0].w0 & 0xff);

		if (!n || at + n > head)
			return head; /* add_slice finds and reports */
		if (kind == WEFT_KIND_THREAD_BEGIN) {
			if (at > from)
				break;
			salvage_begin(s, &ring->thread, copy);
		} else if (kind == WEFT_KIND_WORKER) {
			uint64_t worker = copy[0].w1;

			weft__resolve_field(&left_resolver, s, 0, IN_SLOT_WORKER, &worker);
			ring->thread.worker = (uint32_t)worker;
			salvage_thread(s, &ring->thread);
		}
		at += n;
	}
	return at;
}

/* A ring may have grown; one that was never used has no mask yet. */
static uint64_t ring_mask(const struct rings_head *head, const struct ring_page *page)
{
	uint64_t slots = page->hot.mask + 1;

	return slots > head->ring_slots && slots <= head->ring_most && !(slots & (slots - 1)) ? slots - 1
											      : head->ring_slots - 1;
}

static int take_ring(struct weft__salvage *s, uint32_t i)
{
	const struct rings_head *head = s->region.head;
	struct ring_page *ring = ring_page_at(s->region.map, i);
	const struct weft_slot *slots = (const struct weft_slot *)(const void *)((const char *)ring + RING_PAGE);
	struct ring_page page = *ring; /* a copy to work on: the file must stay as it is until the segment is sealed */
	uint64_t at = page.tail, end = page.hot.head, mask = ring_mask(head, &page);
	int err = 0, broken = 0;

	if (page.thread.stream)
		salvage_thread(s, &page.thread);
	if (end - at > mask + 1) {
		salvage_loss(s, WEFT_LOSS_BAD_EVENT, page.thread.stream, 1, s->timeline.last.tick,
			     s->timeline.last.tick);
		return 0;
	}
	if (s->progress[i].next > at && s->progress[i].next <= end) {
		at = s->progress[i].next;
		page.thread.stream = s->progress[i].stream;
	}
	while (at < end && !err && !broken) {
		uint64_t upto = slice_end(s, &page, at, end, mask, slots);

		err = add_slice(s, &(struct slice){i, page.thread.stream, at, upto - at, slots, mask, 0}, &broken);
		at = upto;
	}
	if (broken)
		salvage_loss(s, WEFT_LOSS_BAD_EVENT, page.thread.stream, 1, s->timeline.last.tick,
			     s->timeline.last.tick);
	if (page.lost != page.lost_seen)
		salvage_loss(s, WEFT_LOSS_RING_FULL, page.thread.stream, page.lost - page.lost_seen, page.lost_from,
			     page.lost_to);
	if (page.capped != page.capped_seen)
		salvage_loss(s, WEFT_LOSS_POLL_CAP, page.thread.stream, page.capped - page.capped_seen,
			     page.capped_from, page.capped_to);
	return err ? err : weft__salvage_counts(s, i, &page);
}

/* It was paused when the process ended: at least until the collector read the clock last. */
static void salvage_pause(struct weft__salvage *s, uint32_t reason, uint64_t from_ns)
{
	uint64_t last = s->timeline.last.mono_ns;
	struct weft_loss loss = {.reason = reason, .from_ns = from_ns, .to_ns = last > from_ns ? last : from_ns};

	if (from_ns)
		weft__defs_loss(&s->defs, &loss);
}

int weft__salvage_memory(struct weft__salvage *s)
{
	struct rings_head *head = s->region.head;
	uint32_t i;
	int err;

	err = take_definitions(s);
	pass_numbers(s);
	weft__salvage_pass_stacks(s);
	weft__defs_clock(&s->defs, &s->timeline.last);
	weft__defs_fact(&s->defs, "weft.recovered", "yes");
	if (!err)
		err = take_staging(s);
	for (i = 0; !err && i < head->n_rings; i++)
		err = take_ring(s, i);
	if (head->no_stack != head->no_stack_seen)
		salvage_loss(s, WEFT_LOSS_SAMPLE, 0, head->no_stack - head->no_stack_seen, head->no_stack_from,
			     head->no_stack_to);
	salvage_pause(s, WEFT_LOSS_PAUSED, head->paused_ns);
	salvage_pause(s, WEFT_LOSS_DISK_FULL, head->stuck_ns);
	if (head->no_ring != head->no_ring_seen)
		salvage_loss(s, WEFT_LOSS_NO_RING, 0, head->no_ring - head->no_ring_seen, head->no_ring_from,
			     head->no_ring_to);
	return err;
}
