/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of event that weft itself defines, with their fields in the order in which readers see them. The numbers are
 * part of the segment format (docs/FORMAT.md) and never change; kinds from WEFT_KIND_USER on are the program's own. */
#ifndef WEFT_KIND_H
#define WEFT_KIND_H

#include "define.h"

/* X(NAME, number, "name", n_fields, fields...), each field {"name", WEFT_TYPE_..., "unit"}; a kind without fields has {0}. */
#define WEFT_KIND_MAP(X)                                                                                               \
	X(THREAD_BEGIN, 1, "thread_begin", 1, {"tid", WEFT_TYPE_U64, ""})                                              \
	X(THREAD_END, 2, "thread_end", 0, {0})                                                                         \
	X(POLL_BEGIN, 3, "poll_begin", 2, {"task", WEFT_TYPE_TASK, ""}, {"depth", WEFT_TYPE_U64, "1"})                 \
	X(POLL_END, 4, "poll_end", 0, {0})                                                                             \
	X(PARK, 5, "park", 1, {"depth", WEFT_TYPE_U64, "1"})                                                           \
	X(UNPARK, 6, "unpark", 1, {"depth", WEFT_TYPE_U64, "1"})                                                       \
	X(SPAWN, 7, "spawn", 2, {"task", WEFT_TYPE_TASK, ""}, {"location", WEFT_TYPE_LOCATION, ""})                    \
	X(TASK_END, 8, "task_end", 1, {"task", WEFT_TYPE_TASK, ""})                                                    \
	X(WAKE, 9, "wake", 2, {"task", WEFT_TYPE_TASK, ""}, {"worker", WEFT_TYPE_WORKER, ""})                          \
	X(QUEUE, 10, "queue", 2, {"depth", WEFT_TYPE_U64, "1"}, {"runtime", WEFT_TYPE_U64, ""})                        \
	X(SCHED, 11, "sched", 2, {"cpu", WEFT_TYPE_U64, "ns"}, {"runqueue", WEFT_TYPE_U64, "ns"})                      \
	X(WORKER, 12, "worker", 1, {"worker", WEFT_TYPE_WORKER, ""})                                                   \
	X(SAMPLE, 13, "sample", 5, {"stack", WEFT_TYPE_STACK, ""}, {"kernel", WEFT_TYPE_STACK, ""},                    \
	  {"weight", WEFT_TYPE_U64, "ns"}, {"cpu", WEFT_TYPE_U64, ""}, {"engine", WEFT_TYPE_U64, ""})                  \
	X(POLL_NEXT, 14, "poll_next", 2, {"task", WEFT_TYPE_TASK, ""}, {"depth", WEFT_TYPE_U64, "1"})                  \
	X(OFFCPU, 15, "offcpu", 7, {"tid", WEFT_TYPE_U64, ""}, {"begin", WEFT_TYPE_U64, "ns"},                         \
	  {"duration", WEFT_TYPE_U64, "ns"}, {"reason", WEFT_TYPE_U64, ""}, {"count", WEFT_TYPE_U64, "1"},             \
	  {"stack", WEFT_TYPE_STACK, ""}, {"kernel", WEFT_TYPE_STACK, ""})                                             \
	X(WAIT, 16, "wait", 8, {"what", WEFT_TYPE_U64, ""}, {"name", WEFT_TYPE_STRING, ""},                            \
	  {"object", WEFT_TYPE_U64, ""}, {"duration", WEFT_TYPE_U64, "ns"}, {"holder", WEFT_TYPE_U64, ""},             \
	  {"stack", WEFT_TYPE_STACK, ""}, {"cpu", WEFT_TYPE_U64, "ns"}, {"ready", WEFT_TYPE_U64, "ns"})                \
	X(WAIT_SUM, 17, "wait_sum", 5, {"what", WEFT_TYPE_U64, ""}, {"name", WEFT_TYPE_STRING, ""},                    \
	  {"count", WEFT_TYPE_U64, "1"}, {"total", WEFT_TYPE_U64, "ns"}, {"longest", WEFT_TYPE_U64, "ns"})             \
	X(CONTEXT, 18, "context", 6, {"trace_hi", WEFT_TYPE_U64, ""}, {"trace_lo", WEFT_TYPE_U64, ""},                 \
	  {"span", WEFT_TYPE_U64, ""}, {"root", WEFT_TYPE_U64, ""}, {"endpoint", WEFT_TYPE_STRING, ""},                \
	  {"labels", WEFT_TYPE_STRING, ""})                                                                            \
	X(POLL, 19, "poll", 5, {"task", WEFT_TYPE_TASK, ""}, {"depth", WEFT_TYPE_U64, "1"},                            \
	  {"duration", WEFT_TYPE_U64, "ns"}, {"level", WEFT_TYPE_U64, "1"}, {"why", WEFT_TYPE_U64, ""})                \
	X(POLL_COUNT, 20, "poll_count", 4, {"thread", WEFT_TYPE_U64, ""}, {"from", WEFT_TYPE_U64, "ns"},               \
	  {"below", WEFT_TYPE_U64, "ns"}, {"count", WEFT_TYPE_U64, "1"})                                               \
	X(WALL, 21, "wall", 5, {"tid", WEFT_TYPE_U64, ""}, {"weight", WEFT_TYPE_U64, "ns"},                            \
	  {"count", WEFT_TYPE_U64, "1"}, {"call", WEFT_TYPE_U64, ""}, {"stack", WEFT_TYPE_STACK, ""})                  \
	X(STUCK, 22, "stuck", 4, {"tid", WEFT_TYPE_U64, ""}, {"task", WEFT_TYPE_TASK, ""},                             \
	  {"age", WEFT_TYPE_U64, "ns"}, {"stack", WEFT_TYPE_STACK, ""})                                                \
	X(COST, 23, "cost", 4, {"what", WEFT_TYPE_U64, ""}, {"time", WEFT_TYPE_U64, "ns"},                             \
	  {"span", WEFT_TYPE_U64, "ns"}, {"rate", WEFT_TYPE_U64, "Hz"})                                                \
	X(THROTTLED, 24, "throttled", 5, {"span", WEFT_TYPE_U64, "ns"}, {"time", WEFT_TYPE_U64, "ns"},                 \
	  {"times", WEFT_TYPE_U64, "1"}, {"periods", WEFT_TYPE_U64, "1"}, {"pressure", WEFT_TYPE_U64, "ns"})           \
	X(HELD, 25, "held", 5, {"holder", WEFT_TYPE_U64, ""}, {"object", WEFT_TYPE_U64, ""},                           \
	  {"ago", WEFT_TYPE_U64, "ns"}, {"span", WEFT_TYPE_U64, "ns"}, {"time", WEFT_TYPE_U64, "ns"})                  \
	X(PENDING, 26, "pending", 8, {"tid", WEFT_TYPE_U64, ""}, {"what", WEFT_TYPE_U64, ""},                          \
	  {"name", WEFT_TYPE_STRING, ""}, {"object", WEFT_TYPE_U64, ""}, {"holder", WEFT_TYPE_U64, ""},                \
	  {"age", WEFT_TYPE_U64, "ns"}, {"stack", WEFT_TYPE_STACK, ""}, {"holder_stack", WEFT_TYPE_STACK, ""})         \
	X(POLL_CPU, 27, "poll_cpu", 4, {"cpu", WEFT_TYPE_U64, "ns"}, {"ready", WEFT_TYPE_U64, "ns"},                   \
	  {"unsure", WEFT_TYPE_U64, "ns"}, {"waiting", WEFT_TYPE_U64, "ns"})                                           \
	X(THREAD_CPU, 28, "thread_cpu", 2, {"tid", WEFT_TYPE_U64, ""}, {"cpu", WEFT_TYPE_U64, "ns"})                   \
	X(CPU, 29, "cpu", 5, {"span", WEFT_TYPE_U64, "ns"}, {"process", WEFT_TYPE_U64, "ns"},                          \
	  {"sampled", WEFT_TYPE_U64, "ns"}, {"threads", WEFT_TYPE_U64, "1"}, {"unsampled", WEFT_TYPE_U64, "ns"})       \
	X(MODE, 30, "mode", 5, {"level", WEFT_TYPE_U64, ""}, {"slow", WEFT_TYPE_U64, "ns"},                            \
	  {"events", WEFT_TYPE_U64, "Hz"}, {"cost", WEFT_TYPE_U64, "ppm"}, {"allowed", WEFT_TYPE_U64, "ppm"})          \
	X(COUNTED, 31, "counted", 3, {"kind", WEFT_TYPE_U64, ""}, {"count", WEFT_TYPE_U64, "1"},                       \
	  {"span", WEFT_TYPE_U64, "ns"})                                                                               \
	X(PARKED, 32, "parked", 1, {"duration", WEFT_TYPE_U64, "ns"})                                                  \
	X(PARK_COUNT, 33, "park_count", 4, {"thread", WEFT_TYPE_U64, ""}, {"count", WEFT_TYPE_U64, "1"},               \
	  {"time", WEFT_TYPE_U64, "ns"}, {"span", WEFT_TYPE_U64, "ns"})                                                \
	X(WOKEN, 34, "woken", 4, {"tid", WEFT_TYPE_U64, ""}, {"by", WEFT_TYPE_TASK, ""}, {"ago", WEFT_TYPE_U64, "ns"}, \
	  {"alone", WEFT_TYPE_U64, "ns"})

