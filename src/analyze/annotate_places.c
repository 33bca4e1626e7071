/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/annotate_places.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

static uint32_t *slot_of(const struct weft__places *places, uint32_t module, uint64_t offset)
{
	uint64_t hash = (offset ^ (uint64_t)module << 40) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash >> 32) & (places->n_slots - 1);

	for (;; at = (at + 1) & (places->n_slots - 1)) {
		uint32_t *slot = &places->slots[at];

		if (!*slot || (places->at[*slot - 1].offset == offset && places->at[*slot - 1].module == module))
			return slot;
	}
}

static int grow(struct weft__places *places)
{
	uint32_t *old = places->slots;
	size_t i, n = places->n_slots ? places->n_slots * 2 : 4096;

	places->slots = weft__calloc(n, sizeof(*old));
	if (!places->slots) {
		places->slots = old;
		return -ENOMEM;
	}
	places->n_slots = n;
	for (i = 0; i < places->n; i++)
		*slot_of(places, places->at[i].module, places->at[i].offset) = (uint32_t)i + 1;
	weft__free(old);
	return 0;
}

static int add(struct weft__places *places, const struct weft_frame *frame, uint32_t stack)
{
	struct weft__location *at;
	uint32_t *slot;

	if (places->n * 2 >= places->n_slots && grow(places) < 0)
		return -ENOMEM;
	slot = slot_of(places, frame->module, frame->offset);
	if (*slot)
		return 0;
	at = weft__grow(places->at, &places->cap, places->n, sizeof(*at));
	if (!at)
		return -ENOMEM;
	places->at = at;
	at[places->n] = (struct weft__location){frame->module, stack, frame->offset, 0};
	*slot = (uint32_t)++places->n;
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
static int add_times(struct weft__places *places, struct weft_segment *seg)
{
	uint64_t *times = NULL;
	size_t n, i;
	const struct weft_stack *stacks = weft_segment_stacks(seg, &n);
	int r = 0;

	for (i = 0; i < places->n && r >= 0; i++) {
		struct weft__location *place = &places->at[i];

		if (!without_file(seg, place->module))
			continue;
		if (!times) {
			times = weft__calloc(n, sizeof(*times));
			r = times ? find_times(seg, stacks, times) : -ENOMEM;
		}
		if (r >= 0)
			place->time_ns = times[weft_segment_stack(seg, place->stack) - stacks];
	}
	weft__free(times);
	return r;
}

int weft__places_collect(struct weft__places *places, struct weft_segment *seg)
{
	size_t n, i;
	const struct weft_stack *stacks = weft_segment_stacks(seg, &n);
	uint32_t j;

	for (i = 0; i < n; i++)
		for (j = 0; j < stacks[i].n_frames; j++)
			if (add(places, &stacks[i].frames[j], stacks[i].id) < 0)
				return -ENOMEM;
	return add_times(places, seg);
}

void weft__places_fini(struct weft__places *places)
{
	weft__free(places->at);
	weft__free(places->slots);
	memset(places, 0, sizeof(*places));
}
