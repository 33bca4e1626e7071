/* SPDX-License-Identifier: Apache-2.0 */
/* The perf engine: which event, whether it can be had, and the events of threads. CALLER and COLLECTOR.
 *
 * Without kernel frames each thread that is there at the start gets an event that the threads it makes inherit: new
 * threads are covered from their first instruction, and switching between threads of the process stays cheap,
 * because their events are equal. The events of threads that ended stay open until stop, since closing one takes it
 * from those who inherited it. With kernel frames each thread has an event and a small ring of its own, because the
 * kernel has no ring for inherited ones; then threads are found as for the timer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/own.h"
#include "base/private_fds.h"
#include "record/sample/perf_state.h"

static const struct perf_name {
	const char *name;
	uint32_t type;
	uint64_t config;
} perf_names[] = {
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
};

/* Events of threads that may have been inherited. */
static int *perf_fds;
static size_t n_perf_fds, perf_fds_cap;

/* By name, or rHEX: an event by its number in the CPU's manual. */
static int name_find(const char *name, struct perf_name *ret)
{
	char *end;

	for (size_t i = 0; i < sizeof(perf_names) / sizeof(perf_names[0]); i++) {
		if (!strcmp(name, perf_names[i].name)) {
			*ret = perf_names[i];
			return 0;
		}
	}
	if (name[0] != 'r' || !name[1])
		return -ENOENT;
	*ret = (struct perf_name){name, PERF_TYPE_RAW, strtoull(name + 1, &end, 16)};
	return *end ? -ENOENT : 0;
}

int weft__perf_event_find(const char *name, int *clock)
{
	struct perf_name found;

	if (name_find(name, &found) < 0)
		return -ENOENT;
	*clock = found.type == PERF_TYPE_SOFTWARE && found.config <= PERF_COUNT_SW_TASK_CLOCK;
	return 0;
}

static void attr_set(void)
{
	struct perf_event_attr *attr = &weft__perf.attr;
	struct perf_name found = perf_names[0];
	int clock = 0;

	name_find(weft__engine.event, &found);
	weft__perf_event_find(weft__engine.event, &clock);
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = found.type;
	attr->config = found.config;
	attr->sigtrap = 1;
	attr->remove_on_exec = 1;
	attr->exclude_hv = 1;
	if (clock) {
		attr->sample_period = weft__engine.period_ns;
	} else {
		attr->freq = 1;
		attr->sample_freq = weft__engine.hz;
	}
	if (weft__engine.kernel) {
		attr->sample_type = PERF_SAMPLE_CALLCHAIN;
		attr->exclude_callchain_user = 1;
	} else {
		attr->exclude_kernel = 1;
		attr->inherit = 1;
		attr->inherit_thread = 1;
	}
	weft__perf.counts_time =
		clock || (found.type == PERF_TYPE_HARDWARE && found.config == PERF_COUNT_HW_CPU_CYCLES);
}

static void explain(int err, char *why, size_t bytes)
{
	const char *what = weft__engine.kernel ? "with kernel frames" : "for samples";

	if (err == -EACCES || err == -EPERM)
		snprintf(why, bytes,
			 "perf event %s %s: not allowed (%s); kernel.perf_event_paranoid=1, CAP_PERFMON or the "
			 "container's "
			 "seccomp profile decides",
			 weft__engine.event, what, weft_strerror(err));
	else if (err == -ENOENT || err == -ENODEV || err == -EOPNOTSUPP)
		snprintf(why, bytes, "perf event %s %s: this machine has none", weft__engine.event, what);
	else if (err == -EINVAL || err == -E2BIG)
		snprintf(why, bytes, "perf event %s %s: this kernel cannot (5.13 or newer can)", weft__engine.event,
			 what);
	else
		snprintf(why, bytes, "perf event %s %s: %s", weft__engine.event, what, weft_strerror(err));
}

