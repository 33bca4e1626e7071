/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of event that weft itself defines, with their fields in the order in which readers see them. The numbers
 * are part of the segment format (docs/FORMAT.md) and never change; kinds from WEFT_KIND_USER on are the program's
 * own. */
#ifndef WEFT_KIND_H
#define WEFT_KIND_H

#include "define.h"

/* The one list. Rings, drain, recovery, segments, readers and the table in docs/FORMAT.md are made from it.
 * CONTRIBUTING.md says what else a new kind needs.
 *
 * K(NAME, number, "name", packing, how often, what it says), its fields in order, E(NAME).
 *
 * Packing is how fields lie in the slots of a ring. The first slot has time and kind in its first word.
 *   WORDS   a word each: the first in the second word of the first slot, then two a slot
 *   PAIR    one slot: the first field in 48 bits, the second in 16
 *   SAMPLE  two slots: two halves of a word, a word, two halves
 *   NAME    two slots: a word, and the thread's name
 * OFTEN: the collector has a quick way for such events; for kinds of one slot only.
 *
 * F(KIND, NAME, "name", type, "unit", what the slot has):
 *   VALUE   the value itself
 *   STACK   a reference to a stack in shared memory
 *   WORKER  the runtime and the worker's index in it
 *   THREAD  a stream id, or 0 for the thread whose ring it is */
