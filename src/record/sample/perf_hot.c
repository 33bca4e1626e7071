/* SPDX-License-Identifier: Apache-2.0 */
/* The perf engine, as far as handlers and threads that just came need it. HOT.
 *
 * With `sigtrap` the kernel sends SIGTRAP to the thread in which the event overflowed, before that thread runs
 * another instruction of its mine. The signal says which event it was by a number that we gave it: that of the
 * thread for which it was opened. A thread that inherited the event of its creator has the creator's number.
 *
 * An overflow in the kernel has its SIGTRAP wait until the thread comes out of there; if it comes out as another
 * program, after exec, that dies of it. So the kernel's part is left out unless its frames were asked for. (The
 * other signal that perf has, that of a file which can be read, makes system calls return early: reads were cut
 * short in tests.)
 *
 * An event's interrupt is two thirds of what a sample costs, and the tick comes anyway. So for rates above it each
 * thread has a timer, too, which gives a sample at every tick that finds the thread running; the event gives the
 * rest. The timer has the same signal, so that neither interrupts the other's handler. What a sample stands for does
 * not depend on where it came from: all of them share the CPU time that passed. */
#include "record/sample/perf_state.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/private_fds.h"
#include "unwind/arch.h"
#include "weft/ring.h"

#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif
#define SIG_DATA_AT 24 /* in siginfo_t, behind the address */
#define STEPS_MOST 7   /* samples between two readings of a thread's CPU clock */
#define RIDE_LEAST 8   /* one sample in so many comes from an event, at any rate */

struct weft__perf weft__perf;

/* The slot that the calling thread had the last time; tid 0: none. */
static __thread struct {
	uint32_t tid, number;
} perf_last __attribute__((tls_model("initial-exec")));

static uint64_t cpu_ns_of(uint32_t tid)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, (int)(~tid << 3 | 6), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint32_t weft__perf_step_ns(uint32_t period_ns)
{
	uint64_t tick = weft__engine.tick_ns, most = (uint64_t)RIDE_LEAST * period_ns, rest = most;

	if (!tick)
		return period_ns;
	if (period_ns < tick)
		rest = period_ns * tick / (tick - period_ns);
	rest = rest < most ? rest : most;
	return rest < UINT32_MAX ? (uint32_t)rest : UINT32_MAX;
}

uint32_t weft__perf_event_ns(void)
{
	/* Beside timers they are not on all of the time instead: perf_duty.c. */
	return weft__perf_step_ns(weft__engine.tick_ns ? weft__engine.chosen_ns
						       : load_relaxed(&weft__engine.period_ns));
}

int weft__perf_holds(void)
{
	return weft__engine.tick_ns && !load_relaxed(&weft__perf.timerless);
}

uint32_t weft__perf_rider_ns(void)
{
	uint32_t period = load_relaxed(&weft__engine.period_ns);
	uint64_t shared = period + (uint64_t)period / (RIDE_LEAST - 1);

	/* Half a tick: it has expired at each. */
	if (weft__perf_step_ns(period) < (uint64_t)RIDE_LEAST * period && period < weft__engine.tick_ns)
		return weft__engine.tick_ns / 2;
	return shared < UINT32_MAX ? (uint32_t)shared : UINT32_MAX;
}

int weft__perf_ride(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	int err = weft__engine.tick_ns ? weft__timer_ops.cover(slot, number, tid) : 0;

	if (err && err != -ESRCH) {
		store_relaxed(&weft__perf.timer_why, err);
		store_relaxed(&weft__perf.timerless, 1u);
	}
	return err;
}

