/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that say themselves which worker they are, the end of threads, what runtimes do not measure. CALLER. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/place.h"
#include "base/private_fds.h"
#include "record/event/registry.h"
#include "record/last.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define WORKER_LEFT UINT64_MAX /* the field of a worker event that says "none" */
#define EARLY_KEYS 32          /* glibc keeps these in the thread itself: setting one never allocates */

static void thread_end(void *unused)
{
	static __thread uint32_t rounds __attribute__((tls_model("initial-exec")));
	struct weft_ring *last;
	struct ring_page *ring;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct weft__worker_tid *said = weft__worker_tid(tid);
	uint32_t on = weft_gate_on();

	(void)unused;
	if (said)
		store_release(&said->tid, TID_GONE);
	weft__wait_leave(); /* for which it may get a ring */
	last = weft_ring_self;
	ring = weft__ring_mine();
	weft_ring_self = &weft__ring_none.hot;
	if (ring)
		weft__ring_detach(ring, tid, on ? weft_tick(on) : 0);
	else if (last != &weft__ring_none.hot)
		store_release(&((struct ring_page *)(void *)last)->owner, 0u); /* of an earlier session */
	if (!weft__private_fds_wanted) /* else the preload library does so, for threads without a ring, too */
		weft__last_thread_ends(&rounds, weft__hot.key, &weft__hot);
}

static void key_make(void)
{
	pthread_key_t key;

	if (pthread_key_create(&key, thread_end) != 0)
		return; /* ends of threads are then found by looking, once a second */
	if (key >= EARLY_KEYS) {
		pthread_key_delete(key);
		return;
	}
	weft__hot.key = key;
	store_release(&weft__hot.key_made, 1);
}

void weft__threads_init(void)
{
	static pthread_once_t once FORK_DATA = PTHREAD_ONCE_INIT;

	pthread_once(&once, key_make);
}

/* A place for the calling thread, its own if it has one. */
static struct weft__worker_tid *place_for(uint32_t tid)
{
	struct weft__worker_tid *own = weft__worker_tid(tid);
	uint32_t at = tid * 2654435761u;
	uint32_t i;

	for (i = 0; !own && i < WORKER_PROBES; i++) {
		struct weft__worker_tid *entry = &weft__worker_tids[(at + i) % WORKER_TIDS];
		uint64_t found = load_relaxed(&entry->tid);

		if ((found == 0 || found == TID_GONE) && cas_acq_rel(&entry->tid, &found, (uint64_t)TID_GONE - 1))
			return entry;
	}
	return own;
}

uint32_t weft_worker_enter(uint32_t runtime, uint32_t index, struct weft_error *err)
{
	uint64_t value = (uint64_t)runtime << 32 | index;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct weft__worker_tid *entry = weft__worker_tid(tid);
	struct ring_page *ring;
	uint32_t id = weft_worker_id(runtime, index, err), on;

	if (!id)
		return 0;
	if (entry && load_relaxed(&entry->value) == value)
		return id;
	weft__threads_init();
	entry = place_for(tid);
	if (!entry) {
		weft__fail(err, -WEFT_E_LIMIT, "%d threads are workers already", WORKER_TIDS);
		return 0;
	}
	store_relaxed(&entry->value, value);
	store_release(&entry->tid, (uint64_t)tid);
	if (weft__hot.key_made)
		pthread_setspecific(weft__hot.key, &weft__hot);
	ring = weft__ring_mine();
	on = weft_gate_on();
	if (ring && on) {
		ring->worker = 1;
		weft_emit(WEFT_KIND_WORKER, value, weft_tick(on));
	}
	return id;
}

void weft_worker_leave(void)
{
	struct weft__worker_tid *entry = weft__worker_tid((uint32_t)syscall(SYS_gettid));
	struct ring_page *ring = weft__ring_mine();
	uint32_t on = weft_gate_on();

	if (entry)
		store_release(&entry->tid, TID_GONE);
	if (ring && on) {
		ring->worker = WEFT_WORKER_NONE;
		weft_emit(WEFT_KIND_WORKER, WORKER_LEFT, weft_tick(on));
	}
}

int weft_runtime_not_measured(uint32_t runtime, const char *what, struct weft_error *err)
{
	char key[64];
	int rc;

	if (!runtime || runtime >= load_acquire(&weft__hot.n_runtimes))
		return weft__fail(err, -EINVAL, "%u is no runtime; give an id of weft_runtime_add", runtime);
	if (!what)
		return weft__fail(err, -EINVAL, "runtime %u: say what is not measured, or \"\" for nothing", runtime);
	snprintf(key, sizeof(key), "degraded.runtime.%u", runtime);
	rc = weft__registry_fact(key, what);
	if (rc < 0)
		return weft__fail(err, rc, "runtime %u: %s (2 MiB of definitions)", runtime, weft_strerror(rc));
	return 0;
}