/* clang-format off */
#define WEFT_KINDS(K, F, E) \
	K(THREAD_BEGIN, 1, "thread_begin", NAME, RARE, "a thread records from here on") \
		F(THREAD_BEGIN, TID, "tid", U64, "", VALUE) E(THREAD_BEGIN) \
	K(THREAD_END, 2, "thread_end", WORDS, RARE, "the thread ended") E(THREAD_END) \
	K(POLL_BEGIN, 3, "poll_begin", PAIR, OFTEN, \
	  "a poll begins; depth of the worker's queue (65535: not measured)") \
		F(POLL_BEGIN, TASK, "task", TASK, "", VALUE) \
		F(POLL_BEGIN, DEPTH, "depth", U64, "1", VALUE) E(POLL_BEGIN) \
	K(POLL_END, 4, "poll_end", WORDS, OFTEN, "the innermost open poll ends") E(POLL_END) \
	K(PARK, 5, "park", WORDS, OFTEN, "the worker has nothing to do and waits") \
		F(PARK, DEPTH, "depth", U64, "1", VALUE) E(PARK) \
	K(UNPARK, 6, "unpark", WORDS, OFTEN, "the worker goes on") \
		F(UNPARK, DEPTH, "depth", U64, "1", VALUE) E(UNPARK) \
	K(SPAWN, 7, "spawn", PAIR, OFTEN, "a task is spawned") \
		F(SPAWN, TASK, "task", TASK, "", VALUE) \
		F(SPAWN, LOCATION, "location", LOCATION, "", VALUE) E(SPAWN) \
	K(TASK_END, 8, "task_end", WORDS, OFTEN, "a task ended") \
		F(TASK_END, TASK, "task", TASK, "", VALUE) E(TASK_END) \
	K(WAKE, 9, "wake", PAIR, OFTEN, "the task was made ready, for that worker (65535: not known)") \
		F(WAKE, TASK, "task", TASK, "", VALUE) \
		F(WAKE, WORKER, "worker", WORKER, "", VALUE) E(WAKE) \
	K(QUEUE, 10, "queue", PAIR, RARE, "depth of the runtime's global queue") \
		F(QUEUE, DEPTH, "depth", U64, "1", VALUE) \
		F(QUEUE, RUNTIME, "runtime", U64, "", VALUE) E(QUEUE) \
	K(SCHED, 11, "sched", WORDS, RARE, "the thread's time on CPUs and in run queues so far") \
		F(SCHED, CPU, "cpu", U64, "ns", VALUE) \
		F(SCHED, RUNQUEUE, "runqueue", U64, "ns", VALUE) E(SCHED) \
	K(WORKER, 12, "worker", WORDS, RARE, "the worker that this thread now is (65535: none)") \
		F(WORKER, WORKER, "worker", WORKER, "", WORKER) E(WORKER) \
	K(SAMPLE, 13, "sample", SAMPLE, RARE, "what the thread did at that moment") \
		F(SAMPLE, STACK, "stack", STACK, "", STACK) \
		F(SAMPLE, KERNEL, "kernel", STACK, "", STACK) \
		F(SAMPLE, WEIGHT, "weight", U64, "ns", VALUE) \
		F(SAMPLE, CPU, "cpu", U64, "", VALUE) \
		F(SAMPLE, ENGINE, "engine", U64, "", VALUE) E(SAMPLE) \
	K(POLL_NEXT, 14, "poll_next", PAIR, OFTEN, "poll_end and poll_begin at the same time") \
		F(POLL_NEXT, TASK, "task", TASK, "", VALUE) \
		F(POLL_NEXT, DEPTH, "depth", U64, "1", VALUE) E(POLL_NEXT) \
	K(OFFCPU, 15, "offcpu", WORDS, RARE, "a thread was off the CPU") \
		F(OFFCPU, TID, "tid", U64, "", VALUE) \
		F(OFFCPU, BEGIN, "begin", U64, "ns", VALUE) \
		F(OFFCPU, DURATION, "duration", U64, "ns", VALUE) \
		F(OFFCPU, REASON, "reason", U64, "", VALUE) \
		F(OFFCPU, COUNT, "count", U64, "1", VALUE) \
		F(OFFCPU, STACK, "stack", STACK, "", STACK) \
		F(OFFCPU, KERNEL, "kernel", STACK, "", STACK) E(OFFCPU) \
	K(WAIT, 16, "wait", WORDS, RARE, "the thread waited until now") \
		F(WAIT, WHAT, "what", U64, "", VALUE) \
		F(WAIT, NAME, "name", STRING, "", VALUE) \
		F(WAIT, OBJECT, "object", U64, "", VALUE) \
		F(WAIT, DURATION, "duration", U64, "ns", VALUE) \
		F(WAIT, HOLDER, "holder", U64, "", VALUE) \
		F(WAIT, STACK, "stack", STACK, "", STACK) \
		F(WAIT, CPU, "cpu", U64, "ns", VALUE) \
		F(WAIT, READY, "ready", U64, "ns", VALUE) E(WAIT) \
	K(WAIT_SUM, 17, "wait_sum", WORDS, RARE, "shorter waits of the thread since the last one of these") \
		F(WAIT_SUM, WHAT, "what", U64, "", VALUE) \
		F(WAIT_SUM, NAME, "name", STRING, "", VALUE) \
		F(WAIT_SUM, COUNT, "count", U64, "1", VALUE) \
		F(WAIT_SUM, TOTAL, "total", U64, "ns", VALUE) \
		F(WAIT_SUM, LONGEST, "longest", U64, "ns", VALUE) E(WAIT_SUM) \
	K(CONTEXT, 18, "context", WORDS, RARE, "what the thread works for from here on") \
		F(CONTEXT, TRACE_HI, "trace_hi", U64, "", VALUE) \
		F(CONTEXT, TRACE_LO, "trace_lo", U64, "", VALUE) \
		F(CONTEXT, SPAN, "span", U64, "", VALUE) \
		F(CONTEXT, ROOT, "root", U64, "", VALUE) \
		F(CONTEXT, ENDPOINT, "endpoint", STRING, "", VALUE) \
		F(CONTEXT, LABELS, "labels", STRING, "", VALUE) E(CONTEXT) \
	K(POLL, 19, "poll", WORDS, RARE, "a whole poll, recorded at its end") \
		F(POLL, TASK, "task", TASK, "", VALUE) \
		F(POLL, DEPTH, "depth", U64, "1", VALUE) \
		F(POLL, DURATION, "duration", U64, "ns", VALUE) \
		F(POLL, LEVEL, "level", U64, "1", VALUE) \
		F(POLL, WHY, "why", U64, "", VALUE) E(POLL) \
	K(POLL_COUNT, 20, "poll_count", WORDS, RARE, "polls of a thread (stream id), by length") \
		F(POLL_COUNT, THREAD, "thread", U64, "", THREAD) \
		F(POLL_COUNT, FROM, "from", U64, "ns", VALUE) \
		F(POLL_COUNT, BELOW, "below", U64, "ns", VALUE) \
		F(POLL_COUNT, COUNT, "count", U64, "1", VALUE) E(POLL_COUNT) \
	K(WALL, 21, "wall", WORDS, RARE, "a thread waited") \
		F(WALL, TID, "tid", U64, "", VALUE) \
		F(WALL, WEIGHT, "weight", U64, "ns", VALUE) \
		F(WALL, COUNT, "count", U64, "1", VALUE) \
		F(WALL, CALL, "call", U64, "", VALUE) \
		F(WALL, STACK, "stack", STACK, "", STACK) E(WALL) \
	K(STUCK, 22, "stuck", WORDS, RARE, "a poll that does not end") \
		F(STUCK, TID, "tid", U64, "", VALUE) \
		F(STUCK, TASK, "task", TASK, "", VALUE) \
		F(STUCK, AGE, "age", U64, "ns", VALUE) \
		F(STUCK, STACK, "stack", STACK, "", STACK) E(STUCK) \
	K(COST, 23, "cost", WORDS, RARE, "what weft itself used") \
		F(COST, WHAT, "what", U64, "", VALUE) \
		F(COST, TIME, "time", U64, "ns", VALUE) \
		F(COST, SPAN, "span", U64, "ns", VALUE) \
		F(COST, RATE, "rate", U64, "Hz", VALUE) E(COST) \
	K(THROTTLED, 24, "throttled", WORDS, RARE, "what a CPU quota withheld") \
		F(THROTTLED, SPAN, "span", U64, "ns", VALUE) \
		F(THROTTLED, TIME, "time", U64, "ns", VALUE) \
		F(THROTTLED, TIMES, "times", U64, "1", VALUE) \
		F(THROTTLED, PERIODS, "periods", U64, "1", VALUE) \
		F(THROTTLED, PRESSURE, "pressure", U64, "ns", VALUE) E(THROTTLED) \
	K(HELD, 25, "held", WORDS, RARE, "who held the lock of the wait that follows") \
		F(HELD, HOLDER, "holder", U64, "", VALUE) \
		F(HELD, OBJECT, "object", U64, "", VALUE) \
		F(HELD, AGO, "ago", U64, "ns", VALUE) \
		F(HELD, SPAN, "span", U64, "ns", VALUE) \
		F(HELD, TIME, "time", U64, "ns", VALUE) E(HELD) \
	K(PENDING, 26, "pending", WORDS, RARE, "a wait that does not end") \
		F(PENDING, TID, "tid", U64, "", VALUE) \
		F(PENDING, WHAT, "what", U64, "", VALUE) \
		F(PENDING, NAME, "name", STRING, "", VALUE) \
		F(PENDING, OBJECT, "object", U64, "", VALUE) \
		F(PENDING, HOLDER, "holder", U64, "", VALUE) \
		F(PENDING, AGE, "age", U64, "ns", VALUE) \
		F(PENDING, STACK, "stack", STACK, "", STACK) \
		F(PENDING, HOLDER_STACK, "holder_stack", STACK, "", STACK) E(PENDING) \
	K(POLL_CPU, 27, "poll_cpu", WORDS, RARE, "what the poll that ends next was on the CPU") \
		F(POLL_CPU, CPU, "cpu", U64, "ns", VALUE) \
		F(POLL_CPU, READY, "ready", U64, "ns", VALUE) \
		F(POLL_CPU, UNSURE, "unsure", U64, "ns", VALUE) \
		F(POLL_CPU, WAITING, "waiting", U64, "ns", VALUE) E(POLL_CPU) \
	K(THREAD_CPU, 28, "thread_cpu", WORDS, RARE, "the CPU time of a thread that switches often") \
		F(THREAD_CPU, TID, "tid", U64, "", VALUE) \
		F(THREAD_CPU, CPU, "cpu", U64, "ns", VALUE) E(THREAD_CPU) \
	K(CPU, 29, "cpu", WORDS, RARE, "CPU time of the process, and what samples stand for") \
		F(CPU, SPAN, "span", U64, "ns", VALUE) \
		F(CPU, PROCESS, "process", U64, "ns", VALUE) \
		F(CPU, SAMPLED, "sampled", U64, "ns", VALUE) \
		F(CPU, THREADS, "threads", U64, "1", VALUE) \
		F(CPU, UNSAMPLED, "unsampled", U64, "ns", VALUE) E(CPU) \
	K(MODE, 30, "mode", WORDS, RARE, "how detailed events are from here on, and why") \
		F(MODE, LEVEL, "level", U64, "", VALUE) \
		F(MODE, SLOW, "slow", U64, "ns", VALUE) \
		F(MODE, EVENTS, "events", U64, "Hz", VALUE) \
		F(MODE, COST, "cost", U64, "ppm", VALUE) \
		F(MODE, ALLOWED, "allowed", U64, "ppm", VALUE) E(MODE) \
	K(COUNTED, 31, "counted", WORDS, RARE, "events that were only counted") \
		F(COUNTED, KIND, "kind", U64, "", VALUE) \
		F(COUNTED, COUNT, "count", U64, "1", VALUE) \
		F(COUNTED, SPAN, "span", U64, "ns", VALUE) E(COUNTED) \
	K(PARKED, 32, "parked", WORDS, RARE, "a park of 1 ms or longer that ends, where parks are counted") \
		F(PARKED, DURATION, "duration", U64, "ns", VALUE) E(PARKED) \
	K(PARK_COUNT, 33, "park_count", WORDS, RARE, "parks of a thread (stream id), only counted, and their time") \
		F(PARK_COUNT, THREAD, "thread", U64, "", THREAD) \
		F(PARK_COUNT, COUNT, "count", U64, "1", VALUE) \
		F(PARK_COUNT, TIME, "time", U64, "ns", VALUE) \
		F(PARK_COUNT, SPAN, "span", U64, "ns", VALUE) E(PARK_COUNT) \
	K(WOKEN, 34, "woken", WORDS, RARE, "the wake of the poll that follows, where wakes were only counted") \
		F(WOKEN, TID, "tid", U64, "", VALUE) \
		F(WOKEN, BY, "by", TASK, "", VALUE) \
		F(WOKEN, AGO, "ago", U64, "ns", VALUE) \
		F(WOKEN, ALONE, "alone", U64, "ns", VALUE) E(WOKEN) \
	K(TASK_WAIT, 35, "task_wait", WORDS, RARE, "a task begins to wait, and where") \
		F(TASK_WAIT, TASK, "task", TASK, "", VALUE) \
		F(TASK_WAIT, STACK, "stack", STACK, "", STACK) E(TASK_WAIT) \
	K(ALLOC, 36, "alloc", WORDS, RARE, "the thread allocated; it stands for others that were not recorded") \
		F(ALLOC, NAME, "name", STRING, "", VALUE) \
		F(ALLOC, COUNT, "count", U64, "1", VALUE) \
		F(ALLOC, BYTES, "bytes", U64, "By", VALUE) \
		F(ALLOC, STACK, "stack", STACK, "", STACK) E(ALLOC)

