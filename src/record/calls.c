/* SPDX-License-Identifier: Apache-2.0 */
/* Any context. */
#define WEFT_NO_INLINE 1
#include "weft/calls.h"

static const struct weft_calls the_calls = {
	.size = sizeof(the_calls),
	.recording = weft_recording,
	.now_ticks = weft_now_ticks,
	.string = weft_string,
	.location = weft_location,
	.event_define = weft_event_define,
	.event = weft_event,
	.wait_self = weft_wait_self,
	.wait_begin = weft_wait_begin,
	.wait_end = weft_wait_end,
	.wait_begin_of = weft_wait_begin_of,
	.wait_end_of = weft_wait_end_of,
	.wait_since = weft_wait_since,
	.waited = weft_waited,
	.lock_held = weft_lock_held,
	.lock_released = weft_lock_released,
	.lock_watch = weft_lock_watch,
	.lock_unwatch = weft_lock_unwatch,
	.runtime_add = weft_runtime_add,
	.runtime_not_measured = weft_runtime_not_measured,
	.worker_enter = weft_worker_enter,
	.worker_leave = weft_worker_leave,
	.task_spawn = weft_task_spawn,
	.task_end = weft_task_end,
	.wake = weft_wake,
	.poll_begin = weft_poll_begin,
	.poll_end = weft_poll_end,
	.park = weft_park,
	.unpark = weft_unpark,
	.endpoint = weft_endpoint,
	.labels = weft_labels,
	.context_set = weft_context_set,
	.context_get = weft_context_get,
	.alloc = weft_alloc,
	.frames_set = weft_frames_set,
	.frame_name = weft_frame_name,
};

const struct weft_calls *weft_calls(void)
{
	return &the_calls;
}
