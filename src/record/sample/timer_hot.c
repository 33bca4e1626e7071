/* SPDX-License-Identifier: Apache-2.0 */
/* The timer engine: a timer on the CPU clock of each thread, whose signal goes to that thread. The kernel looks at
 * these at its tick, so they cost nothing between ticks and nothing when threads are switched, and fire at most HZ
 * times a second; what was missed is the overrun, and part of the weight.
 *
 * A timer can only be made for a thread that is known. For those that nobody has seen yet there is a net: one timer
 * on the CPU clock of the whole process. The kernel (from 6.4 on) gives its signal to the thread that was running
 * when it expired; if that one has no timer, this is a sample that stands for the net's interval, and the thread
 * gets a timer. In a thread that has one it means nothing. So the CPU time of threads that live a few milliseconds
 * is sampled in proportion, too.
 *
 * Where nobody announces threads, a thread that no signal has met yet has no timer while the net is out: the net's
 * signal comes first, and alone, and shows whether the thread's signal stack has room for two handlers. When one has
 * not, the net is taken in for good.
 *
 * The net has a signal of its own. Both timers of a thread that has one expire at the same tick as often as not; if
 * the signals were the same, the handler of the first would hold the second back, and the kernel would wake some
 * other thread to take it. As it is the second comes on top of the first, before that has begun, and returns at
 * once. HOT. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"
#include "record/sample/state.h"

#define TIMER_MAGIC UINT64_C(0x77656674) /* in front of our timers' numbers */
#define TIMER_NS_PER_S 1000000000u

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int timer_make(int signal, int clock, uint32_t number, uint32_t tid, int32_t *ret)
{
	struct sigevent event = {.sigev_signo = signal, .sigev_notify = tid ? SIGEV_THREAD_ID : SIGEV_SIGNAL};
	int id = -1;

	event.sigev_value.sival_ptr =
		(void *)(uintptr_t)(TIMER_MAGIC << 32 | (weft__engine.generation & 0xff) << 24 | number);
	if (tid)
		event.sigev_notify_thread_id = (int)tid;
	if (syscall(SYS_timer_create, clock, &event, &id) < 0)
		return -errno;
	*ret = id;
	return 0;
}

static int timer_arm(int32_t id, uint32_t first_ns, uint32_t interval_ns)
{
	struct itimerspec spec = {
		.it_value = {first_ns / TIMER_NS_PER_S, first_ns % TIMER_NS_PER_S},
		.it_interval = {interval_ns / TIMER_NS_PER_S, interval_ns % TIMER_NS_PER_S},
	};

	return syscall(SYS_timer_settime, id, 0, &spec, NULL) < 0 ? -errno : 0;
}

/* Within a tenth of the period, so that nothing that repeats runs in step. */
static uint32_t draw_interval(void)
{
	uint32_t period = weft__engine.tick_ns ? weft__perf_rider_ns() : load_relaxed(&weft__engine.period_ns);

	return period - period / 10 + weft__random(period / 5 + 1);
}

/* When the first expiry is to be. It is noticed at the next tick only, and never if the thread ends before that; so
 * it is a whole number of ticks away, and from none on: then the sample comes at a moment of chance in the first
 * interval, wherever the ticks fall. It stands for a whole interval, as a thread that lives for less may have none. */
static uint32_t draw_first(uint32_t interval)
{
	uint32_t at = weft__random(interval);

	return 1 + at - at % weft__engine.jiffy_ns;
}

/* Intervals shorter than the tick: the first tick that finds the thread running stands for one tick, and half of
 * that is counted by overruns, on average. 0: an interval. */
static uint32_t first_weight(uint32_t interval)
{
	return interval < weft__engine.jiffy_ns ? (weft__engine.jiffy_ns + interval) / 2 : 0;
}

