/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a write request that libuv reserves: the program's callback and its location are kept there while libuv
 * has the request. */
#ifndef WEFT_UV_KEEP_H
#define WEFT_UV_KEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* The last of the six: those at the front would be the first to get a use. */
enum { WEFT__UV_KEPT_CB = 4, WEFT__UV_KEPT_LOCATION = 5 };

_Static_assert(sizeof(((uv_write_t *)0)->reserved) == 6 * sizeof(void *), "libuv reserves six");

/* This libuv leaves them alone: it did in a write that was tried. Any thread; loops have the answer, too. */
bool weft__uv_keeps(void);

/* CALLER, once, before the first loop is attached: tries it with a loop of its own. */
void weft__uv_try_keeping(void);

static inline void weft__uv_keep(uv_write_t *req, void (*cb)(void), uint32_t location)
{
	req->reserved[WEFT__UV_KEPT_CB] = (void *)(uintptr_t)cb;
	req->reserved[WEFT__UV_KEPT_LOCATION] = (void *)(uintptr_t)location;
}

static inline void (*weft__uv_kept_cb(const uv_write_t *req))(void)
{
	return (void (*)(void))(uintptr_t)req->reserved[WEFT__UV_KEPT_CB];
}

static inline uint32_t weft__uv_kept_location(const uv_write_t *req)
{
	return (uint32_t)(uintptr_t)req->reserved[WEFT__UV_KEPT_LOCATION];
}

#endif
