/* SPDX-License-Identifier: Apache-2.0 */
/* What people call the things that events name by number. Each writes a text that ends in a zero byte and is cut to
 * fit, and answers `buf`. Context: CALLER. */
#ifndef WEFT_ANALYZE_LABEL_H
#define WEFT_ANALYZE_LABEL_H

#include "analyze/names.h"

struct weft__frames;

#define WEFT__LABEL_BYTES 256
#define WEFT__LABEL_WAIT_BYTES 1024

/* "demo/1", or for a thread that is no worker "name(tid)". */
const char *weft__label_lane(const struct weft__names *names, uint32_t worker, uint32_t thread_id, char *buf,
			     size_t bytes);

/* Whether it is a thread of a pool for work that may block: the name of its runtime says so (weft/runtime.h). */
int weft__label_in_pool(const struct weft__names *names, uint32_t worker);

/* "name(tid)". */
const char *weft__label_thread(const struct weft__names *names, uint32_t thread_id, char *buf, size_t bytes);

/* The name of a location, or in brackets what is known instead. Needs no buffer. */
const char *weft__label_location(const struct weft__names *names, uint32_t location);

/* A poll of that worker is a tick of an event loop that weft run found: it has no task. Then location and worker are
 * both of a loop. */
bool weft__label_is_tick(const struct weft__names *names, uint32_t worker, uint32_t location);
bool weft__label_is_loop(const struct weft__names *names, uint32_t location);
bool weft__label_loops(const struct weft__names *names, uint32_t worker);

/* "server.c:120", or "" where there is no file. */
const char *weft__label_file(const struct weft__names *names, uint32_t location, char *buf, size_t bytes);

/* Never NULL. */
const char *weft__label_reason(uint32_t reason);
const char *weft__label_wait(uint32_t what); /* enum weft_wait */
const char *weft__label_cost(size_t what);   /* enum weft_cost */

/* What a wait was for: "cache_lock", "read fd 7 (pipe)", "a lock at 0x7f... in pthread_mutex_lock". */
const char *weft__label_waited(const struct weft__names *names, const struct weft__frames *frames, uint32_t what,
			       uint32_t name, uint64_t object, char *buf, size_t bytes);

/* Whether the name of a wait is that of a call that waits for a lock, and not of the lock itself. */
bool weft__label_is_call(const char *name);

#endif
