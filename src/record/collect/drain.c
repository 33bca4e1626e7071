/* SPDX-License-Identifier: Apache-2.0 */
/* Rings to staging. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/late.h"
#include "record/collect/collector.h"
#include "record/collect/staging.h"
#include "record/collect/unpack.h"
#include "record/event/registry.h"
#include "record/ring/ring.h"

#define NAME_LOOKS 3           /* a thread is often named just after it began: look again this often, a second apart, */
#define NAME_SOON_NS 20000000u /* but the first time at the first drain after this */
#define TEND_RINGS 128u        /* looked at in a turn, once a second: of thousands some each time */

static void define_thread(struct weft__collector *c, uint32_t i, const struct ring_page *ring, struct weft__defs *to)
{
	struct weft_thread thread = {
		.id = ring->thread.stream,
		.tid = ring->thread.tid,
		.worker = ring->thread.worker,
		.name = ring->thread.name,
		.first_ns = ring->thread.first_ns,
	};

	weft__defs_thread(to, &thread);
	c->notes[i].stream = thread.id;
	c->notes[i].segment = c->segments.sequence + 1;
}

/* The definition of a ring's thread, once per segment and when it changes. */
static void stage_thread(struct weft__collector *c, uint32_t i, struct ring_page *ring, int look)
{
	if (look && load_relaxed(&ring->owner) == ring->thread.tid)
		weft__staging_comm(ring->thread.tid, ring->thread.name);
	define_thread(c, i, ring, &c->news);
}

/* Whether the active segment has the definition of the ring's thread. */
static int is_defined(const struct weft__collector *c, uint32_t i, const struct ring_page *ring)
{
	return c->notes[i].stream == ring->thread.stream && c->notes[i].segment == c->segments.sequence + 1;
}

int weft__drain_define(struct weft__collector *c, uint32_t i)
{
	struct ring_page *ring = ring_page_at(c->region->map, i);

	if (!is_defined(c, i, ring))
		stage_thread(c, i, ring, 1);
	return weft__stage_news(c);
}

void weft__drain_define_again(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint32_t n = load_acquire(&head->n_rings);
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct ring_page *ring = ring_page_at(c->region->map, i);

		if (ring->thread.stream)
			define_thread(c, i, ring, &c->defs);
	}
	weft__found_define_again(c);
}

static void begin_thread(struct weft__collector *c, uint32_t i, struct ring_page *ring, const struct weft_slot *slot,
			 const struct weft_slot *name)
{
	weft__thread_begin(&ring->thread, c->region->head->next_stream++, &c->timeline, slot, name);
	c->notes[i].looks = 0;
	stage_thread(c, i, ring, 0);
}

static void set_worker(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint64_t value)
{
	ring->thread.worker = value == WORKER_LEFT ? WEFT_WORKER_NONE
						   : weft__registry_worker((uint32_t)(value >> 32), (uint32_t)value);
	stage_thread(c, i, ring, 1);
}

static void report_loss(struct weft__collector *c, uint32_t reason, uint32_t stream, uint64_t count, uint64_t from,
			uint64_t to)
{
	struct weft_loss loss = {
		.reason = reason,
		.thread = stream,
		.count = count,
		.from_ns = weft__timeline_mono(&c->timeline, from),
		.to_ns = weft__timeline_mono(&c->timeline, to),
	};

	weft__defs_loss(&c->news, &loss);
	c->stats.lost += count;
}

/* What a run of a ring is: whole events of one thread that fit into `room`. */
struct ring_run {
	uint64_t from;
	uint64_t upto;
	int broken; /* the slot at `upto` is no event */
};

