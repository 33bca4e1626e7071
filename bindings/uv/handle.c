/* SPDX-License-Identifier: Apache-2.0 */
/* Handles. What is given to libuv is a function here that looks the program's callback up. */
#include "call.h"

#define LATE_NS UINT64_C(2000000) /* libuv's clock has ms: less says nothing */

#define CALL(loop, key, type, ...)                                                                                     \
	do {                                                                                                           \
		struct weft__uv_call call_ = weft__uv_begin(loop, key);                                                \
		if (call_.cb)                                                                                          \
			((type)call_.cb)(__VA_ARGS__);                                                                 \
		weft__uv_end(&call_);                                                                                  \
	} while (0)

#define WRAP(handle, cb, location)                                                                                     \
	weft__uv_wrap((handle)->loop, weft__uv_key(handle, WEFT__UV_MAIN), (void (*)(void))(cb), location)

/* By libuv a timer that repeats is started again before its callback. */
static void note_late(uv_timer_t *timer)
{
	struct weft__uv_loop *in = weft__uv_find(timer->loop);
	struct weft__uv_entry *entry = in ? weft__uv_map_get(&in->callbacks, weft__uv_key(timer, WEFT__UV_MAIN)) : NULL;
	uint64_t due_ns, now_ns;

	if (!entry)
		return;
	due_ns = entry->due_ms * 1000000;
	now_ns = weft_recording() ? uv_hrtime() : 0;
	if (in->attached && now_ns >= due_ns + LATE_NS)
		weft__uv_say_late(weft__uv_task(entry), entry->location, now_ns - due_ns);
	entry->due_ms = uv_now(timer->loop) + uv_timer_get_repeat(timer);
}

static void on_timer(uv_timer_t *timer)
{
	note_late(timer);
	CALL(timer->loop, weft__uv_key(timer, WEFT__UV_MAIN), uv_timer_cb, timer);
}

int weft_uv_timer_start(uv_timer_t *timer, uv_timer_cb cb, uint64_t timeout, uint64_t repeat, uint32_t location)
{
	struct weft__uv_entry *entry = WRAP(timer, cb, location);

	if (entry)
		entry->due_ms = uv_now(timer->loop) + timeout;
	return uv_timer_start(timer, entry ? on_timer : cb, timeout, repeat);
}

int weft_uv_timer_again(uv_timer_t *timer)
{
	struct weft__uv_loop *in = weft__uv_find(timer->loop);
	struct weft__uv_entry *entry = in ? weft__uv_map_get(&in->callbacks, weft__uv_key(timer, WEFT__UV_MAIN)) : NULL;

	if (entry)
		entry->due_ms = uv_now(timer->loop) + uv_timer_get_repeat(timer);
	return uv_timer_again(timer);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	CALL(stream->loop, weft__uv_key(stream, WEFT__UV_MAIN), uv_read_cb, stream, n, buf);
}

int weft_uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb cb, uint32_t location)
{
	return uv_read_start(stream, alloc, WRAP(stream, cb, location) ? on_read : cb);
}

static void on_connection(uv_stream_t *stream, int status)
{
	CALL(stream->loop, weft__uv_key(stream, WEFT__UV_LISTEN), uv_connection_cb, stream, status);
}

int weft_uv_listen(uv_stream_t *stream, int backlog, uv_connection_cb cb, uint32_t location)
{
	uint64_t key = weft__uv_key(stream, WEFT__UV_LISTEN);

	return uv_listen(stream, backlog,
			 weft__uv_wrap(stream->loop, key, (void (*)(void))cb, location) ? on_connection : cb);
}

static void on_datagram(uv_udp_t *udp, ssize_t n, const uv_buf_t *buf, const struct sockaddr *from, unsigned int flags)
{
	CALL(udp->loop, weft__uv_key(udp, WEFT__UV_MAIN), uv_udp_recv_cb, udp, n, buf, from, flags);
}

int weft_uv_udp_recv_start(uv_udp_t *udp, uv_alloc_cb alloc, uv_udp_recv_cb cb, uint32_t location)
{
	return uv_udp_recv_start(udp, alloc, WRAP(udp, cb, location) ? on_datagram : cb);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	CALL(poll->loop, weft__uv_key(poll, WEFT__UV_MAIN), uv_poll_cb, poll, status, events);
}

int weft_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb, uint32_t location)
{
	return uv_poll_start(poll, events, WRAP(poll, cb, location) ? on_poll : cb);
}

static void on_signal(uv_signal_t *signal, int signum)
{
	CALL(signal->loop, weft__uv_key(signal, WEFT__UV_MAIN), uv_signal_cb, signal, signum);
}

int weft_uv_signal_start(uv_signal_t *signal, uv_signal_cb cb, int signum, uint32_t location)
{
	return uv_signal_start(signal, WRAP(signal, cb, location) ? on_signal : cb, signum);
}

static void on_idle(uv_idle_t *idle)
{
	CALL(idle->loop, weft__uv_key(idle, WEFT__UV_MAIN), uv_idle_cb, idle);
}

int weft_uv_idle_start(uv_idle_t *idle, uv_idle_cb cb, uint32_t location)
{
	return uv_idle_start(idle, WRAP(idle, cb, location) ? on_idle : cb);
}

static void on_prepare(uv_prepare_t *prepare)
{
	CALL(prepare->loop, weft__uv_key(prepare, WEFT__UV_MAIN), uv_prepare_cb, prepare);
}

int weft_uv_prepare_start(uv_prepare_t *prepare, uv_prepare_cb cb, uint32_t location)
{
	return uv_prepare_start(prepare, WRAP(prepare, cb, location) ? on_prepare : cb);
}

static void on_check(uv_check_t *check)
{
	CALL(check->loop, weft__uv_key(check, WEFT__UV_MAIN), uv_check_cb, check);
}

int weft_uv_check_start(uv_check_t *check, uv_check_cb cb, uint32_t location)
{
	return uv_check_start(check, WRAP(check, cb, location) ? on_check : cb);
}

static void on_async(uv_async_t *async)
{
	CALL(async->loop, weft__uv_key(async, WEFT__UV_MAIN), uv_async_cb, async);
}

int weft_uv_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb cb, uint32_t location)
{
	uint64_t key = weft__uv_key(async, WEFT__UV_MAIN);

	return uv_async_init(loop, async, weft__uv_wrap(loop, key, (void (*)(void))cb, location) ? on_async : cb);
}

int weft_uv_async_send(uv_async_t *async)
{
	weft_wake(weft__uv_key(async, WEFT__UV_MAIN), WEFT_WORKER_NONE);
	return uv_async_send(async);
}

static void on_close(uv_handle_t *handle)
{
	struct weft__uv_call call = weft__uv_begin_once(handle->loop, weft__uv_key(handle, WEFT__UV_CLOSE));

	if (call.cb)
		((uv_close_cb)call.cb)(handle); /* it may free the handle */
	weft__uv_end(&call);
	if (call.task)
		weft_task_end(call.task);
}

void weft_uv_close(uv_handle_t *handle, uv_close_cb cb, uint32_t location)
{
	uint64_t key = weft__uv_key(handle, WEFT__UV_CLOSE);

	weft__uv_forget(handle->loop, weft__uv_key(handle, WEFT__UV_MAIN));
	weft__uv_forget(handle->loop, weft__uv_key(handle, WEFT__UV_LISTEN));
	uv_close(handle, weft__uv_wrap(handle->loop, key, (void (*)(void))cb, location) ? on_close : cb);
}
