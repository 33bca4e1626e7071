/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of libuv (1.x). One call attaches a loop, and from then on its thread is a worker of weft:
 *
 *     #include <uv.h>
 *     #include <weft/uv.h>
 *
 *     weft_uv_attach(uv_default_loop(), NULL, NULL);          any time, whether or not something records
 *     weft_uv_run(uv_default_loop(), UV_RUN_DEFAULT);
 *
 *     cc server.c $(pkg-config --cflags --libs weft-uv)
 *
 * The time in which the loop waits is parks. All other time of the loop is polls: a callback that was wrapped is a
 * poll of its own, with the place where it was given to libuv as its location. Callbacks that were not wrapped, and
 * libuv's own work, are polls of the location "callbacks not wrapped", which end where a wrapped callback begins or
 * the loop waits.
 *
 * Wrapping. Each function weft_uv_X below is uv_X with one more argument, the location (define.h: WEFT_HERE). To
 * wrap all calls of a source file without a change to them, define WEFT_UV_REPLACE before this header is included:
 * then uv_timer_start(&timer, on_timer, 10, 0) is
 *
 *     weft_uv_timer_start(&timer, on_timer, 10, 0, WEFT_HERE("on_timer"))
 *
 * So it can be done by the compiler's command line, -DWEFT_UV_REPLACE -include weft/uv.h.
 *
 * What the recording has then:
 *   callbacks     polls. The task of a handle is the handle's address (+ 1: new connections; + 2: closing it), that of
 *                 requests is one for each location.
 *   uv_async_send a wake of the callback: by whom, from which thread, and how long it took until the callback ran
 *   uv_queue_work a task for the work and one for the callback after it. The work is woken where it is queued and
 *                 polled by a thread of the pool, a worker of the runtime "uv-pool": the delay of the wake is the time
 *                 in libuv's queue. The callback is woken by the work. Both have the context (span.h) of who queued
 *                 the work. The depth of the queue of "uv-pool" is work that was queued by the wrapper and waits.
 *   timers        an event uv_timer_late for each that was 2 ms late or more: `late`, in ns, from when it was due
 *   loops         an event uv_loop for each, when recording begins and every 10 s: its name, libuv's version, how its
 *                 parks are measured, and its turns since the last one
 *
 * What cannot be seen:
 *   - Which callback ran, where it was not wrapped.
 *   - Since when a descriptor was ready: the polls of I/O callbacks have no wake.
 *   - Work that libuv itself gives to the pool (files, names of hosts). It delays other work, and is in no queue depth.
 *   - Whether threads of the pool wait: they have no parks.
 *   - The end of uv_run, when it is called as it is: what the thread does after it is in the last poll until the loop
 *     runs again or is detached. weft_uv_run ends it.
 *   - A loop that is run inside a wrapped callback of another one: it is part of that callback.
 *
 * How parks are measured. libweft-uv defines epoll_wait and epoll_pwait, which libuv then calls instead of those of
 * the C library: they call these and note the time before and after. Where that is not possible (libweft-uv was opened
 * with dlopen, or libuv has its own way to wait), or with WEFT_UV_BRACKET, a prepare and a check handle bracket the
 * wait. Then a park lasts until the first wrapped callback begins, or until the check handle: I/O callbacks that are
 * not wrapped are in parks. The event uv_loop says which it is.
 *
 * Cost: a wrapped callback is two events and a lookup by address; a turn of the loop is four events. When nothing
 * records it is the lookup and some branches, and nothing for a request. A write needs no lookup: its callback is in
 * words that libuv reserves in a uv_write_t, where a write that is tried at the first attach shows that this libuv
 * leaves them alone.
 *
 * Threads: as in libuv, everything here is called from the loop's thread, but for weft_uv_async_send. Nothing here is
 * async-signal-safe but that one. On a loop that is not attached, and when memory runs out, weft_uv_X does what uv_X
 * does and nothing else. */
#ifndef WEFT_UV_H
#define WEFT_UV_H