/* clang-format off */
enum weft_kind {
#define X(NAME, number, ...) WEFT_KIND_##NAME = number,
	WEFT_KIND_MAP(X)
#undef X
	WEFT_KIND_BUILTIN_END, /* one past the last above */
	WEFT_KIND_USER = 64,   /* first of weft_event_define */
	WEFT_KIND_REFUSED = 0xffff, /* of which nothing is ever defined: events of definitions that were refused */
};
/* clang-format on */

/* From this one on a kind's fields are whole words in its slots. */
#define WEFT_KIND_WIDE WEFT_KIND_OFFCPU

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
};

/* How detailed events are, when the recorder chooses: the field `level` of kind mode. From all it goes to slow, parks and counted. */
enum weft_detail {
	WEFT_DETAIL_ALL = 0,
	WEFT_DETAIL_SLOW = 1, /* of polls only those of `slow` and longer; all are counted */
	WEFT_DETAIL_PARKS =
		3, /* and parks and queue depths are counted only, in events of kinds park_count and counted */
	WEFT_DETAIL_COUNTED =
		2, /* and wakes are counted only, in events of kind counted; polls that are told have theirs in woken */
};

#define WEFT_NOT_MEASURED UINT64_MAX /* a field `cpu`, `ready` or `unsure` of which nothing is known */

#define WEFT_TASK_BITS 48
#define WEFT_TASK_MASK ((UINT64_C(1) << WEFT_TASK_BITS) - 1)
#define WEFT_DEPTH_UNKNOWN 0xffffu /* a queue depth that was not measured */

#endif
