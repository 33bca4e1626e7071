/* SPDX-License-Identifier: Apache-2.0 */
/* The two hooks of the library: where its memory comes from, and where its messages go. */
#ifndef WEFT_HOOKS_H
#define WEFT_HOOKS_H

#include <stddef.h>

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All memory that is not a ring comes from here, the compressor's included; only libweft-symbolize.so, which is
 * loaded when names are wanted in the process, has malloc's. `resize` with NULL allocates; a NULL answer means out
 * of memory and is always handled. Called from the caller's thread and from weft's own, never from an emit function
 * or a signal handler. */
struct weft_allocator {
	void *(*resize)(void *ptr, size_t bytes, void *data);
	void (*release)(void *ptr, void *data);
	void *data;
};

/* Replaces the allocator; NULL restores weft's own, which maps memory itself: the C library gives each thread that
 * calls malloc 64 MiB of address space. Call it before anything else of weft, from one thread. The struct is copied.
 * Not async-signal-safe. */
WEFT_API void weft_set_allocator(const struct weft_allocator *allocator);

enum weft_log_level { WEFT_LOG_ERROR = 1, WEFT_LOG_WARN = 2, WEFT_LOG_INFO = 3, WEFT_LOG_DEBUG = 4 };

typedef void weft_log_fn(enum weft_log_level level, const char *msg, void *data);

/* Where messages go; the default is nowhere. `fn` is called from callers of the API and from weft's own threads,
 * never from emit functions. `msg` lives for the call only. NULL silences. Not async-signal-safe. */
WEFT_API void weft_set_log(weft_log_fn *fn, enum weft_log_level most, void *data);

#ifdef __cplusplus
}
#endif
#endif
