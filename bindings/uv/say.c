/* SPDX-License-Identifier: Apache-2.0 */
/* The binding's own events. */
#include "loop.h"

void weft__uv_say_late(uint64_t task, uint32_t location, uint64_t late_ns)
{
	static const struct weft_field fields[] = {
		{"task", WEFT_TYPE_TASK, NULL}, {"location", WEFT_TYPE_LOCATION, NULL}, {"late", WEFT_TYPE_U64, "ns"}};
	static uint32_t kind;
	uint64_t values[] = {task, location, late_ns};

	if (!__atomic_load_n(&kind, __ATOMIC_RELAXED))
		__atomic_store_n(&kind, weft_event_define("uv_timer_late", fields, 3, NULL), __ATOMIC_RELAXED);
	weft_event(__atomic_load_n(&kind, __ATOMIC_RELAXED), values, 3);
}

void weft__uv_say_loop(struct weft__uv_loop *in)
{
	static const struct weft_field fields[] = {{"loop", WEFT_TYPE_STRING, NULL},
						   {"libuv", WEFT_TYPE_STRING, NULL},
						   {"parks", WEFT_TYPE_STRING, NULL},
						   {"turns", WEFT_TYPE_U64, "1"}};
	static uint32_t kind;
	uint64_t values[] = {weft_string(in->name), weft_string(uv_version_string()), 0, in->turns};

	if (!__atomic_load_n(&kind, __ATOMIC_RELAXED))
		__atomic_store_n(&kind, weft_event_define("uv_loop", fields, 4, NULL), __ATOMIC_RELAXED);
	values[2] = weft_string(in->bracket ? "from prepare to check: I/O callbacks that are not wrapped are in them"
					    : "the waits of epoll");
	weft_event(__atomic_load_n(&kind, __ATOMIC_RELAXED), values, 4);
	in->turns = 0;
}
