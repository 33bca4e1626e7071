/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's turn: what the kernel wrote into the rings, in order of time, to events. COLLECTOR.
 *
 * A turn reads up to the moment at which it began, so that what one CPU wrote is not taken before what another one
 * wrote earlier. The kernel gets its space back only when the events are in staging; that may be full, so a turn may
 * take several goes with a flush between them. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/place.h"
#include "record/event/wide.h"
#include "record/found.h"
#include "record/switch/state.h"
#include "record/thread/thread.h"
#include "weft/event.h"

/* Between two turns. A CPU that suddenly switches 250,000 times a second fills its ring in 20 ms; a program that
 * does not switch at all should not be woken for it that often. Where nobody asked for records, there are none of so
 * many switches, and fewer wakeups are worth more. */
#define DUE_BUSY_NS UINT64_C(20000000)
#define DUE_IDLE_NS UINT64_C(100000000)
#define DUE_DEFAULT_NS UINT64_C(250000000)
#define DUE_LEAST_NS UINT64_C(300000)
#define BUSY_SHARE 256 /* a ring that fills by the part one by this in a turn */
#define TWICE_MOST 3
#define STACKS_MOST 5000 /* samples of switches a second: 1 % of a CPU, or so */
#define PERIOD_STEP 4
#define PERIOD_MOST 1024
#define PERIOD_STAY_NS UINT64_C(1000000000)
#define RATE_NS UINT64_C(50000000) /* over which the rate is taken */
#define READ_LEFT 500 /* switches since the last reading of a thread's CPU time that make another worth it */
#define FULL_WORDS 9  /* less than that is no room for a loss and a switch */

static uint64_t sample_room[SWITCH_RECORD_WORDS] LARGE_TABLE;
static uint64_t switch_turn_ns; /* when the last turn was */

/* Flushing for room would be done under the lock. */
static int out_room(void)
{
	return weft__found_room(weft__switch.collector);
}

static void emit_interval(const struct weft__switch_interval *one)
{
	uint64_t fields[WEFT_FIELDS_OF_OFFCPU] = {one->tid, 0, one->end_ns - one->begin_ns, one->reason, 1, 0, 0};
	struct weft__wide_stack stacks[2];
	struct weft__found found = {one->end_ns, WEFT_KIND_OFFCPU, fields, stacks, 0};
	uint32_t n = 0;

	/* One that comes behind its time cannot be recognized by that. In order, most of what it would take is
	 * saved. */
	if (one->end_ns < weft__switch.out_ns)
		fields[WEFT_FIELD_OFFCPU_BEGIN] = one->begin_ns;
	else
		weft__switch.out_ns = one->end_ns;
	if (one->stack && one->stack->n_user)
		stacks[n++] = (struct weft__wide_stack){one->stack->frames, one->stack->n_user, one->stack->flags,
							WEFT_FIELD_OFFCPU_STACK};
	if (one->stack && one->stack->n_kernel)
		stacks[n++] =
			(struct weft__wide_stack){one->stack->frames + one->stack->n_user, one->stack->n_kernel,
						  WEFT_STACK_KERNEL | WEFT_STACK_COMPLETE, WEFT_FIELD_OFFCPU_KERNEL};
	found.n_stacks = n;
	weft__found_add(weft__switch.collector, FOUND_SWITCH, &found);
	if (one->stack)
		one->stack->n_user = one->stack->n_kernel = 0;
}

/* A record that is not a loss. Answers 1 when it made an interval. */
static int record_take(struct weft__switch_set *set, struct weft__switch_ring *ring, struct weft__switch_interval *one)
{
	const struct weft__switch_record *record = &ring->next;
	struct weft__switch_thread *thread;
	int made = 0;

	if (record->pid != weft__switch.pid || weft__switch_ours(record->tid))
		return 0;
	switch (record->type) {
	case SWITCH_IN:
		made = weft__pairs_in(&set->pairs, record->tid, record->time_ns, one);
		break;
	case SWITCH_OUT:
		add_relaxed(&weft__switch.counts.switches, 1);
		made = weft__pairs_out(&set->pairs, record->tid, record->time_ns, record->preempted, one);
		thread = weft__pairs_get(&set->pairs, record->tid, 0);
		if (thread && ++thread->left == READ_LEFT)
			set->read_due = 1;
		if (thread && thread->twice >= TWICE_MOST && !set->stop_ns) {
			thread->twice = 0;
			weft__switch_set_single(set, record->tid);
		}
		break;
	case SWITCH_SAMPLE:
		add_relaxed(&weft__switch.counts.stacks, 1);
		thread = weft__pairs_get(&set->pairs, record->tid, 1);
		made = thread ? weft__switch_unwind(&thread->stack, weft__switch_words(ring, sample_room),
						    record->n_words)
			      : -ENOMEM;
		break;
	case SWITCH_EXIT:
		weft__pairs_del(&set->pairs, record->tid);
		ring->over = ring->tid == record->tid && ring->tid;
		break;
	default:
		break;
	}
	if (made < 0)
		weft__switch_lose(1, record->time_ns, record->time_ns);
	return made > 0;
}

