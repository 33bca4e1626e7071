/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

struct weft__uv_entry *weft__uv_wrap(uv_loop_t *loop, uint64_t key, void (*cb)(void), uint32_t location)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct weft__uv_entry *entry = in && in->attached && cb ? weft__uv_map_add(&in->callbacks, key) : NULL;

	if (!entry)
		return NULL;
	if (entry->cb && entry->location != location)
		weft_task_end(entry->task);
	if (!entry->cb || entry->location != location)
		entry->recording = 0;
	entry->cb = cb;
	entry->task = key & WEFT_TASK_MASK;
	entry->location = location;
	weft__uv_spawn(in, entry);
	return entry;
}

void weft__uv_spawn(struct weft__uv_loop *in, struct weft__uv_entry *entry)
{
	uint32_t recording = weft__uv_recording(in);

	if (!recording || entry->recording == recording)
		return;
	weft_task_spawn(entry->task, entry->location);
	entry->recording = recording;
}

void weft__uv_forget(uv_loop_t *loop, uint64_t key)
{
	struct weft__uv_loop *in = weft__uv_find(loop);
	struct weft__uv_entry *entry = in ? weft__uv_map_get(&in->callbacks, key) : NULL;

	if (!entry)
		return;
	if (!(entry->task & WEFT__UV_PLACE))
		weft_task_end(entry->task);
	weft__uv_map_del(&in->callbacks, entry);
	weft__uv_recycle(in);
}

static struct weft__uv_call begin(struct weft__uv_loop *in, struct weft__uv_entry *entry)
{
	struct weft__uv_call call = {.cb = entry ? entry->cb : NULL};

	if (!entry || !weft__uv_take(in))
		return call;
	weft__uv_spawn(in, entry);
	call.in = in;
	call.task = entry->task;
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
