/* SPDX-License-Identifier: Apache-2.0 */
/* libweft-preload.so records a program that knows nothing of weft. start.c opens the recorder before main; wait.c has the
 * calls that an event loop waits in, whose returns begin its ticks; block.c has the calls that should not take long inside a tick;
 * fds.c keeps the recorder's files and the program's apart.
 *
 * Every interposed function leaves errno, results and cancellation as they were, and does nothing but call the real one
 * on threads that are no loop, such as weft's own. */
#ifndef WEFT_PRELOAD_H
#define WEFT_PRELOAD_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "weft/weft.h"

#define PRELOAD_API __attribute__((visibility("default")))

/* Which calls of a thread are its loop's wait. A poll() in a thread that has an epoll loop is a blocking call. */
enum preload_family {
	PRELOAD_NONE,
	PRELOAD_SELECT,
	PRELOAD_POLL,
	PRELOAD_EPOLL,
};

struct preload_thread {
	uint32_t ticking; /* between the return of a wait and the next one */
	uint32_t busy;    /* in here, where locks are taken */
	uint32_t family;  /* enum preload_family of the loop */
	uint32_t calls[PRELOAD_EPOLL + 1];
	uint32_t epoch; /* of the process, when `task` was announced; it changes with fork */
	uint32_t index; /* of the worker, from 1 */
	uint64_t task;
};

/* Waits that make a loop: a program that polls once has none. */
#define PRELOAD_CALLS 2

extern __thread struct preload_thread weft__preload_thread __attribute__((tls_model("initial-exec")));
extern uint32_t weft__preload_on;    /* a recorder was opened */
extern uint32_t weft__preload_epoch; /* starts at 1 and goes up in each forked child */

/* What is called instead, found at the first call. The constructor of another library may come before ours. */
void *weft__preload_find(void **at, const char *name);

#define PRELOAD_REAL(at, name)                                                                                         \
	(WEFT_LIKELY(__atomic_load_n(&(at), __ATOMIC_RELAXED) != NULL) ? (at) : weft__preload_find(&(at), (name)))

/* A wait with a time-out that is not 0 (`parks`), or a look at what is ready. */
void weft__preload_wait_begin(enum preload_family family, bool parks);
void weft__preload_wait_end(enum preload_family family, bool parks);

/* Emits `blocked` if `since` was long enough ago. */
void weft__preload_blocked(const char *call, uint64_t object, uint64_t since);

/* Threshold in ticks; 0 until the clock is measured. */
extern uint64_t weft__preload_threshold;

/* The tick before a call that may block, 0 when nobody wants to know. */
static inline uint64_t preload_before(void)
{
	return WEFT_UNLIKELY(weft__preload_thread.ticking) ? weft_now() : 0;
}

static inline void preload_after(const char *call, uint64_t object, uint64_t since)
{
	if (WEFT_UNLIKELY(since != 0) &&
	    WEFT_UNLIKELY(weft_now() - since >= __atomic_load_n(&weft__preload_threshold, __ATOMIC_RELAXED)))
		weft__preload_blocked(call, object, since);
}

/* From the constructor: what may later be wanted in a signal handler, where nothing can be registered. */
void weft__preload_block_init(uint64_t threshold_ns);

#endif
