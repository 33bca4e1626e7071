/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads there are. The list in /proc/self/task is read only when it may have changed. CALLER and COLLECTOR,
 * one at a time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "record/sample/precise.h"

#define MUTE_LOOKS 128                          /* readings of CPU clocks in a turn */
#define SCAN_REST 1000                          /* times what a scan took, */
#define SCAN_REST_LEAST_NS UINT64_C(1000000000) /* and at least that where a net catches threads meanwhile */

static uint32_t scan_number;
static struct weft__threads_mark scan_mark;
static uint64_t scan_rest_ns; /* not again before, without a sign that threads of ours came */
static uint64_t scan_full;    /* most threads that the table had no room for */

static int see(uint32_t tid)
{
	struct weft__slot *slot = weft__slot_find(tid, NULL);
	int new = !slot;

	if (new &&weft__thread_ours(tid)) {
		uint32_t number;

		slot = weft__slot_take(tid, &number, &new);
		if (slot)
			store_release(&slot->state, SLOT_SKIPPED);
	} else if (new) {
		slot = weft__slot_cover(tid);
		if (!slot) {
			/* No room in the table: counted for each scan that finds it so, but not more often than
			 * threads. */
			store_relaxed(&weft__engine.uncovered_why, -ENOSPC);
			return -1;
		}
	}
	if (slot)
		slot->seen = scan_number;
	return new;
}

/* Answers how many came; *full: how many there was no room for. -1: the list could not be read. */
static int see_all(uint64_t *full)
{
	static char buf[16384];
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int came = 0;
	long n;

	if (fd < 0)
		return -1;
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			struct dirent64 *entry = (struct dirent64 *)(void *)(buf + at);
			uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
			int new = tid ? see(tid) : 0;

			came += new > 0;
			*full += new < 0;
			at += entry->d_reclen;
		}
	}
	close(fd);
	return n < 0 ? -1 : came;
}

/* Threads that the scan did not see. */
static int drop_unseen(void)
{
	int went = 0;

	for (uint32_t i = 0; i < weft__engine.n_slots; i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);
		struct weft__slot *slot = &weft__engine.slots[i];

		if (!tid || tid == SLOT_GONE || slot->seen == scan_number || load_acquire(&slot->state) == SLOT_NEW)
			continue;
		/* It may have come after the list was read. */
		if (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
			continue;
		(void)load_seq_cst(&weft__engine.inside); /* after all that it did in handlers */
		if (weft__slot_sampled(slot) && !load_relaxed(&slot->hits) && !load_relaxed(&slot->ended))
			add_relaxed(&weft__engine.unhit, 1);
		if (weft__engine.ops == &weft__timer_ops)
			weft__precise_drop(slot);
		weft__engine.ops->uncover(slot);
		weft__slot_drop(i);
		went++;
	}
	return went;
}

static uint64_t scan_rest(uint64_t took_ns)
{
	uint64_t least_ns = weft__engine.net >= 0 ? SCAN_REST_LEAST_NS : 0;

	return SCAN_REST * took_ns > least_ns ? SCAN_REST * took_ns : least_ns;
}

int weft__threads_scan(int force)
{
	uint64_t full = 0;
	int came, went, news = weft__threads_maybe(&scan_mark);
	uint64_t begin = weft__clock_mono();

	if (!news && !force)
		return 0;
	/* Other programs make threads, too: a list of thousands is not read for that all the time. */
	if (!force && !(news & THREADS_CHANGED) && begin < scan_rest_ns) {
		scan_mark.last_tid = 0; /* to be looked at then */
		return 0;
	}
	scan_number++;
	came = see_all(&full);
	if (came < 0)
		return news;
	went = drop_unseen();
	if (full > scan_full) {
		add_relaxed(&weft__engine.uncovered, full - scan_full);
		scan_full = full;
	}
	scan_rest_ns = begin + scan_rest(weft__clock_mono() - begin);
	return news | (came > 0 || went > 0 ? THREADS_CHANGED : 0);
}

/* A thread that was refused may be accepted now. */
static void cover_again(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	if (weft__engine.ops->cover(slot, number, tid) == 0)
		store_release(&slot->state, SLOT_COVERED);
}

/* A timer that one thread has lost may be another's by now: so the collector alone takes timers away. */
void weft__threads_await(void)
{
	/* Announced threads have signal stacks that are large enough (bindings/preload), and perf events are none of
	 * the net's business. */
	if (weft__threads_announced || weft__engine.ops != &weft__timer_ops)
		return;
	store_seq_cst(&weft__engine.net_first, 1u);
	for (uint32_t i = 0; i < weft__engine.n_slots; i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);
		struct weft__slot *slot = &weft__engine.slots[i];

		if (!tid || tid == SLOT_GONE || load_acquire(&slot->state) != SLOT_COVERED || load_relaxed(&slot->hits))
			continue;
		weft__engine.ops->uncover(slot);
		store_release(&slot->state, SLOT_AWAITED);
	}
}