/* Nearly all events are of kinds with one slot that say nothing about their thread. */
static inline uint64_t is_plain(const struct weft_slot *slot)
{
	/* clang-format off */
	static const uint64_t plain = (0
#define X(NAME, number, name, packing, ...) \
		| (uint64_t)(SLOTS_##packing(WEFT_FIELDS_OF_##NAME) == 1) << WEFT_KIND_##NAME
		WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
		) & ~(UINT64_C(1) << WEFT_KIND_WORKER);
	/* clang-format on */
	uint64_t kind = slot->w0 & 0xff;

	return plain >> (kind & 63) & (kind < 64);
}

/* How many of `n` slots from here on are plain, or a few less. */
static uint64_t plain_slots(const struct weft_slot *slots, uint64_t n)
{
	uint64_t i = 0;

	while (i + 4 <= n &&
	       is_plain(&slots[i]) & is_plain(&slots[i + 1]) & is_plain(&slots[i + 2]) & is_plain(&slots[i + 3]))
		i += 4;
	return i;
}

static struct ring_run measure(struct weft__collector *c, uint32_t i, struct ring_page *ring, uint64_t from,
			       uint64_t head, size_t room)
{
	const struct weft_slot *slots = ring->hot.slots;
	uint64_t mask = load_relaxed(&ring->hot.mask);
	uint64_t at = from, most = from + room / sizeof(struct weft_slot);
	struct ring_run s = {.from = from};

	while (at < head) {
		const struct weft_slot *slot = &slots[at & mask];
		uint64_t last = head < most ? head : most;
		uint64_t until_wrap = mask + 1 - (at & mask);
		uint32_t kind, n;

		if (last > at)
			at += plain_slots(slot, last - at < until_wrap ? last - at : until_wrap);
		if (at >= head)
			break;
		slot = &slots[at & mask];
		kind = (uint32_t)(slot->w0 & 0xff);
		n = event_slots(slot);
		if (!n || at + n > head) {
			s.broken = 1;
			break;
		}
		if (at + n > most)
			break;
		if (kind == WEFT_KIND_THREAD_BEGIN) {
			if (at > from)
				break;
			begin_thread(c, i, ring, slot, &slots[(at + 1) & mask]);
		} else if (kind == WEFT_KIND_WORKER) {
			set_worker(c, i, ring, slot->w1);
		}
		at += n;
	}
	s.upto = at;
	return s;
}

static void stage(struct weft__collector *c, uint32_t i, const struct ring_page *ring, const struct ring_run *s)
{
	struct staged_run run = {
		.type = RUN_EVENTS,
		.n = (uint32_t)(s->upto - s->from),
		.ring = i,
		.stream = ring->thread.stream,
		.first_slot = s->from,
	};
	char *to = weft__staging_end(c);
	uint64_t mask = load_relaxed(&ring->hot.mask);
	uint64_t until_wrap = mask + 1 - (s->from & mask);
	uint64_t first = run.n < until_wrap ? run.n : until_wrap;

	memcpy(to, &run, sizeof(run));
	to += sizeof(run);
	memcpy(to, &ring->hot.slots[s->from & mask], first * sizeof(struct weft_slot));
	memcpy(to + first * sizeof(struct weft_slot), ring->hot.slots, (run.n - first) * sizeof(struct weft_slot));
	weft__staging_publish(c, weft__run_bytes(run.n * sizeof(struct weft_slot)));
	c->staged_runs++;
}

/* Polls beyond poll_cap. */
static int drain_capped(struct weft__collector *c, uint32_t i, struct ring_page *ring)
{
	uint64_t capped = load_acquire(&ring->capped);
	int err;

	if (capped == ring->capped_seen)
		return 0;
	if (!is_defined(c, i, ring))
		stage_thread(c, i, ring, 1);
	report_loss(c, WEFT_LOSS_POLL_CAP, ring->thread.stream, capped - ring->capped_seen,
		    load_relaxed(&ring->capped_from), load_relaxed(&ring->capped_to));
	err = weft__stage_news(c);
	if (!err)
		store_relaxed(&ring->capped_seen, capped);
	else
		c->stats.lost -= capped - ring->capped_seen;
	return err;
}

static int drain_losses(struct weft__collector *c, struct ring_page *ring)
{
	uint64_t lost = load_acquire(&ring->lost);
	int err;

	if (lost == ring->lost_seen)
		return 0;
	report_loss(c, WEFT_LOSS_RING_FULL, ring->thread.stream, lost - ring->lost_seen, load_relaxed(&ring->lost_from),
		    load_relaxed(&ring->lost_to));
	err = weft__stage_news(c);
	if (!err)
		store_relaxed(&ring->lost_seen, lost);
	else
		c->stats.lost -= lost - ring->lost_seen;
	return err;
}

/* A name that its thread got after its first event. */
static void look_at_name(struct weft__collector *c, uint32_t i, struct ring_page *ring)
{
	char before[sizeof(ring->thread.name)];

	c->notes[i].looks++;
	c->name_looks++;
	memcpy(before, ring->thread.name, sizeof(before));
	weft__staging_comm(ring->thread.tid, ring->thread.name);
	if (strcmp(before, ring->thread.name) != 0)
		stage_thread(c, i, ring, 0);
}

/* The first look comes soon: a sample may have fallen into the first moments of a thread, before it named itself. Of
 * very many threads it comes later, some of them each second. */
static int name_is_young(const struct weft__collector *c, uint32_t i, const struct ring_page *ring)
{
	return !c->notes[i].looks && c->name_looks < TEND_RINGS && ring->thread.stream && load_relaxed(&ring->owner) == ring->thread.tid &&
	       weft__clock_mono() > ring->thread.first_ns + NAME_SOON_NS;
}

static int drain_ring(struct weft__collector *c, uint32_t i, struct ring_page *ring)
{
	uint64_t head = load_acquire(&ring->hot.head);
	uint64_t tail = ring->tail;
	int err = 0;

	weft__grow_ring(c, i, ring, head - tail);
	if (name_is_young(c, i, ring)) {
		look_at_name(c, i, ring);
		err = weft__stage_news(c);
	}
	while (tail < head && !err) {
		struct ring_run s;

		if (weft__staging_room(c) < weft__run_bytes(EVENT_SLOTS_MAX * sizeof(struct weft_slot))) {
			err = weft__flush_room(c);
			if (err)
				break;
		}
		/* The first event of a stream is its thread_begin, which says so by itself. */
		if (ring->thread.stream && !is_defined(c, i, ring))
			stage_thread(c, i, ring, 1);
		s = measure(c, i, ring, tail, head, weft__staging_room(c) - sizeof(struct staged_run));
		if (s.upto > s.from)
			stage(c, i, ring, &s);
		tail = s.upto;
		if (s.broken) {
			weft__log(WEFT_LOG_ERROR, "ring %u: slot %llu is no event; %llu slots dropped", i,
				  (unsigned long long)tail, (unsigned long long)(head - tail));
			report_loss(c, WEFT_LOSS_BAD_EVENT, ring->thread.stream, 1, c->timeline.last.tick,
				    c->timeline.last.tick);
			tail = head;
		}
		c->drained += tail - ring->tail;
		store_release(&ring->tail, tail);
		err = weft__stage_news(c);
	}
	if (!err)
		err = drain_capped(c, i, ring);
	return err ? err : drain_losses(c, ring);
}

/* As many slots as wake the collector, or one in `part` of them. */
static int some_ring_has(const struct weft__collector *c, uint64_t part)
{
	const struct rings_head *head = c->region->head;
	uint32_t n = load_acquire(&head->n_rings);
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct ring_page *ring = ring_page_at(c->region->map, i);

		if ((load_relaxed(&ring->hot.head) - ring->tail) * part >= load_relaxed(&ring->wake))
			return 1;
	}
	return 0;
}

