/* SPDX-License-Identifier: Apache-2.0 */
/* Which waits of a thread are its event loop's own.
 *
 * A thread waits in many places: its loop, a loop inside a callback (a child process that is waited for), a poll()
 * for one answer. Only the first is idle time; the others block the tick that they are in. What they are cannot be
 * known at the first call, so a thread's waits are compared as they come:
 *
 *  - A wait is known by its epoll descriptor, its io_uring, or, for poll and select, by where it was called and what
 *    descriptors it waits for. poll and select without descriptors are sleeps.
 *  - What is waited for a second time is a loop. Its waits are the thread's own from then on; all others block. A
 *    library that has epoll for nothing but loops (libuv, libevent, Python ...) has one from the first wait on.
 *  - A loop whose descriptors are closed is over.
 *  - The first guess may be wrong, as when a program waits for a connection before it has a loop. So another wait
 *    takes over when it is more of a loop (epoll and io_uring over poll, many descriptors over few, one that waits
 *    over one that only looks) or when the loop has not come back for long. A loop that does come back after it lost
 *    its place was outside all the time, and has it again.
 *
 * The usual case, the loop's own wait, is a compare in the caller (preload_epoll_is, preload_poll_is). CALLER;
 * nothing here blocks. */
#ifndef WEFT_PRELOAD_LOOP_H
#define WEFT_PRELOAD_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

enum preload_family {
	PRELOAD_NONE,
	PRELOAD_SELECT,
	PRELOAD_POLL,
	PRELOAD_EPOLL,
	PRELOAD_URING,
};

/* A call that waits, as it begins. */
struct preload_wait {
	uint32_t family; /* enum preload_family */
	bool parks;      /* with a time-out that is not 0; else it only looks at what is ready */
	int fd;          /* of epoll and io_uring; -1: not known */
	uint64_t id;     /* of epoll and io_uring: what distinguishes one from another */
	uintptr_t site;  /* the caller */
	uintptr_t frame;
	const void *at; /* of poll: its array; of select: the first set that there is */
	uint32_t n;
	const fd_set *sets[3];
	uint64_t tick;
};

/* Descriptors by their numbers modulo 256. */
struct preload_fds {
	uint64_t bits[4];
	uint32_t n;
};

struct preload_loop {
	uint32_t family; /* PRELOAD_NONE: nothing */
	int fd;
	uint64_t id;
	uintptr_t site;
	uintptr_t frame;
	const void *at;
	uint32_t n;
	int first; /* descriptor of a poll */
	struct preload_fds fds;
	uint64_t waits;
	uint64_t parks;   /* how many of them had a time-out */
	uint64_t between; /* waits of the loop when this was last seen; */
	uint64_t since;   /* tick from which the loop did not wait in between */
	uint32_t row;     /* and how often this did meanwhile */
	uint32_t stamp;
};

#define PRELOAD_OTHERS 4

/* Of one thread. All zero is the state of one that never waited. */
struct preload_loops {
	struct preload_loop now;    /* the loop */
	struct preload_loop before; /* what it took over from, in case that comes back */
	struct preload_loop others[PRELOAD_OTHERS];
	uintptr_t nested; /* call in a loop that was found to be inside another */
	uintptr_t last;   /* call of a loop that is over: one that is made there is the next */
	uint32_t number;  /* goes up with each loop; 0: there never was one */
	uint32_t stamp;
	bool lenient; /* the loop does not always wait for the same descriptors */
};

enum preload_judged {
	PRELOAD_OTHER, /* not the loop's */
	PRELOAD_MINE,  /* the loop's own */
	PRELOAD_FOUND, /* the same, and this is the loop only from now on */
	PRELOAD_FIRST, /* may become the loop of a thread that has none: nothing waits for the thread meanwhile */
};

/* From the constructor. */
struct symbol_objects;
void weft__preload_loop_init(const struct symbol_objects *objects);
/* Whether a library for loops called from there. */
bool weft__preload_site_loops(uintptr_t site);
enum preload_judged weft__preload_judge(struct preload_loops *loops, const struct preload_wait *wait);
/* The loop is over. */
void weft__preload_forget(struct preload_loops *loops);

static inline bool preload_epoll_is(const struct preload_loops *loops, int fd)
{
	return loops->now.family == PRELOAD_EPOLL && loops->now.fd == fd;
}

static inline bool preload_poll_is(const struct preload_loops *loops, const struct pollfd *fds, nfds_t n,
				   uintptr_t site)
{
	return loops->now.family == PRELOAD_POLL && loops->now.at == fds && loops->now.site == site &&
	       loops->now.n == n && n > 0 && fds[0].fd == loops->now.first;
}

#endif
