/* SPDX-License-Identifier: Apache-2.0 */
/* Every table of the trace and every column, declared once. The SQL schema, docs/TABLES.md and the public reader are
 * made from this.
 *
 * A table is T(NAME, name, what a row is). A column is C(NAME, name, type, flags, unit, meaning, when it is NULL),
 * where the last is "" for one that never is. Types: INT; TEXT; HEX, a number of 64 bits whose text is 16 hex digits;
 * TRACE, the id of a trace, 32 hex digits. Flags: KEY, rows are found by it without a scan; END, rows come in order of
 * it as far as reading may stop there; 0. Times are ns from the start of the recording. Names are stable: columns may
 * be added behind the last, none is renamed. */
#ifndef WEFT_TRACE_TABLES_H
#define WEFT_TRACE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "trace/summaries.h"

/* clang-format off */
#define WEFT__TABLES(T) \
	T(POLL, poll, "One poll of a task: one turn of the event loop where there are no tasks. In modes that do " \
	  "not record every poll, only those that were recorded; poll_count has the others.") \
	T(SLICE, slice, "Some of a poll's time: one part of its breakdown in one interval. The slices of a poll " \
	  "add up to its parts.") \
	T(WAIT, wait, "One wait that was recorded by itself: a lock, a condition, a blocking call.") \
	T(WAIT_SUM, wait_sum, \
	  "Waits that were too short to be recorded one by one, added up by thread, kind and name over a while.") \
	T(SAMPLE, sample, "One CPU sample.") \
	T(OFFCPU, offcpu, "One interval in which a thread was off the CPU, by the kernel's context switches.") \
	T(WAKE, wake, \
	  "One wake that a poll began after: who woke the task, and how long it took until it was polled.") \
	T(PARK, park, "One time that a worker had nothing to do and waited in its event loop. Where parks are " \
	  "counted (park_count), only those of 1 ms and longer.") \
	T(PARK_COUNT, park_count, \
	  "Parks of a worker over a while in which they were counted, not recorded one by one.") \
	T(QUEUE, queue, "One reading of the depth of a runtime's global queue.") \
	T(STUCK, stuck, \
	  "A poll that the watchdog found while it was still running. One row for each time it looked.") \
	T(EVENT, event, "One event of the program's own kinds, or of kinds that this version does not know.") \
	T(CONTEXT, context, "One change of a thread's context: what it works for from then on.") \
	T(WALL, wall, "What a thread was found waiting in, by wall samples.") \
	T(POLL_COUNT, poll_count, \
	  "Polls counted by duration, of threads whose polls are not all recorded one by one.") \
	T(LOSS, loss, "Something that is missing, and why.") \
	T(COST, cost, "What weft itself cost over a while.") \
	T(RECORDING, recording, "One recording: a run of a process, or one dump of its flight recorder.") \
	T(THREAD, thread, "One thread that recorded events.") \
	T(WORKER, worker, "One worker of a runtime.") \
	T(LOCATION, location, "One location in the code where tasks are spawned.") \
	T(TASK, task, \
	  "One task that was spawned or polled; no event loop that weft run found. At most 1 Mi at one time.") \
	T(MODULE, module, "One file that was mapped as code.") \
	T(STACK, stack, "One stack of calls.") \
	T(FRAME, frame, "One frame of a stack; more than one for a place where calls were inlined.") \
	T(ALLOC, alloc, "One allocation that was recorded, and stands for others. A runtime's binding records them " \
	  "where it is asked to.")