#include <uv.h>
#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weft_uv_flags {
	WEFT_UV_BRACKET = 1,      /* parks by prepare and check handles only */
	WEFT_UV_ONLY_WRAPPED = 2, /* no polls of "callbacks not wrapped" */
};

struct weft_uv_opts {
	size_t size;
	const char *name; /* of the runtime; loops of one name are its workers 0, 1, ... NULL: "uv" */
	uint32_t flags;   /* enum weft_uv_flags, added up */
	uint32_t reserved;
};

/* Attaches a loop that was initialized. It gets a prepare and a check handle that do not keep it alive. Wrap after
 * this: callbacks that were given to libuv before it are not wrapped. Returns 0; -EEXIST when it is attached already;
 * -EINVAL or -E2BIG for options of another size or unknown flags; -ENOMEM; -WEFT_E_LIMIT; `err`, which may be NULL,
 * says why. */
WEFT_API int weft_uv_attach(uv_loop_t *loop, const struct weft_uv_opts *opts, struct weft_error *err);

/* Detaches it and closes the two handles. As with all handles, the loop has to run once more before uv_loop_close.
 * Callbacks that are wrapped go on to be called, and are no polls any more; work in the pool goes on to be recorded.
 * Returns 0, or -ENOENT when the loop is not attached. */
WEFT_API int weft_uv_detach(uv_loop_t *loop);

/* uv_run. What the thread does after it is no part of the loop. */
WEFT_API int weft_uv_run(uv_loop_t *loop, uv_run_mode mode);

/* Handles, with a callback that may be called many times. Starting one again with another callback or location
 * replaces both. */
WEFT_API int weft_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat,
				 uint32_t location);
WEFT_API int weft_uv_timer_again(uv_timer_t *timer); /* else a timer is taken to be late */
WEFT_API int weft_uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb cb, uint32_t location);
WEFT_API int weft_uv_listen(uv_stream_t *stream, int backlog, uv_connection_cb cb, uint32_t location);
WEFT_API int weft_uv_udp_recv_start(uv_udp_t *udp, uv_alloc_cb alloc, uv_udp_recv_cb cb, uint32_t location);
WEFT_API int weft_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb, uint32_t location);
WEFT_API int weft_uv_signal_start(uv_signal_t *signal, uv_signal_cb cb, int signum, uint32_t location);
WEFT_API int weft_uv_idle_start(uv_idle_t *idle, uv_idle_cb cb, uint32_t location);
WEFT_API int weft_uv_prepare_start(uv_prepare_t *prepare, uv_prepare_cb cb, uint32_t location);
WEFT_API int weft_uv_check_start(uv_check_t *check, uv_check_cb cb, uint32_t location);
WEFT_API int weft_uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb cb, uint32_t location);

/* uv_async_send, and a wake of the callback. Any thread; async-signal-safe. */
WEFT_API int weft_uv_async_send(uv_async_t *async);

/* uv_close. Handles that were started by the functions above are closed by this one: it forgets their callbacks. */
WEFT_API void weft_uv_close(uv_handle_t *handle, uv_close_cb cb, uint32_t location);

/* Requests, with a callback that is called once. One that was made while nothing records is not wrapped. */
WEFT_API int weft_uv_write(uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[], unsigned int n, uv_write_cb cb,
			   uint32_t location);
WEFT_API int weft_uv_shutdown(uv_shutdown_t *req, uv_stream_t *stream, uv_shutdown_cb cb, uint32_t location);
WEFT_API int weft_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *address, uv_connect_cb cb,
				 uint32_t location);
WEFT_API void weft_uv_pipe_connect(uv_connect_t *req, uv_pipe_t *pipe, const char *name, uv_connect_cb cb,
				   uint32_t location);
WEFT_API int weft_uv_udp_send(uv_udp_send_t *req, uv_udp_t *udp, const uv_buf_t bufs[], unsigned int n,
			      const struct sockaddr *address, uv_udp_send_cb cb, uint32_t location);
WEFT_API int weft_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb cb, const char *node,
				 const char *service, const struct addrinfo *hints, uint32_t location);

