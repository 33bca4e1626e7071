/* SPDX-License-Identifier: Apache-2.0 */
/* Who is this thread? Asked of each runtime at most once per thread. HOT: the callbacks are the user's word that
 * they are safe here. */
#include "base/atomic.h"
#include "base/place.h"
#include "record/event/registry.h"
#include "record/ring/ring.h"

struct weft__runtime weft__runtimes[RUNTIMES_MAX + 1];
struct weft__worker_tid weft__worker_tids[WORKER_TIDS] LARGE_TABLE;

struct weft__worker_tid *weft__worker_tid(uint32_t tid)
{
	uint32_t at = tid * 2654435761u;
	uint32_t i;

	for (i = 0; i < WORKER_PROBES; i++) {
		struct weft__worker_tid *entry = &weft__worker_tids[(at + i) % WORKER_TIDS];
		uint64_t found = load_acquire(&entry->tid);

		if (found == tid)
			return entry;
		if (!found)
			return NULL;
	}
	return NULL;
}

static int ask(struct weft__runtime *runtime)
{
	weft_worker_fn *fn;
	int index = -1;

	__atomic_fetch_add(&runtime->asking, 1, __ATOMIC_SEQ_CST);
	fn = load_seq_cst(&runtime->worker);
	if (fn)
		index = fn(load_relaxed(&runtime->data));
	__atomic_fetch_sub(&runtime->asking, 1, __ATOMIC_SEQ_CST);
	return index;
}

void weft__worker_resolve(struct ring_page *ring, uint64_t tick)
{
	uint32_t n = load_acquire(&weft__hot.n_runtimes);
	struct weft__worker_tid *said = ring->asked ? NULL : weft__worker_tid(ring->owner);

	if (said) {
		ring->worker = 1;
		weft__ring_emit(ring, WEFT_KIND_WORKER, load_relaxed(&said->value), tick, NULL);
	}
	while (ring->asked < n) {
		uint32_t runtime = ring->asked++;
		int index;

		if (ring->worker != WEFT_WORKER_NONE)
			continue;
		index = ask(&weft__runtimes[runtime]);
		if (index < 0)
			continue;
		ring->worker = 1; /* known; the collector has the id */
		weft__ring_emit(ring, WEFT_KIND_WORKER, (uint64_t)runtime << 32 | (uint32_t)index, tick, NULL);
	}
}
