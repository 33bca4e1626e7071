/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads have a perf event beside their timer. COLLECTOR, but for probe, start and forked. */
#include "record/sample/precise.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/private_fds.h"
#include "record/sample/perf_state.h"
#include "weft/ring.h"

#define EVENTS_MOST 64                   /* each is a file */
#define LOOK_FIRST_NS UINT64_C(10000000) /* after the start; then twice that, and so on, up to: */
#define PRECISE_LOOK_NS UINT64_C(250000000)
#define LOOK_SHARE 2000      /* a reading takes one part in so many of the time, at most */
#define CPU_LEAST_NS 1000000 /* that a thread must have used before it is looked at closely */
#define LITTLE 200 /* one part in so many of a CPU: a thread that uses less hardly has samples, and needs no event */
#define LITTLE_LOOKS 8                     /* so many looks in a row: then the event goes */
#define BURST_NS 500000                    /* from one switch to the next, on average, with which an event is cheap */
#define BURST_LESS_NS 250000               /* and with which it is so still */
#define ALLOWED 0.3                        /* of the budget may go for the switches of other threads that have events */
#define IDLE_SHARE 0.5                     /* of a CPU: what a program that idles counts for (governor.c) */
#define NO_LIMIT_PPM 20000                 /* the budget, when there is none */
#define TRACED_NS UINT64_C(1000000000)     /* between two looks for a debugger while there are events, */
#define TRACED_LEAST_NS UINT64_C(10000000) /* and before there is one more */
#define REDRAW_LEAST 4                     /* samples with the same period */

static struct {
	struct perf_event_attr attr;
	int possible;
	double budget; /* share of the program's CPU time */
	int running;
	int private_fds; /* their files are in a private table (base/private_fds.h) */
	uint32_t n;      /* events */
	uint64_t next_ns, pace_ns, traced_ns;
	double taxes_ns; /* of all of them, in a second, at the last look */
	uint64_t cpu_ns, switches;
} precise;

int weft__precise_fits(const struct weft__precise_seen *seen, uint32_t switch_ns, double others_ns, double allowed_ns)
{
	double tax = seen->span_ns ? (double)seen->switches * switch_ns * 1e9 / (double)seen->span_ns : 0;
	uint64_t least = seen->has ? BURST_LESS_NS : BURST_NS;

	if (seen->cpu_ns >= seen->switches * least)
		return 1;
	return others_ns + tax <= (seen->has ? 2 : 1) * allowed_ns;
}

