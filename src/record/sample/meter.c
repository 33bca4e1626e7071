/* SPDX-License-Identifier: Apache-2.0 */
#include "record/sample/meter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/private_fds.h"
#include "base/sort.h"
#include "record/sample/perf_state.h"
#include "record/sample/precise.h"
#include "weft/ring.h"

/* What the kernel does for a signal before and after the handler, besides the tick or the interrupt that it comes
 * with; measured in a virtual machine: 5.5 to 6.5 us for those of perf events, 6 for those of timers. */
#define SIGNAL_NS 6000

static const struct weft__meter_prices usual = METER_USUAL;

#define PRICE_LEAST_NS 300
#define PRICE_MOST_NS 100000
#define TRY_STEP_NS 100000 /* from one interrupt to the next */
#define TRY_NS 1200000
#define TRY_GAP_NS 500 /* no pass of the loop takes so long */
#define TRY_GAPS 64
#define TRY_LEAST 8 /* gaps, or they say nothing */
#define TRY_SLEEPS 15
#define TRY_PARTS 6
#define TRY_MOST_NS 50000000
#define FAR_NS UINT64_C(10000000000)

static struct weft__meter engine_meter;

/* How far trying out has got. */
static struct {
	uint64_t gaps[TRY_GAPS];
	uint32_t n_gaps, expected;
	uint64_t sleeps[TRY_SLEEPS];
	uint32_t n_sleeps;
	uint32_t without_ns; /* what one takes without an event */
	uint64_t until_ns;   /* for sleeps */
	int part;
	struct weft__meter_prices prices;
	uint32_t done; /* they are all there */
	uint32_t tid;  /* of who does it; 0: nobody yet */
} trying;

