/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: a callback that is called once. Those of one location are one task, so that a request costs no more events
 * than its poll.
 *
 * A write has its callback and location in words of the request that libuv reserves and does not touch: then nothing
 * has to be looked up in memory that the kernel's work for the write has put out of the caches. Whether this libuv
 * leaves them alone is tried once (keep.c). Other requests, which are rarer, have an entry by their address. */
#include "call.h"
#include "keep.h"

static uint64_t place_task(const struct weft__uv_loop *in, uint32_t location)
{
	return ((in->task ^ (uint64_t)location << 32) & WEFT_TASK_MASK) | WEFT__UV_PLACE;
}

/* The spawn of a location's task, which is an entry of its own, is recorded. */
static bool place_known(struct weft__uv_loop *in, uint32_t location)
{
	struct weft__uv_entry *entry;
	uint32_t recording = weft__uv_recording(in);

	if (in->place == location + 1)
		return true;
	entry = weft__uv_map_add(&in->places, (uint64_t)location + 1);
	if (!entry)
		return false;
	entry->task = place_task(in, location);
	entry->is_request = 1;
	entry->location = location;
	weft__uv_spawn(in, entry);
	in->place = recording ? location + 1 : 0;
	return true;
}

/* Whether the callback is wrapped, as by weft__uv_wrap. It is called once, and soon: where nothing records there is
 * nothing to be seen of it. */
static bool wrap_once(uv_loop_t *loop, const void *req, void (*cb)(void), uint32_t location)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct weft__uv_entry *entry;

	if (!weft_recording() || !in || !in->attached || !cb || !place_known(in, location))
		return false;
	entry = weft__uv_map_add(&in->callbacks, weft__uv_key(req, WEFT__UV_MAIN));
	if (!entry)
		return false;
	entry->cb = cb;
	entry->task = place_task(in, location);
	entry->is_request = 1;
	entry->location = location;
	entry->recording = weft__uv_recording(in) & WEFT__UV_RECORDINGS;
	return true;
}

#define WRAP(loop, req, cb, location) wrap_once(loop, req, (void (*)(void))(cb), location)

/* What the function of libuv returned: when it failed, the callback is not called. */
static int settle(uv_loop_t *loop, const void *req, bool wrapped, int rc)
{
	if (wrapped && rc < 0)
		weft__uv_forget(loop, weft__uv_key(req, WEFT__UV_MAIN));
	return rc;
}

#define CALL_ONCE(loop, req, type, ...)                                                                                \
	do {                                                                                                           \
		struct weft__uv_call call_ = weft__uv_begin_once(loop, weft__uv_key(req, WEFT__UV_MAIN));              \
		if (call_.cb)                                                                                          \
			((type)call_.cb)(__VA_ARGS__);                                                                 \
		weft__uv_end(&call_);                                                                                  \
	} while (0)

static void on_written(uv_write_t *req, int status)
{
	CALL_ONCE(req->handle->loop, req, uv_write_cb, req, status);
}

static void on_kept_written(uv_write_t *req, int status)
{
	struct weft__uv_loop *in = weft__uv_find(req->handle->loop);
	uv_write_cb cb = (uv_write_cb)weft__uv_kept_cb(req);
	uint32_t location = weft__uv_kept_location(req);

	if (!in || !weft__uv_take(in) || !place_known(in, location)) {
		cb(req, status);
		return;
	}
	weft__uv_enter(in, place_task(in, location));
	cb(req, status); /* it may free the request */
	weft__uv_leave(in);
	weft__uv_recycle(in);
}

int weft_uv_write(uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[], unsigned int n, uv_write_cb cb,
		  uint32_t location)
{
	struct weft__uv_loop *in = weft__uv_find(stream->loop);
	bool wrapped;

	if (in && in->keeps && in->attached && cb && weft_recording()) {
		weft__uv_keep(req, (void (*)(void))cb, location);
		return uv_write(req, stream, bufs, n, on_kept_written);
	}
	wrapped = in && !in->keeps && WRAP(stream->loop, req, cb, location);
	return settle(stream->loop, req, wrapped, uv_write(req, stream, bufs, n, wrapped ? on_written : cb));
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
	CALL_ONCE(req->handle->loop, req, uv_shutdown_cb, req, status);
}

int weft_uv_shutdown(uv_shutdown_t *req, uv_stream_t *stream, uv_shutdown_cb cb, uint32_t location)
{
	bool wrapped = WRAP(stream->loop, req, cb, location);

	return settle(stream->loop, req, wrapped, uv_shutdown(req, stream, wrapped ? on_shutdown : cb));
}

static void on_connected(uv_connect_t *req, int status)
{
	CALL_ONCE(req->handle->loop, req, uv_connect_cb, req, status);
}

int weft_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *address, uv_connect_cb cb,
			uint32_t location)
{
	bool wrapped = WRAP(tcp->loop, req, cb, location);

	return settle(tcp->loop, req, wrapped, uv_tcp_connect(req, tcp, address, wrapped ? on_connected : cb));
}

void weft_uv_pipe_connect(uv_connect_t *req, uv_pipe_t *pipe, const char *name, uv_connect_cb cb, uint32_t location)
{
	uv_pipe_connect(req, pipe, name, WRAP(pipe->loop, req, cb, location) ? on_connected : cb);
}

static void on_sent(uv_udp_send_t *req, int status)
{
	CALL_ONCE(req->handle->loop, req, uv_udp_send_cb, req, status);
}

int weft_uv_udp_send(uv_udp_send_t *req, uv_udp_t *udp, const uv_buf_t bufs[], unsigned int n,
		     const struct sockaddr *address, uv_udp_send_cb cb, uint32_t location)
{
	bool wrapped = WRAP(udp->loop, req, cb, location);

	return settle(udp->loop, req, wrapped, uv_udp_send(req, udp, bufs, n, address, wrapped ? on_sent : cb));
}

static void on_addresses(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
	CALL_ONCE(req->loop, req, uv_getaddrinfo_cb, req, status, found);
}

int weft_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb cb, const char *node,
			const char *service, const struct addrinfo *hints, uint32_t location)
{
	bool wrapped = WRAP(loop, req, cb, location);

	return settle(loop, req, wrapped, uv_getaddrinfo(loop, req, wrapped ? on_addresses : cb, node, service, hints));
}

static void on_file(uv_fs_t *req)
{
	CALL_ONCE(req->loop, req, uv_fs_cb, req);
}

uv_fs_cb weft_uv_fs(uv_loop_t *loop, uv_fs_t *req, uv_fs_cb cb, uint32_t location)
{
	return WRAP(loop, req, cb, location) ? on_file : cb;
}