/* Tries it, disabled. */
static int perf_probe(char *why, size_t bytes)
{
	int fd;

	attr_set();
	weft__perf.attr.disabled = 1;
	fd = weft__perf_open(0, 0);
	weft__perf.attr.disabled = 0;
	if (fd < 0) {
		explain(fd, why, bytes);
		return fd;
	}
	close(fd);
	return 0;
}

static void perf_start(void)
{
	weft__perf_duty_start();
	store_relaxed(&weft__perf.private_fds, weft__private_fds);
	store_relaxed(&weft__perf.starting, 1);
	weft__perf.timer_why = 0;
}

static void perf_started(void)
{
	store_relaxed(&weft__perf.starting, 0);
	weft__perf_duty_set(load_relaxed(&weft__engine.period_ns));
}

static int keep_fd(int fd)
{
	int *grown = weft__grow(perf_fds, &perf_fds_cap, n_perf_fds, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	perf_fds = grown;
	perf_fds[n_perf_fds++] = fd;
	return 0;
}

static void fds_close(void)
{
	for (size_t i = 0; i < n_perf_fds; i++)
		weft__own_perf_close(perf_fds[i]);
	weft__free(perf_fds);
	perf_fds = NULL;
	n_perf_fds = perf_fds_cap = 0;
}

static void slot_close(struct weft__slot *slot)
{
	int fd = load_acquire(&slot->fd) - 1;

	if (fd < 0)
		return;
	weft__own_perf_close(fd);
	if (slot->ring)
		munmap(slot->ring, PERF_RING_PAGES * PERF_RING_BYTES);
	slot->ring = NULL;
	store_release(&slot->fd, 0);
}

static void perf_uncover(struct weft__slot *slot)
{
	int fd = load_acquire(&slot->fd) - 1;

	weft__timer_ops.uncover(slot);
	if (fd >= 0 && !weft__engine.kernel && load_relaxed(&weft__engine.on) && keep_fd(fd) == 0)
		store_release(&slot->fd, 0);
	else
		slot_close(slot);
}

/* What was refused is reported, and may be had now. A timer that expires at every tick needs no new interval. */
static void timer_look(struct weft__slot *slot, uint32_t tid)
{
	int why = swap_seq_cst(&weft__perf.timer_why, 0);
	char text[160];

	if (!weft__engine.tick_ns)
		return;
	if (why) {
		snprintf(text, sizeof(text),
			 "some threads have no CPU-time timer beside their perf event, and fewer samples: %s",
			 weft_strerror(why));
		weft__choice_degrade(text);
	}
	if (load_relaxed(&slot->timer) < 0)
		weft__perf_ride(slot, (uint32_t)(slot - weft__engine.slots), tid);
	else if (weft__perf_rider_ns() >= weft__engine.tick_ns ||
		 load_relaxed(&slot->interval_ns) >= weft__engine.tick_ns)
		weft__timer_ops.tend(slot, tid);
}

static void perf_tend(struct weft__slot *slot, uint32_t tid)
{
	int fd = load_acquire(&slot->fd) - 1;
	uint64_t period = weft__perf_event_ns();

	timer_look(slot, tid);
	if (load_relaxed(&slot->twice)) {
		store_relaxed(&slot->twice, 0u);
		slot_close(slot);
	} else if (fd >= 0 && !weft__perf.attr.freq) {
		period = period - period / 10 + weft__random((uint32_t)(period / 5) + 1);
		ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
	}
}

/* The next of all files of events, from *at on; -1: there is none. */
static int fd_next(size_t *at)
{
	for (; *at < weft__engine.n_slots; ++*at) {
		uint32_t tid = load_acquire(&weft__engine.keys[*at]);
		int fd = tid && tid != SLOT_GONE ? load_acquire(&weft__engine.slots[*at].fd) - 1 : -1;

		if (fd >= 0) {
			++*at;
			return fd;
		}
	}
	return *at - weft__engine.n_slots < n_perf_fds ? perf_fds[(*at)++ - weft__engine.n_slots] : -1;
}

void weft__perf_hold(int hold)
{
	unsigned long what = hold ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE;
	size_t at = 0;
	int fd;

	while ((fd = fd_next(&at)) >= 0)
		ioctl(fd, what, 0);
}

uint64_t weft__perf_sum(void)
{
	uint64_t sum = 0, one;
	size_t at = 0;
	int fd;

	while ((fd = fd_next(&at)) >= 0)
		sum += read(fd, &one, sizeof(one)) == (ssize_t)sizeof(one) ? one : 0;
	return sum;
}

void weft__perf_meter(struct weft__meter_seen *now)
{
	int is_clock = weft__perf.counts_time && !weft__perf.attr.freq;

	now->duty = load_relaxed(&weft__perf.duty);
	now->step_ns = weft__perf_event_ns();
	/* Those that were inherited come as they did at first, and those that count something else as that does. */
	now->stubborn =
		!weft__perf_holds() && (weft__engine.tick_ns || load_relaxed(&weft__perf.inherited) || !is_clock);
	if (now->stubborn)
		now->step_ns = weft__perf_step_ns(weft__engine.chosen_ns);
}

static void perf_stop(void)
{
	fds_close();
}

/* The events are the parent's, and stay with it. What is in a private table the child has no copy of. */
static void perf_forked(void)
{
	for (uint32_t i = 0; i < weft__engine.n_slots && !weft__perf.private_fds; i++)
		if (weft__engine.keys[i] && weft__engine.keys[i] != SLOT_GONE && weft__engine.slots[i].fd > 0)
			weft__own_perf_leave(weft__engine.slots[i].fd - 1);
	for (size_t i = 0; i < n_perf_fds && !weft__perf.private_fds; i++)
		weft__own_perf_leave(perf_fds[i]);
	weft__free(perf_fds);
	perf_fds = NULL;
	n_perf_fds = perf_fds_cap = 0;
}

/* The calling thread's, if it has an event that counts in the kernel, too. A child of vfork has none. */
static struct weft__slot *slot_of_exec(uint32_t *number)
{
	if (!load_seq_cst(&weft__engine.on) || !weft__engine.kernel || weft__engine.ops != &weft__perf_ops)
		return NULL;
	return weft__slot_find((uint32_t)syscall(SYS_gettid), number);
}

int weft__engine_exec_begin(void)
{
	struct weft__slot *slot = slot_of_exec(NULL);
	int fd = slot ? __atomic_exchange_n(&slot->fd, 0, __ATOMIC_ACQ_REL) - 1 : -1;

	weft__own_perf_close(fd);
	return fd >= 0;
}

void weft__engine_exec_failed(void)
{
	uint32_t number;
	struct weft__slot *slot = slot_of_exec(&number);
	void *ring;
	int fd;

	if (!slot || load_acquire(&slot->fd))
		return;
	fd = weft__perf_open((uint32_t)syscall(SYS_gettid), number);
	if (fd < 0)
		return;
	ring = mmap(NULL, PERF_RING_PAGES * PERF_RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		close(fd);
		return;
	}
	if (slot->ring)
		munmap(slot->ring, PERF_RING_PAGES * PERF_RING_BYTES);
	slot->ring = ring;
	store_release(&slot->fd, fd + 1);
}

const struct weft__engine_ops weft__perf_ops = {
	.name = "perf",
	.id = WEFT_ENGINE_PERF,
	.probe = perf_probe,
	.start = perf_start,
	.started = perf_started,
	.stop = perf_stop,
	.forked = perf_forked,
	.later = weft__perf_later,
	.cover = weft__perf_cover,
	.uncover = perf_uncover,
	.tend = perf_tend,
	.mine = weft__perf_mine,
	.match = weft__perf_match,
	.kernel = weft__perf_kernel,
};
