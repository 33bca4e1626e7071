/* SPDX-License-Identifier: Apache-2.0 */
/* The slow side of the emit path: what happens once per thread, once per quarter of a ring, and when a ring is full.
 * HOT.
 *
 * Attaching takes a ring from a lock-free list of free ones, or makes the next one, and writes thread_begin before
 * any other event can come; a ring is handed on with what is still in it, because thread_begin marks where the new
 * owner's events begin. So a program that makes and ends threads fast needs no more rings than it has threads at one
 * time.
 *
 * Closing and attaching exclude each other without a lock: attach counts itself in, then looks at the gate; close
 * shuts the gate, then waits for the count to fall to zero. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/private_fds.h"
#include "record/ring/hooks.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define FREE_TRIES 8
#define BEGIN_SLOTS 16   /* thread_begin, the worker, and an event */
#define FIRST_SLOTS 1024 /* have memory behind them when a ring is made: most threads need no more for a long time */

/* Behind all others but the large tables: before the recorder starts, all that is touched has one page table. */
struct weft_gate weft_gate __attribute__((aligned(4096), section(".bss.gate")));
struct weft__hot weft__hot = {.file = {.fd = -1}, .n_runtimes = 1}; /* 0 is no runtime */
struct ring_page weft__ring_none;
__thread struct weft_ring *weft_ring_self __attribute__((tls_model("initial-exec"))) = &weft__ring_none.hot;

