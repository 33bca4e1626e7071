/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of this process: which there are, which are weft's own, and what is known of one from outside. Sources
 * share it. */
#ifndef WEFT_THREAD_THREAD_H
#define WEFT_THREAD_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/late.h"

/* Thread ids of weft's own threads; 0: there is none. */
struct weft__own_threads {
	uint32_t collector;  /* CALLER, at start */
	uint32_t encoder;    /* COLLECTOR */
	uint32_t tables;     /* compiles unwind tables */
	uint32_t tables_was; /* the last one that did and ended, until it is gone for good */
};
extern struct weft__own_threads weft__own_threads;

/* Every thread that the program makes says so when it begins (weft__engine_thread_begin). Set before the recorder is
 * opened, by bindings/preload. */
extern int weft__threads_announced;

/* HOT. Whether a thread is one of ours, which are not sampled. */
static inline int weft__thread_ours(uint32_t tid)
{
	return tid == load_relaxed(&weft__own_threads.collector) || tid == load_relaxed(&weft__own_threads.tables) ||
	       tid == load_relaxed(&weft__own_threads.tables_was) || tid == load_relaxed(&weft__own_threads.encoder) ||
	       tid == load_relaxed(&weft__late_tid);
}

/* Any context. The CPU time that a thread has used: 0, or a negative error when it is gone. */
static inline int weft__thread_cpu(uint32_t tid, uint64_t *ns)
{
	struct timespec ts;

	if (clock_gettime((clockid_t)(~tid << 3 | 6), &ts) < 0)
		return -errno;
	*ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return 0;
}

/* process.c. The CPU time of the process, which the kernel adds up over all of its threads: of thousands that takes
 * 0.1 ms and more. So there is the last reading, which is good enough for a time in proportion to what it took. */
uint64_t weft__process_cpu(void);
/* COLLECTOR. One that is good enough at `now_ns`, or a new one. */
uint64_t weft__process_cpu_about(uint64_t now_ns);
/* For how long the last one is. */
uint64_t weft__process_cpu_rest(void);

enum weft__threads_news {
	THREADS_MAYBE = 1,   /* somewhere on this machine a thread or a process began */
	THREADS_CHANGED = 2, /* threads of ours came or went */
};
/* What there was when somebody looked last; zero at first. */
struct weft__threads_mark {
	uint64_t threads, last_tid;
};
/* news.c, CALLER and COLLECTOR. Whether threads may have come or gone since then: THREADS_MAYBE, and more when their
 * number is another. */
int weft__threads_maybe(struct weft__threads_mark *mark);

/* thread_hot.c, any context. A number that nobody can foresee well enough to run in step with it. */
uint32_t weft__random(uint32_t below);

/* tls.c, CALLER. The thread's id, from the clock that the thread library names. */
uint32_t weft__tls_tid(pthread_t thread);
/* Where the thread library keeps it, from the thread pointer, going by two threads; 0: not found. */
int32_t weft__tls_find(pthread_t other);

#endif