int weft__drain_pressing(const struct weft__collector *c)
{
	return some_ring_has(c, 1) || weft__stack_ids_pressing(c);
}

int weft__drain_worthwhile(const struct weft__collector *c)
{
	return some_ring_has(c, 2) || weft__stack_ids_pressing(c);
}

static void read_clock(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	struct weft_clock now;

	if (!weft__timeline_due(&c->timeline, weft__clock_mono()))
		return;
	now = weft__clock_read(c->timeline.source);
	weft__timeline_add(&c->timeline, &now);
	if (c->timeline.last.tick != now.tick)
		return;
	store_relaxed(&weft_gate.ns_scale, weft__timeline_scale(&c->timeline));
	head->clocks[(head->clock_at + 1) % CLOCKS] = now;
	store_release(&head->clock_at, head->clock_at + 1);
}

/* What was lost outside of any ring. */
static int drain_common_losses(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint64_t no_ring = load_acquire(&head->no_ring);
	uint64_t no_stack = load_acquire(&head->no_stack);

	if (no_ring != head->no_ring_seen) {
		report_loss(c, WEFT_LOSS_NO_RING, 0, no_ring - head->no_ring_seen, load_relaxed(&head->no_ring_from),
			    load_relaxed(&head->no_ring_to));
		store_relaxed(&head->no_ring_seen, no_ring);
	}
	if (no_stack != head->no_stack_seen) {
		report_loss(c, WEFT_LOSS_SAMPLE, 0, no_stack - head->no_stack_seen, load_relaxed(&head->no_stack_from),
			    load_relaxed(&head->no_stack_to));
		c->stats.samples_lost += no_stack - head->no_stack_seen;
		store_relaxed(&head->no_stack_seen, no_stack);
	}
	return weft__found_losses(c);
}

int weft__drain(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint32_t n = load_acquire(&head->n_rings);
	uint32_t i;
	int err = 0;

	read_clock(c);
	for (i = 0; i < n && !err; i++)
		err = drain_ring(c, i, ring_page_at(c->region->map, i));
	if (!err)
		err = drain_common_losses(c);
	c->drain_due_ns = weft__grid_next(weft__clock_mono(), c->drain_ns);
	c->stats.drains += !err;
	return err;
}

/* A thread that ended without running its destructors. A tid that was given to a new thread is caught when that one
 * attaches. */
static int owner_dead(uint32_t tid)
{
	return tid && tid != OWNER_LEAVING && syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH;
}

void weft__drain_tend(struct weft__collector *c)
{
	struct rings_head *head = c->region->head;
	uint32_t n = load_acquire(&head->n_rings);
	uint32_t part = n / TEND_RINGS + 1, i;

	c->name_looks = 0;
	for (i = c->tends++ % part; i < n; i += part) {
		struct ring_page *ring = ring_page_at(c->region->map, i);
		uint32_t owner = load_acquire(&ring->owner);

		if (owner_dead(owner)) {
			weft__ring_detach(ring, owner, c->timeline.last.tick);
			continue;
		}
		if (!ring->thread.stream || c->notes[i].looks >= (part > 1 ? 1 : NAME_LOOKS) ||
		    load_relaxed(&ring->owner) != ring->thread.tid ||
		    (!c->notes[i].looks &&
		     !name_is_young(c, i, ring))) /* too soon: it would be the first, and only, look for a second */
			continue;
		look_at_name(c, i, ring);
	}
	if (owner_dead(load_relaxed(&weft__late_tid)))
		store_relaxed(&weft__late_tid, 0u); /* the number may be another thread's one day */
	weft__stage_news(c);
}