static int timer_cover(struct weft__slot *slot, uint32_t number, uint32_t tid)
{
	uint32_t interval = draw_interval();
	int32_t id = -1;
	int err;

	store_relaxed(&slot->timer, -1);
	/* The CPU clock of a thread, as clock_getcpuclockid(3) has it for processes. */
	err = timer_make(weft__engine.signal, (int)(~tid << 3 | 6), number, tid, &id);
	if (err == -EINVAL)
		return -ESRCH; /* no such thread */
	if (err)
		return err;
	store_relaxed(&slot->interval_ns, interval);
	store_relaxed(&slot->first_ns, first_weight(interval));
	store_relaxed(&slot->timer, id);
	err = timer_arm(id, draw_first(interval), interval);
	if (err) {
		syscall(SYS_timer_delete, id);
		store_relaxed(&slot->timer, -1);
	}
	return err;
}

static void timer_uncover(struct weft__slot *slot)
{
	int32_t id = load_relaxed(&slot->timer);

	if (load_acquire(&slot->state) == SLOT_COVERED && id >= 0)
		syscall(SYS_timer_delete, id);
	store_relaxed(&slot->timer, -1);
}

/* Draws a new interval, keeping what is left of the present one, for all of which the next sample stands. On the
 * thread itself, in the handler: at any other time expiries may have passed that no tick has seen, and setting the
 * timer would forget them. */
static void interval_redraw(struct weft__slot *slot)
{
	uint32_t interval = draw_interval();
	int32_t id = load_relaxed(&slot->timer);
	struct itimerspec left;

	store_relaxed(&slot->redraw, 0u);
	if (id < 0 || syscall(SYS_timer_gettime, id, &left) < 0 || (!left.it_value.tv_sec && !left.it_value.tv_nsec))
		return;
	if (timer_arm(id, (uint32_t)(left.it_value.tv_sec * TIMER_NS_PER_S + left.it_value.tv_nsec), interval) == 0) {
		store_relaxed(&slot->first_ns, load_relaxed(&slot->interval_ns));
		store_relaxed(&slot->interval_ns, interval);
	}
}

static void timer_tend(struct weft__slot *slot, uint32_t tid)
{
	(void)tid;
	store_relaxed(&slot->redraw, 1u);
}

void weft__net_set(uint32_t interval_ns)
{
	int32_t id = load_relaxed(&weft__engine.net);

	if (id < 0 || load_relaxed(&weft__engine.net_ns) == interval_ns)
		return;
	store_relaxed(&weft__engine.net_ns, interval_ns);
	timer_arm(id, interval_ns ? 1 + weft__random(interval_ns) : 0, interval_ns);
	if (interval_ns && load_seq_cst(&weft__engine.cramped))
		timer_arm(id, 0, 0);
}

void weft__net_cramped(void)
{
	int32_t id = load_relaxed(&weft__engine.net);

	if (load_relaxed(&weft__engine.cramped))
		return;
	store_seq_cst(&weft__engine.cramped, 1u);
	if (id >= 0)
		timer_arm(id, 0, 0);
}

void weft__net_open(void)
{
	int32_t id = -1;

	store_relaxed(&weft__engine.net_ns, 0u);
	if (!weft__engine.net_signal ||
	    timer_make(weft__engine.net_signal, CLOCK_PROCESS_CPUTIME_ID, SLOT_NET, 0, &id) < 0)
		return;
	store_relaxed(&weft__engine.net, id);
}

void weft__net_close(int forked)
{
	int32_t id = load_relaxed(&weft__engine.net);

	if (id >= 0 && !forked) /* timers are not inherited */
		syscall(SYS_timer_delete, id);
	store_relaxed(&weft__engine.net, -1);
	store_relaxed(&weft__engine.net_ns, 0u);
	store_relaxed(&weft__engine.net_first, 0u);
}

void weft__net_hold(void)
{
	if (load_relaxed(&weft__engine.net_ns)) {
		uint64_t mask = UINT64_C(1) << (weft__engine.net_signal - 1);

		syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, NULL, sizeof(mask));
	}
}

