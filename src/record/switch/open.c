/* SPDX-License-Identifier: Apache-2.0 */
/* Events for context switches, and their rings. CALLER and COLLECTOR, under the switch source's lock.
 *
 * As a rule there is one ring for each CPU, and each thread that is there at the start has an event on each CPU
 * that writes to it. Threads that come later inherit these, at no cost in files, and are covered from their first
 * instruction on. Where threads times CPUs would be too many files, each thread has one event and a small ring of
 * its own, and threads that come are looked for. For a switch both cost the same (1.5 us measured; 1.0 when the
 * event is inherited).
 *
 * Locked memory is limited for those without privilege: rings are halved until they fit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/dir.h"
#include "base/late.h"
#include "base/own.h"
#include "record/switch/state.h"
#include "record/thread/thread.h"

#define CPU_PAGES 64 /* 256 KiB: 5,400 switches */
#define CPU_STACK_PAGES 512
#define CPU_LEAST_PAGES 4
#define THREAD_PAGES 8
#define THREAD_STACK_PAGES 32
#define THREAD_LEAST_PAGES 1
#define COPIED_BYTES 4096 /* that are copied of a thread's stack */
#define DUE_FIRST_NS UINT64_C(500000)
#define PASSES 5 /* over the list of threads, until none is new */
#define SCAN_THREADS_NS UINT64_C(100000000)
#define SCAN_CPUS_NS UINT64_C(5000000000)

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void switch_attr(struct perf_event_attr *attr, int stacks)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->context_switch = 1;
	attr->task = 1; /* says when threads end */
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->inherit = 1;
	attr->inherit_thread = 1;
	attr->watermark = 1; /* nobody waits for it */
	attr->wakeup_watermark = UINT32_MAX / 2;
	if (!stacks)
		return;
	attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	attr->sample_period = 1;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = weft__switch_regs();
	attr->sample_stack_user = COPIED_BYTES;
	attr->exclude_callchain_user = 1;
	attr->exclude_kernel = 0; /* a switch happens in the kernel */
}