static int by_length(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint32_t weft__meter_middle(uint64_t *gaps, uint32_t n, uint32_t expected)
{
	uint32_t of = n < expected ? n : expected;
	uint64_t middle;

	if (of < TRY_LEAST)
		return 0;
	weft__sort(gaps, n, sizeof(*gaps), by_length);
	middle = gaps[n - of + of / 2];
	return middle < PRICE_LEAST_NS ? PRICE_LEAST_NS : middle > PRICE_MOST_NS ? PRICE_MOST_NS : (uint32_t)middle;
}

/* What is left of the event's time and what is left until the tick are both anything up to the whole. */
double weft__meter_switch_ns(const struct weft__meter_prices *prices, uint32_t step_ns, uint32_t tick_ns)
{
	double step = step_ns, tick = tick_ns ? tick_ns : step_ns;
	double first = step < tick ? 1 - step / (2 * tick) : tick / (2 * step);
	double far = prices->far_ns, near = prices->near_ns > prices->far_ns ? prices->near_ns : far;

	return far + first * (near - far);
}

static double more_than(uint64_t before, uint64_t now)
{
	return now > before ? (double)(now - before) : 0;
}

void weft__meter_add(struct weft__meter *m, const struct weft__meter_seen *now)
{
	double signals = more_than(m->seen.signals, now->signals);
	/* Of threads that went with a collector of before, the kernel counts all at once. */
	double switches = m->seen.step_ns ? more_than(m->seen.switches, now->switches) : 0;
	double weight = more_than(m->seen.weight_ns, now->weight_ns);
	double duty = (double)now->duty / METER_FULL, interrupts = 0, switching = 0, off = 0;

	if (now->step_ns) {
		interrupts = weight * duty / now->step_ns * m->prices.interrupt_ns;
		switching = switches * duty * weft__meter_switch_ns(&m->prices, now->step_ns, now->tick_ns);
		off = switches * (1 - duty) * m->prices.off_ns;
	}
	if (now->period_ns && more_than(m->seen.precise_ns, now->precise_ns) > 0) {
		interrupts += more_than(m->seen.precise_ns, now->precise_ns) / now->period_ns * usual.interrupt_ns;
		off += more_than(m->seen.precise_switches, now->precise_switches) *
		       weft__meter_switch_ns(&usual, now->period_ns, now->tick_ns);
	}
	m->all_ns += interrupts + switching + off + signals * SIGNAL_NS;
	m->fixed_ns += off + (now->stubborn ? interrupts + switching : 0);
	m->seen = *now;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec ts = {0, 0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int try_open(uint64_t period)
{
	/* It counts nothing, and so sends and writes nothing; but its timer runs. */
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.disabled = 1,
		.exclude_user = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* What is missing between two readings of the counter was taken by somebody, and most often by the event. */
static void try_interrupts(void)
{
	int fd = try_open(TRY_STEP_NS);
	uint64_t begin, last, now;

	if (fd < 0)
		return;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	begin = last = weft__clock_mono();
	while (trying.n_gaps < TRY_GAPS && last - begin < TRY_NS) {
		now = weft__clock_mono();
		if (now - last > TRY_GAP_NS)
			trying.gaps[trying.n_gaps++] = now - last;
		last = now;
	}
	close(fd);
	trying.expected += (uint32_t)((last - begin) / TRY_STEP_NS);
}

/* What a short sleep takes beside an event: that has to be put away, and set again. As many as fit into a part. */
static void try_sleeps(uint64_t period, int on)
{
	uint64_t until = weft__clock_mono() + TRY_NS;
	int fd = period ? try_open(period) : -1;

	if (on && fd >= 0)
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	while ((!period || fd >= 0) && trying.n_sleeps < TRY_SLEEPS && weft__clock_mono() < until) {
		const struct timespec moment = {0, 1000};
		uint64_t begin = own_cpu_ns();

		nanosleep(&moment, NULL);
		trying.sleeps[trying.n_sleeps++] = own_cpu_ns() - begin;
	}
	if (fd >= 0)
		close(fd);
}

/* Whether there are enough of them, or no time for more. */
static int slept_enough(uint64_t now_ns, uint32_t *middle)
{
	if (trying.n_sleeps < TRY_SLEEPS && now_ns < trying.until_ns)
		return 0;
	*middle = weft__meter_middle(trying.sleeps, trying.n_sleeps, trying.n_sleeps);
	trying.n_sleeps = 0;
	return 1;
}

static uint32_t price_of(uint32_t with, uint32_t otherwise)
{
	if (!with || !trying.without_ns)
		return otherwise;
	return with > trying.without_ns ? with - trying.without_ns : 1;
}

static void try_part(struct weft__meter_prices *prices)
{
	static const struct {
		uint64_t period;
		int on;
	} sleeps[] = {{0, 0}, {FAR_NS, 0}, {FAR_NS, 1}, {TRY_STEP_NS, 1}};
	uint32_t middle = 0;

	if (trying.part >= 4) {
		try_interrupts();
		trying.part++;
		return;
	}
	try_sleeps(sleeps[trying.part].period, sleeps[trying.part].on);
	if (!slept_enough(weft__clock_mono(), &middle))
		return;
	if (trying.part == 0)
		trying.without_ns = middle;
	else if (trying.part == 1)
		prices->off_ns = price_of(middle, usual.off_ns);
	else if (trying.part == 2)
		prices->far_ns = price_of(middle, usual.far_ns);
	else
		prices->near_ns = price_of(middle, usual.near_ns);
	trying.part++;
}

/* In parts of about a millisecond, since rings fill meanwhile. On a busy machine each sleep takes some, so there is
 * an end to that. */
int weft__meter_try(void)
{
	uint32_t tried, tid = (uint32_t)syscall(SYS_gettid), nobody = 0;

	if (weft__engine.ops != &weft__perf_ops || load_acquire(&trying.done) ||
	    (weft__private_fds_wanted && !weft__private_fds))
		return 0;
	if (load_relaxed(&trying.tid) != tid && !cas_acq_rel(&trying.tid, &nobody, tid))
		return 0;
	if (!trying.until_ns)
		trying.until_ns = weft__clock_mono() + TRY_MOST_NS;
	/* Else nobody forks meanwhile: a child would have the event's file. */
	if (!weft__private_fds)
		pthread_mutex_lock(&weft__engine_mutex);
	try_part(&trying.prices);
	if (!weft__private_fds)
		pthread_mutex_unlock(&weft__engine_mutex);
	if (trying.part < TRY_PARTS)
		return 1;
	tried = weft__meter_middle(trying.gaps, trying.n_gaps, trying.expected);
	trying.prices.interrupt_ns = tried ? tried : usual.interrupt_ns;
	store_release(&trying.done, 1u);
	weft__source_changed();
	return 0;
}

uint32_t weft__meter_interrupt_ns(void)
{
	return load_acquire(&trying.done) ? trying.prices.interrupt_ns : 0;
}

static uint64_t switches_so_far(void)
{
	struct rusage all = {0}, own = {0};

	getrusage(RUSAGE_SELF, &all);
	getrusage(RUSAGE_THREAD, &own);
	return (uint64_t)(all.ru_nvcsw + all.ru_nivcsw - own.ru_nvcsw - own.ru_nivcsw);
}

static void seen_now(struct weft__meter_seen *now)
{
	*now = (struct weft__meter_seen){.signals = load_relaxed(&weft__engine.signals),
					 .weight_ns = load_relaxed(&weft__engine.weight_ns),
					 .duty = METER_FULL,
					 .period_ns = load_relaxed(&weft__engine.period_ns)};
	weft__precise_counts(&now->precise_ns, &now->precise_switches);
	if (weft__engine.ops == &weft__timer_ops)
		now->tick_ns = weft__engine.jiffy_ns;
	if (weft__engine.ops != &weft__perf_ops || !load_relaxed(&weft__engine.on))
		return;
	now->switches = switches_so_far();
	now->tick_ns = 1000000000u / weft__machine_tick_hz();
	weft__perf_meter(now);
}

void weft__meter_open(void)
{
	engine_meter = (struct weft__meter){0};
	memset(&trying, 0, sizeof(trying));
	seen_now(&engine_meter.seen);
}

uint64_t weft__meter_ns(uint64_t *fixed_ns)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct weft__meter_seen now;

	if (tid != engine_meter.tid)
		engine_meter.seen.step_ns = 0;
	engine_meter.tid = tid;
	if (load_acquire(&trying.done))
		engine_meter.prices = trying.prices;
	seen_now(&now);
	weft__meter_add(&engine_meter, &now);
	*fixed_ns = (uint64_t)engine_meter.fixed_ns;
	return (uint64_t)engine_meter.all_ns;
}

struct weft__engine_counts weft__engine_counts(void)
{
	struct weft__engine_counts counts = {load_relaxed(&weft__engine.samples), load_relaxed(&weft__engine.uncovered),
					     load_relaxed(&weft__engine.signals), load_relaxed(&weft__engine.spent_ns)};

	return counts;
}