/* For the many functions of files: the callback to give to one of them, with `req` and `loop` as the function gets
 * them. It has to be called then: when the function fails, the callback is wrapped until `req` is used again.
 *
 *     uv_fs_read(loop, req, file, &buf, 1, 0, WEFT_UV_FS(loop, req, on_read));
 */
WEFT_API uv_fs_cb weft_uv_fs(uv_loop_t *loop, uv_fs_t *req, uv_fs_cb cb, uint32_t location);
#define WEFT_UV_FS(loop, req, cb) weft_uv_fs((loop), (req), (cb), WEFT_HERE(#cb))

/* Work for the thread pool, with a location for the work and one for the callback after it, which may be NULL.
 * uv_cancel works as ever: the work then ends without a poll. */
WEFT_API int weft_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work, uv_after_work_cb after,
				uint32_t work_location, uint32_t after_location);

#ifdef __cplusplus
}
#endif

/* Names of functions, not lambdas: a comma in one would end the macro's argument. */
#ifdef WEFT_UV_REPLACE
#define uv_run(loop, mode) weft_uv_run((loop), (mode))
#define uv_timer_start(timer, cb, timeout, repeat)                                                                     \
	weft_uv_timer_start((timer), (cb), (timeout), (repeat), WEFT_HERE(#cb))
#define uv_timer_again(timer) weft_uv_timer_again(timer)
#define uv_read_start(stream, alloc, cb) weft_uv_read_start((stream), (alloc), (cb), WEFT_HERE(#cb))
#define uv_listen(stream, backlog, cb) weft_uv_listen((stream), (backlog), (cb), WEFT_HERE(#cb))
#define uv_udp_recv_start(udp, alloc, cb) weft_uv_udp_recv_start((udp), (alloc), (cb), WEFT_HERE(#cb))
#define uv_poll_start(poll, events, cb) weft_uv_poll_start((poll), (events), (cb), WEFT_HERE(#cb))
#define uv_signal_start(signal, cb, signum) weft_uv_signal_start((signal), (cb), (signum), WEFT_HERE(#cb))
#define uv_idle_start(idle, cb) weft_uv_idle_start((idle), (cb), WEFT_HERE(#cb))
#define uv_prepare_start(prepare, cb) weft_uv_prepare_start((prepare), (cb), WEFT_HERE(#cb))
#define uv_check_start(check, cb) weft_uv_check_start((check), (cb), WEFT_HERE(#cb))
#define uv_async_init(loop, async, cb) weft_uv_async_init((loop), (async), (cb), WEFT_HERE(#cb))
#define uv_async_send(async) weft_uv_async_send(async)
#define uv_close(handle, cb) weft_uv_close((handle), (cb), WEFT_HERE(#cb))
#define uv_write(req, stream, bufs, n, cb) weft_uv_write((req), (stream), (bufs), (n), (cb), WEFT_HERE(#cb))
#define uv_shutdown(req, stream, cb) weft_uv_shutdown((req), (stream), (cb), WEFT_HERE(#cb))
#define uv_tcp_connect(req, tcp, address, cb) weft_uv_tcp_connect((req), (tcp), (address), (cb), WEFT_HERE(#cb))
#define uv_pipe_connect(req, pipe, name, cb) weft_uv_pipe_connect((req), (pipe), (name), (cb), WEFT_HERE(#cb))
#define uv_udp_send(req, udp, bufs, n, address, cb)                                                                    \
	weft_uv_udp_send((req), (udp), (bufs), (n), (address), (cb), WEFT_HERE(#cb))
#define uv_getaddrinfo(loop, req, cb, node, service, hints)                                                            \
	weft_uv_getaddrinfo((loop), (req), (cb), (node), (service), (hints), WEFT_HERE(#cb))
#define uv_queue_work(loop, req, work, after)                                                                          \
	weft_uv_queue_work((loop), (req), (work), (after), WEFT_HERE(#work), WEFT_HERE(#after))
#endif

#endif