static int timer_probe(char *why, size_t bytes)
{
	int32_t id = -1;
	int err = timer_make(SIGPROF, CLOCK_THREAD_CPUTIME_ID, 0, (uint32_t)syscall(SYS_gettid), &id);

	(void)why;
	(void)bytes;
	if (!err)
		syscall(SYS_timer_delete, id);
	return err;
}

/* Whether the signal interrupted a system call that waited. When the thread that runs has the signal blocked, the
 * kernel gives it to another one, which may be asleep; waking that is no way to treat a guest. */
static int was_waiting(const ucontext_t *uc)
{
#if defined(__x86_64__)
	/* The instruction leaves the address behind it in rcx. A call that is to be made again has been stepped back
	 * to. */
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP], next = (uint64_t)uc->uc_mcontext.gregs[REG_RCX];

	return next == pc + 2 || (next == pc && uc->uc_mcontext.gregs[REG_RAX] == -EINTR);
#else
	(void)uc;
	return 0;
#endif
}

static void net_match(const siginfo_t *info, struct weft__hit *hit)
{
	uint32_t interval = load_relaxed(&weft__engine.net_ns), number = 0, state;

	hit->tid = (uint32_t)syscall(SYS_gettid);
	if (weft__thread_ours(hit->tid))
		return;
	if (was_waiting(hit->context)) {
		add_relaxed(&weft__engine.net_astray, 1);
		return;
	}
	hit->slot = weft__slot_find(hit->tid, NULL);
	state = hit->slot ? load_acquire(&hit->slot->state) : SLOT_UNCOVERED;
	if (state != SLOT_UNCOVERED && state != SLOT_AWAITED) {
		hit->slot = NULL;
		return;
	}
	hit->weight_ns = (uint64_t)interval * (1 + (uint64_t)info->si_overrun);
	if (!hit->slot)
		hit->slot = weft__slot_cover(hit->tid);
	/* When its stack is too small the net was taken in before this. */
	if (hit->slot && weft__slot_find(hit->tid, &number) == hit->slot)
		weft__slot_meet(hit->slot, number, hit->tid);
	if (hit->slot && weft__engine.ops != &weft__timer_ops)
		weft__perf_counted(hit->slot);
	add_relaxed(&weft__engine.churn, 1);
}

static int timer_mine(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && (uint64_t)(uintptr_t)info->si_value.sival_ptr >> 32 == TIMER_MAGIC;
}

static void timer_match(const siginfo_t *info, struct weft__hit *hit)
{
	uint32_t value = (uint32_t)(uintptr_t)info->si_value.sival_ptr;
	uint32_t number = value & 0xffffff, interval, first;

	if (value >> 24 != (weft__engine.generation & 0xff))
		return; /* of an engine that was stopped */
	if (number == SLOT_NET) {
		net_match(info, hit);
		return;
	}
	if (number >= weft__engine.n_slots)
		return;
	weft__net_hold();
	hit->slot = &weft__engine.slots[number];
	hit->tid = load_relaxed(&weft__engine.keys[number]);
	interval = load_relaxed(&hit->slot->interval_ns);
	first = load_relaxed(&hit->slot->first_ns);
	hit->weight_ns = (first ? first : interval) + (uint64_t)interval * (uint64_t)info->si_overrun;
	store_relaxed(&hit->slot->first_ns, 0u);
	if (weft__engine.tick_ns)
		weft__perf_ridden(hit);
	else if (load_acquire(&hit->slot->fd) > 0)
		weft__precise_ridden(hit);
	else
		hit->weight_ns += weft__precise_owed(hit->slot);
	if (load_relaxed(&hit->slot->redraw))
		interval_redraw(hit->slot);
}

const struct weft__engine_ops weft__timer_ops = {
	.name = "timer",
	.id = WEFT_ENGINE_TIMER,
	.probe = timer_probe,
	.cover = timer_cover,
	.uncover = timer_uncover,
	.tend = timer_tend,
	.mine = timer_mine,
	.match = timer_match,
};
