/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that are wrapped: CALLER, on the loop's thread. */
#ifndef WEFT_UV_CALL_H
#define WEFT_UV_CALL_H

#include "loop.h"

/* In the lowest bits of a key: which of a handle's callbacks it is. Handles and requests are at multiples of 8. */
enum { WEFT__UV_MAIN = 0, WEFT__UV_LISTEN = 1, WEFT__UV_CLOSE = 2 };

/* Tasks that are no address: of the requests of one location. Addresses of programs are below it. */
#define WEFT__UV_PLACE (UINT64_C(1) << 47)

static inline uint64_t weft__uv_key(const void *at, unsigned int which)
{
	return (uint64_t)(uintptr_t)at + which;
}

/* The entry of a callback for that key, whose spawn is recorded. NULL: it is given to libuv as it is, because it is
 * NULL, the loop is not attached, or there is no memory. */
struct weft__uv_entry *weft__uv_wrap(uv_loop_t *loop, uint64_t key, void (*cb)(void), uint32_t location);

/* The task of a callback: the address of its handle, or that of all requests of one location. */
static inline uint64_t weft__uv_task(const struct weft__uv_entry *entry)
{
	return entry->is_request ? entry->task : entry->key & WEFT_TASK_MASK;
}

/* Records the spawn, once in a recording. */
static inline void weft__uv_spawn(struct weft__uv_loop *in, struct weft__uv_entry *entry)
{
	uint32_t recording = weft__uv_recording(in);

	if (!recording || entry->recording == recording)
		return;
	weft_task_spawn(weft__uv_task(entry), entry->location);
	entry->recording = recording & WEFT__UV_RECORDINGS;
}

/* The callback is not called any more. */
void weft__uv_forget(uv_loop_t *loop, uint64_t key);

/* Around the program's callback. Once: it is not called again. */
struct weft__uv_call weft__uv_begin(uv_loop_t *loop, uint64_t key);
struct weft__uv_call weft__uv_begin_once(uv_loop_t *loop, uint64_t key);
void weft__uv_end(const struct weft__uv_call *call);

#endif