uint64_t weft_slow_tick(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void weft__collector_wake(void)
{
	if (load_relaxed(&weft__hot.asleep) && swap_seq_cst(&weft__hot.asleep, 0u))
		syscall(SYS_futex, &weft__hot.asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint32_t list_pop(void)
{
	uint64_t top = load_acquire(&weft__hot.free_list);

	for (;;) {
		uint32_t ring = (uint32_t)top;
		uint64_t next;

		if (!ring)
			return 0;
		next = ((top >> 32) + 1) << 32 | load_relaxed(&weft__hot.free_next[ring - 1]);
		if (cas_acq_rel(&weft__hot.free_list, &top, next))
			return ring;
	}
}

static void list_push(uint32_t ring)
{
	uint64_t top = load_relaxed(&weft__hot.free_list);

	do
		store_relaxed(&weft__hot.free_next[ring - 1], (uint32_t)top);
	while (!cas_acq_rel(&weft__hot.free_list, &top, ((top >> 32) + 1) << 32 | ring));
}

int weft__ring_back(const struct weft__own_file *file, void *memory, uint64_t at, uint64_t bytes)
{
	uint64_t before = at % RING_PAGE;
	int saved = errno, done;

	if (file->fd < 0)
		return 1;
	done = syscall(SYS_madvise, (char *)memory - before, before + bytes, MADV_POPULATE_WRITE) == 0;
	/* Before Linux 5.14. Threads that begin at once wait for each other there, for the file's lock. */
	if (!done && errno == EINVAL && weft__own_is(&file->own, file->fd))
		done = syscall(SYS_fallocate, file->fd, 0, at, bytes) == 0;
	errno = saved;
	return done;
}

static struct ring_page *ring_make(void)
{
	struct rings_head *head = weft__hot.head;
	uint32_t i = load_relaxed(&head->n_rings), slots = head->ring_slots > FIRST_SLOTS ? FIRST_SLOTS : 0;
	struct ring_page *ring;

	do {
		if (i >= head->max_rings || !weft__chunk_map(&weft__hot.map, &weft__hot.file, i))
			return NULL;
		if (!weft__ring_back(&weft__hot.file, ring_page_at(&weft__hot.map, i),
				     head->rings_at + head->ring_stride * i,
				     RING_PAGE + (slots ? slots : head->ring_slots) * sizeof(struct weft_slot)))
			return NULL;
	} while (!cas_acq_rel(&head->n_rings, &i, i + 1));
	ring = ring_page_at(&weft__hot.map, i);
	store_relaxed(&ring->backed, slots);
	ring->hot.slots = (struct weft_slot *)(void *)((char *)ring + RING_PAGE);
	store_relaxed(&ring->hot.mask, head->ring_slots - 1);
	ring->slots_first = head->ring_slots;
	store_relaxed(&ring->wake, head->ring_slots / 2);
	return ring;
}

static int in_session(const struct weft_ring *ring);

/* Memory behind the rest of the slots, once the first ones are nearly used. As in attaching, close waits until it is
 * done. */
static int back_rest(struct ring_page *ring)
{
	uint64_t from = RING_PAGE + load_relaxed(&ring->backed) * sizeof(struct weft_slot);
	uint64_t upto = RING_PAGE + ring->slots_first * sizeof(struct weft_slot), at;
	int done = 0;

	__atomic_fetch_add(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
	if (load_seq_cst(&weft__hot.open) && in_session(&ring->hot)) {
		at = weft__hot.head->rings_at + weft__hot.head->ring_stride * weft__chunk_ring(&weft__hot.map, ring);
		done = weft__ring_back(&weft__hot.file, (char *)ring + from, at + from, upto - from);
	}
	__atomic_fetch_sub(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
	if (done)
		store_relaxed(&ring->backed, 0u);
	return done;
}

/* Whether so many slots beyond those that are taken have memory behind them; there is a first lap around the ring in
 * which some have none. */
static int is_backed(struct ring_page *ring, uint64_t n_slots)
{
	uint32_t backed = load_relaxed(&ring->backed);

	return !backed || load_relaxed(&ring->hot.resv) + n_slots + RING_SLACK <= backed || back_rest(ring);
}

static int in_session(const struct weft_ring *ring)
{
	return load_acquire(&weft__hot.base) && weft__chunk_ring(&weft__hot.map, ring) != UINT32_MAX;
}

struct ring_page *weft__ring_mine(void)
{
	struct weft_ring *ring = weft_ring_self;

	return in_session(ring) ? (struct ring_page *)(void *)ring : NULL;
}

/* Whether all that is in the ring stands where it would if it had twice the slots: slot i stands at i modulo their
 * number. */
static int can_grow(const struct ring_page *ring)
{
	uint64_t slots = ring->hot.mask + 1;
	uint64_t tail = load_acquire(&ring->tail), resv = load_relaxed(&ring->hot.resv);

	return resv == tail || (tail / slots == (resv - 1) / slots && tail / slots % 2 == 0);
}

/* Twice the slots, now that the collector has put memory behind them. A handler in between could fill slots that
 * then stand in the wrong place, so signals wait; this happens twice in a ring's life. An emit that this call
 * interrupted, and the collector, which reads the mask after the head, may still use the old mask for what was there
 * before, to the same effect. */
static void grow(struct ring_page *ring)
{
	uint64_t all = UINT64_MAX, before;

	if (!can_grow(ring) || syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(before)) < 0)
		return;
	if (load_acquire(&ring->granted) > ring->hot.mask + 1 && can_grow(ring))
		store_relaxed(&ring->hot.mask, 2 * ring->hot.mask + 1);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

/* How far the owner may go before it looks again at what the collector has freed: until as many slots are filled as
 * wake the collector, then an eighth of those that it began with at a time, but not into what is not freed. */
static void set_limit(struct ring_page *ring)
{
	int growing = load_acquire(&ring->granted) > ring->hot.mask + 1;
	uint64_t wake = load_relaxed(&ring->wake);
	uint64_t resv, tail, end, look, backed;

	if (growing && is_backed(ring, ring->hot.mask))
		grow(ring);
	is_backed(ring, ring->slots_first / 8);
	backed = load_relaxed(&ring->backed);
	resv = load_relaxed(&ring->hot.resv);
	tail = load_acquire(&ring->tail);
	end = tail + ring->hot.mask + 1 - RING_SLACK;
	if (backed)
		end = backed - RING_SLACK;
	look = resv - tail < wake && !growing ? tail + wake : resv + ring->slots_first / 8;
	store_relaxed(&ring->hot.limit, look < end ? look : end);
}

int weft__ring_has_room(struct ring_page *ring, uint32_t n_slots)
{
	return load_relaxed(&ring->hot.resv) + n_slots + RING_SLACK <= load_acquire(&ring->tail) + ring->hot.mask + 1 &&
	       is_backed(ring, n_slots);
}

int weft__ring_emit(struct ring_page *ring, uint32_t kind, uint64_t arg, uint64_t tick, const struct weft_slot *more)
{
	uint64_t first;

	if (!weft__ring_has_room(ring, more ? 2 : 1))
		return 0;
	first = weft_ring_take(&ring->hot, more ? 2 : 1);
	ring->hot.slots[first & ring->hot.mask].w0 = tick << 8 | kind;
	ring->hot.slots[first & ring->hot.mask].w1 = arg;
	if (more)
		ring->hot.slots[(first + 1) & ring->hot.mask] = *more;
	weft_ring_publish(&ring->hot, first, first + (more ? 2 : 1));
	return 1;
}

static void ring_release(struct ring_page *ring)
{
	weft__wakes_leave(ring);
	store_relaxed(&ring->hot.limit, 0);
	store_release(&ring->owner, 0);
	__atomic_fetch_sub(&weft__hot.threads_now, 1, __ATOMIC_RELAXED);
	list_push(weft__chunk_ring(&weft__hot.map, ring) + 1);
}

/* The ring that was freed last is the one most likely to be full still: others are tried, and then a new one, but no
 * more of these than a few beyond the threads that there are. */
static struct ring_page *ring_take_free(void)
{
	struct ring_page *ring = NULL;
	uint32_t full[FREE_TRIES];
	uint32_t i, n = 0;

	while (n < FREE_TRIES && (i = list_pop())) {
		ring = ring_page_at(&weft__hot.map, i - 1);
		if (weft__ring_has_room(ring, BEGIN_SLOTS))
			break;
		full[n++] = i;
		ring = NULL;
	}
	if (!ring && (!n || load_relaxed(&weft__hot.head->n_rings) < load_relaxed(&weft__hot.threads_now) + FREE_TRIES))
		ring = ring_make();
	if (n)
		weft__collector_wake();
	while (n)
		list_push(full[--n]);
	return ring;
}

/* The ring may be begun for another thread, by the collector. */
static void name_of(uint32_t tid, char *name, size_t bytes)
{
	char path[64] = "/proc/self/task/", digits[10];
	size_t n = 0, end = strlen(path);
	uint32_t left = tid;
	long fd, got;

	if (tid == (uint32_t)syscall(SYS_gettid)) {
		prctl(PR_GET_NAME, name);
		return;
	}
	do
		digits[n++] = (char)('0' + left % 10);
	while (left /= 10);
	while (n)
		path[end++] = digits[--n];
	memcpy(path + end, "/comm", sizeof("/comm"));
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	got = fd < 0 ? 0 : syscall(SYS_read, fd, name, bytes);
	if (got > 0)
		name[got - 1] = 0; /* a new line */
	if (fd >= 0)
		syscall(SYS_close, fd);
}

/* A ring that belongs to the thread, with its beginning in it. */
static struct ring_page *ring_begin(uint32_t tid, uint64_t tick)
{
	struct weft_slot name = {0, 0};
	struct ring_page *ring;

	if (!load_seq_cst(&weft_gate.on))
		return NULL;
	ring = ring_take_free();
	if (!ring)
		return NULL;
	name_of(tid, (char *)&name, sizeof(name));
	add_relaxed(&weft__hot.threads_now, 1u);
	ring->worker = 0xffff;
	ring->asked = 0;
	ring->hot.sched_due = 0;
	store_relaxed(&ring->hot.poll, 0);
	weft__park_drop(ring);
	store_relaxed(&ring->parks_from, tick);
	store_relaxed(&ring->account.busy, 0u);
	ring->account.generation = 0;
	ring->polls.on = 0;
	store_relaxed(&ring->polls.wakes, 0u);
	store_relaxed(&ring->polls.level, 0u);
	store_relaxed(&ring->polls.untimed, (ring->polls.untimed + 1) & ~UINT64_C(1)); /* one that was open is over */
	store_release(&ring->owner, tid);
	if (!weft__ring_emit(ring, WEFT_KIND_THREAD_BEGIN, tid, tick, &name)) {
		ring_release(ring);
		return NULL;
	}
	return ring;
}

static struct weft_ring *attach_counted(uint64_t tick)
{
	struct weft_ring *before = weft_ring_self;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct ring_page *ring = ring_begin(tid, tick);

	if (!ring)
		return NULL;
	fence_signal();
	/* A handler that came meanwhile may have attached this thread; then its ring stays and this one goes back. */
	if (!cas_relaxed(&weft_ring_self, &before, &ring->hot)) {
		weft__ring_emit(ring, WEFT_KIND_THREAD_END, 0, tick, NULL);
		ring_release(ring);
		return weft_ring_self;
	}
	set_limit(ring);
	weft__context_attached();
	if (before != &weft__ring_none.hot)
		store_release(&((struct ring_page *)(void *)before)->owner, 0u); /* of an earlier session */
	/* A plain store for the first 32 keys, which is the only case in which a key is used. */
	if (weft__hot.key_made)
		pthread_setspecific(weft__hot.key, &weft__hot);
	weft__engine_thread_here(tid);
	weft__account_begin(ring, tick);
	return &ring->hot;
}

struct weft_ring *weft__ring_attach(uint64_t tick)
{
	struct weft_ring *ring;
	int saved = errno;

	__atomic_fetch_add(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
	ring = attach_counted(tick);
	__atomic_fetch_sub(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
	errno = saved;
	return ring;
}

void weft__ring_detach(struct ring_page *ring, uint32_t tid, uint64_t tick)
{
	__atomic_fetch_add(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
	if (load_seq_cst(&weft__hot.open) && in_session(&ring->hot) && cas_acq_rel(&ring->owner, &tid, OWNER_LEAVING)) {
		/* A thread that died inside an emit, or left it from a handler, took slots that nobody will fill. */
		store_relaxed(&ring->hot.resv, load_relaxed(&ring->hot.head));
		weft__poll_counts_end(ring, tick);
		weft__park_counts_end(ring, tick);
		/* A full ring has no room for the mark; the next thread_begin says as much. */
		weft__ring_emit(ring, WEFT_KIND_THREAD_END, 0, tick, NULL);
		if (!weft__private_fds || load_relaxed(&ring->sched_fd) < 0) /* else the next owner closes it */
			weft__own_close_proc(__atomic_exchange_n(&ring->sched_fd, 0, __ATOMIC_RELAXED) - 1);
		ring_release(ring);
	}
	__atomic_fetch_sub(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
}

static void count_lost(struct ring_page *ring, uint64_t tick)
{
	if (load_relaxed(&ring->lost) == load_relaxed(&ring->lost_seen))
		store_relaxed(&ring->lost_from, tick);
	store_relaxed(&ring->lost_to, tick);
	__atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELEASE);
	weft__collector_wake();
}

void weft__ring_missed(uint64_t tick)
{
	struct rings_head *head;

	__atomic_fetch_add(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
	head = weft__hot.head;
	if (load_seq_cst(&weft_gate.on) && head) {
		if (load_relaxed(&head->no_ring) == load_relaxed(&head->no_ring_seen))
			store_relaxed(&head->no_ring_from, tick);
		store_relaxed(&head->no_ring_to, tick);
		__atomic_fetch_add(&head->no_ring, 1, __ATOMIC_RELEASE);
	}
	__atomic_fetch_sub(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
}

/* The ring when it has room, else NULL: counted. */
static struct weft_ring *ring_room(struct ring_page *ring, uint32_t n_slots, uint64_t tick)
{
	uint64_t used;

	set_limit(ring);
	/* Close shuts the gate and then forgets the rings: either it sees this limit, or this sees the gate. */
	if (!load_seq_cst(&weft_gate.on)) {
		store_relaxed(&ring->hot.limit, 0);
		return NULL;
	}
	used = load_relaxed(&ring->hot.resv) - load_acquire(&ring->tail);
	if (used >= load_relaxed(&ring->wake))
		weft__collector_wake();
	if (weft__ring_has_room(ring, n_slots))
		return &ring->hot;
	count_lost(ring, tick);
	return NULL;
}

struct weft_ring *weft__ring_foreign(struct weft_ring **kept, uint32_t tid, uint32_t n_slots, uint64_t tick)
{
	struct ring_page *ring = in_session(*kept) ? (struct ring_page *)(void *)*kept : NULL;

	if (!ring || load_relaxed(&ring->owner) != tid) {
		__atomic_fetch_add(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
		ring = ring_begin(tid, tick);
		__atomic_fetch_sub(&weft__hot.attaching, 1, __ATOMIC_SEQ_CST);
		if (!ring) {
			if (load_relaxed(&weft_gate.on))
				weft__ring_missed(tick);
			return NULL;
		}
		ring->asked = UINT32_MAX;
		*kept = &ring->hot;
	}
	return ring_room(ring, n_slots, tick);
}

struct weft_ring *weft_slow_ring(uint32_t n_slots, uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	struct weft_ring *room;

	if (!ring) {
		struct weft_ring *attached = weft__ring_attach(tick);

		if (!attached) {
			if (load_relaxed(&weft_gate.on))
				weft__ring_missed(tick);
			return NULL;
		}
		ring = (struct ring_page *)(void *)attached;
	}
	if (ring->asked != load_acquire(&weft__hot.n_runtimes))
		weft__worker_resolve(ring, tick);
	room = ring_room(ring, n_slots, tick);
	if (room && weft__context_unsaid() && weft__ring_has_room(ring, n_slots + weft__kind_slots(WEFT_KIND_CONTEXT)))
		weft__context_report(room, tick);
	return room;
}
