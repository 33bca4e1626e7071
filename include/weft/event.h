/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting events. Every function here may be called from any thread and from signal handlers, takes no lock, allocates
 * nothing and never waits. When nothing records, each is one load and one predictable branch. When the thread's ring is
 * full, the event is dropped and counted, and the loss is in the segment.
 *
 * The functions are inline; the shared library also has each as a real function of the same name, for other languages
 * and for C with WEFT_NO_INLINE defined.
 *
 * From a handler: an event emitted while the handler interrupted an emit is published by that emit, so leave the
 * handler by returning; after a siglongjmp out of one, what the thread emits is not seen until it ends.
 *
 * A task id is any 48-bit number that means one task while it lives: a counter, or its address.
 *
 * Reading the clock is most of what an event costs. Where one thing happens as another does, read it once and use
 * the _at forms:
 *
 *     uint64_t now = weft_now_ticks();
 *     weft_poll_end_at(now);
 *     weft_park_at(depth, now);
 *
 * Where a poll ends as the next begins, weft_poll_next says both.
 *
 * A reading must not be older than anything that led to the event: read again after taking work that another thread
 * queued.
 */
#ifndef WEFT_EVENT_H
#define WEFT_EVENT_H

#include <stdint.h>
#include <string.h>

#include "error.h"
#include "kind.h"
#include "ring.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef WEFT_NO_INLINE
#define WEFT_EMIT(proto, body) WEFT_API proto;
#elif defined(WEFT_EMIT_DEFINE) /* the library's own translation unit */
#define WEFT_EMIT(proto, body)                                                                                         \
	WEFT_API proto;                                                                                                \
	proto body
#else
#define WEFT_EMIT(proto, body) static inline proto body
#endif

/* Whether events are being recorded now. */
WEFT_EMIT(int weft_recording(void), { return weft_gate_on() != 0; })

/* Ticks of the recorder's clock, now, for the _at functions; 0 when nothing records. They are no ns: weft_tick_ns
 * turns a span of ticks into ns. */
WEFT_EMIT(uint64_t weft_now_ticks(void), {
	uint32_t on = weft_gate_on();
	return on ? weft_tick(on) : 0;
})

/* A poll is two events; when not all polls are recorded, or ticks are not the CPU's counter, weft_slow_poll_* see to
 * it. */
static inline uint64_t weft_poll_arg(uint64_t task, uint32_t depth)
{
	return (task & WEFT_TASK_MASK) | (uint64_t)(depth <= 0xffffu ? depth : 0xfffeu) << WEFT_TASK_BITS;
}

/* Whether all polls are recorded, with the detector. */
static inline int weft_gate_all(uint32_t on)
{
	return WEFT_LIKELY((on & ~WEFT_GATE_TICKS) == WEFT_GATE_RSEQ);
}

/* A poll begins or ends: was the thread off the CPU? */
static inline void weft_check_begin(uint64_t tick)
{
	if (WEFT_UNLIKELY(!weft_stayed()))
		weft_slow_off(tick);
}
static inline void weft_check_end(uint64_t tick)
{
	if (WEFT_UNLIKELY(!weft_stayed()))
		weft_slow_poll_off(tick);
}

/* The event of a poll, and the mark by which the collector sees that one does not end. The mark costs a tenth of a
 * nanosecond. */
static inline void weft_emit_poll(uint32_t kind, uint64_t arg, uint64_t tick)
{
	weft_emit(kind, arg, tick);
	if (kind == WEFT_KIND_POLL_BEGIN)
		weft_poll_mark_begin(arg, tick);
	else if (kind == WEFT_KIND_POLL_END)
		weft_poll_mark_end();
	else
		weft_poll_mark_next(arg, tick);
}

/* A poll of `task` begins on this thread: the runtime runs the task until weft_poll_end. `depth` is the length of the
 * worker's own queue, or WEFT_DEPTH_UNKNOWN. Polls may nest. What becomes of a poll is a matter of the recorder's
 * poll_mode: two events, or one at its end when it was slow or a sample was taken in it, or a count. */
WEFT_EMIT(void weft_poll_begin_at(uint64_t task, uint32_t depth, uint64_t tick), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (weft_gate_all(on)) {
		weft_check_begin(tick);
		weft_emit_poll(WEFT_KIND_POLL_BEGIN, weft_poll_arg(task, depth), tick);
	} else {
		weft_slow_poll_begin_at(weft_poll_arg(task, depth), tick, on);
	}
})
WEFT_EMIT(void weft_poll_begin(uint64_t task, uint32_t depth), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (WEFT_LIKELY(on == WEFT_GATE_PLAIN)) {
		uint64_t tick = weft_tick(WEFT_GATE_TSC);
		weft_check_begin(tick);
		weft_emit_poll(WEFT_KIND_POLL_BEGIN, weft_poll_arg(task, depth), tick);
	} else {
		weft_slow_poll_begin(weft_poll_arg(task, depth), on);
	}
})

