/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/annotate_addresses.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

static int add(struct weft__addresses *addresses, const struct weft_frame *frame, uint32_t stack)
{
	uint64_t key = frame->offset ^ (uint64_t)frame->module << 40; /* which several may share */
	uint32_t first = weft__map_get(&addresses->by_key, key), i;
	struct weft__code_address *at;

	for (i = first; i != WEFT__MAP_NONE; i = addresses->at[i].next)
		if (addresses->at[i].offset == frame->offset && addresses->at[i].module == frame->module)
			return 0;
	at = weft__grow(addresses->at, &addresses->cap, addresses->n, sizeof(*at));
	if (!at)
		return -ENOMEM;
	addresses->at = at;
	at[addresses->n] = (struct weft__code_address){frame->module, stack, frame->offset, 0, first};
	if (weft__map_put(&addresses->by_key, key, (uint32_t)addresses->n) < 0)
		return -ENOMEM;
	addresses->n++;
	return 0;
}

static bool without_file(const struct weft_segment *seg, uint32_t id)
{
	const struct weft_module *module = id ? weft_segment_module(seg, id) : NULL;

	return !module || module->kind == WEFT_MODULE_CODE;
}

static void note_time(const struct weft_segment *seg, const struct weft_stack *stacks, uint64_t id, uint64_t time_ns,
		      uint64_t *times)
{
	const struct weft_stack *stack = id && id <= UINT32_MAX ? weft_segment_stack(seg, (uint32_t)id) : NULL;

	if (stack && (!times[stack - stacks] || time_ns < times[stack - stacks]))
		times[stack - stacks] = time_ns;
}

/* When each stack was first in an event of any kind; 0: never, as far as the segment can be read. */
static int find_times(struct weft_segment *seg, const struct weft_stack *stacks, uint64_t *times)
{
	struct weft_cursor *cursor = NULL;
	const struct weft_kind_def *kind = NULL;
	struct weft_event_view ev;
	uint32_t last = 0;
	int r = weft_cursor_open(&cursor, seg, WEFT_ORDER_STORED, 0, UINT64_MAX, NULL);

	while (r >= 0 && (r = weft_cursor_next(cursor, &ev)) > 0) {
		const struct weft_kind_def *def = ev.kind == last ? kind : weft_segment_kind(seg, ev.kind);
		uint32_t i;

		last = ev.kind;
		kind = def;
		for (i = 0; def && i < def->n_fields && i < ev.n_fields; i++)
			if (def->fields[i].type == WEFT_TYPE_STACK)
				note_time(seg, stacks, ev.fields[i], ev.time_ns, times);
	}
	weft_cursor_close(cursor);
	return r;
}

/* What was at an address that a JIT uses depends on the time. Only then are events looked at. */
static int add_times(struct weft__addresses *addresses, struct weft_segment *seg)
{
	uint64_t *times = NULL;
	size_t n, i;
	const struct weft_stack *stacks = weft_segment_stacks(seg, &n);
	int r = 0;

	for (i = 0; i < addresses->n && r >= 0; i++) {
		struct weft__code_address *address = &addresses->at[i];

		if (!without_file(seg, address->module))
			continue;
		if (!times) {
			times = weft__calloc(n, sizeof(*times));
			r = times ? find_times(seg, stacks, times) : -ENOMEM;
		}
		if (r >= 0)
			address->time_ns = times[weft_segment_stack(seg, address->stack) - stacks];
	}
	weft__free(times);
	return r;
}

int weft__addresses_collect(struct weft__addresses *addresses, struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_stack *stacks = weft_segment_stacks(seg, &n);
	uint32_t j;

	for (i = 0; i < n; i++)
		for (j = 0; j < stacks[i].n_frames; j++)
			if (add(addresses, &stacks[i].frames[j], stacks[i].id) < 0)
				return -ENOMEM;
	return add_times(addresses, seg);
}

void weft__addresses_fini(struct weft__addresses *addresses)
{
	weft__free(addresses->at);
	weft__map_fini(&addresses->by_key);
	memset(addresses, 0, sizeof(*addresses));
}
