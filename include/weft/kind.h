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
	  {"weight", WEFT_TYPE_U64, "ns"}, {"cpu", WEFT_TYPE_U64, ""}, {"engine", WEFT_TYPE_U64, ""})

/* clang-format off */
enum weft_kind {
#define X(NAME, number, ...) WEFT_KIND_##NAME = number,
	WEFT_KIND_MAP(X)
#undef X
	WEFT_KIND_BUILTIN_END, /* one past the last above */
	WEFT_KIND_USER = 64,   /* first of weft_event_define */
};
/* clang-format on */

#define WEFT_TASK_BITS 48
#define WEFT_TASK_MASK ((UINT64_C(1) << WEFT_TASK_BITS) - 1)
#define WEFT_DEPTH_UNKNOWN 0xffffu /* a queue depth that was not measured */

#endif