int weft__perf_open(uint32_t tid, uint32_t number)
{
	struct perf_event_attr attr = weft__perf.attr;
	long fd;

	if (!attr.freq) {
		uint32_t step = weft__perf_event_ns();

		/* Each thread another one, so that no two run in step, with each other or with what they do. */
		attr.sample_period = step - step / 10 + weft__random(step / 5 + 1);
	}
	attr.sig_data = PERF_MAGIC << 32 | (weft__engine.generation & 0xff) << 24 | number;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int weft__perf_later(void)
{
	return load_relaxed(&weft__perf.starting) && load_relaxed(&weft__perf.private_fds) && !weft__private_fds;
}

int weft__perf_cover(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	void *ring = NULL;
	int fd;

	slot->timer = -1;
	slot->interval_ns = load_relaxed(&weft__engine.period_ns);
	store_relaxed(&slot->cpu_ns, load_relaxed(&weft__perf.starting) ? cpu_ns_of(tid) : 0);
	slot->epoch = load_relaxed(&weft_gate.generation);
	if (!load_relaxed(&weft__perf.starting) && !weft__engine.kernel) {
		weft__perf_ride(slot, number, tid);
		return 0; /* inherited */
	}
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
	weft__perf_ride(slot, number, tid);
	return 0;
}

void weft__perf_counted(struct weft__slot *slot)
{
	store_relaxed(&slot->cpu_ns, weft__thread_cpu_ns());
	slot->tick = 0;
}

int weft__perf_mine(const siginfo_t *info)
{
	uint64_t data;

	if (info->si_signo != SIGTRAP || info->si_code != TRAP_PERF)
		return 0;
	memcpy(&data, (const char *)info + SIG_DATA_AT, sizeof(data));
	return data >> 32 == PERF_MAGIC;
}

/* Whether the event overflowed once, or the timer expired at one tick, since the last sample of the same kind and no
 * more. Periods are within a tenth of what was asked for. */
static int once_since(uint64_t last, uint64_t tick, int by_timer)
{
	uint64_t step = by_timer ? weft__engine.tick_ns : weft__perf_step_ns(weft__engine.chosen_ns);

	return !weft__perf.attr.freq && weft_tick_ns(tick - last) < step + step / 2;
}

static int is_off(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) >= 2 * (uint64_t)weft__engine.chosen_ns;
}

/* Beside timers, whether samples come as often as they did when the step was found. In the kernel there are only the
 * timer's. */
static int in_step(const struct weft__slot *slot, uint64_t tick)
{
	return !weft__engine.tick_ns ||
	       !is_off(weft_tick_ns(tick - slot->known), (slot->steps + 1) * (uint64_t)slot->step_ns);
}

/* The clock was read. An event is as far from the next as any; but where timers are in between, only many samples
 * make a mean. */
static void step_find(struct weft__slot *slot, uint64_t now, uint64_t tick, int once)
{
	uint64_t passed = now - slot->known_ns, n = (uint64_t)slot->steps + 1;

	if (once && weft__engine.tick_ns && !slot->step_ns && n <= STEPS_MOST) {
		slot->steps = (uint32_t)n;
		return;
	}
	if (once && (n > STEPS_MOST || !weft__engine.tick_ns))
		slot->step_ns = (uint32_t)(passed / n);
	else if (once && is_off(passed, n * slot->step_ns))
		slot->step_ns = 0;
	slot->known_ns = now;
	slot->known = tick;
	slot->steps = 0;
}

/* The first sample of a thread that was covered when it began. An inherited event comes a whole period after that,
 * too late for a thread that lives for less. Until then the ticks that find the thread running stand for its time,
 * each for one tick: these fall anywhere. The event then stands for what comes after the last sample of the thread,
 * half a period on average. */
static uint64_t weight_first(struct weft__slot *slot, uint64_t tick, int by_timer)
{
	uint32_t interval = load_relaxed(&slot->interval_ns);

	*(by_timer ? &slot->ridden : &slot->tick) = tick;
	store_relaxed(&slot->cpu_ns, weft__thread_cpu_ns());
	slot->known_ns = load_relaxed(&slot->cpu_ns);
	slot->known = tick;
	slot->steps = slot->step_ns = 0;
	if (!by_timer)
		return load_relaxed(&weft__engine.period_ns) / 2;
	return interval > weft__engine.tick_ns ? interval : weft__engine.tick_ns;
}

/* What passed since the thread's last sample, so that ticks that fell into the kernel, or came while the signal was
 * blocked, are not missing; but not what passed while nothing was recorded. When it was one period, and that is
 * known, the clock, which is half of what a sample takes, is read now and then only, and what was too much or too
 * little until then is settled. */
