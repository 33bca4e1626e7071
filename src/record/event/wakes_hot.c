/* SPDX-License-Identifier: Apache-2.0 */
/* Remembering wakes that are only counted (record/event/wakes.h). HOT.
 *
 * Others read a table while its owner writes it. Each word is whole; a reader takes an entry only when it says the
 * same twice. A wake in a handler, in the middle of another wake, may mix its time with the other's, which is the
 * same within the length of a handler. */
#include "record/event/wakes.h"

#include <stddef.h>

#include "base/atomic.h"
#include "base/place.h"
#include "record/event/poll.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/event.h"

struct wake_entry {
	uint64_t task; /* plus 1; 0: none */
	uint64_t last, last_by;
	uint64_t before, before_by; /* the wake before; 0: it is not known */
};

struct wake_set {
	uint64_t forgot; /* tick of the last wake that is not here any more; 0: none is missing */
	struct wake_entry way[WAKES_WAYS];
};

static struct wake_table {
	uint32_t owner;  /* tid; 0: free */
	uint32_t tid;    /* of the thread that has it, or had it last */
	uint64_t period; /* the gate's wakes_from of the wakes that are here */
	uint64_t from;   /* tick: what is older is of no use */
	uint64_t forgot; /* as in a set: of the thread that had the table before, in the same period */
	/* A thread that wakes very often remembers nothing for a while: that would cost more than it says. */
	uint64_t skipped;      /* tick of the last wake that was not remembered */
	uint64_t resume;       /* tick from which on it remembers */
	uint64_t window;       /* tick at which a millisecond began, */
	uint32_t window_wakes; /* in which there were so many */
	struct wake_set sets[WAKES_SETS];
} wake_tables[WAKES_TABLES] __attribute__((aligned(64))) LARGE_TABLE;
static uint32_t n_wake_tables; /* that ever had an owner */
static uint64_t homeless;      /* tick of the last wake of a thread for which there was no table */

