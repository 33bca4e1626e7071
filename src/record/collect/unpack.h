/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a ring to the fields of an event, from the list in weft/kind.h. Flush and recovery both go this way; what
 * slots refer to (stacks, workers, kinds of the program) each of them looks up in its own tables. COLLECTOR, and
 * CALLER in recovery. */
#ifndef WEFT_COLLECT_UNPACK_H
#define WEFT_COLLECT_UNPACK_H

#include <string.h>

#include "base/clock.h"
#include "record/ring/layout.h"
#include "weft/runtime.h"

#define WORKER_LEFT UINT64_MAX

struct weft__unpacked {
	uint32_t kind;
	uint32_t n_fields;
	uint64_t fields[WEFT_FIELDS_MAX + 1];
};

/* When an event was. A tick of 0 was taken while nothing recorded and used after recording began: the event is put
 * at the last reading of the clock. */
static inline uint64_t weft__slot_ns(const struct weft__timeline *line, const struct weft_slot *slot)
{
	uint64_t tick = slot->w0 >> 8;

	return tick ? weft__timeline_mono(line, tick) : line->last.mono_ns;
}

/* The same of an event that the collector found out, which has ns. Of these as many bits as of ticks are there. */
static inline uint64_t weft__found_ns(const struct weft__timeline *line, const struct weft_slot *slot)
{
	uint64_t last = line->last.mono_ns;

	return last + (uint64_t)((int64_t)(((slot->w0 >> 8) - last) << 8) >> 8);
}

static inline uint8_t weft__kind_packing(uint32_t kind)
{
	static const uint8_t packing[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, name, pack, ...) [number] = PACK_##pack,
		WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
	};

	return packing[kind];
}

/* An event of a kind whose packing is WORDS or PAIR. */
static inline void weft__pack(struct weft_slot *slots, uint32_t kind, uint64_t time, const uint64_t *fields)
{
	uint32_t i, n = weft__kind_fields(kind);

	slots[0].w0 = time << 8 | kind;
	if (weft__kind_packing(kind) == PACK_PAIR) {
		slots[0].w1 = (fields[0] & WEFT_TASK_MASK) | fields[1] << WEFT_TASK_BITS;
		return;
	}
	slots[0].w1 = n ? fields[0] : 0;
	for (i = 1; i < n; i += 2)
		slots[1 + i / 2] = (struct weft_slot){fields[i], i + 1 < n ? fields[i + 1] : 0};
}

/* `slots` holds the whole event: event_slots() of them. Fields are as they are in the slots: references stay
 * references. */
static inline void weft__unpack(const struct weft_slot *slots, struct weft__unpacked *ev)
{
	uint64_t w1 = slots[0].w1;
	uint32_t i, n;

	ev->kind = (uint32_t)(slots[0].w0 & 0xff);
	if (ev->kind == WEFT_KIND_USER) {
		ev->kind = (uint32_t)w1 >= WEFT_KIND_USER ? (uint32_t)w1 : UINT32_MAX; /* a kind that nobody defined */
		ev->n_fields = n = (uint32_t)(w1 >> 32);
		for (i = 0; i < n; i += 2) {
			ev->fields[i] = slots[1 + i / 2].w0;
			ev->fields[i + 1] = slots[1 + i / 2].w1;
		}
		return;
	}
	ev->n_fields = n = weft__kind_fields(ev->kind);
	switch (weft__kind_packing(ev->kind)) {
	case PACK_PAIR:
		ev->fields[0] = w1 & WEFT_TASK_MASK;
		ev->fields[1] = w1 >> WEFT_TASK_BITS;
		return;
	case PACK_SAMPLE:
		ev->fields[0] = (uint32_t)w1;
		ev->fields[1] = w1 >> 32;
		ev->fields[2] = slots[1].w0;
		ev->fields[3] = (uint32_t)slots[1].w1;
		ev->fields[4] = slots[1].w1 >> 32;
		return;
	default:
		ev->fields[0] = w1;
		for (i = 1; i < n; i++)
			ev->fields[i] = i % 2 ? slots[1 + i / 2].w0 : slots[i / 2].w1;
	}
}

enum weft__in_slot { IN_SLOT_VALUE, IN_SLOT_STACK, IN_SLOT_WORKER, IN_SLOT_THREAD };

/* Which fields of a kind are no values: a bit each, 16 for each of enum weft__in_slot. */
static inline uint64_t weft__references(uint32_t kind)
{
	/* clang-format off */
	static const uint64_t of[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, ...) [number] = 0
#define Y(KIND, NAME, name, type, unit, what) | UINT64_C(1) << (16 * IN_SLOT_##what + WEFT_FIELD_##KIND##_##NAME)
#define Z(NAME) ,
		WEFT_KINDS(X, Y, Z)
#undef X
#undef Y
#undef Z
	};
	/* clang-format on */

	return of[kind] >> 16 << 16;
}

/* Who knows what slots refer to: the collector in the process itself, recovery in what a process left. Each function
 * answers a negative error, or 0. */
struct weft__resolver {
	int (*stack)(void *who, uint64_t *field);
	int (*worker)(void *who, uint32_t runtime, uint32_t index, uint64_t *field);
	int (*kind)(void *who, uint32_t kind, uint32_t *n_fields); /* 1: nobody defined it */
};

static inline int weft__resolve_field(const struct weft__resolver *by, void *who, uint32_t stream, uint32_t what,
				      uint64_t *field)
{
	if (what == IN_SLOT_STACK)
		return by->stack(who, field);
	if (what == IN_SLOT_WORKER && *field != WORKER_LEFT)
		return by->worker(who, (uint32_t)(*field >> 32), (uint32_t)*field, field);
	if (what == IN_SLOT_WORKER)
		*field = WEFT_WORKER_NONE;
	else if (!*field)
		*field = stream;
	return 0;
}

/* The event in `slots`, as a segment has it, from the ring of thread `stream`. Answers 1 for one that makes no
 * sense. */
static inline int weft__resolve(const struct weft__resolver *by, void *who, uint32_t stream,
				const struct weft_slot *slots, struct weft__unpacked *ev)
{
	uint64_t references;
	uint32_t n;
	int err = 0;

	weft__unpack(slots, ev);
	if (ev->kind >= WEFT_KIND_USER) {
		err = by->kind(who, ev->kind, &n);
		while (!err && ev->n_fields < n)
			ev->fields[ev->n_fields++] = 0;
		ev->n_fields = err ? ev->n_fields : n;
		return err;
	}
	for (references = weft__references(ev->kind); references && !err; references &= references - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(references);

		err = weft__resolve_field(by, who, stream, bit / 16, &ev->fields[bit % 16]);
	}
	return err;
}

/* Who a thread is, from its thread_begin: the first slot, and the second, which is its name. */
static inline void weft__thread_begin(struct ring_thread *thread, uint32_t stream, const struct weft__timeline *line,
				      const struct weft_slot *slot, const struct weft_slot *name)
{
	thread->stream = stream;
	thread->tid = (uint32_t)slot->w1;
	thread->worker = WEFT_WORKER_NONE;
	thread->first_ns = weft__timeline_mono(line, slot->w0 >> 8);
	memcpy(thread->name, name, sizeof(thread->name));
	thread->name[sizeof(thread->name) - 1] = 0;
}

#endif