/* The innermost poll of this thread ends. */
WEFT_EMIT(void weft_poll_end_at(uint64_t tick), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (weft_gate_all(on)) {
		weft_check_end(tick);
		weft_emit_poll(WEFT_KIND_POLL_END, 0, tick);
	} else {
		weft_slow_poll_end_at(tick, on);
	}
})
WEFT_EMIT(void weft_poll_end(void), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (WEFT_LIKELY(on == WEFT_GATE_PLAIN)) {
		uint64_t tick = weft_tick(WEFT_GATE_TSC);
		weft_check_end(tick);
		weft_emit_poll(WEFT_KIND_POLL_END, 0, tick);
	} else {
		weft_slow_poll_end(on);
	}
})

/* The innermost poll of this thread ends and, at the same time, one of `task` begins: what weft_poll_end and
 * weft_poll_begin say, as one event with one reading of the clock. For a worker that has its next task at hand when
 * a poll ends; one that has none, or has to do something else first that shall not count as part of the poll, ends
 * the poll. With no poll open it is weft_poll_begin. */
WEFT_EMIT(void weft_poll_next_at(uint64_t task, uint32_t depth, uint64_t tick), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (weft_gate_all(on)) {
		weft_check_end(tick);
		weft_emit_poll(WEFT_KIND_POLL_NEXT, weft_poll_arg(task, depth), tick);
	} else {
		weft_slow_poll_next_at(weft_poll_arg(task, depth), tick, on);
	}
})
WEFT_EMIT(void weft_poll_next(uint64_t task, uint32_t depth), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (WEFT_LIKELY(on == WEFT_GATE_PLAIN)) {
		uint64_t tick = weft_tick(WEFT_GATE_TSC);
		weft_check_end(tick);
		weft_emit_poll(WEFT_KIND_POLL_NEXT, weft_poll_arg(task, depth), tick);
	} else {
		weft_slow_poll_next(weft_poll_arg(task, depth), on);
	}
})

/* A park begins: the thread's CPU time is due, or it was off the CPU before, which is no part of the park. */
static inline void weft_check_park(uint32_t on, uint64_t tick)
{
	if (WEFT_UNLIKELY(tick >= weft_ring_self->sched_due))
		weft_slow_sched(tick);
	else if ((on & WEFT_GATE_RSEQ) && WEFT_UNLIKELY(!weft_stayed_since()))
		weft_slow_off(tick);
}
static inline void weft_emit_park(uint32_t depth, uint32_t on, uint64_t tick)
{
	uint64_t arg = depth <= 0xffffu ? depth : 0xfffeu;

	if (WEFT_UNLIKELY(on & WEFT_GATE_MODES)) {
		weft_slow_park_mode(arg, tick, on);
		return;
	}
	weft_emit(WEFT_KIND_PARK, arg, tick);
	__atomic_store_n(&weft_ring_self->park, tick, __ATOMIC_RELAXED);
	weft_check_park(on, tick);
}
static inline void weft_emit_unpark(uint32_t depth, uint32_t on, uint64_t tick)
{
	uint64_t arg = depth <= 0xffffu ? depth : 0xfffeu;

	if (WEFT_UNLIKELY(on & WEFT_GATE_MODES)) {
		weft_slow_unpark_mode(arg, tick, on);
		return;
	}
	weft_emit(WEFT_KIND_UNPARK, arg, tick);
	if (WEFT_UNLIKELY(tick >= weft_ring_self->sched_due) || ((on & WEFT_GATE_RSEQ) && !weft_stayed()))
		weft_slow_unpark(tick);
}

/* The worker on this thread is about to wait for something to do, or has stopped waiting. At most every 10 ms the
 * thread's CPU time and its wait for a CPU are recorded with it (two system calls, about 2 us). */
WEFT_EMIT(void weft_park_at(uint32_t depth, uint64_t tick), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_emit_park(depth, on, tick);
})
WEFT_EMIT(void weft_park(uint32_t depth), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_emit_park(depth, on, weft_tick(on));
})
WEFT_EMIT(void weft_unpark_at(uint32_t depth, uint64_t tick), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_emit_unpark(depth, on, tick);
})
WEFT_EMIT(void weft_unpark(uint32_t depth), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_emit_unpark(depth, on, weft_tick(on));
})

/* A task was made, at a place from weft_location (0: not known); a task is finished and its id may be used again. */
WEFT_EMIT(void weft_task_spawn_at(uint64_t task, uint32_t location, uint64_t tick), {
	if (weft_gate_on())
		weft_emit(WEFT_KIND_SPAWN, (task & WEFT_TASK_MASK) | (uint64_t)(uint16_t)location << 48, tick);
})
WEFT_EMIT(void weft_task_spawn(uint64_t task, uint32_t location), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_emit(WEFT_KIND_SPAWN, (task & WEFT_TASK_MASK) | (uint64_t)(uint16_t)location << 48, weft_tick(on));
})
WEFT_EMIT(void weft_task_end_at(uint64_t task, uint64_t tick), {
	if (weft_gate_on())
		weft_emit(WEFT_KIND_TASK_END, task & WEFT_TASK_MASK, tick);
})
WEFT_EMIT(void weft_task_end(uint64_t task), {
	uint32_t on = weft_gate_on();
	if (on)
		weft_emit(WEFT_KIND_TASK_END, task & WEFT_TASK_MASK, weft_tick(on));
})

