/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own account of its polls, by the kernel's clocks: wall time, CPU time of the thread, and the time in
 * which it was ready but had no CPU (run delay). What is left is blocked, or waiting between truth_wait_begin and
 * truth_wait_end; when the thread never gave up its CPU it is "unsure": interrupts and what the hypervisor took,
 * which no clock of the thread has. truth_print writes all of it as one line of JSON, which run.py holds against the
 * report. C and C++. */
#ifndef WEFT_TRUTH_H
#define WEFT_TRUTH_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
#define US 1000LL
#define TRUTH_POLLS 4096
#define TRUTH_NOTES 16384

struct truth_at {
	int64_t wall, cpu, delay;
	int64_t blocks; /* voluntary context switches */
};

struct truth_poll {
	const char *name;
	int tid;
	int open;        /* it never ends: the report has it as still running */
	int unmeasured;  /* "not measured" is a right answer */
	int64_t waiting; /* of it: for a lock or a condition */
	struct truth_at begin, end;
};

static struct truth_poll truth_polls[TRUTH_POLLS];
static int truth_n;
static char truth_notes[TRUTH_NOTES]; /* members of the JSON object, each with a comma before it */
static __thread int truth_fd = -1;
static __thread struct truth_poll *truth_inner;
static __thread struct truth_at truth_wait_at;

static inline int64_t truth_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t truth_wall(void)
{
	return truth_clock(CLOCK_MONOTONIC);
}

/* All clocks of this thread at one moment: again when it took so long that the thread may have been off the CPU
 * meanwhile. */
static inline struct truth_at truth_now(void)
{
	struct truth_at at = {0, 0, 0, 0};
	struct rusage usage;
	char text[96];
	long n;
	int i;

	if (truth_fd < 0)
		truth_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 100; i++) {
		at.wall = truth_wall();
		at.cpu = truth_clock(CLOCK_THREAD_CPUTIME_ID);
		n = syscall(SYS_pread64, truth_fd, text, sizeof(text) - 1, 0L);
		text[n > 0 ? n : 0] = 0;
		at.delay = n > 0 ? strtoll(strchr(text, ' ') + 1, NULL, 10) : 0;
		getrusage(RUSAGE_THREAD, &usage);
		at.blocks = usage.ru_nvcsw;
		if (truth_wall() - at.wall < 15 * US)
			break;
	}
	return at;
}

static inline int64_t truth_off(const struct truth_at *begin, const struct truth_at *end)
{
	int64_t off = end->wall - begin->wall - (end->cpu - begin->cpu) - (end->delay - begin->delay);

	return off > 0 ? off : 0;
}

static inline struct truth_poll *truth_begin(const char *name)
{
	int i = __atomic_fetch_add(&truth_n, 1, __ATOMIC_RELAXED);
	struct truth_poll *poll = &truth_polls[i];

	if (i >= TRUTH_POLLS)
		abort();
	poll->name = name;
	poll->tid = (int)syscall(SYS_gettid);
	truth_inner = poll;
	poll->end = poll->begin = truth_now();
	return poll;
}

static inline void truth_end(struct truth_poll *poll)
{
	poll->end = truth_now();
	truth_inner = NULL;
}

static inline void truth_wait_begin(void)
{
	truth_wait_at = truth_now();
}

static inline void truth_wait_end(void)
{
	struct truth_at now = truth_now();

	if (truth_inner)
		truth_inner->waiting += truth_off(&truth_wait_at, &now);
}

/* A member of the truth: its name, and printf's format and arguments for the value. */
#define truth_note(...)                                                                                                \
	do {                                                                                                           \
		size_t at_ = strlen(truth_notes);                                                                      \
		at_ += (size_t)snprintf(truth_notes + at_, TRUTH_NOTES - at_, ", ");                                   \
		snprintf(truth_notes + at_, TRUTH_NOTES - at_, __VA_ARGS__);                                           \
	} while (0)

static inline void truth_print(void)
{
	const char *comma = "";
	int i;

	printf("{\"truth\": 1, \"pid\": %d%s, \"polls\": [", (int)getpid(), truth_notes);
	for (i = 0; i < truth_n; i++, comma = ", ") {
		struct truth_poll *poll = &truth_polls[i];
		int64_t off = truth_off(&poll->begin, &poll->end),
			blocked = poll->end.blocks != poll->begin.blocks ? off : 0;
		printf("%s{\"name\": \"%s\", \"tid\": %d, \"open\": %d, \"unmeasured\": %d, \"begin\": %lld, \"end\": "
		       "%lld, "
		       "\"on_cpu\": %lld, \"blocked\": %lld, \"waiting\": %lld, \"preempted\": %lld, \"unsure\": %lld}",
		       comma, poll->name, poll->tid, poll->open, poll->unmeasured, (long long)poll->begin.wall,
		       (long long)poll->end.wall, (long long)(poll->end.cpu - poll->begin.cpu),
		       (long long)(blocked - (blocked ? poll->waiting : 0)), (long long)(blocked ? poll->waiting : 0),
		       (long long)(poll->end.delay - poll->begin.delay), (long long)(off - blocked));
	}
	printf("]}\n");
	fflush(stdout);
}

/* A machine that cannot show the behaviour: the program says why, and counts as skipped. */
static inline void truth_skip(const char *why)
{
	printf("{\"skip\": \"%s\"}\n", why);
	fflush(stdout);
	exit(0);
}

/* A loop with nothing to wait for but the time: each return is the begin of a tick. Two waits make a loop, so it has
 * one already. */
static inline int truth_loop(void)
{
	int loop = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	epoll_wait(loop, &event, 1, 0);
	return loop;
}

static inline void truth_next(int loop)
{
	struct epoll_event event;

	epoll_wait(loop, &event, 1, 1);
}

/* Uses so much CPU time. */
static inline void truth_burn(int64_t ns)
{
	int64_t end = truth_clock(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (truth_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 5000; i = i + 1)
			;
}

static inline void truth_nap(int64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&ts, &ts) < 0)
		;
}

#endif
