/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a ring to the fields of an event. COLLECTOR, and CALLER in recovery. */
#ifndef WEFT_COLLECT_UNPACK_H
#define WEFT_COLLECT_UNPACK_H

#include "base/clock.h"
#include "record/ring/layout.h"

#define WORKER_LEFT UINT64_MAX

struct weft__unpacked {
	uint32_t kind;
	uint32_t n_fields;
	uint64_t fields[WEFT_FIELDS_MAX + 1];
};

/* When an event was. A tick of 0 was taken while nothing recorded and used after recording began: the event is put at the last
 * reading of the clock. */
static inline uint64_t weft__slot_ns(const struct weft__timeline *line, const struct weft_slot *slot)
{
	uint64_t tick = slot->w0 >> 8;

	return tick ? weft__timeline_mono(line, tick) : line->last.mono_ns;
}

static inline void weft__unpack_wide(const struct weft_slot *slots, struct weft__unpacked *ev)
{
	uint32_t i;

	ev->n_fields = weft__wide_fields(ev->kind);
	for (i = 1; i < ev->n_fields; i++)
		ev->fields[i] = i % 2 ? slots[1 + i / 2].w0 : slots[i / 2].w1;
}

/* `slots` holds the whole event. Some kinds need more than the slots: a worker's id is left as runtime << 32 | index, stacks
 * (weft__stack_fields) as references (layout.h). */
static inline void weft__unpack(const struct weft_slot *slots, struct weft__unpacked *ev)
{
	uint64_t w1 = slots[0].w1;
	uint32_t i, n;

	ev->kind = (uint32_t)(slots[0].w0 & 0xff);
	switch (ev->kind) {
	case WEFT_KIND_POLL_END:
	case WEFT_KIND_THREAD_END:
		ev->n_fields = 0;
		return;
	case WEFT_KIND_POLL_BEGIN:
	case WEFT_KIND_POLL_NEXT:
	case WEFT_KIND_SPAWN:
	case WEFT_KIND_WAKE:
	case WEFT_KIND_QUEUE:
		ev->fields[0] = w1 & WEFT_TASK_MASK;
		ev->fields[1] = w1 >> WEFT_TASK_BITS;
		ev->n_fields = 2;
		return;
	case WEFT_KIND_SCHED:
		ev->fields[0] = w1;
		ev->fields[1] = slots[1].w0;
		ev->n_fields = 2;
		return;
	case WEFT_KIND_SAMPLE:
		ev->fields[0] = (uint32_t)w1;
		ev->fields[1] = w1 >> 32;
		ev->fields[2] = slots[1].w0;
		ev->fields[3] = (uint32_t)slots[1].w1;
		ev->fields[4] = slots[1].w1 >> 32;
		ev->n_fields = 5;
		return;
	case WEFT_KIND_USER:
		ev->kind = (uint32_t)w1 >= WEFT_KIND_USER ? (uint32_t)w1 : UINT32_MAX; /* a kind that nobody defined */
		n = (uint32_t)(w1 >> 32);
		ev->n_fields = n;
		for (i = 0; i < n; i += 2) {
			ev->fields[i] = slots[1 + i / 2].w0;
			ev->fields[i + 1] = slots[1 + i / 2].w1;
		}
		return;
	default:
		ev->fields[0] = w1;
		ev->n_fields = 1;
		if (ev->kind >= WEFT_KIND_WIDE && ev->kind < WEFT_KIND_BUILTIN_END)
			weft__unpack_wide(slots, ev);
	}
}

/* Which fields of a kind are stacks, as bits. */
static inline uint32_t weft__stack_fields(uint32_t kind)
{
	switch (kind) {
	case WEFT_KIND_SAMPLE:
		return 1u << 0 | 1u << 1;
	case WEFT_KIND_OFFCPU:
		return 1u << 5 | 1u << 6;
	case WEFT_KIND_WAIT:
		return 1u << 5;
	case WEFT_KIND_WALL:
		return 1u << 4;
	case WEFT_KIND_STUCK:
		return 1u << 3;
	case WEFT_KIND_PENDING:
		return 1u << 6 | 1u << 7;
	default:
		return 0;
	}
}

#endif