/* This thread made `task` ready to run, on `worker` (an id of weft_worker_id; 0 or WEFT_WORKER_NONE: not known). Who
 * woke it is the task whose poll is open on this thread, if there is one; readers work that out. */
WEFT_EMIT(void weft_wake_at(uint64_t task, uint32_t worker, uint64_t tick), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (weft_counted(on, WEFT_GATE_COUNTED, WEFT_COUNTED_WAKES)) {
		if (!(on & WEFT_GATE_UNTIMED))
			weft_slow_wake(task, tick, on);
	} else {
		weft_emit(WEFT_KIND_WAKE, (task & WEFT_TASK_MASK) | (uint64_t)(uint16_t)worker << 48, tick);
	}
})
WEFT_EMIT(void weft_wake(uint64_t task, uint32_t worker), {
	uint32_t on = weft_gate_on();
	if (!on)
		return;
	if (weft_counted(on, WEFT_GATE_COUNTED, WEFT_COUNTED_WAKES)) {
		if (!(on & WEFT_GATE_UNTIMED))
			weft_slow_wake(task, weft_tick(on), on);
	} else {
		weft_emit(WEFT_KIND_WAKE, (task & WEFT_TASK_MASK) | (uint64_t)(uint16_t)worker << 48, weft_tick(on));
	}
})

/* `task`, whose poll is open on this thread, begins to wait: the stack of this call is where. Call it where the task
 * registers to be woken; the last call before the poll ends counts. The report has the stack with tasks that wait as
 * the recording ends. It costs an unwound stack, about a microsecond, and is not held by the budget: for a runtime's
 * option, not for each day. A real function: it is not inline. */
WEFT_API void weft_task_wait(uint64_t task);

/* The calling thread allocated an object of the kind that `name` says (of weft_string), which stands for `count`
 * objects of `bytes` together: those that were not recorded since the last one, and itself. The stack of this call is
 * where. Who calls it chooses the objects, at random; each call costs an unwound stack. A real function: it is not
 * inline. */
WEFT_API void weft_alloc(uint32_t name, uint64_t count, uint64_t bytes);

/* The length of a runtime's global queue now, for runtimes without a queue callback. */
WEFT_EMIT(void weft_queue_depth(uint32_t runtime, uint64_t depth), {
	uint32_t on = weft_gate_on();
	if (on && !weft_counted(on, WEFT_GATE_PARKS, WEFT_COUNTED_QUEUES))
		weft_emit(WEFT_KIND_QUEUE, (depth & WEFT_TASK_MASK) | (uint64_t)(uint16_t)runtime << 48, weft_tick(on));
})

/* An event of the program's own: `kind` from weft_event_define, and its fields in order, one word each (see
 * weft_f64 for doubles). Fields beyond WEFT_FIELDS_MAX are ignored. Events of no kind (0: weft_event_define failed)
 * are counted as lost, for the reason WEFT_LOSS_BAD_EVENT. */
WEFT_EMIT(void weft_event(uint32_t kind, const uint64_t *fields, uint32_t n_fields), {
	uint32_t on = weft_gate_on();
	struct weft_ring *ring;
	uint64_t tick;
	uint64_t first;
	uint32_t i;
	if (!on)
		return;
	if (WEFT_UNLIKELY(kind < WEFT_KIND_USER)) {
		kind = WEFT_KIND_REFUSED;
		n_fields = 0;
	}
	if (n_fields > WEFT_FIELDS_MAX)
		n_fields = WEFT_FIELDS_MAX;
	tick = weft_tick(on);
	ring = weft_ring_room(1 + (n_fields + 1) / 2, tick);
	if (WEFT_UNLIKELY(!ring))
		return;
	first = weft_ring_take(ring, 1 + (n_fields + 1) / 2);
	ring->slots[first & ring->mask].w0 = tick << 8 | WEFT_KIND_USER;
	ring->slots[first & ring->mask].w1 = (uint64_t)kind | (uint64_t)n_fields << 32;
	for (i = 0; i < n_fields; i += 2) {
		struct weft_slot *slot = &ring->slots[(first + 1 + i / 2) & ring->mask];
		slot->w0 = fields[i];
		slot->w1 = i + 1 < n_fields ? fields[i + 1] : 0;
	}
	weft_ring_publish(ring, first, first + 1 + (n_fields + 1) / 2);
})

/* A double as the word of a WEFT_TYPE_F64 field. */
WEFT_EMIT(uint64_t weft_f64(double value), {
	uint64_t word;
	memcpy(&word, &value, sizeof(word));
	return word;
})

#ifdef __cplusplus
}
#endif
#endif