static void precise_attr_set(void)
{
	precise.attr = (struct perf_event_attr){
		.size = sizeof(precise.attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = weft__engine.chosen_ns,
		.disabled = 1,
		.sigtrap = 1,
		.remove_on_exec = 1,
		.exclude_kernel = 1, /* perf_hot.c says why */
		.exclude_hv = 1,
	};
}

static uint64_t draw_period(void)
{
	uint32_t period = load_relaxed(&weft__engine.period_ns);

	return period - period / 10 + weft__random(period / 5 + 1);
}

static int event_open(uint32_t tid, uint32_t number)
{
	struct perf_event_attr attr = precise.attr;
	long fd;

	attr.sample_period = draw_period();
	attr.sig_data = PERF_MAGIC << 32 | (weft__engine.generation & 0xff) << 24 | number;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Whether a debugger would stop at each sample. */
static int is_traced(void)
{
	char text[1024], *at;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	at = strstr(text, "\nTracerPid:");
	return at && strtoul(at + sizeof("\nTracerPid:") - 1, NULL, 10) != 0;
}

int weft__precise_probe(uint64_t budget_ppm, char *why, size_t bytes)
{
	int fd;

	precise.possible = 0;
	precise.budget = (budget_ppm == WEFT_OFF ? NO_LIMIT_PPM : (double)budget_ppm) / 1e6;
	/* Before that an event whose signal is blocked ends the process. */
	if (!weft__machine_kernel(5, 18)) {
		snprintf(why, bytes, "perf events are used from Linux 5.18 on");
		return -ENOSYS;
	}
	precise_attr_set();
	fd = event_open(0, 0);
	if (fd < 0) {
		snprintf(why, bytes, "perf events cannot be had (%s)", weft_strerror(fd));
		return fd;
	}
	close(fd);
	precise.possible = 1;
	return 0;
}

void weft__precise_none(void)
{
	precise.possible = 0;
}

int weft__precise_on(void)
{
	return precise.possible;
}

void weft__precise_start(void)
{
	uint64_t now = weft__clock_mono();

	if (!precise.possible || weft__engine.ops != &weft__timer_ops)
		return;
	precise.running = weft__signal_take(SIGTRAP, weft__engine.signal, 0) == 0;
	precise.n = 0;
	precise.taxes_ns = 0;
	precise.pace_ns = LOOK_FIRST_NS;
	precise.next_ns = now + LOOK_FIRST_NS;
	precise.traced_ns = 0;
}

void weft__precise_drop(struct weft__slot *slot)
{
	int fd = load_acquire(&slot->fd) - 1;

	if (fd < 0)
		return;
	store_release(&slot->fd, 0);
	weft__own_perf_close(fd);
	precise.n -= precise.n > 0;
}

/* What the thread used since its last sample is for the next one of its timer. */
static void demote(struct weft__slot *slot, uint64_t cpu_ns)
{
	uint64_t sampled = load_relaxed(&slot->sampled_ns);

	weft__precise_drop(slot);
	store_relaxed(&slot->owed_ns, cpu_ns > sampled ? cpu_ns - sampled : 0);
}

static uint64_t precise_cpu_ns_of(uint32_t tid)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, (int)(~tid << 3 | 6), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* How often it was given a CPU. 0: not known. */
static uint64_t runs_of(uint32_t tid)
{
	char text[96], *at;
	ssize_t n;
	int fd;

	snprintf(text, sizeof(text), "/proc/self/task/%u/schedstat", tid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = 0;
	at = strchr(text, ' ');
	at = at ? strchr(at + 1, ' ') : NULL;
	return at ? strtoull(at, NULL, 10) : 0;
}

/* All or nothing: an error that is not the thread's own is everybody's. */
static void promote(struct weft__slot *slot, uint32_t number, uint32_t tid, uint64_t cpu_ns)
{
	uint32_t half = load_relaxed(&weft__engine.period_ns) / 2;
	int fd = event_open(tid, number);

	if (fd == -ESRCH)
		return;
	if (fd < 0) {
		store_relaxed(&slot->unfit, 1u);
		return;
	}
	/* The first sample comes a whole period from now, and the last one half a period before the end, on average. */
	store_relaxed(&slot->sampled_ns, cpu_ns > half ? cpu_ns - half : 0);
	slot->epoch = load_relaxed(&weft_gate.generation);
	slot->events_seen = load_relaxed(&slot->events);
	precise.private_fds = weft__private_fds;
	store_release(&slot->fd, fd + 1);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	precise.n++;
}

static void redraw(struct weft__slot *slot, int force)
{
	uint32_t events = load_relaxed(&slot->events);
	uint64_t period = draw_period();

	/* It begins anew with that: one that has not come yet would never come. */
	if (events == slot->events_seen || (!force && events - slot->events_seen < REDRAW_LEAST))
		return;
	slot->events_seen = events;
	ioctl(load_acquire(&slot->fd) - 1, PERF_EVENT_IOC_PERIOD, &period);
}

void weft__precise_pace(void)
{
	for (uint32_t i = 0; precise.n && i < weft__engine.n_slots; i++)
		if (load_acquire(&weft__engine.slots[i].fd) > 0)
			redraw(&weft__engine.slots[i], 1);
}

static uint32_t switch_ns(void)
{
	static const struct weft__meter_prices typical = METER_USUAL;

	return (uint32_t)weft__meter_switch_ns(&typical, load_relaxed(&weft__engine.period_ns), weft__engine.jiffy_ns);
}

/* Whether a debugger would see the signals, as far as was known so much time ago. */
static int debugger_sees(uint64_t now_ns, uint64_t known_ns)
{
	if (now_ns < precise.traced_ns + known_ns)
		return 0;
	precise.traced_ns = is_traced() ? 0 : now_ns;
	return !precise.traced_ns;
}

static void look_at(struct weft__slot *slot, uint32_t number, uint32_t tid, double allowed_ns)
{
	uint64_t cpu = precise_cpu_ns_of(tid), runs, now_ns;
	struct weft__precise_seen seen = {.has = load_acquire(&slot->fd) > 0};
	double tax;

	if (!cpu || (slot->looked_ns && cpu < slot->looked_cpu_ns + CPU_LEAST_NS && !seen.has))
		return;
	now_ns = weft__clock_mono();
	seen.cpu_ns = cpu - slot->looked_cpu_ns;
	seen.span_ns = now_ns - slot->looked_ns;
	if (!slot->looked_ns) { /* over how long it used its CPU time is not known: a main thread's may be its start */
		slot->looked_cpu_ns = cpu;
		slot->looked_ns = now_ns;
		return;
	}
	slot->looked_cpu_ns = cpu;
	slot->looked_ns = now_ns;
	slot->little = seen.cpu_ns * LITTLE < seen.span_ns ? slot->little + 1 : 0;
	if (!seen.has && slot->little)
		return; /* when it does more, its first look counts too many switches, and the next one is right */
	if (slot->little >= LITTLE_LOOKS) { /* as long as there is a perf event, all threads that ever had one pay */
		demote(slot, cpu);
		return;
	}
	runs = runs_of(tid);
	seen.switches = runs > slot->looked_runs ? runs - slot->looked_runs : 0;
	slot->looked_runs = runs;
	if (!runs || load_relaxed(&slot->unfit)) {
		if (seen.has)
			demote(slot, cpu);
		return;
	}
	if (seen.has) {
		precise.cpu_ns += seen.cpu_ns;
		precise.switches += seen.switches;
	}
	tax = (double)seen.switches * switch_ns() * 1e9 / (double)seen.span_ns;
	if (weft__precise_fits(&seen, switch_ns(), precise.taxes_ns, allowed_ns)) {
		if (!seen.has && precise.n < EVENTS_MOST && !debugger_sees(now_ns, TRACED_LEAST_NS))
			promote(slot, number, tid, cpu);
		else if (seen.has)
			redraw(slot, 0);
		precise.taxes_ns += load_acquire(&slot->fd) > 0 ? tax : 0;
	} else if (seen.has) {
		demote(slot, cpu);
	}
}

static void drop_all(void)
{
	for (uint32_t i = 0; precise.n && i < weft__engine.n_slots; i++)
		/* By the keys: each page of the slots that is looked at is one more for a fork to copy. */
		if (load_relaxed(&weft__engine.keys[i]) && load_acquire(&weft__engine.slots[i].fd) > 0)
			demote(&weft__engine.slots[i], precise_cpu_ns_of(load_relaxed(&weft__engine.keys[i])));
}

/* Somebody else has the signal, or a debugger would see it. */
static int must_not(uint64_t now_ns)
{
	if (!weft__signal_ours(SIGTRAP)) {
		drop_all();
		precise.running = 0;
		weft__choice_degrade("perf events: their signal was taken by another handler");
		return 1;
	}
	if (!precise.n || !debugger_sees(now_ns, TRACED_NS))
		return 0;
	drop_all();
	return 1;
}

uint64_t weft__precise_look(uint64_t now_ns)
{
	double allowed_ns;
	uint64_t took;

	if (!precise.running)
		return UINT64_MAX;
	if (now_ns < precise.next_ns)
		return precise.next_ns;
	precise.pace_ns = 2 * precise.pace_ns < PRECISE_LOOK_NS ? 2 * precise.pace_ns : PRECISE_LOOK_NS;
	precise.next_ns =
		precise.pace_ns < PRECISE_LOOK_NS ? now_ns + precise.pace_ns : weft__grid_next(now_ns, PRECISE_LOOK_NS);
	if (must_not(now_ns))
		return precise.next_ns;
	allowed_ns = ALLOWED * precise.budget * IDLE_SHARE * 1e9;
	precise.taxes_ns = 0;
	for (uint32_t i = 0; i < weft__engine.n_slots; i++) {
		uint32_t tid = load_acquire(&weft__engine.keys[i]);
		struct weft__slot *slot = &weft__engine.slots[i];

		if (tid && tid != SLOT_GONE && load_acquire(&slot->state) == SLOT_COVERED &&
		    !load_relaxed(&slot->ended))
			look_at(slot, i, tid, allowed_ns);
	}
	took = weft__clock_mono() - now_ns;
	if (precise.next_ns < now_ns + LOOK_SHARE * took)
		precise.next_ns = now_ns + LOOK_SHARE * took;
	return precise.next_ns;
}

void weft__precise_stop(void)
{
	pthread_mutex_lock(&weft__engine_mutex);
	if (precise.running && load_relaxed(&weft__engine.on))
		drop_all();
	precise.running = 0;
	pthread_mutex_unlock(&weft__engine_mutex);
}

void weft__precise_forked(void)
{
	/* By the keys: each page of the slots that is only looked at costs the child a fault. */
	for (uint32_t i = 0; precise.running && !precise.private_fds && i < weft__engine.n_slots; i++)
		if (weft__engine.keys[i] && weft__engine.keys[i] != SLOT_GONE && weft__engine.slots[i].fd > 0)
			weft__own_perf_leave(weft__engine.slots[i].fd - 1);
	precise.running = 0;
	precise.n = 0;
}

void weft__precise_counts(uint64_t *cpu_ns, uint64_t *switches)
{
	*cpu_ns = precise.cpu_ns;
	*switches = precise.switches;
}
