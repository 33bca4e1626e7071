/* SPDX-License-Identifier: Apache-2.0 */
/* The table of threads: open addressing by thread id. Threads put themselves in, from handlers and when they get a
 * ring; the collector puts in those that it finds, and alone takes out. A key that is taken out leaves a mark behind
 * which probing goes on, so that two who put the same thread in at the same time meet at the same place and one
 * compare-and-swap decides. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/ring/hooks.h"
#include "record/sample/state.h"
#include "weft/ring.h"

struct weft__engine weft__engine = {.net = -1};

int weft__engine_enter(void)
{
	__atomic_fetch_add(&weft__engine.inside, 1, __ATOMIC_SEQ_CST);
	if (load_seq_cst(&weft__engine.on))
		return 1;
	weft__engine_leave();
	return 0;
}

void weft__engine_leave(void)
{
	__atomic_fetch_sub(&weft__engine.inside, 1, __ATOMIC_SEQ_CST);
}

uint64_t weft__thread_cpu_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct weft__slot *weft__slot_find(uint32_t tid, uint32_t *number)
{
	uint32_t mask = weft__engine.n_slots - 1;

	for (uint32_t i = 0; i <= mask; i++) {
		uint32_t at = (tid + i) & mask;
		uint32_t key = load_acquire(&weft__engine.keys[at]);

		if (key == tid) {
			if (number)
				*number = at;
			return &weft__engine.slots[at];
		}
		if (!key)
			return NULL;
	}
	return NULL;
}

struct weft__slot *weft__slot_take(uint32_t tid, uint32_t *number, int *added)
{
	uint32_t mask = weft__engine.n_slots - 1;

	*added = 0;
	for (uint32_t i = 0; i <= mask; i++) {
		uint32_t at = (tid + i) & mask;
		uint32_t key = load_acquire(&weft__engine.keys[at]);

		if (!key && cas_acq_rel(&weft__engine.keys[at], &key, tid))
			*added = 1;
		if (*added || key == tid) {
			*number = at;
			return &weft__engine.slots[at];
		}
	}
	return NULL;
}

static void cover(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	int err = weft__engine.ops->cover(slot, number, tid);

	/* A thread that is gone stays in the table as covered until the next scan. */
	if (err && err != -ESRCH) {
		store_relaxed(&weft__engine.uncovered_why, err);
		add_relaxed(&weft__engine.uncovered, 1);
	}
	store_release(&slot->state, err && err != -ESRCH ? SLOT_UNCOVERED : SLOT_COVERED);
}

void weft__slot_meet(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	uint32_t awaited = SLOT_AWAITED;

	if (cas_acq_rel(&slot->state, &awaited, SLOT_NEW))
		cover(slot, number, tid);
}

struct weft__slot *weft__slot_cover(uint32_t tid)
{
	struct weft__slot *slot;
	uint32_t number;
	int added;

	if (weft__engine.ops->later && weft__engine.ops->later())
		return NULL;
	slot = weft__slot_take(tid, &number, &added);
	if (!slot || !added)
		return slot;
	if (load_seq_cst(&weft__engine.net_first)) {
		store_relaxed(&slot->timer, -1);
		store_release(&slot->state, SLOT_AWAITED);
	} else {
		cover(slot, number, tid);
	}
	return slot;
}

void weft__slot_drop(uint32_t number)
{
	uint32_t mask = weft__engine.n_slots - 1;

	weft__engine.slots[number] = (struct weft__slot){0};
	store_release(&weft__engine.keys[number], SLOT_GONE);
	/* Marks that nothing stands behind are not needed. */
	if (load_relaxed(&weft__engine.keys[(number + 1) & mask]))
		return;
	while (load_relaxed(&weft__engine.keys[number]) == SLOT_GONE) {
		store_release(&weft__engine.keys[number], 0u);
		number = (number - 1) & mask;
	}
}

/* HOT, for who sees threads begin and end (bindings/preload). */
void weft__engine_thread_begin(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct weft__slot *slot;
	int saved = errno;

	if (!weft__engine_enter())
		return;
	slot = weft__slot_cover(tid);
	if (slot)
		store_relaxed(&slot->born, 1u);
	add_relaxed(&weft__engine.churn, 1);
	weft__engine_leave();
	errno = saved;
}

void weft__engine_thread_end(void)
{
	struct weft__slot *slot;
	int saved = errno;

	if (!weft__engine_enter())
		return;
	slot = weft__slot_find((uint32_t)syscall(SYS_gettid), NULL);
	/* A thread may say it more than once: each of its hooks does. */
	if (slot && weft__slot_sampled(slot) && !load_relaxed(&slot->hits) && !load_relaxed(&slot->ended)) {
		add_relaxed(&weft__engine.unhit, 1);
		add_relaxed(&weft__engine.unhit_ns, weft__thread_cpu_ns());
	}
	if (slot)
		store_relaxed(&slot->ended, 1u);
	weft__engine_leave();
	errno = saved;
}

void weft__engine_thread_here(uint32_t tid)
{
	int saved = errno;

	if (!weft__engine_enter())
		return;
	if (!weft__slot_find(tid, NULL)) {
		weft__slot_cover(tid);
		add_relaxed(&weft__engine.churn, 1);
	}
	weft__engine_leave();
	errno = saved;
}