/* Rings with a record, the oldest first. */
static void heap_down(struct weft__switch_ring **heap, size_t n, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;
		struct weft__switch_ring *swap = heap[i];

		for (size_t c = child; c < n && c < child + 2; c++)
			if (heap[c]->next.time_ns < heap[least]->next.time_ns)
				least = c;
		if (least == i)
			return;
		heap[i] = heap[least];
		heap[least] = swap;
		i = least;
	}
}

static void ring_peek(struct weft__switch_ring *ring)
{
	if (weft__switch_peek(ring) < 0)
		weft__switch_lose(1, ring->last_ns, weft__clock_mono());
}

static void cut_begin(struct weft__switch_set *set, uint64_t from_ns, uint64_t to_ns)
{
	set->cut.on = 1;
	set->cut.cursor = 0;
	set->cut.from_ns = from_ns;
	set->cut.to_ns = to_ns;
}

/* 0: there was no room for all of it. */
static int cut_go_on(struct weft__switch_set *set)
{
	struct weft__switch_interval one = {0};

	while (set->cut.on) {
		if (!out_room())
			return 0;
		if (weft__pairs_cut(&set->pairs, &set->cut.cursor, set->cut.from_ns, set->cut.to_ns, &one))
			emit_interval(&one);
		else
			set->cut.on = 0;
	}
	return 1;
}

/* 0: there was no room. */
static int take_record(struct weft__switch_set *set, struct weft__switch_ring *ring)
{
	struct weft__switch_interval one = {0};

	if (!out_room())
		return 0;
	if (ring->next.type == SWITCH_LOST) {
		uint64_t from = ring->owed_ns ? ring->owed_ns : ring->last_ns;

		weft__switch_lose(ring->next.lost, from, ring->next.time_ns);
		if (!ring->owed_ns)
			cut_begin(set, from, ring->next.time_ns);
		ring->owed_ns = ring->full_at = 0;
		weft__switch_skip(ring);
		return cut_go_on(set);
	}
	set->last_ns = ring->next.time_ns;
	if (record_take(set, ring, &one))
		emit_interval(&one);
	weft__switch_skip(ring);
	return 1;
}

/* A ring that was full up to its end has lost what came then, and the kernel says so only with the next record. */
static int reckon_loss(struct weft__switch_set *set)
{
	uint64_t now = set->stop_ns ? set->stop_ns : weft__clock_mono();
	uint64_t from = UINT64_MAX;

	for (size_t i = 0; i < set->n_rings; i++) {
		struct weft__switch_ring *ring = &set->rings[i];

		if (!ring->full_at || ring->at < ring->full_at)
			continue;
		if (!ring->owed_ns)
			ring->owed_ns = ring->last_ns;
		from = ring->owed_ns < from ? ring->owed_ns : from;
		ring->full_at = 0;
	}
	if (from != UINT64_MAX)
		cut_begin(set, from, now);
	return cut_go_on(set);
}

static void ring_look(struct weft__switch_ring *ring)
{
	ring->head = load_acquire(&ring->page->data_head) / 8;
	if (ring->head - ring->at + FULL_WORDS > ring->mask + 1)
		ring->full_at = ring->head;
	ring_peek(ring);
}

/* 0: there was no room for all of it. */
static int drain_set(struct weft__switch_set *set, uint64_t until_ns)
{
	struct weft__switch_ring *small[64], **heap = small;
	size_t n = 0, most = sizeof(small) / sizeof(small[0]);
	int room = cut_go_on(set);

	if (set->n_rings > most) {
		heap = weft__alloc(set->n_rings * sizeof(*heap));
		if (!heap)
			return 1; /* the next time */
	}
	for (size_t i = 0; i < set->n_rings; i++) {
		struct weft__switch_ring *ring = &set->rings[i];

		ring_look(ring);
		if (ring->has_next)
			heap[n++] = ring;
	}
	for (size_t i = n / 2; i--;)
		heap_down(heap, n, i);
	while (n && room && heap[0]->next.time_ns <= until_ns) {
		struct weft__switch_ring *ring = heap[0];

		room = take_record(set, ring);
		if (!ring->has_next)
			ring_peek(ring);
		if (!ring->has_next)
			heap[0] = heap[--n];
		heap_down(heap, n, 0);
	}
	for (size_t i = 0; i < set->n_rings; i++)
		store_release(&set->rings[i].page->data_tail, set->rings[i].at * 8);
	if (heap != small)
		weft__free(heap);
	return room && reckon_loss(set);
}