void weft__threads_meet(void)
{
	if (!load_relaxed(&weft__engine.net_first))
		return;
	store_seq_cst(&weft__engine.net_first, 0u);
	for (uint32_t i = 0; i < weft__engine.n_slots; i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);

		if (tid && tid != SLOT_GONE)
			weft__slot_meet(&weft__engine.slots[i], i, tid);
	}
}

static int blocks_signal(uint32_t tid, int signal)
{
	static char text[16384];
	char path[64], *line;
	unsigned long long mask;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	line = strstr(text, "\nSigBlk:");
	mask = line ? strtoull(line + sizeof("\nSigBlk:") - 1, NULL, 16) : 0;
	return mask >> (signal - 1) & 1;
}

/* A thread that uses the CPU and is never hit has the signal blocked. Its samples wait for the day that it lets it
 * through. One that blocks the net's signal need not be awaited. */
static void look_for_mute(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	struct timespec ts;
	uint64_t now, before = slot->cpu_ns;
	uint32_t hits = load_relaxed(&slot->hits), hits_before = slot->hits_seen;

	slot->hits_seen = hits;
	if (hits != hits_before || slot->mute == MUTE_REPORTED) {
		slot->mute = slot->mute == MUTE_REPORTED ? MUTE_REPORTED : 0;
		return;
	}
	if (clock_gettime((clockid_t)(~tid << 3 | 6), &ts) < 0)
		return;
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	slot->cpu_ns = now;
	if (!before || now - before < 4 * (uint64_t)weft__engine.period_ns || ++slot->mute < MUTE_REPORTED)
		return;
	if (load_acquire(&slot->state) == SLOT_AWAITED) {
		slot->mute = 0;
		if (blocks_signal(tid, weft__engine.net_signal))
			weft__slot_meet(slot, number, tid);
		return;
	}
	if (blocks_signal(tid, weft__engine.signal)) {
		weft__log(WEFT_LOG_WARN, "thread %u is not sampled: it blocks signal %d", tid, weft__engine.signal);
		store_relaxed(&weft__engine.uncovered_why, -EINTR);
		add_relaxed(&weft__engine.uncovered, 1);
	} else {
		slot->mute = 0;
	}
}

uint32_t weft__threads_tend(void)
{
	static uint32_t mute_turn, mute_part = 1; /* of thousands of threads, some are looked at each time */
	uint32_t uncovered = 0, covered = 0;

	for (uint32_t i = 0; i < weft__engine.n_slots; i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);
		struct weft__slot *slot = &weft__engine.slots[i];

		if (!tid || tid == SLOT_GONE)
			continue;
		if (load_acquire(&slot->state) == SLOT_UNCOVERED)
			cover_again(slot, i, tid);
		if (!load_relaxed(&weft__engine.net_first)) /* it came when the net was just being taken in */
			weft__slot_meet(slot, i, tid);
		uncovered += load_acquire(&slot->state) == SLOT_UNCOVERED;
		if (!weft__slot_sampled(slot))
			continue;
		if (load_acquire(&slot->state) == SLOT_COVERED)
			weft__engine.ops->tend(slot, tid);
		covered++;
		if (weft__engine.ops == &weft__timer_ops && (i + mute_turn) % mute_part == 0)
			look_for_mute(slot, i, tid);
	}
	mute_turn++;
	mute_part = covered / MUTE_LOOKS + 1;
	return uncovered;
}

void weft__threads_drop(void)
{
	for (uint32_t i = 0; i < weft__engine.n_slots; i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);

		if (tid && tid != SLOT_GONE) {
			if (weft__engine.ops == &weft__timer_ops)
				weft__precise_drop(&weft__engine.slots[i]);
			weft__engine.ops->uncover(&weft__engine.slots[i]);
			weft__slot_drop(i);
		}
	}
	scan_mark.threads = scan_full = 0;
}

int weft__slots_make(uint32_t max_threads)
{
	uint32_t n = 256;
	void *at;

	/* Twice what there may be, so that probing is short. */
	while (n < 2 * max_threads && n < SLOT_NET / 2)
		n *= 2;
	at = mmap(NULL, n * (sizeof(uint32_t) + sizeof(struct weft__slot)), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	weft__engine.slots = at;
	weft__engine.keys = (uint32_t *)(void *)(weft__engine.slots + n);
	weft__engine.n_slots = n;
	return 0;
}

void weft__slots_free(void)
{
	if (weft__engine.slots)
		munmap(weft__engine.slots, weft__engine.n_slots * (sizeof(uint32_t) + sizeof(struct weft__slot)));
	weft__engine.slots = NULL;
	weft__engine.keys = NULL;
	weft__engine.n_slots = 0;
}
