/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP/1.1 server on libuv: GET only, connections stay open. */
#ifndef UV_HTTP_H
#define UV_HTTP_H

/* WEFT_UV_REPLACE makes every callback that is given to libuv below a poll of weft. Without WITH_WEFT this is a server
 * that knows nothing of it: what bench/uv.py measures against. */
#ifdef WITH_WEFT
#define WEFT_UV_REPLACE
#include <weft/uv.h>
#else
#include <uv.h>
#endif

#include <stddef.h>

struct connection {
	uv_tcp_t tcp;
	uv_work_t work;
	int busy;   /* work is in the pool */
	int closed; /* meanwhile */
	size_t n;
	char in[4096];
};

/* Listens on 127.0.0.1; returns the port, or a negative error. */
int http_listen(uv_loop_t *loop, int port);
void http_close(void);

/* Sends a whole answer. */
void http_answer(struct connection *c, const char *body);

/* A request, by its path. Returns 0 when it was answered, and 1 when it will be. */
int request_handle(struct connection *c, const char *path);

#endif