static uint32_t wake_set_of(uint64_t task)
{
	return (uint32_t)(task * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (WAKES_SETS - 1);
}

/* The calling thread's table, from here on. */
static struct wake_table *wake_table_take(struct ring_page *ring)
{
	uint32_t i, free;

	for (i = 0; i < WAKES_TABLES; i++) {
		free = 0;
		if (load_relaxed(&wake_tables[i].owner) == 0 && cas_acq_rel(&wake_tables[i].owner, &free, ring->owner))
			break;
	}
	if (i == WAKES_TABLES)
		return NULL;
	for (free = load_relaxed(&n_wake_tables); free <= i && !cas_acq_rel(&n_wake_tables, &free, i + 1);)
		;
	store_relaxed(&ring->polls.wakes, i + 1);
	return &wake_tables[i];
}

/* The table for a wake that is the first of its thread, or after a change of the mode. */
static struct wake_table *wake_table_begin(uint64_t tick, uint32_t on)
{
	struct ring_page *ring = weft__polls_ready(on, tick);
	uint32_t had = ring ? load_relaxed(&ring->polls.wakes) : 0;
	struct wake_table *table = had ? &wake_tables[had - 1] : ring ? wake_table_take(ring) : NULL;
	uint64_t period = load_relaxed(&weft_gate.wakes_from);

	if (!table) {
		store_relaxed(&homeless, tick);
		return NULL;
	}
	if (load_relaxed(&table->period) != period) {
		store_relaxed(&table->from, period);
		store_relaxed(&table->forgot, 0);
	} else if (!had) { /* what the thread before it woke is not reported as this one's */
		store_relaxed(&table->from, tick);
		store_relaxed(&table->forgot, tick);
	}
	if (!had) /* who sees it sees that what is older is not its */
		store_release(&table->tid, ring->owner);
	store_release(&table->period, period);
	return table;
}

/* The entry for the task, which may have been another's. */
static struct wake_entry *wake_entry_for(struct wake_set *set, uint64_t key)
{
	struct wake_entry *entry = &set->way[0], *other = &set->way[1];

	if (WEFT_LIKELY(load_relaxed(&entry->task) == key))
		return entry;
	if (load_relaxed(&other->task) == key)
		return other;
	if ((int64_t)(load_relaxed(&entry->last) - load_relaxed(&other->last)) > 0)
		entry = other;
	if (load_relaxed(&entry->last) > load_relaxed(&set->forgot))
		store_relaxed(&set->forgot, load_relaxed(&entry->last));
	store_relaxed(&entry->task, 0);
	store_release(&entry->last, 0);
	store_release(&entry->last_by, 0);
	store_release(&entry->task, key);
	return entry;
}

/* Whether the thread wakes too often for each to be remembered. */
static int wakes_too_often(struct wake_table *table, uint64_t tick)
{
	uint64_t ms = load_relaxed(&weft_gate.ms_ticks);

	if (WEFT_UNLIKELY(tick < load_relaxed(&table->resume))) {
		store_relaxed(&table->skipped, tick);
		return 1;
	}
	if (tick - table->window >= ms) {
		table->window = tick;
		table->window_wakes = 0;
	}
	if (WEFT_UNLIKELY(++table->window_wakes > WAKES_A_MS))
		store_relaxed(&table->resume, tick + WAKES_PAUSE_MS * ms);
	return 0;
}

static uint64_t innermost_task(const struct polls *polls)
{
	uint32_t level = load_relaxed(&polls->level);

	return level && level <= POLLS_NEST ? load_relaxed(&polls->open[level - 1].arg) & WEFT_TASK_MASK : 0;
}

void weft_slow_wake(uint64_t task, uint64_t tick, uint32_t on)
{
	struct ring_page *ring = (struct ring_page *)(void *)weft_ring_self; /* which may be the ring of no thread */
	uint32_t had = load_relaxed(&ring->polls.wakes);
	struct wake_table *table = had ? &wake_tables[had - 1] : NULL;
	struct wake_entry *entry;
	uint64_t last;

	if (WEFT_UNLIKELY(!table || ring->polls.on != on ||
			  load_relaxed(&table->period) != load_relaxed(&weft_gate.wakes_from)))
		table = wake_table_begin(tick, on);
	if (WEFT_UNLIKELY(!table || wakes_too_often(table, tick)))
		return;
	ring = (struct ring_page *)(void *)weft_ring_self;
	task &= WEFT_TASK_MASK;
	entry = wake_entry_for(&table->sets[wake_set_of(task)], task + 1);
	last = load_relaxed(&entry->last);
	if (last < load_relaxed(&table->from))
		last = 0;               /* of an earlier time: in between, wakes were events */
	store_relaxed(&entry->last, 0); /* a reader sees that it changes */
	store_release(&entry->before, last);
	store_release(&entry->before_by, load_relaxed(&entry->last_by));
	store_release(&entry->last_by, innermost_task(&ring->polls));
	store_release(&entry->last, tick);
}

/* A wake that is before the poll, or may be. */
static void consider(struct weft__woken *best, uint32_t tid, uint64_t tick, uint64_t by)
{
	if (tick > best->tick) {
		if (best->tick > best->no_other)
			best->no_other = best->tick;
		best->tick = tick;
		best->tid = tid;
		best->by = by;
	} else if (tick > best->no_other) {
		best->no_other = tick;
	}
}

/* Whether the entry is the task's, and then it is copied. Answers -1 when its owner is at it. */
static int wake_read(const struct wake_entry *entry, uint64_t key, struct wake_entry *ret)
{
	if (load_acquire(&entry->task) != key)
		return 0;
	ret->last = load_acquire(&entry->last);
	ret->last_by = load_acquire(&entry->last_by);
	ret->before = load_acquire(&entry->before);
	ret->before_by = load_acquire(&entry->before_by);
	return load_acquire(&entry->task) == key && load_relaxed(&entry->last) == ret->last ? 1 : -1;
}

/* What one thread remembers of the task. 0: the wake that counts may be forgotten. */
static int look_in(const struct wake_table *table, uint64_t task, uint64_t begin, uint64_t *forgot,
		   struct weft__woken *best)
{
	const struct wake_set *set = &table->sets[wake_set_of(task)];
	uint32_t i, tid = load_acquire(&table->tid);
	uint64_t from = load_relaxed(&table->from), lost = load_relaxed(&set->forgot);
	struct wake_entry entry;
	int found = 0;

	if (load_relaxed(&table->skipped) >= from && load_relaxed(&table->skipped) > *forgot)
		*forgot = load_relaxed(&table->skipped);
	if (lost < load_relaxed(&table->forgot))
		lost = load_relaxed(&table->forgot);
	if (lost < from)
		lost = 0;
	for (i = 0; i < WAKES_WAYS && !found; i++)
		found = wake_read(&set->way[i], task + 1, &entry);
	if (found < 0 || (found && (!entry.last || entry.before > begin)))
		return 0;
	if (found && entry.last >= from && entry.last <= begin) {
		consider(best, tid, entry.last, entry.last_by);
		consider(best, tid, entry.before, entry.before_by);
	} else if (found && entry.last > begin && entry.before) {
		consider(best, tid, entry.before, entry.before_by);
		consider(best, tid, entry.before, entry.before_by); /* what was before that is not known */
	} else if (lost > *forgot) {
		*forgot = lost;
	}
	if (lost > best->no_other && lost < begin)
		best->no_other = lost;
	return 1;
}

int weft__wakes_find(uint64_t task, uint64_t begin, struct weft__woken *ret)
{
	uint64_t period = load_relaxed(&weft_gate.wakes_from), forgot = load_relaxed(&homeless);
	uint32_t i, n = load_acquire(&n_wake_tables);

	*ret = (struct weft__woken){0, 0, 0, forgot < begin ? forgot : begin};
	for (i = 0; i < n; i++)
		if (load_acquire(&wake_tables[i].period) == period &&
		    !look_in(&wake_tables[i], task, begin, &forgot, ret))
			return 0;
	if (forgot > ret->no_other && forgot < begin)
		ret->no_other = forgot;
	return ret->tick && ret->tick > forgot;
}

void weft__wakes_leave(struct ring_page *ring)
{
	uint32_t had = load_relaxed(&ring->polls.wakes);

	if (!had)
		return;
	store_relaxed(&ring->polls.wakes, 0u);
	store_release(&wake_tables[had - 1].owner, 0u);
}

void weft__wakes_reset(void)
{
	uint32_t i;

	store_relaxed(&homeless, 0);
	for (i = 0; i < load_relaxed(&n_wake_tables); i++) {
		store_relaxed(&wake_tables[i].period, 0);
		store_relaxed(&wake_tables[i].owner, 0u);
	}
}