static int switch_event(uint32_t tid, int cpu, int inherit)
{
	struct perf_event_attr attr = weft__switch.attr;
	long fd;

	if (!inherit)
		attr.inherit = attr.inherit_thread = 0;
	fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* CPUs that run, from a list like 0-3,8. */
static int list_cpus(struct weft__switch_set *set)
{
	char text[4096] = "", *at = text;
	int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		snprintf(text, sizeof(text), "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	while (*at >= '0' && *at <= '9') {
		unsigned long from = strtoul(at, &at, 10), to = *at == '-' ? strtoul(at + 1, &at, 10) : from;

		for (; from <= to && from < 65536; from++) {
			uint32_t *grown = weft__grow(set->cpus, &set->cpus_cap, set->n_cpus, sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			set->cpus = grown;
			set->cpus[set->n_cpus++] = (uint32_t)from;
		}
		at += *at == ',';
	}
	return set->n_cpus ? 0 : -ENODEV;
}

/* Ours by its name: the thread that symbolizes, and that of the tables on its way out. */
static int named_ours(uint32_t tid)
{
	char path[64], name[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	(void)!read(fd, name, sizeof(name) - 1);
	close(fd);
	return !strncmp(name, "weft-", 5);
}

int weft__switch_ours(uint32_t tid)
{
	return tid == weft__switch.collector_tid || tid == load_relaxed(&weft__own_threads.tables) ||
	       tid == load_relaxed(&weft__own_threads.encoder) || tid == load_relaxed(&weft__late_tid);
}

static int add_fd(struct weft__switch_set *set, int fd, uint32_t tid)
{
	struct weft__switch_fd *grown = weft__grow(set->fds, &set->fds_cap, set->n_fds, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	set->fds = grown;
	set->fds[set->n_fds++] = (struct weft__switch_fd){fd, tid};
	return 0;
}

/* As large as can be had. */
static int add_ring(struct weft__switch_set *set, int fd, uint32_t tid)
{
	size_t least = set->by_thread ? THREAD_LEAST_PAGES : CPU_LEAST_PAGES;
	struct weft__switch_ring *ring, *grown;
	size_t page = page_bytes();
	void *at;

	grown = weft__grow(set->rings, &set->rings_cap, set->n_rings, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	set->rings = grown;
	for (;;) {
		at = mmap(NULL, (set->pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED)
			break;
		if ((errno != EPERM && errno != ENOMEM) || set->pages / 2 < least)
			return -errno;
		set->pages /= 2;
	}
	ring = &set->rings[set->n_rings++];
	memset(ring, 0, sizeof(*ring));
	ring->page = at;
	ring->bytes = (set->pages + 1) * page;
	ring->words = (const uint64_t *)(const void *)((const char *)at + page);
	ring->mask = set->pages * page / 8 - 1;
	ring->tid = tid;
	ring->fd = fd;
	ring->last_ns = weft__clock_mono();
	return 0;
}

/* An event of the thread on each CPU. The first one to come on a CPU has the ring. */
static int cover_on_cpus(struct weft__switch_set *set, uint32_t tid)
{
	for (size_t i = 0; i < set->n_cpus; i++) {
		int fd = switch_event(tid, (int)set->cpus[i], 1), err;

		if (fd == -ENODEV && set->n_rings <= i) { /* a CPU that went meanwhile */
			set->cpus[i--] = set->cpus[--set->n_cpus];
			continue;
		}
		if (fd < 0)
			return fd;
		err = add_fd(set, fd, tid);
		if (err) {
			close(fd);
			return err;
		}
		if (set->n_rings <= i)
			err = add_ring(set, fd, 0);
		else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, set->rings[i].fd) < 0)
			err = -errno;
		if (err)
			return err;
	}
	return 0;
}

static int cover_alone(struct weft__switch_set *set, uint32_t tid)
{
	int fd = switch_event(tid, -1, 0), err;

	if (fd < 0)
		return fd;
	err = add_ring(set, fd, tid);
	if (err)
		close(fd);
	return err;
}

static uint64_t cpu_ns_at(uint32_t tid)
{
	struct timespec ts;

	if (clock_gettime((clockid_t)(~tid << 3 | 6), &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int cover_thread(struct weft__switch_set *set, uint32_t tid)
{
	uint64_t cpu_ns = cpu_ns_at(tid);
	int err;

	if (weft__pairs_get(&set->pairs, tid, 0) || weft__switch_ours(tid) || named_ours(tid))
		return 0;
	err = set->by_thread ? cover_alone(set, tid) : cover_on_cpus(set, tid);
	if (err == -ESRCH)
		return 0;
	if (err && set->by_thread && err != -ENOMEM) {
		/* The others go on without it. */
		set->refused++;
		set->refused_why = err;
		return 0;
	}
	if (!err)
		err = weft__pairs_add(&set->pairs, tid, weft__clock_mono());
	if (!err)
		weft__pairs_get(&set->pairs, tid, 0)->cpu_ns = cpu_ns;
	return err ? err : 1;
}

/* Answers how many came, or a negative error. */
static int cover_all(struct weft__switch_set *set)
{
	struct weft__list list;
	const char *name;
	int came = 0, err = weft__list_open(&list, AT_FDCWD, "/proc/self/task");

	while (err >= 0 && (name = weft__list_next(&list))) {
		uint32_t tid = (uint32_t)strtoul(name, NULL, 10);

		err = tid ? cover_thread(set, tid) : 0;
		came += err > 0;
	}
	weft__list_close(&list);
	return err < 0 ? err : came;
}

static size_t count_threads(void)
{
	struct stat task;

	return stat("/proc/self/task", &task) == 0 && task.st_nlink > 2 ? task.st_nlink - 2 : 1;
}

/* A program that opens files of its own must not find all of them taken: a quarter is the most. */
static int too_many_files(const struct weft__switch_set *set)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY &&
	       count_threads() * set->n_cpus > files.rlim_cur / 4;
}

static int set_try(struct weft__switch_set **ret, int by_thread)
{
	struct weft__switch_set *set = weft__calloc(1, sizeof(*set));
	int stacks = weft__switch.mode == SWITCH_MODE_STACKS;
	int err = set ? list_cpus(set) : -ENOMEM;

	if (set) {
		set->by_thread = by_thread || too_many_files(set);
		set->pages = set->by_thread ? (stacks ? THREAD_STACK_PAGES : THREAD_PAGES)
					    : (stacks ? CPU_STACK_PAGES : CPU_PAGES);
		if (weft__switch.pages_most && set->pages > weft__switch.pages_most)
			set->pages = weft__switch.pages_most;
		set->start_ns = set->scanned_ns = set->rated_ns = weft__clock_mono();
		set->rated = weft__switch.counts.stacks;
		set->due_ns = DUE_FIRST_NS;
	}
	for (int pass = 0; !err && pass < PASSES; pass++) {
		int came = cover_all(set);

		err = came < 0 ? came : 0;
		if (came <= 0)
			break;
	}
	if (!err && !set->n_rings)
		err = set->refused ? set->refused_why : -ESRCH;
	if (err) {
		weft__switch_set_free(set, 0);
		return err;
	}
	*ret = set;
	return 0;
}

int weft__switch_set_open(struct weft__switch_set **ret)
{
	int err = set_try(ret, 0);

	/* Without files or memory for all CPUs. */
	if (err == -EMFILE || err == -ENFILE || err == -EPERM || err == -ENOMEM)
		err = set_try(ret, 1);
	return err;
}

/* A thread that used no CPU time has no records: it was off all the time. */
static void note_sleepers(struct weft__switch_set *set)
{
	for (size_t i = 0; i < set->pairs.cap; i++) {
		struct weft__switch_thread *thread = &set->pairs.threads[i];

		if (thread->tid && thread->state == THREAD_UNKNOWN && thread->cpu_ns &&
		    thread->cpu_ns == cpu_ns_at(thread->tid))
			thread->state = THREAD_OFF;
	}
}

void weft__switch_set_stop(struct weft__switch_set *set)
{
	note_sleepers(set);
	for (size_t i = 0; i < set->n_fds; i++)
		weft__own_perf_close(set->fds[i].fd);
	set->n_fds = 0;
	for (size_t i = 0; i < set->n_rings; i++) {
		if (set->rings[i].fd < 0 || !set->rings[i].tid)
			continue;
		weft__own_perf_close(set->rings[i].fd);
		set->rings[i].fd = -1;
	}
	set->stop_ns = weft__clock_mono();
}

void weft__switch_set_free(struct weft__switch_set *set, int forked)
{
	if (!set)
		return;
	if (!set->stop_ns)
		weft__switch_set_stop(set);
	for (size_t i = 0; i < set->n_rings && !forked; i++)
		munmap(set->rings[i].page, set->rings[i].bytes);
	weft__pairs_fini(&set->pairs);
	weft__free(set->rings);
	weft__free(set->fds);
	weft__free(set->cpus);
	weft__free(set);
}

void weft__switch_set_single(struct weft__switch_set *set, uint32_t tid)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->n_fds; i++) {
		int owns = 0;

		for (size_t r = 0; r < set->n_rings; r++)
			owns |= set->rings[r].fd == set->fds[i].fd;
		if (set->fds[i].tid == tid && !owns)
			weft__own_perf_leave(set->fds[i].fd);
		else
			set->fds[kept++] = set->fds[i];
	}
	set->n_fds = kept;
}

void weft__switch_set_sweep(struct weft__switch_set *set)
{
	for (size_t i = 0; i < set->n_rings; i++) {
		struct weft__switch_ring *ring = &set->rings[i];

		if (!ring->over)
			continue;
		weft__pairs_del(&set->pairs, ring->tid);
		munmap(ring->page, ring->bytes);
		weft__own_perf_leave(ring->fd);
		*ring = set->rings[--set->n_rings];
		i--;
	}
}

static int cpus_came(const struct weft__switch_set *set)
{
	struct weft__switch_set now = {0};
	int came = list_cpus(&now) == 0 && now.n_cpus > set->n_cpus;

	weft__free(now.cpus);
	return came;
}

int weft__switch_set_tend(struct weft__switch_set *set, uint64_t now_ns)
{
	if (set->by_thread && now_ns >= set->scanned_ns + SCAN_THREADS_NS) {
		set->scanned_ns = now_ns;
		cover_all(set);
	} else if (!set->by_thread && now_ns >= set->scanned_ns + SCAN_CPUS_NS) {
		set->scanned_ns = now_ns;
		return cpus_came(set);
	}
	return 0;
}

/* Tries it on this thread, with a ring. */
int weft__switch_probe(int stacks)
{
	struct weft__switch_set set = {.pages = 1, .by_thread = 1};
	struct weft__switch_set cpus = {0};
	int fd, err = list_cpus(&cpus);

	switch_attr(&weft__switch.attr, stacks);
	if (err) {
		weft__free(cpus.cpus);
		return err;
	}
	fd = switch_event(0, (int)cpus.cpus[0], 1);
	if (fd == -EINVAL) { /* before 5.13; processes that are forked have events, too, until they exec */
		weft__switch.attr.inherit_thread = 0;
		fd = switch_event(0, (int)cpus.cpus[0], 1);
	}
	weft__free(cpus.cpus);
	if (fd < 0)
		return fd;
	err = add_ring(&set, fd, 0);
	if (!err)
		munmap(set.rings[0].page, set.rings[0].bytes);
	weft__free(set.rings);
	close(fd);
	return err;
}