static uint64_t weight_of(struct weft__slot *slot, int added, uint64_t tick, int by_timer)
{
	uint32_t epoch = load_relaxed(&weft_gate.generation), period = load_relaxed(&weft__engine.period_ns);
	uint32_t asked = weft__engine.chosen_ns;
	int again = !added && slot->epoch == epoch, once;
	uint64_t now, before = load_relaxed(&slot->cpu_ns), *last = by_timer ? &slot->ridden : &slot->tick;

	if (!weft__perf.counts_time)
		return period == asked || slot->hits % (period / asked) == 0 ? period / asked * asked : 0;
	if (slot->born && slot->epoch == epoch && weft__engine.tick_ns && (by_timer ? !slot->hits : slot->events == 1))
		return weight_first(slot, tick, by_timer);
	once = again && period == asked && once_since(*last, tick, by_timer);
	if (once && slot->step_ns && slot->steps < STEPS_MOST && in_step(slot, tick)) {
		*last = tick;
		slot->steps++;
		store_relaxed(&slot->cpu_ns, before + slot->step_ns);
		return slot->step_ns;
	}
	now = weft__thread_cpu_ns();
	if (again && period != asked && !by_timer && !weft__perf_holds() && now - before < period / 20 * 17)
		return 0; /* an event that was inherited comes as often as at first; the next sample stands for it */
	*last = tick;
	step_find(slot, now, tick, once);
	store_relaxed(&slot->cpu_ns, now > before ? now : before);
	slot->epoch = epoch;
	/* The first one of this recording; but a thread that was not there at the start has inherited its event, and
	 * all it used counts. */
	if (!now || (!again && !added))
		return period;
	return now > before ? now - before : 1;
}

/* The slot of the thread that the signal came to, when it is the one that it had the last time: without a system
 * call. A thread may have the thread-local memory of another one, but not its stack, too. */
static struct weft__slot *slot_again(const struct weft__hit *hit, uint32_t *number)
{
	uint64_t sp = arch_context_sp(hit->context);
	struct weft__slot *slot;

	*number = perf_last.number;
	if (!perf_last.tid || *number >= weft__engine.n_slots ||
	    load_acquire(&weft__engine.keys[*number]) != perf_last.tid)
		return NULL;
	slot = &weft__engine.slots[*number];
	return slot->tls == TLS_OWN && sp >= slot->stack_low && sp < slot->stack_high ? slot : NULL;
}

static struct weft__slot *slot_here(struct weft__hit *hit, uint32_t *number, int *added)
{
	struct weft__slot *slot = slot_again(hit, number);

	*added = 0;
	hit->tid = slot ? perf_last.tid : (uint32_t)syscall(SYS_gettid);
	if (slot)
		return slot;
	slot = weft__slot_take(hit->tid, number, added);
	if (*added) {
		slot->timer = -1;
		weft__perf_ride(slot, *number, hit->tid);
		store_release(&slot->state, SLOT_COVERED);
	}
	if (slot && slot->tls == TLS_OWN) {
		perf_last.tid = hit->tid;
		perf_last.number = *number;
	}
	return slot;
}

void weft__perf_match(const siginfo_t *info, struct weft__hit *hit)
{
	uint32_t number, mine;
	uint64_t data;
	int added;

	memcpy(&data, (const char *)info + SIG_DATA_AT, sizeof(data));
	if ((data >> 24 & 0xff) != (weft__engine.generation & 0xff))
		return;
	weft__net_hold();
	add_relaxed(&weft__perf.hits, 1);
	number = (uint32_t)data & 0xffffff;
	hit->slot = slot_here(hit, &mine, &added);
	if (!hit->slot) {
		hit->weight_ns = load_relaxed(&weft__engine.period_ns);
		return;
	}
	/* Created while its creator already had an event, and found by the first scan all the same: it has two. The
	 * next look at the threads closes its own. */
	if (mine != number && load_acquire(&hit->slot->fd) > 0) {
		store_relaxed(&hit->slot->twice, 1u);
		return;
	}
	if (!load_relaxed(&weft__perf.inherited) && load_acquire(&hit->slot->fd) <= 0)
		store_relaxed(&weft__perf.inherited, 1u);
	hit->slot->events++;
	hit->weight_ns = weight_of(hit->slot, added, hit->tick, 0);
}

void weft__perf_ridden(struct weft__hit *hit)
{
	hit->weight_ns = weight_of(hit->slot, 0, hit->tick, 1);
}

/* The newest record of the thread's ring. Only the handler on that thread reads the ring, and the kernel writes to
 * it only in interrupts of that thread. */
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
