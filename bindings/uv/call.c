/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

struct weft__uv_entry *weft__uv_wrap(uv_loop_t *loop, uint64_t key, void (*cb)(void), uint32_t location)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct weft__uv_entry *entry = in && in->attached && cb ? weft__uv_map_add(&in->callbacks, key) : NULL;

	if (!entry)
		return NULL;
	if (entry->cb && entry->location != location)
		weft_task_end(weft__uv_task(entry));
	if (!entry->cb || entry->location != location)
		entry->recording = 0;
	entry->cb = cb;
	entry->location = location;
	weft__uv_spawn(in, entry);
	return entry;
}

void weft__uv_forget(uv_loop_t *loop, uint64_t key)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct weft__uv_entry *entry = in ? weft__uv_map_get(&in->callbacks, key) : NULL;

	if (!entry)
		return;
	if (!entry->is_request)
		weft_task_end(weft__uv_task(entry));
	weft__uv_map_del(&in->callbacks, entry);
	weft__uv_recycle(in);
}

/* Without a tick: where polls are only counted, the recorder does without the clock, too. */
void weft__uv_enter(struct weft__uv_loop *in, uint64_t task)
{
	if (in->parked)
		weft__uv_unpark(in, weft_now_ticks());
	if (in->in_poll)
		weft_poll_next(task, WEFT_DEPTH_UNKNOWN);
	else
		weft_poll_begin(task, WEFT_DEPTH_UNKNOWN);
	in->in_poll = in->in_callback = true;
}

void weft__uv_leave(struct weft__uv_loop *in)
{
	in->in_callback = false;
	if (in->attached && !(in->flags & WEFT_UV_ONLY_WRAPPED)) {
		weft_poll_next(in->task, WEFT_DEPTH_UNKNOWN);
		return;
	}
	weft_poll_end();
	in->in_poll = false;
	if (!in->attached) { /* it was detached in the callback */
		weft_worker_leave();
		weft__uv_current = NULL;
	}
}

static inline struct weft__uv_call begin(struct weft__uv_loop *in, struct weft__uv_entry *entry)
{
	struct weft__uv_call call = {.cb = entry ? entry->cb : NULL};

	if (!entry || !weft__uv_take(in))
		return call;
	weft__uv_spawn(in, entry);
	call.in = in;
	call.task = weft__uv_task(entry);
	weft__uv_enter(in, call.task);
	return call;
}

struct weft__uv_call weft__uv_begin(uv_loop_t *loop, uint64_t key)
{
	struct weft__uv_loop *in = weft__uv_find(loop);

	return begin(in, in ? weft__uv_map_get(&in->callbacks, key) : NULL);
}

struct weft__uv_call weft__uv_begin_once(uv_loop_t *loop, uint64_t key)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct weft__uv_entry *entry = in ? weft__uv_map_get(&in->callbacks, key) : NULL;
	struct weft__uv_call call = begin(in, entry);

	if (entry) {
		weft__uv_map_del(&in->callbacks, entry);
		weft__uv_recycle(in);
	}
	return call;
}

void weft__uv_end(const struct weft__uv_call *call)
{
	if (!call->in)
		return;
	weft__uv_leave(call->in);
	weft__uv_recycle(call->in);
}