/* What was stopped: all of it, and what was open then ends there. 0: there was no room for all of it. */
static int drain_stopped(void)
{
	while (weft__switch.stopped) {
		struct weft__switch_set *set = weft__switch.stopped;

		if (!drain_set(set, UINT64_MAX))
			return 0;
		for (size_t i = 0; i < set->n_rings; i++) {
			if (set->rings[i].owed_ns) /* at least */
				weft__switch_lose(1, set->rings[i].owed_ns, set->stop_ns);
			set->rings[i].owed_ns = 0;
		}
		cut_begin(set, set->stop_ns, set->stop_ns);
		if (!cut_go_on(set))
			return 0;
		weft__switch.stopped = set->next;
		weft__switch_set_free(set, 0);
	}
	return 1;
}

/* So that no ring is more than 3/8 full at the next turn, if things go on as they did. */
static void turn_plan(struct weft__switch_set *set, uint64_t now_ns)
{
	uint64_t since = now_ns - switch_turn_ns, next = weft__switch.by_itself ? DUE_DEFAULT_NS : DUE_IDLE_NS;
	uint64_t busy = weft__switch.by_itself ? DUE_IDLE_NS : DUE_BUSY_NS;

	switch_turn_ns = now_ns;
	if (!set) {
		store_relaxed(&weft__switch.due_ns, UINT64_MAX);
		return;
	}
	for (size_t i = 0; i < set->n_rings; i++) {
		struct weft__switch_ring *ring = &set->rings[i];
		uint64_t fits = ring->fill ? since * ((ring->mask + 1) * 3 / 8) / ring->fill : next;

		if (ring->fill > (ring->mask + 1) / BUSY_SHARE && fits > busy)
			fits = busy;
		next = fits < next ? fits : next;
		ring->fill = 0;
	}
	if (next > 2 * set->due_ns)
		next = 2 * set->due_ns;
	if (next < DUE_LEAST_NS)
		next = DUE_LEAST_NS;
	set->due_ns = next;
	store_relaxed(&weft__switch.due_ns,
		      next < DUE_DEFAULT_NS ? now_ns + next : weft__grid_next(now_ns, DUE_DEFAULT_NS));
}

/* Samples of switches are thinned out when there are too many for the collector; the intervals stay exact. Answers
 * whether another set is needed for that: the period of an event that was inherited does not change. */
static int thin_out(struct weft__switch_set *set, uint64_t now_ns)
{
	uint64_t n = weft__switch.counts.stacks, since = now_ns - set->rated_ns;
	uint64_t rate;
	__u64 *period = &weft__switch.attr.sample_period;

	/* Many are many, however short the time was. */
	if (weft__switch.mode != SWITCH_MODE_STACKS || (since < RATE_NS && n - set->rated < STACKS_MOST / 10))
		return 0;
	rate = (n - set->rated) * UINT64_C(1000000000) / since;
	set->rated_ns = now_ns;
	set->rated = n;
	if (rate > STACKS_MOST && *period < PERIOD_MOST)
		*period *= PERIOD_STEP;
	else if (rate < STACKS_MOST / (PERIOD_STEP * PERIOD_STEP) && *period > 1 &&
		 now_ns > set->start_ns + PERIOD_STAY_NS)
		*period /= PERIOD_STEP;
	else
		return 0;
	return 1;
}

/* CPU times of threads that switch so often that what a switch itself takes shows. All that was before has been
 * reported. */
static void report_cpu(struct weft__switch_set *set)
{
	int due = set->read_due;

	set->read_due = 0;
	for (size_t i = 0; due && i < set->pairs.cap; i++) {
		struct weft__switch_thread *thread = &set->pairs.threads[i];
		uint64_t fields[WEFT_FIELDS_OF_THREAD_CPU] = {thread->tid, 0};
		struct weft__found found = {0, WEFT_KIND_THREAD_CPU, fields, NULL, 0};

		if (!thread->tid || thread->left < READ_LEFT || !out_room())
			continue;
		found.ns = weft__clock_mono();
		if (weft__thread_cpu(thread->tid, &fields[WEFT_FIELD_THREAD_CPU_CPU]) < 0)
			continue;
		thread->left = 0;
		found.ns = found.ns > weft__switch.out_ns ? found.ns : weft__switch.out_ns;
		weft__switch.out_ns = found.ns;
		weft__found_add(weft__switch.collector, FOUND_SWITCH, &found);
	}
}

int weft__switch_drain(struct weft__collector *c)
{
	struct weft__switch_set *set;
	uint64_t now = weft__clock_mono();
	int room;

	pthread_mutex_lock(&weft__switch.lock);
	weft__switch.busy = 1;
	weft__switch.collector = c;
	room = drain_stopped();
	set = weft__switch.running;
	if (room && set)
		room = drain_set(set, now);
	if (room && set && weft__switch.by_itself && weft__switch_watch_many(now)) {
		weft__switch_pause(now);
	} else if (room && set) {
		report_cpu(set);
		weft__switch_set_sweep(set);
		if (weft__switch_set_tend(set, now) | thin_out(set, now)) {
			weft__switch_retire(now);
			weft__switch_begin();
		}
	}
	if (room)
		turn_plan(weft__switch.running, now);
	weft__switch_resume(now);
	weft__switch.busy = 0;
	pthread_mutex_unlock(&weft__switch.lock);
	return !room;
}