#define WEFT__WHO(C, P) \
	C(P##_RECORDING, recording, INT, 0, "", "Number of the recording, from 0 on, as in table recording.", "") \
	C(P##_THREAD_ID, thread_id, INT, 0, "", "The thread, as in table thread.", \
	  "the thread recorded nothing itself") \
	C(P##_TID, tid, INT, 0, "", "The thread's number in the operating system.", "nothing names the thread") \
	C(P##_THREAD, thread, TEXT, 0, "", "The thread's name.", "nothing names the thread") \
	C(P##_WORKER_ID, worker_id, INT, 0, "", "The worker that the thread was, as in table worker.", \
	  "it was none") \
	C(P##_WORKER, worker, TEXT, 0, "", "Runtime and index of that worker, as demo/1.", "it was none")

#define WEFT__CONTEXT(C, P) \
	C(P##_SPAN, span, HEX, 0, "", "Span of the context.", "there was none") \
	C(P##_ROOT_SPAN, root_span, HEX, 0, "", "Local root span of the context.", "there was none") \
	C(P##_TRACE, trace, TRACE, 0, "", "Trace of the context.", "there was none") \
	C(P##_ENDPOINT, endpoint, TEXT, 0, "", "Endpoint of the context.", "there was none") \
	C(P##_LABELS, labels, TEXT, 0, "", "Labels of the context.", "there were none")

#define WEFT__COLUMNS_POLL(C) \
	C(POLL_ID, id, INT, KEY, "", "Number of the poll. Other tables name it as poll_id.", "") \
	WEFT__WHO(C, POLL) \
	C(POLL_TASK, task, INT, 0, "", "Number of the task, as the program gave it.", \
	  "it is a tick of an event loop that weft run found") \
	C(POLL_LOCATION_ID, location_id, INT, 0, "", "Where the task was spawned, as in table location.", \
	  "its spawn was not recorded, or gave no location") \
	C(POLL_LOCATION, location, TEXT, 0, "", "Name of that location; in brackets why there is none.", "") \
	C(POLL_BEGIN_NS, begin_ns, INT, 0, "ns", "When the poll began.", "") \
	C(POLL_END_NS, end_ns, INT, END, "ns", "When it ended.", "it was still running as the recording ended") \
	C(POLL_DURATION_NS, duration_ns, INT, 0, "ns", "How long it took; of one that still ran, so far.", "") \
	C(POLL_ON_CPU_NS, on_cpu_ns, INT, 0, "ns", "Of that: on the CPU.", \
	  "the thread's CPU time and switches were not recorded, and no sample fell into the poll") \
	C(POLL_BLOCKED_NS, blocked_ns, INT, 0, "ns", "Of that: blocked, in a call or elsewhere in the kernel.", \
	  "the thread's CPU time and switches were not recorded, and no other event says that it was") \
	C(POLL_WAITING_NS, waiting_ns, INT, 0, "ns", "Of that: waiting for a lock or a runtime.", \
	  "waits were not recorded") \
	C(POLL_PREEMPTED_NS, preempted_ns, INT, 0, "ns", "Of that: ready, but without a CPU.", \
	  "the thread's CPU time and switches were not recorded") \
	C(POLL_THROTTLED_NS, throttled_ns, INT, 0, "ns", "Of preempted_ns: by a CPU quota.", \
	  "preempted_ns is not known") \
	C(POLL_NOT_MEASURED_NS, not_measured_ns, INT, 0, "ns", "Of duration_ns: not known what it was spent on.", \
	  "") \
	C(POLL_SAMPLES, samples, INT, 0, "1", "CPU samples in it and in polls nested in it.", "sampling was off") \
	C(POLL_SAMPLED_NS, sampled_ns, INT, 0, "ns", "CPU time that they stand for.", "sampling was off") \
	C(POLL_QUEUE_DEPTH, queue_depth, INT, 0, "1", "Tasks in the worker's queue as it began.", \
	  "the runtime does not say") \
	C(POLL_NESTED_IN, nested_in, INT, 0, "1", "Polls that it is nested in; 0: outermost.", "") \
	C(POLL_WAKES_ISSUED, wakes_issued, INT, 0, "1", "Wakes that it issued itself.", \
	  "it was recorded as a whole, at its end") \
	C(POLL_WAKE_NS, wake_ns, INT, 0, "ns", "When the task was woken.", \
	  "no wake since the task's last poll was recorded") \
	C(POLL_WAKE_DELAY_NS, wake_delay_ns, INT, 0, "ns", "From there to the begin of the poll.", \
	  "no wake, events are missing in between, or an earlier wake may be the one") \
	C(POLL_WAKER_THREAD_ID, waker_thread_id, INT, 0, "", "The thread that woke it, as in table thread.", \
	  "no wake was recorded") \
	C(POLL_WAKER_WORKER, waker_worker, TEXT, 0, "", "The worker that woke it, or name(tid) of the thread.", \
	  "no wake was recorded") \
	C(POLL_WAKER_TASK, waker_task, INT, 0, "", "The task that woke it.", \
	  "it was woken outside any poll that is known") \
	C(POLL_WAKER_LOCATION, waker_location, TEXT, 0, "", "Where that task was spawned.", \
	  "it was woken outside any poll that is known") \
	C(POLL_BEHIND_POLL_ID, behind_poll_id, INT, 0, "", \
	  "The poll that held the worker longest while this one's task waited.", \
	  "there was none, or wake_delay_ns is not known") \
	C(POLL_BEHIND_NS, behind_ns, INT, 0, "ns", "For how long of that wait.", "as behind_poll_id") \
	WEFT__CONTEXT(C, POLL)

#define WEFT__COLUMNS_SLICE(C) \
	C(SLICE_POLL_ID, poll_id, INT, 0, "", "The poll.", "") \
	WEFT__WHO(C, SLICE) \
	C(SLICE_LOCATION, location, TEXT, 0, "", "Where the poll's task was spawned.", "") \
	C(SLICE_PART, part, TEXT, 0, "", "on_cpu, blocked, waiting, preempted or not_measured.", "") \
	C(SLICE_DURATION_NS, duration_ns, INT, 0, "ns", "How much of the poll it is.", "") \
	C(SLICE_BEGIN_NS, begin_ns, INT, 0, "ns", "Begin of the interval that it is in.", \
	  "it is not known when in the poll it was") \
	C(SLICE_END_NS, end_ns, INT, 0, "ns", "End of the interval that it is in.", "as begin_ns") \
	C(SLICE_KIND, kind, TEXT, 0, "", "What it waited for, as in table wait.", "no event said so") \
	C(SLICE_NAME, name, TEXT, 0, "", "Name of what it waited for, or of the call.", \
	  "no event said so, or it has no name") \
	C(SLICE_OBJECT, object, HEX, 0, "", "Address of the lock.", "of a call, or no event said so") \
	C(SLICE_FD, fd, INT, 0, "", "Descriptor that a call waited for.", \
	  "not of a call, or of one without a descriptor") \
	C(SLICE_ABOUT, about, TEXT, 0, "", "What that descriptor was.", "not known") \
	C(SLICE_SYSCALL, syscall, INT, 0, "", \
	  "Number of the call of the system in which a wall sample found the thread.", "no wall sample said so") \
	C(SLICE_STACK_ID, stack_id, INT, 0, "", "Where it was, as in table stack.", "no stack was recorded") \
	C(SLICE_KERNEL_STACK_ID, kernel_stack_id, INT, 0, "", "Where it was in the kernel.", \
	  "no stack was recorded") \
	C(SLICE_FUNCTION, function, TEXT, 0, "", "Innermost function of these stacks.", "no stack was recorded") \
	C(SLICE_OBJECT_NAME, object_name, TEXT, 0, "", \
	  "What the lock is called: as the program named it, or the variable that it is.", \
	  "no event said so, of a call, or the lock has no name and is no variable of a file that is here")

#define WEFT__COLUMNS_WAIT(C) \
	WEFT__WHO(C, WAIT) \
	C(WAIT_KIND, kind, TEXT, 0, "", "lock, read-write lock, condition, semaphore, call, runtime lock, garbage " \
	  "collection, pause, end of a thread, other.", "") \
	C(WAIT_NAME, name, TEXT, 0, "", "Name of what was waited for, or of the call.", "it has none") \
	C(WAIT_OBJECT, object, HEX, 0, "", "Address of the lock.", "of a call, or not recorded") \
	C(WAIT_FD, fd, INT, 0, "", "Descriptor that a call waited for.", \
	  "not of a call, or of one without a descriptor") \
	C(WAIT_ABOUT, about, TEXT, 0, "", "What that descriptor was.", "not known") \
	C(WAIT_BEGIN_NS, begin_ns, INT, 0, "ns", "When the wait began.", "") \
	C(WAIT_END_NS, end_ns, INT, END, "ns", "When it ended.", "") \
	C(WAIT_DURATION_NS, duration_ns, INT, 0, "ns", \
	  "How long was waited: of a call without what it was on the CPU or ready for one.", "") \
	C(WAIT_ON_CPU_NS, on_cpu_ns, INT, 0, "ns", "From begin to end: on the CPU.", \
	  "the thread's CPU clock was not read") \
	C(WAIT_STACK_ID, stack_id, INT, 0, "", "Who waited, as in table stack.", "no stack was recorded") \
	C(WAIT_FUNCTION, function, TEXT, 0, "", "Innermost function of that stack that is not weft's.", \
	  "no stack was recorded") \
	C(WAIT_POLL_ID, poll_id, INT, 0, "", "The poll that it was in.", \
	  "it was in none, or in one that was recorded at its end") \
	C(WAIT_TASK, task, INT, 0, "", "Task of that poll.", "as poll_id, or that poll is a tick") \
	C(WAIT_LOCATION, location, TEXT, 0, "", "Where that task was spawned.", "as poll_id") \
	C(WAIT_HOLDER_TID, holder_tid, INT, 0, "", "The thread that held it for the longest time of the wait.", \
	  "not known") \
	C(WAIT_HOLDER_THREAD_ID, holder_thread_id, INT, 0, "", "The same, as in table thread.", "not known") \
	C(WAIT_HOLDER, holder, TEXT, 0, "", "Worker or name(tid) of that thread.", "not known") \
	C(WAIT_HOLDER_TASK, holder_task, INT, 0, "", "The task that it polled then.", \
	  "not known, or it was in no poll, or in a tick") \
	C(WAIT_HOLDER_LOCATION, holder_location, TEXT, 0, "", "Where that task was spawned.", \
	  "not known, or it was in no poll") \
	C(WAIT_HOLDER_STACK_ID, holder_stack_id, INT, 0, "", "What it did most then, as in table stack.", \
	  "not known") \
	C(WAIT_HOLDER_FUNCTION, holder_function, TEXT, 0, "", "Innermost function of that.", "not known") \
	C(WAIT_HELD_NS, held_ns, INT, 0, "ns", "For how long of the wait it held it.", "not known") \
	WEFT__CONTEXT(C, WAIT) \
	C(WAIT_OBJECT_NAME, object_name, TEXT, 0, "", \
	  "What the lock is called: as the program named it, or the variable that it is.", \
	  "of a call, or the lock has no name and is no variable of a file that is here")

#define WEFT__COLUMNS_WAIT_SUM(C) \
	WEFT__WHO(C, WAIT_SUM) \
	C(WAIT_SUM_TIME_NS, time_ns, INT, END, "ns", "When the sum was recorded.", "") \
	C(WAIT_SUM_KIND, kind, TEXT, 0, "", "As in table wait.", "") \
	C(WAIT_SUM_NAME, name, TEXT, 0, "", "As in table wait.", "it has none") \
	C(WAIT_SUM_COUNT, count, INT, 0, "1", "Waits.", "") \
	C(WAIT_SUM_TOTAL_NS, total_ns, INT, 0, "ns", "Their duration together.", "") \
	C(WAIT_SUM_LONGEST_NS, longest_ns, INT, 0, "ns", "The longest of them.", "")

#define WEFT__COLUMNS_SAMPLE(C) \
	WEFT__WHO(C, SAMPLE) \
	C(SAMPLE_TIME_NS, time_ns, INT, 0, "ns", "When it was taken.", "") \
	C(SAMPLE_WEIGHT_NS, weight_ns, INT, 0, "ns", "CPU time that it stands for.", "") \
	C(SAMPLE_STATE, state, TEXT, 0, "", "in_polls, between_polls, parked, or unknown.", "") \
	C(SAMPLE_POLL_ID, poll_id, INT, 0, "", "The innermost poll that it fell into.", \
	  "it fell into none that was recorded") \
	C(SAMPLE_LOCATION, location, TEXT, 0, "", "Where that poll's task was spawned.", "as poll_id") \
	C(SAMPLE_STACK_ID, stack_id, INT, 0, "", "Stack of the program, as in table stack.", "there is none") \
	C(SAMPLE_KERNEL_STACK_ID, kernel_stack_id, INT, 0, "", "Stack in the kernel.", \
	  "not in the kernel, or not allowed to see it") \
	C(SAMPLE_FUNCTION, function, TEXT, 0, "", "Innermost function of both.", "there is no stack") \
	C(SAMPLE_CPU, cpu, INT, 0, "", "Number of the CPU.", "not recorded") \
	C(SAMPLE_ENGINE, engine, INT, 0, "", "What took the sample, as in weft-segment(5).", "") \
	WEFT__CONTEXT(C, SAMPLE)

#define WEFT__COLUMNS_OFFCPU(C) \
	WEFT__WHO(C, OFFCPU) \
	C(OFFCPU_BEGIN_NS, begin_ns, INT, 0, "ns", "When the thread left the CPU.", "") \
	C(OFFCPU_END_NS, end_ns, INT, 0, "ns", "When it was back.", "") \
	C(OFFCPU_DURATION_NS, duration_ns, INT, 0, "ns", "From one to the other.", "") \
	C(OFFCPU_STATE, state, TEXT, 0, "", "blocked or preempted.", "") \
	C(OFFCPU_COUNT, count, INT, 0, "1", "Intervals that it stands for, where not every switch is recorded.", "") \
	C(OFFCPU_STACK_ID, stack_id, INT, 0, "", "Where it was, as in table stack.", "no stack was recorded") \
	C(OFFCPU_KERNEL_STACK_ID, kernel_stack_id, INT, 0, "", "Where it was in the kernel.", \
	  "no stack was recorded") \
	C(OFFCPU_FUNCTION, function, TEXT, 0, "", "Innermost function of both.", "no stack was recorded")

#define WEFT__COLUMNS_WAKE(C) \
	C(WAKE_TIME_NS, time_ns, INT, 0, "ns", "When the task was woken.", "") \
	WEFT__WHO(C, WAKE) \
	C(WAKE_FROM_TASK, from_task, INT, 0, "", "The task that woke it.", \
	  "it was woken outside any poll that is known") \
	C(WAKE_FROM_LOCATION, from_location, TEXT, 0, "", "Where that task was spawned.", \
	  "it was woken outside any poll that is known") \
	C(WAKE_TO_TASK, to_task, INT, 0, "", "The task that was woken.", "") \
	C(WAKE_TO_LOCATION, to_location, TEXT, 0, "", "Where that one was spawned.", "") \
	C(WAKE_TO_WORKER, to_worker, TEXT, 0, "", "Worker that polled it then, or name(tid) of the thread.", "") \
	C(WAKE_POLL_ID, poll_id, INT, 0, "", "The poll that it caused.", "") \
	C(WAKE_DELAY_NS, delay_ns, INT, 0, "ns", "Time until that poll began.", \
	  "events are missing in between, or an earlier wake may be the one")

#define WEFT__COLUMNS_PARK(C) \
	WEFT__WHO(C, PARK) \
	C(PARK_BEGIN_NS, begin_ns, INT, 0, "ns", "When it began to wait.", "the begin was not recorded") \
	C(PARK_END_NS, end_ns, INT, END, "ns", "When it went on.", "") \
	C(PARK_DURATION_NS, duration_ns, INT, 0, "ns", "From one to the other.", "the begin was not recorded") \
	C(PARK_QUEUE_DEPTH, queue_depth, INT, 0, "1", "Tasks in the worker's queue as it went on.", \
	  "the runtime does not say")

#define WEFT__COLUMNS_PARK_COUNT(C) \
	WEFT__WHO(C, PARK_COUNT) \
	C(PARK_COUNT_TIME_NS, time_ns, INT, END, "ns", "End of the while.", "") \
	C(PARK_COUNT_SPAN_NS, span_ns, INT, 0, "ns", "Its length.", "") \
	C(PARK_COUNT_COUNT, count, INT, 0, "1", "Parks.", "") \
	C(PARK_COUNT_PARKED_NS, parked_ns, INT, 0, "ns", "Time in which the worker was parked.", "")

#define WEFT__COLUMNS_QUEUE(C) \
	C(QUEUE_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(QUEUE_TIME_NS, time_ns, INT, END, "ns", "When it was read.", "") \
	C(QUEUE_RUNTIME, runtime, TEXT, 0, "", "Name of the runtime.", "nothing names it") \
	C(QUEUE_DEPTH, depth, INT, 0, "1", "Tasks in the queue.", "the runtime does not say")

#define WEFT__COLUMNS_STUCK(C) \
	WEFT__WHO(C, STUCK) \
	C(STUCK_TIME_NS, time_ns, INT, END, "ns", "When the watchdog looked.", "") \
	C(STUCK_TASK, task, INT, 0, "", "Task of the poll.", "it is a tick of an event loop") \
	C(STUCK_AGE_NS, age_ns, INT, 0, "ns", "How long the poll had run by then.", "") \
	C(STUCK_STACK_ID, stack_id, INT, 0, "", "Where it was, as in table stack.", "no stack was recorded") \
	C(STUCK_FUNCTION, function, TEXT, 0, "", "Innermost function of that.", "no stack was recorded")

#define WEFT__COLUMNS_EVENT(C) \
	WEFT__WHO(C, EVENT) \
	C(EVENT_TIME_NS, time_ns, INT, END, "ns", "When it was recorded.", "") \
	C(EVENT_KIND, kind, TEXT, 0, "", "Name of its kind.", "nothing names it") \
	C(EVENT_KIND_ID, kind_id, INT, 0, "", "Number of its kind.", "") \
	C(EVENT_FIELDS, fields, TEXT, 0, "", "Its fields, as a JSON object: fields ->> '$.bytes' is one of them.", "")

#define WEFT__COLUMNS_CONTEXT(C) \
	WEFT__WHO(C, CONTEXT) \
	C(CONTEXT_TIME_NS, time_ns, INT, END, "ns", "When it changed.", "") \
	WEFT__CONTEXT(C, CONTEXT)

#define WEFT__COLUMNS_WALL(C) \
	WEFT__WHO(C, WALL) \
	C(WALL_TIME_NS, time_ns, INT, END, "ns", "When it was recorded: the wait was in the time before.", "") \
	C(WALL_WEIGHT_NS, weight_ns, INT, 0, "ns", "Time that it stands for.", "") \
	C(WALL_COUNT, count, INT, 0, "1", "Wall samples that found the same.", "") \
	C(WALL_SYSCALL, syscall, INT, 0, "", "Number of the call of the system that it was in.", "not known") \
	C(WALL_STACK_ID, stack_id, INT, 0, "", "Where it was, as in table stack.", "no stack was recorded") \
	C(WALL_FUNCTION, function, TEXT, 0, "", "Innermost function of that.", "no stack was recorded")

#define WEFT__COLUMNS_ALLOC(C) \
	WEFT__WHO(C, ALLOC) \
	C(ALLOC_TIME_NS, time_ns, INT, END, "ns", "When it was.", "") \
	C(ALLOC_NAME, name, TEXT, 0, "", "What was allocated: a class.", "nothing names it") \
	C(ALLOC_COUNT, count, INT, 0, "1", "Objects that it stands for.", "") \
	C(ALLOC_BYTES, bytes, INT, 0, "By", "Their bytes.", "not known") \
	C(ALLOC_STACK_ID, stack_id, INT, 0, "", "Where it was, as in table stack.", "no stack was recorded") \
	C(ALLOC_FUNCTION, function, TEXT, 0, "", "Innermost function of that.", "no stack was recorded")

#define WEFT__COLUMNS_POLL_COUNT(C) \
	WEFT__WHO(C, POLL_COUNT) \
	C(POLL_COUNT_TIME_NS, time_ns, INT, END, "ns", \
	  "When the count was recorded: polls since the count before.", "") \
	C(POLL_COUNT_FROM_NS, from_ns, INT, 0, "ns", "Duration of the polls: at least.", "") \
	C(POLL_COUNT_BELOW_NS, below_ns, INT, 0, "ns", "Duration of the polls: below.", "there is no upper bound") \
	C(POLL_COUNT_COUNT, count, INT, 0, "1", "Polls.", "")

#define WEFT__COLUMNS_LOSS(C) \
	C(LOSS_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(LOSS_REASON, reason, TEXT, 0, "", "Why: ring full, paused, disk full and so on.", "") \
	C(LOSS_THREAD_ID, thread_id, INT, 0, "", "The thread, as in table thread.", "of no one thread") \
	C(LOSS_THREAD, thread, TEXT, 0, "", "Name of that thread.", "of no one thread") \
	C(LOSS_COUNT, count, INT, 0, "1", \
	  "Events, samples, switches or polls that are missing; of thread not sampled, threads.", \
	  "not counted while recording is paused") \
	C(LOSS_FROM_NS, from_ns, INT, 0, "ns", "Since when they are.", "") \
	C(LOSS_TO_NS, to_ns, INT, 0, "ns", "Until when.", "")

#define WEFT__COLUMNS_COST(C) \
	C(COST_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(COST_TIME_NS, time_ns, INT, END, "ns", "End of the while.", "") \
	C(COST_WHAT, what, TEXT, 0, "", \
	  "collector, samples, switches, wall samples, waits, unwind tables, symbols, events.", "") \
	C(COST_CPU_NS, cpu_ns, INT, 0, "ns", "CPU time that it took.", "") \
	C(COST_SPAN_NS, span_ns, INT, 0, "ns", "Length of the while.", "") \
	C(COST_RATE, rate, INT, 0, "", \
	  "Rate in force: of CPU and wall samples in Hz, of switches in thousandths of the time.", "")

#define WEFT__COLUMNS_RECORDING(C) \
	C(RECORDING_ID, id, INT, KEY, "", \
	  "Number of the recording, from 0 on, in order of their start. Other tables name it as recording.", "") \
	C(RECORDING_UUID, uuid, TEXT, 0, "", "Its id in the segments, as hex digits.", "") \
	C(RECORDING_DUMP, dump, INT, 0, "", "Number of the dump of a flight recorder.", "it is none") \
	C(RECORDING_PID, pid, INT, 0, "", "Number of the process.", "not recorded") \
	C(RECORDING_COMMAND, command, TEXT, 0, "", "Its command line.", "not recorded") \
	C(RECORDING_SERVICE, service, TEXT, 0, "", "Name of the service.", "not recorded") \
	C(RECORDING_HOST, host, TEXT, 0, "", "Name of the machine.", "not recorded") \
	C(RECORDING_START_UNIX_NS, start_unix_ns, INT, 0, "ns", \
	  "Wall time of its start: what all other times are counted from.", "not known") \
	C(RECORDING_SPAN_NS, span_ns, INT, 0, "ns", "From its start to its last event.", "") \
	C(RECORDING_EVENTS, events, INT, 0, "1", "Events in its segments.", "") \
	C(RECORDING_SEGMENTS, segments, INT, 0, "1", "Files that it is made of.", "") \
	C(RECORDING_MISSING_SEGMENTS, missing_segments, INT, 0, "1", \
	  "Numbers of segments between the first and the last that no file has.", "") \
	C(RECORDING_POLL_MODE, poll_mode, TEXT, 0, "", "Which polls are recorded one by one: all, slow or caught.", \
	  "not recorded")

#define WEFT__COLUMNS_THREAD(C) \
	C(THREAD_ID, id, INT, KEY, "", "The thread. Other tables name it as thread_id.", "") \
	C(THREAD_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(THREAD_TID, tid, INT, 0, "", "Its number in the operating system.", "") \
	C(THREAD_NAME, name, TEXT, 0, "", "Its name.", "") \
	C(THREAD_WORKER_ID, worker_id, INT, 0, "", "The first worker that it was.", "it was none") \
	C(THREAD_FIRST_NS, first_ns, INT, 0, "ns", "When it was first seen.", "before the recording, or not known")

#define WEFT__COLUMNS_WORKER(C) \
	C(WORKER_ID, id, INT, KEY, "", "The worker. Other tables name it as worker_id.", "") \
	C(WORKER_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(WORKER_NAME, name, TEXT, 0, "", "Runtime and index, as demo/1.", "") \
	C(WORKER_RUNTIME, runtime, TEXT, 0, "", "Name of the runtime.", "nothing names it") \
	C(WORKER_INDEX, number, INT, 0, "", "Number of the worker in its runtime.", "")

#define WEFT__COLUMNS_LOCATION(C) \
	C(LOCATION_ID, id, INT, KEY, "", "The location. Other tables name it as location_id.", "") \
	C(LOCATION_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(LOCATION_NAME, name, TEXT, 0, "", "Its name.", "") \
	C(LOCATION_FILE, file, TEXT, 0, "", "Source file.", "not recorded") \
	C(LOCATION_LINE, line, INT, 0, "", "Line in it.", "not recorded")

#define WEFT__COLUMNS_TASK(C) \
	C(TASK_TASK, task, INT, 0, "", \
	  "Number of the task, as the program gave it. One may be used again when its task has ended.", "") \
	C(TASK_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(TASK_LOCATION_ID, location_id, INT, 0, "", "Where it was spawned, as in table location.", \
	  "its spawn was not recorded, or gave no location") \
	C(TASK_LOCATION, location, TEXT, 0, "", "Name of that location.", "as location_id") \
	C(TASK_SPAWN_NS, spawn_ns, INT, 0, "ns", "When it was spawned.", "its spawn was not recorded") \
	C(TASK_END_NS, end_ns, INT, 0, "ns", "When it ended.", "it had not ended as the recording did") \
	C(TASK_POLLS, polls, INT, 0, "1", "Polls of it.", "not every poll is recorded") \
	C(TASK_FIRST_POLL_NS, first_poll_ns, INT, 0, "ns", "When its first poll that is recorded began.", \
	  "none is recorded") \
	C(TASK_WAKES, wakes, INT, 0, "1", "Wakes of it.", "wakes were only counted at times")

#define WEFT__COLUMNS_MODULE(C) \
	C(MODULE_ID, id, INT, KEY, "", "The module.", "") \
	C(MODULE_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(MODULE_KIND, kind, TEXT, 0, "", "file, vdso, kernel or code (made while the program ran).", "") \
	C(MODULE_PATH, path, TEXT, 0, "", "Path of the file.", "") \
	C(MODULE_BUILD_ID, build_id, TEXT, 0, "", "Its build-id, as hex digits.", "it has none") \
	C(MODULE_START, start_address, HEX, 0, "", "First address of its code.", "") \
	C(MODULE_END, end_address, HEX, 0, "", "First address behind it.", "")

#define WEFT__COLUMNS_STACK(C) \
	C(STACK_ID, id, INT, KEY, "", "The stack. Other tables name it as stack_id and kernel_stack_id.", "") \
	C(STACK_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(STACK_COMPLETE, complete, INT, 0, "", "1: it reaches the thread's first function.", "") \
	C(STACK_CUT, cut, INT, 0, "", "1: deeper than was asked for, outer frames are missing.", "") \
	C(STACK_KERNEL, kernel, INT, 0, "", "1: frames of the kernel.", "") \
	C(STACK_FRAMES, frames, INT, 0, "1", "Places in it; table frame has more, where calls were inlined.", "") \
	C(STACK_FUNCTIONS, functions, TEXT, 0, "", "Its functions, outermost first, with ; between them.", "")

#define WEFT__COLUMNS_FRAME(C) \
	C(FRAME_STACK_ID, stack_id, INT, KEY, "", "The stack.", "") \
	C(FRAME_RECORDING, recording, INT, 0, "", "Number of the recording.", "") \
	C(FRAME_DEPTH, depth, INT, 0, "", "0: innermost.", "") \
	C(FRAME_FUNCTION, function, TEXT, 0, "", "Name of the function; module and offset where nothing names it.", \
	  "") \
	C(FRAME_NAMED, named, INT, 0, "", "1: function is a name.", "") \
	C(FRAME_MODULE, module, TEXT, 0, "", "Path of the file that it is in.", "not known") \
	C(FRAME_FILE, file, TEXT, 0, "", "Source file.", "not known") \
	C(FRAME_LINE, line, INT, 0, "", "Line in it.", "not known") \
	C(FRAME_INLINED, inlined, INT, 0, "", "1: inlined into the next frame.", "")

#define WEFT__EACH_TABLE(E) \
	E(POLL) E(SLICE) E(WAIT) E(WAIT_SUM) E(SAMPLE) E(OFFCPU) E(WAKE) E(PARK) E(PARK_COUNT) E(QUEUE) \
	E(STUCK) E(EVENT) E(CONTEXT) E(WALL) E(POLL_COUNT) E(LOSS) E(COST) E(RECORDING) E(THREAD) E(WORKER) \
	E(LOCATION) E(TASK) E(MODULE) E(STACK) E(FRAME) E(ALLOC)
/* clang-format on */

enum weft__table_id {
#define T(NAME, ...) WEFT__TABLE_##NAME,
	WEFT__TABLES(T) WEFT__SUMMARIES(T)
#undef T
		WEFT__N_TABLES
};

/* One enum for each table: WEFT__COL_POLL_ID, ... */
#define C(NAME, ...) WEFT__COL_##NAME,
#define E(TABLE) enum { WEFT__COLUMNS_##TABLE(C) WEFT__N_COLUMNS_##TABLE };
WEFT__EACH_TABLE(E)
WEFT__EACH_SUMMARY(E)
#undef E
#undef C

#define WEFT__COLUMNS_MAX 63 /* SQLite has one bit for the 64th and all behind it */

enum weft__column_type { WEFT__INT, WEFT__TEXT, WEFT__HEX, WEFT__TRACE, WEFT__REAL };
enum weft__column_flag { WEFT__COLUMN_KEY = 1, WEFT__COLUMN_END = 2 };

enum weft__form {
	WEFT__FORM_NONE, /* of tables of rows */
#define F(NAME, ...) WEFT__FORM_##NAME,
	WEFT__FORMS(F)
#undef F
};

struct weft__column {
	const char *name;
	enum weft__column_type type;
	unsigned flags;
	const char *unit;    /* "": none */
	const char *meaning; /* one sentence */
	const char *absent;  /* when it is NULL; "": never */
	/* Of summaries. */
	enum weft__form form;
	const char *json;  /* key, with dots for objects in objects; "": not there */
	const char *title; /* heading in the text report; "": not there */
};

struct weft__table {
	const char *name;
	const char *meaning;
	const struct weft__column *columns;
	size_t n_columns;
};

extern const struct weft__table weft__tables[WEFT__N_TABLES];

/* WEFT__N_TABLES: there is none of that name. */
enum weft__table_id weft__tables_find(const char *name);

#endif
