/* SPDX-License-Identifier: Apache-2.0 */
/* The perf engine, as far as handlers and threads that just came need it. HOT.
 *
 * With `sigtrap` the kernel sends SIGTRAP to the thread in which the event overflowed, before that thread runs another instruction
 * of its mine. The signal says which event it was by a number that we gave it: that of the thread for which it was opened. A thread that
 * inherited the event of its creator has the creator's number.
 *
 * An overflow in the kernel has its SIGTRAP wait until the thread comes out of there; if it comes out as another program, after exec, that
 * dies of it. So the kernel's part is left out unless its frames were asked for. (The other signal that perf has, that of a file which
 * can be read, makes system calls return early: reads were cut short in tests.) */
#include "record/engine/perf_state.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "weft/ring.h"

#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif
#define SIG_DATA_AT 24 /* in siginfo_t, behind the address */

struct weft__perf weft__perf;

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t cpu_ns_of(uint32_t tid)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, (int)(~tid << 3 | 6), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int weft__perf_open(uint32_t tid, uint32_t number)
{
	struct perf_event_attr attr = weft__perf.attr;
	long fd;

	if (!attr.freq) {
		uint64_t period = load_relaxed(&weft__engine.period_ns);

		/* Each thread another one, so that no two run in step, with each other or with what they do. */
		attr.sample_period = period - period / 10 + weft__engine_random((uint32_t)(period / 5) + 1);
	}
	attr.sig_data = PERF_MAGIC << 32 | (weft__engine.generation & 0xff) << 24 | number;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int weft__perf_cover(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	void *ring = NULL;
	int fd;

	slot->timer = -1;
	slot->interval_ns = load_relaxed(&weft__engine.period_ns);
	store_relaxed(&slot->cpu_ns, weft__perf.starting ? cpu_ns_of(tid) : 0);
	slot->epoch = load_relaxed(&weft_gate.generation);
	if (!weft__perf.starting && !weft__engine.kernel)
		return 0; /* inherited */
	fd = weft__perf_open(tid, number);
	if (fd < 0)
		return fd;
	if (weft__engine.kernel) {
		ring = (void *)syscall(SYS_mmap, NULL, PERF_RING_PAGES * PERF_RING_BYTES, PROT_READ | PROT_WRITE,
				       MAP_SHARED, fd, 0);
		if (ring == MAP_FAILED) {
			int err = -errno;

			syscall(SYS_close, fd);
			return err;
		}
	}
	slot->ring = ring;
	store_release(&slot->fd, fd + 1);
	return 0;
}

void weft__perf_counted(struct weft__slot *slot)
{
	store_relaxed(&slot->cpu_ns, thread_cpu_ns());
}

int weft__perf_mine(const siginfo_t *info)
{
	uint64_t data;

	if (info->si_signo != SIGTRAP || info->si_code != TRAP_PERF)
		return 0;
	memcpy(&data, (const char *)info + SIG_DATA_AT, sizeof(data));
	return data >> 32 == PERF_MAGIC;
}

/* What passed since the thread's last sample, so that ticks that fell into the kernel, or came while the signal was blocked, are not
 * missing; but not what passed while nothing was recorded. */
static uint64_t weight_of(struct weft__slot *slot, int added)
{
	uint32_t epoch = load_relaxed(&weft_gate.generation), period = load_relaxed(&weft__engine.period_ns);
	uint32_t asked = weft__engine.chosen_ns;
	uint64_t now, before;

	if (!weft__perf.counts_time)
		return period == asked || slot->hits % (period / asked) == 0 ? period / asked * asked : 0;
	now = thread_cpu_ns();
	before = load_relaxed(&slot->cpu_ns);
	/* An event that was inherited comes as often as it did at first: those that are too many are left out, and the next one stands for
	 * them. */
	if (period != asked && !added && slot->epoch == epoch && now - before < period / 20 * 17)
		return 0;
	store_relaxed(&slot->cpu_ns, now);
	/* A thread that was not there at the start has inherited its event: all it used counts. */
	if (!added && slot->epoch != epoch)
		before = now;
	slot->epoch = epoch;
	return now > before ? now - before : period;
}

void weft__perf_match(const siginfo_t *info, struct weft__hit *hit)
{
	uint32_t number, mine;
	uint64_t data;
	int added;

	hit->tid = (uint32_t)syscall(SYS_gettid);
	memcpy(&data, (const char *)info + SIG_DATA_AT, sizeof(data));
	if ((data >> 24 & 0xff) != (weft__engine.generation & 0xff))
		return;
	weft__net_hold();
	number = (uint32_t)data & 0xffffff;
	hit->slot = weft__slot_take(hit->tid, &mine, &added);
	if (!hit->slot) {
		hit->weight_ns = load_relaxed(&weft__engine.period_ns);
		return;
	}
	if (added) {
		hit->slot->timer = -1;
		store_release(&hit->slot->state, SLOT_COVERED);
	}
	/* Created while its creator already had an event, and found by the first scan all the same: it has two. The next look at the
	 * threads closes its own. */
	if (mine != number && load_acquire(&hit->slot->fd) > 0) {
		store_relaxed(&hit->slot->twice, 1u);
		return;
	}
	hit->weight_ns = weight_of(hit->slot, added);
}

/* The newest record of the thread's ring. Only the handler on that thread reads the ring, and the kernel writes to it only in
 * interrupts of that thread. */
uint32_t weft__perf_kernel(struct weft__slot *slot, uint64_t *out, uint32_t max)
{
	struct perf_event_mmap_page *page = slot ? slot->ring : NULL;
	const uint64_t *words = (const uint64_t *)(const void *)((const char *)page + PERF_RING_BYTES);
	const uint64_t mask = PERF_RING_BYTES / 8 - 1;
	uint64_t head, tail, at = UINT64_MAX, n_words;
	uint32_t n = 0;

	if (!page)
		return 0;
	head = load_acquire(&page->data_head) / 8;
	tail = page->data_tail / 8;
	while (tail < head) {
		struct perf_event_header header;

		memcpy(&header, &words[tail & mask], sizeof(header));
		if (header.size < sizeof(header))
			break;
		if (header.type == PERF_RECORD_SAMPLE)
			at = tail;
		tail += header.size / 8;
	}
	if (at != UINT64_MAX) {
		n_words = words[(at + 1) & mask];
		for (uint64_t i = 0; i < n_words && i <= mask && n < max; i++) {
			uint64_t word = words[(at + 2 + i) & mask];

			if (word < (uint64_t)PERF_CONTEXT_MAX)
				out[n] = n ? word - 1 : word, n++;
		}
	}
	store_release(&page->data_tail, head * 8);
	return n;
}