#define WEFT_KIND_NONE(...) /* for what is not needed */

enum weft_kind {
#define X(NAME, number, ...) WEFT_KIND_##NAME = number,
	WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
	WEFT_KIND_BUILTIN_END, /* one past the last above */
	WEFT_KIND_USER = 64,   /* first of weft_event_define */
	WEFT_KIND_REFUSED = 0xffff, /* of which nothing is ever defined: events of definitions that were refused */
};

/* A field of an event of that kind: WEFT_FIELD(ev, WAKE, TASK). */
#define WEFT_FIELD(ev, KIND, NAME) ((ev)->fields[WEFT_FIELD_##KIND##_##NAME])

/* Where a field is in an event, as WEFT_FIELD_WAKE_TASK; WEFT_FIELDS_OF_WAKE is how many a wake has. */
#define X(NAME, ...) enum weft_fields_of_##NAME {
#define Y(KIND, NAME, ...) WEFT_FIELD_##KIND##_##NAME,
#define Z(NAME) WEFT_FIELDS_OF_##NAME };
WEFT_KINDS(X, Y, Z)
#undef X
#undef Y
#undef Z
/* clang-format on */

/* Fields that are numbers of a list. */
enum weft_offcpu { WEFT_OFFCPU_BLOCKED = 1, WEFT_OFFCPU_PREEMPTED = 2 };
enum weft_poll_why { WEFT_POLL_SLOW = 1, WEFT_POLL_CAUGHT = 2 }; /* added up */
enum weft_cost {
	WEFT_COST_COLLECTOR = 1,
	WEFT_COST_SAMPLES = 2, /* in handlers, on the threads of the program */
	WEFT_COST_SWITCH = 3,  /* records of context switches, in the kernel */
	WEFT_COST_WALL = 4,
	WEFT_COST_WAITS = 5,
	WEFT_COST_TABLES = 6,
	WEFT_COST_SYMBOLS = 7,
	WEFT_COST_EVENTS = 8, /* emitting them, on the threads of the program */
	WEFT_COST_SHIP = 9,   /* what goes to targets, profiles included; and whose code it is */
};

/* How detailed events are, when the recorder chooses: the field `level` of kind mode. From all it goes to slow,
 * parks and counted, and from any of these to untimed. */
enum weft_detail {
	WEFT_DETAIL_ALL = 0,
	WEFT_DETAIL_SLOW = 1, /* of polls only those of `slow` and longer; all are counted */
	WEFT_DETAIL_PARKS =
		3, /* and parks and queue depths are counted only, in events of kinds park_count and counted */
	WEFT_DETAIL_COUNTED =
		/* and wakes are counted only, in events of kind counted; polls that are recorded have theirs in
		 * woken */
	2,
	WEFT_DETAIL_UNTIMED =
		/* and of most polls only the number is known, of durations from 0 on without an upper bound: the
		 * others are those of short times, spread at random, in which the level is WEFT_DETAIL_COUNTED */
	4,
};

#define WEFT_NOT_MEASURED UINT64_MAX /* a field `cpu`, `ready` or `unsure` of which nothing is known */

#define WEFT_TASK_BITS 48
#define WEFT_TASK_MASK ((UINT64_C(1) << WEFT_TASK_BITS) - 1)
#define WEFT_DEPTH_UNKNOWN 0xffffu /* a queue depth that was not measured */

#endif
