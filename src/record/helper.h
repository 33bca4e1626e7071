/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of weft that do slow work with a plugin, beside the collector: names (symbolize.h), targets (ship.h). What
 * they have in common: a mutex with two conditions, who holds them, how such a thread is started, and how the plugin is
 * opened. Context: CALLER, and these threads. */
#ifndef WEFT_RECORD_HELPER_H
#define WEFT_RECORD_HELPER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct weft__helper {
	pthread_mutex_t mutex;
	pthread_cond_t work; /* for the threads; both by CLOCK_MONOTONIC */
	pthread_cond_t news; /* from them */
	uint32_t users;      /* that wait without the recorder's mutex: it stays until they are gone */
};

struct weft__helper_plugin {
	const char *file, *entry;
	uint32_t abi;
	const char *instead; /* what to run without it */
};

void weft__helper_init(struct weft__helper *helper);
void weft__helper_fini(struct weft__helper *helper);
/* Between them it is not freed: weft__helper_unused() waits. */
void weft__helper_hold(struct weft__helper *helper);
void weft__helper_let(struct weft__helper *helper);
void weft__helper_unused(struct weft__helper *helper);

/* With all signals blocked, and a stack that is large enough for demanglers. 0 or a negative error. */
int weft__helper_thread(pthread_t *ret, void *(*start)(void *), void *data);
/* CPU time of such a thread so far. */
uint64_t weft__helper_cpu_ns(pthread_t thread);

/* The plugin at `path`; NULL: the one beside this library, or in the loader's path. It begins with its `abi`, and stays
 * loaded: there is nothing to win by unloading it. NULL, with a line in `why`. */
const void *weft__helper_load(const char *path, const struct weft__helper_plugin *of, char *why, size_t why_bytes);

#endif
