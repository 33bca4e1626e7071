/* SPDX-License-Identifier: Apache-2.0 */
/* The summaries of the report, declared once like the tables of rows (tables.h): the text report, --json, SQL and
 * docs/TABLES.md are made from this.
 *
 * A column is C(NAME, name in SQL, form, key in --json, heading in the text, meaning, when it is NULL). A key with dots
 * is an object in an object; "" is not in --json. A heading of "" is in no text. The form says how a cell is written,
 * and its type and unit (WEFT__FORMS). Names and keys are stable: columns may be added, none is renamed. */
#ifndef WEFT_TRACE_SUMMARIES_H
#define WEFT_TRACE_SUMMARIES_H

/* F(NAME, type in SQL, unit). What a cell holds and how it is written. */
/* clang-format off */
#define WEFT__FORMS(F) \
	F(PLAIN, INT, "")       /* a number that only names something */ \
	F(COUNT, INT, "1") \
	F(NS, INT, "ns") \
	F(MOMENT, INT, "ns")    /* from the start of the recording */ \
	F(SHARE, REAL, "1")     /* of 1; a percentage in text */ \
	F(MEAN, REAL, "1") \
	F(BOOL, INT, "")        /* 1 or 0 */ \
	F(NAME, TEXT, "") \
	F(LANE, TEXT, "")       /* a worker, or name(tid) of a thread that is none */ \
	F(WORKER, TEXT, "")     /* the same; "-" in text where it is none */ \
	F(THREAD_ID, INT, "")   /* as in table thread */ \
	F(THREAD, TEXT, "")     /* its name; name(tid) in text */ \
	F(LOCATION, TEXT, "")      /* a spawn location; with its file in text */ \
	F(FUNCTION, TEXT, "")   /* shortened in text */ \
	F(MODULE, TEXT, "")     /* a path; its last part in text */ \
	F(STACK, TEXT, "")      /* its innermost function; all frames in --json */ \
	F(HOLDER, TEXT, "")     /* who held a lock; in --json with what it did */ \
	F(WAIT, TEXT, "")       /* what a wait was for, in words */ \
	F(OBJECT, HEX, "")      /* address of a lock, descriptor of a call */ \
	F(DATA, TEXT, "")       /* name of what is at an address; the address in text where it has none */ \
	F(CALL, INT, "")        /* number of a call of the system; its name in text and --json */

#define WEFT__SUMMARIES(T) \
	T(WORKER_SUMMARY, worker_summary, \
	  "One worker, or one thread that is none but polls or parks: its polls and its time.") \
	T(LOCATION_SUMMARY, location_summary, "One spawn location: the polls of its tasks.") \
	T(FUNCTION_SUMMARY, function_summary, "One function: the CPU samples in it.") \
	T(CPU_SUMMARY, cpu_summary, "CPU samples by where in the life of their thread they fell.") \
	T(THREAD_CPU_SUMMARY, thread_cpu_summary, "One thread, as one worker or as none: its CPU samples.") \
	T(WAIT_SUMMARY, wait_summary, "Waits of one kind and name.") \
	T(LOCK_SUMMARY, lock_summary, \
	  "Waits for one object, of those that were recorded one by one. Calls of the system are not here.") \
	T(THREAD_WAIT_SUMMARY, thread_wait_summary, "Waits of one kind and name, of one thread that is no worker.") \
	T(THREAD_OFFCPU_SUMMARY, thread_offcpu_summary, \
	  "Time of one thread off the CPU, by the kernel's context switches.") \
	T(OFFCPU_SUMMARY, offcpu_summary, "Time of one thread off the CPU, with one stack.") \
	T(WALL_SUMMARY, wall_summary, "What one thread was found waiting in, by wall samples.") \
	T(STUCK_SUMMARY, stuck_summary, "A poll that the watchdog found while it was still running.") \
	T(WAITING_SUMMARY, waiting_summary, \
	  "One task that is not polled as the recording ends: those that were woken first, then the longest silent.") \
	T(QUEUE_SUMMARY, queue_summary, "Depths of one runtime's global queue.") \
	T(LOSS_SUMMARY, loss_summary, "What is missing, by reason and thread.") \
	T(COST_SUMMARY, cost_summary, "What weft itself cost, by what it was for.") \
	T(TOTAL_SUMMARY, total_summary, "One recording: all its polls, and what is missing.") \
	T(TIME_SUMMARY, time_summary, "Samples of all the threads' time, on the CPU and off it, by state.") \
	T(STACK_SUMMARY, stack_summary, "CPU samples by how good their stacks are. A sample may be in several rows.")

#define WEFT__SUM_RECORDING(C, P) \
	C(P##_RECORDING, recording, PLAIN, "", "", "Number of the recording, from 0 on, as in table recording.", "")

#define WEFT__SUM_LANE(C, P, FORM) \
	C(P##_WORKER, worker, FORM, "worker", "worker", \
	  "Runtime and index of the worker, as demo/1; of a thread that is none, name(tid).", "") \
	C(P##_IS_WORKER, is_worker, BOOL, "is_worker", "", "1: it is a worker.", "") \
	C(P##_RUNTIME, runtime, NAME, "runtime", "", \
	  "Name of the worker's runtime.", "it is no worker, or nothing names it") \
	C(P##_INDEX, number, PLAIN, "index", "", "Number of the worker in its runtime.", "it is no worker") \
	C(P##_THREAD_ID, thread_id, THREAD_ID, "thread_id", "", \
	  "The thread, as in table thread; of a worker, the last that it ran on.", "") \
	C(P##_THREAD, thread, THREAD, "thread", "thread", "Name of that thread.", "nothing names it") \
	C(P##_TID, tid, PLAIN, "tid", "", "Number of that thread in the operating system.", "nothing names it")

#define WEFT__SUM_LOCATION(C, P) \
	C(P##_LOCATION, location, LOCATION, "location", "spawn location", \
	  "Name of the location; in brackets why there is none.", "") \
	C(P##_FILE, file, NAME, "file", "", "Source file.", "not recorded") \
	C(P##_LINE, line, PLAIN, "line", "", "Line in it.", "not recorded")

/* Durations of `what`. Quantiles are as exact as the report's: 1.6 % and better. */
#define WEFT__SUM_HIST(C, P, name, title, what, absent) \
	C(P##_COUNT, name##_count, COUNT, #name ".count", title, what ".", absent) \
	C(P##_P50, name##_p50_ns, NS, #name ".p50_ns", "p50", what ": what half of them did not exceed.", absent) \
	C(P##_P99, name##_p99_ns, NS, #name ".p99_ns", "p99", what ": what 99 of 100 did not exceed.", absent) \
	C(P##_P999, name##_p999_ns, NS, #name ".p999_ns", "p99.9", what ": what 999 of 1000 did not exceed.", absent) \
	C(P##_MIN, name##_min_ns, NS, #name ".min_ns", "", what ": the shortest.", absent) \
	C(P##_MAX, name##_max_ns, NS, #name ".max_ns", "max", what ": the longest.", absent) \
	C(P##_TOTAL, name##_total_ns, NS, #name ".total_ns", "total", what ": together.", absent)

#define WEFT__SUM_SPLIT(C, P, json, absent) \
	C(P##_TIME_POLLS, time_polls, COUNT, json ".polls", "polls", \
	  "Polls that were recorded one by one: those that the parts below are of.", absent) \
	C(P##_TIME_TOTAL, time_total_ns, NS, json ".total_ns", "total", "Their duration together.", absent) \
	C(P##_ON_CPU, on_cpu_ns, NS, json ".on_cpu_ns", "on CPU", "Of that: on the CPU.", \
	  absent ", or neither CPU time nor switches of the threads were recorded") \
	C(P##_BLOCKED, blocked_ns, NS, json ".blocked_ns", "blocked", "Of that: blocked.", "as on_cpu_ns") \
	C(P##_WAITING, waiting_ns, NS, json ".waiting_ns", "waiting", "Of that: waiting for a lock or a runtime.", \
	  absent ", or waits were not recorded") \
	C(P##_PREEMPTED, preempted_ns, NS, json ".preempted_ns", "preempted", "Of that: ready, but without a CPU.", \
	  "as on_cpu_ns") \
	C(P##_NOT_MEASURED, not_measured_ns, NS, json ".not_measured_ns", "not measured", \
	  "Of that: not known what it was spent on.", absent) \
	C(P##_THROTTLED, throttled_ns, NS, json ".throttled_ns", "throttled", \
	  "Of preempted_ns: by a CPU quota.", absent)

#define WEFT__SUM_DEPTH(C, P, name, json, absent) \
	C(P##_SAMPLES, name##samples, COUNT, json ".samples", "samples", "Readings of the queue's depth.", absent) \
	C(P##_MIN, name##min, COUNT, json ".min", "min", "The least.", absent) \
	C(P##_MEAN, name##mean, MEAN, json ".mean", "mean", "Their mean.", absent) \
	C(P##_P99, name##p99, COUNT, json ".p99", "p99", "What 99 of 100 did not exceed.", absent) \
	C(P##_MAX, name##max, COUNT, json ".max", "max", "The most.", absent)

#define WEFT__COLUMNS_WORKER_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, WORKER_SUMMARY) \
	WEFT__SUM_LANE(C, WORKER_SUMMARY, LANE) \
	WEFT__SUM_HIST(C, WORKER_SUMMARY_POLLS, polls, "polls", "Its polls", "it had none") \
	WEFT__SUM_HIST(C, WORKER_SUMMARY_DELAYS, wake_to_poll, "polls woken", \
		       "Times from the wake of a task to its poll there", "none was measured") \
	C(WORKER_SUMMARY_OBSERVED, observed_ns, NS, "observed_ns", "", "Time in which it was observed.", "") \
	C(WORKER_SUMMARY_BUSY, busy_ns, NS, "busy_ns", "", "Of that: in polls.", \
	  "not all polls are recorded one by one, or none is") \
	C(WORKER_SUMMARY_BUSY_SHARE, busy_share, SHARE, "busy_share", "in polls", \
	  "The same as a share.", "as busy_ns") \
	C(WORKER_SUMMARY_PARKED, parked_ns, NS, "parked_ns", "", "Of observed_ns: parked.", "no park was recorded") \
	C(WORKER_SUMMARY_PARKED_SHARE, parked_share, SHARE, "parked_share", "parked", "The same as a share.", \
	  "no park was recorded") \
	C(WORKER_SUMMARY_CPU, cpu_ns, NS, "cpu_ns", "", "CPU time of its thread, by the clock.", \
	  "the clock was read less than twice") \
	C(WORKER_SUMMARY_CPU_SHARE, cpu_share, SHARE, "cpu_share", "on CPU", "The same as a share of sched_span_ns.", \
	  "as cpu_ns") \
	C(WORKER_SUMMARY_RUNQUEUE, runqueue_wait_ns, NS, "runqueue_wait_ns", "waited for CPU", \
	  "Time that its thread was ready, but without a CPU.", "as cpu_ns") \
	C(WORKER_SUMMARY_SCHED, sched_span_ns, NS, "sched_span_ns", "", \
	  "Time between the readings of both.", "as cpu_ns") \
	WEFT__SUM_DEPTH(C, WORKER_SUMMARY_QUEUE, local_queue_, "local_queue", "the runtime does not say") \
	C(WORKER_SUMMARY_COUNTED, polls_from_counts, BOOL, "polls_from_counts", "", \
	  "1: its polls are from counts by duration: quantiles and the total are rough.", "") \
	WEFT__SUM_SPLIT(C, WORKER_SUMMARY, "time", "none was recorded one by one")

#define WEFT__COLUMNS_LOCATION_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, LOCATION_SUMMARY) \
	WEFT__SUM_LOCATION(C, LOCATION_SUMMARY) \
	WEFT__SUM_HIST(C, LOCATION_SUMMARY_POLLS, polls, "polls", "Polls of its tasks", "there were none") \
	WEFT__SUM_HIST(C, LOCATION_SUMMARY_DELAYS, wake_to_poll, "polls woken", \
		       "Times from the wake of one of its tasks to the poll", "none was measured") \
	C(LOCATION_SUMMARY_SPAWNED, spawned, COUNT, "spawned", "spawned", "Tasks that were spawned there.", "") \
	C(LOCATION_SUMMARY_ENDED, ended, COUNT, "ended", "ended", "Tasks that ended.", "") \
	C(LOCATION_SUMMARY_ALIVE, alive, COUNT, "alive", "alive", "Tasks that live at the end.", \
	  "more tasks at one time than the analysis keeps") \
	C(LOCATION_SUMMARY_SAMPLES, cpu_samples, COUNT, "cpu.samples", "", \
	  "CPU samples in its polls.", "there are none") \
	C(LOCATION_SUMMARY_CPU, cpu_ns, NS, "cpu.cpu_ns", "on CPU", "CPU time that they stand for.", "there are none") \
	C(LOCATION_SUMMARY_SHORT, short_polls, COUNT, "short_polls.count", "short polls", \
	  "Polls that were shorter than the sampling period.", "that period is not known") \
	C(LOCATION_SUMMARY_SHORT_TOTAL, short_polls_total_ns, NS, "short_polls.total_ns", "together", \
	  "Their duration together.", "as short_polls") \
	C(LOCATION_SUMMARY_SHORT_SAMPLES, short_polls_samples, COUNT, "short_polls.samples", "samples", \
	  "CPU samples in them.", "as short_polls") \
	C(LOCATION_SUMMARY_SHORT_CPU, short_polls_cpu_ns, NS, "short_polls.cpu_ns", "CPU sampled", \
	  "CPU time that those stand for.", "as short_polls") \
	C(LOCATION_SUMMARY_SHORT_SHARE, short_polls_share, SHARE, "short_polls.share", "share", \
	  "The same as a share of short_polls_total_ns.", "as short_polls, or there are none") \
	WEFT__SUM_SPLIT(C, LOCATION_SUMMARY, "time", "none was recorded one by one")

#define WEFT__COLUMNS_FUNCTION_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, FUNCTION_SUMMARY) \
	C(FUNCTION_SUMMARY_FUNCTION, function, FUNCTION, "function", "function", \
	  "Name of the function; module and offset where nothing names it.", "") \
	C(FUNCTION_SUMMARY_MODULE, module, MODULE, "module", "module", "Path of the file that it is in.", "not known") \
	C(FUNCTION_SUMMARY_KERNEL, kernel, BOOL, "kernel", "", "1: of the kernel.", "") \
	C(FUNCTION_SUMMARY_KNOWN, known, BOOL, "known", "", "1: function is a name.", "") \
	C(FUNCTION_SUMMARY_SELF, self_ns, NS, "self_ns", "self", "CPU time of the samples whose innermost it is.", "") \
	C(FUNCTION_SUMMARY_SELF_SAMPLES, self_samples, COUNT, "self_samples", "samples", "Those samples.", "") \
	C(FUNCTION_SUMMARY_SELF_SHARE, self_share, SHARE, "self_share", "share", "self_ns as a share of all.", "") \
	C(FUNCTION_SUMMARY_TOTAL, total_ns, NS, "total_ns", "total", \
	  "CPU time of the samples that have it in their stack.", \
	  "") \
	C(FUNCTION_SUMMARY_TOTAL_SAMPLES, total_samples, COUNT, "total_samples", "samples", "Those samples.", "") \
	C(FUNCTION_SUMMARY_TOTAL_SHARE, total_share, SHARE, "total_share", "share", "total_ns as a share of all.", "")

#define WEFT__COLUMNS_CPU_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, CPU_SUMMARY) \
	C(CPU_SUMMARY_STATE, state, NAME, "state", "", "in_polls, between_polls, parked, never_polls or unknown.", "") \
	C(CPU_SUMMARY_SAMPLES, samples, COUNT, "samples", "samples", "CPU samples.", "") \
	C(CPU_SUMMARY_CPU, cpu_ns, NS, "cpu_ns", "CPU", "CPU time that they stand for.", "") \
	C(CPU_SUMMARY_SHARE, share, SHARE, "share", "share", "The same as a share of all.", "") \
	C(CPU_SUMMARY_MEANING, meaning, NAME, "meaning", "where", "The state in words.", "")

#define WEFT__SUM_WHERE(C, P, name, title, what) \
	C(P##_SAMPLES, name##_samples, COUNT, "where." #name ".samples", "", "Samples " what ".", "") \
	C(P##_CPU, name##_cpu_ns, NS, "where." #name ".cpu_ns", title, "CPU time that these stand for.", "")

#define WEFT__COLUMNS_THREAD_CPU_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, THREAD_CPU_SUMMARY) \
	WEFT__SUM_LANE(C, THREAD_CPU_SUMMARY, WORKER) \
	C(THREAD_CPU_SUMMARY_SAMPLES, samples, COUNT, "samples", "samples", "CPU samples.", "") \
	C(THREAD_CPU_SUMMARY_CPU, cpu_ns, NS, "cpu_ns", "CPU", "CPU time that they stand for.", "") \
	C(THREAD_CPU_SUMMARY_SHARE, share, SHARE, "share", "share", "The same as a share of all threads'.", "") \
	WEFT__SUM_WHERE(C, THREAD_CPU_SUMMARY_IN_POLLS, in_polls, "in polls", "in polls") \
	WEFT__SUM_WHERE(C, THREAD_CPU_SUMMARY_BETWEEN, between_polls, "", "between polls") \
	WEFT__SUM_WHERE(C, THREAD_CPU_SUMMARY_PARKED, parked, "", "while it was parked") \
	WEFT__SUM_WHERE(C, THREAD_CPU_SUMMARY_NEVER, never_polls, "", "of a thread that never polls") \
	WEFT__SUM_WHERE(C, THREAD_CPU_SUMMARY_UNKNOWN, unknown, "", "of which it is not known") \
	C(THREAD_CPU_SUMMARY_OUTSIDE, outside_ns, NS, "outside_ns", "outside", "cpu_ns without what is in polls.", "") \
	C(THREAD_CPU_SUMMARY_SPAN, measured_span_ns, NS, "measured.span_ns", "", \
	  "Time between readings of the thread's CPU clock.", "it was read less than twice") \
	C(THREAD_CPU_SUMMARY_MEASURED, measured_cpu_ns, NS, "measured.cpu_ns", "CPU clock", \
	  "CPU time by that clock.", "as measured_span_ns") \
	C(THREAD_CPU_SUMMARY_SAMPLED, measured_sampled_ns, NS, "measured.sampled_ns", "", \
	  "CPU time in the same time, by samples.", "as measured_span_ns") \
	C(THREAD_CPU_SUMMARY_OF_IT, measured_share, SHARE, "measured.share", "sampled of it", \
	  "The same as a share of measured_cpu_ns.", "as measured_span_ns, or the clock did not move")

#define WEFT__SUM_TIMES(C, P) \
	C(P##_TIMES, times, COUNT, "times", "times", "Waits.", "") \
	C(P##_TOTAL, total_ns, NS, "total_ns", "total", "Their duration together.", "") \
	C(P##_LONGEST, longest_ns, NS, "longest_ns", "longest", "The longest of them.", "")

#define WEFT__COLUMNS_WAIT_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, WAIT_SUMMARY) \
	C(WAIT_SUMMARY_KIND, kind, NAME, "kind", "kind", "As in table wait.", "") \
	C(WAIT_SUMMARY_NAME, name, NAME, "name", "", "Name of what was waited for, or of the call.", "it has none") \
	C(WAIT_SUMMARY_FOR, waited_for, WAIT, "waited_for", "waited for", "The same with its one object, in words.", \
	  "it has no name, and more than one object or none that is known") \
	WEFT__SUM_TIMES(C, WAIT_SUMMARY) \
	C(WAIT_SUMMARY_MEAN, mean_ns, NS, "mean_ns", "mean", "Their duration on average.", "") \
	C(WAIT_SUMMARY_ONE_BY_ONE, one_by_one, COUNT, "one_by_one", "one by one", \
	  "Those that were recorded one by one; the others are in sums.", "") \
	C(WAIT_SUMMARY_ON_WORKERS, on_workers_ns, NS, "on_workers_ns", "on workers", \
	  "Of total_ns: of threads that are workers or poll.", "") \
	C(WAIT_SUMMARY_ON_CPU, on_cpu_ns, NS, "on_cpu_ns", "", \
	  "Time on the CPU from their begin to their end, of those of which it is known.", "it is known of none") \
	C(WAIT_SUMMARY_ON_CPU_OF, on_cpu_of_ns, NS, "on_cpu_of_ns", "", "The duration of those.", "as on_cpu_ns") \
	C(WAIT_SUMMARY_OBJECT, object, OBJECT, "object", "", \
	  "Address of the one lock, or descriptor of the one call.", \
	  "there is more than one, none was recorded one by one, or the call has no descriptor") \
	C(WAIT_SUMMARY_ABOUT, about, NAME, "descriptor", "", "What that descriptor was.", "not known")

#define WEFT__COLUMNS_LOCK_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, LOCK_SUMMARY) \
	C(LOCK_SUMMARY_KIND, kind, NAME, "kind", "kind", "As in table wait.", "") \
	C(LOCK_SUMMARY_NAME, name, NAME, "name", "waited for", "Name that the waits have.", "they have none") \
	C(LOCK_SUMMARY_OBJECT, object, OBJECT, "object", "", "Address of the object.", "") \
	C(LOCK_SUMMARY_DATA, object_name, DATA, "object_name", "object", "Name of the variable at that address.", \
	  "not known") \
	WEFT__SUM_TIMES(C, LOCK_SUMMARY) \
	C(LOCK_SUMMARY_HOLDER, holder, HOLDER, "holder", "held by, in the longest", \
	  "Worker or name(tid) of the thread that held it, in the longest wait.", "not known")

#define WEFT__SUM_THREAD(C, P) \
	C(P##_TID, tid, PLAIN, "tid", "", "Number of the thread in the operating system.", "nothing names it") \
	C(P##_THREAD, thread, THREAD, "thread", "thread", "Name of the thread.", "nothing names it")

#define WEFT__SUM_STACK(C, P, title, what) \
	C(P##_STACK, function, STACK, "frames", title, "Innermost function of " what " that is not weft's.", \
	  "no stack was recorded")

#define WEFT__COLUMNS_THREAD_WAIT_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, THREAD_WAIT_SUMMARY) \
	WEFT__SUM_THREAD(C, THREAD_WAIT_SUMMARY) \
	C(THREAD_WAIT_SUMMARY_KIND, kind, NAME, "kind", "kind", "As in table wait.", "nothing says so") \
	C(THREAD_WAIT_SUMMARY_NAME, name, NAME, "name", "waited for", "As in table wait.", "it has none") \
	WEFT__SUM_TIMES(C, THREAD_WAIT_SUMMARY) \
	WEFT__SUM_STACK(C, THREAD_WAIT_SUMMARY, "in, in the longest", "the stack of the longest")

#define WEFT__COLUMNS_THREAD_OFFCPU_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, THREAD_OFFCPU_SUMMARY) \
	WEFT__SUM_THREAD(C, THREAD_OFFCPU_SUMMARY) \
	C(THREAD_OFFCPU_SUMMARY_BLOCKED, blocked_ns, NS, "blocked_ns", "blocked", "Time in which it was blocked.", "") \
	C(THREAD_OFFCPU_SUMMARY_N_BLOCKED, blocked_times, COUNT, "blocked_times", "times", "How often.", "") \
	C(THREAD_OFFCPU_SUMMARY_PREEMPTED, preempted_ns, NS, "preempted_ns", "preempted", \
	  "Time in which it was ready, but without a CPU.", "") \
	C(THREAD_OFFCPU_SUMMARY_N_PREEMPTED, preempted_times, COUNT, "preempted_times", "times", "How often.", "") \
	C(THREAD_OFFCPU_SUMMARY_THROTTLED, throttled_ns, NS, "throttled_ns", "", \
	  "Of preempted_ns: by a CPU quota.", "") \
	C(THREAD_OFFCPU_SUMMARY_SWITCHING, switching_ns, NS, "switching_ns", "", \
	  "Time that the switches themselves took: in neither of the two.", "") \
	C(THREAD_OFFCPU_SUMMARY_LONGEST, longest_ns, NS, "longest_ns", "longest", "The longest of both.", "") \
	C(THREAD_OFFCPU_SUMMARY_SAMPLES, samples, COUNT, "samples", "off-CPU samples", \
	  "Samples of this time, at the interval that CPU samples have.", "")

#define WEFT__COLUMNS_OFFCPU_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, OFFCPU_SUMMARY) \
	WEFT__SUM_THREAD(C, OFFCPU_SUMMARY) \
	C(OFFCPU_SUMMARY_REASON, reason, NAME, "reason", "reason", "blocked or preempted.", "") \
	C(OFFCPU_SUMMARY_TIMES, times, COUNT, "times", "times", "How often.", "") \
	C(OFFCPU_SUMMARY_TOTAL, total_ns, NS, "total_ns", "time", "Time off the CPU.", "") \
	C(OFFCPU_SUMMARY_SAMPLES, samples, COUNT, "samples", "samples", "As in thread_offcpu_summary.", "") \
	WEFT__SUM_STACK(C, OFFCPU_SUMMARY, "in", "the stack")

#define WEFT__COLUMNS_WALL_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, WALL_SUMMARY) \
	WEFT__SUM_THREAD(C, WALL_SUMMARY) \
	C(WALL_SUMMARY_SAMPLES, samples, COUNT, "samples", "wall samples", "Wall samples that found it so.", "") \
	C(WALL_SUMMARY_TOTAL, total_ns, NS, "total_ns", "time", "Time that they stand for.", "") \
	C(WALL_SUMMARY_SHARE, share, SHARE, "share", "share", "The same as a share of all.", "") \
	C(WALL_SUMMARY_CALL, syscall, CALL, "call", "call", "Number of the call of the system that it was in.", \
	  "not known") \
	WEFT__SUM_STACK(C, WALL_SUMMARY, "in", "the stack")

#define WEFT__COLUMNS_STUCK_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, STUCK_SUMMARY) \
	C(STUCK_SUMMARY_AGE, age_ns, NS, "age_ns", "age", "How long it had run when it was last found.", "") \
	C(STUCK_SUMMARY_SEEN, seen_ns, MOMENT, "seen_ns", "seen at", "When that was.", "") \
	C(STUCK_SUMMARY_TIMES, times, COUNT, "times", "times", "How often it was found.", "") \
	C(STUCK_SUMMARY_TASK, task, PLAIN, "task", "task", "Number of its task, as the program gave it.", \
	  "it is a tick of an event loop") \
	WEFT__SUM_LOCATION(C, STUCK_SUMMARY) \
	WEFT__SUM_THREAD(C, STUCK_SUMMARY) \
	C(STUCK_SUMMARY_DURATION, duration_ns, NS, "duration_ns", "ended after", "How long it took.", \
	  "its end was not seen") \
	WEFT__SUM_STACK(C, STUCK_SUMMARY, "in", "the stack when it was last found")

#define WEFT__COLUMNS_WAITING_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, WAITING_SUMMARY) \
	C(WAITING_SUMMARY_SILENT, silent_ns, NS, "silent_ns", "silent for", \
	  "Time from the begin of its last poll, or from its spawn, to the end of the recording.", \
	  "neither was recorded") \
	C(WAITING_SUMMARY_POLLED, polled, BOOL, "polled", "", "1: it was polled at least once.", "") \
	C(WAITING_SUMMARY_WOKEN, woken, BOOL, "woken", "woken", "1: it was woken since, and waits for its poll.", "") \
	C(WAITING_SUMMARY_TASK, task, PLAIN, "task", "task", "Number of the task, as the program gave it.", "") \
	WEFT__SUM_LOCATION(C, WAITING_SUMMARY) \
	C(WAITING_SUMMARY_WAKE, since_wake_ns, NS, "waker.since_ns", "last woken", \
	  "Time from its last wake to the end of the recording.", "no wake of it was recorded") \
	C(WAITING_SUMMARY_WAKER, waker_task, PLAIN, "waker.task", "", "The task that woke it then.", \
	  "no wake, or outside of any poll") \
	C(WAITING_SUMMARY_WAKER_LOCATION, waker_location, LOCATION, "waker.location", "by", \
	  "Where that task was spawned.", "as waker_task") \
	C(WAITING_SUMMARY_WAKER_FILE, waker_file, NAME, "waker.file", "", "Source file of that.", "as waker_task") \
	C(WAITING_SUMMARY_WAKER_LINE, waker_line, PLAIN, "waker.line", "", "Line in it.", "as waker_task") \
	WEFT__SUM_STACK(C, WAITING_SUMMARY, "waits in", "the stack as it last began to wait")

#define WEFT__COLUMNS_QUEUE_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, QUEUE_SUMMARY) \
	C(QUEUE_SUMMARY_RUNTIME, runtime, NAME, "runtime", "global queue of", \
	  "Name of the runtime.", "nothing names it") \
	C(QUEUE_SUMMARY_RUNTIME_ID, runtime_id, PLAIN, "runtime_id", "", "Number of the runtime.", "") \
	WEFT__SUM_DEPTH(C, QUEUE_SUMMARY, , "depth", "none was read")

#define WEFT__COLUMNS_LOSS_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, LOSS_SUMMARY) \
	C(LOSS_SUMMARY_REASON, reason, NAME, "reason", "reason", "As in table loss.", "") \
	C(LOSS_SUMMARY_THREAD_ID, thread_id, THREAD_ID, "thread_id", "", \
	  "The thread, as in table thread; 0: of no one thread.", \
	  "") \
	C(LOSS_SUMMARY_THREAD, thread, THREAD, "thread", "thread", \
	  "Name of that thread.", "of no one thread, or not known") \
	C(LOSS_SUMMARY_EVENTS, events, COUNT, "events", "count", \
	  "Events, samples, switches or polls that are missing.", \
	  "not counted while recording is paused, of threads that are not sampled, and of switches that were held " \
	  "back") \
	C(LOSS_SUMMARY_THREADS, threads, COUNT, "threads", "threads", \
	  "Threads that are not sampled.", "of other reasons") \
	C(LOSS_SUMMARY_RECORDS, records, COUNT, "records", "times", "How often that was recorded.", "") \
	C(LOSS_SUMMARY_FROM, from_ns, MOMENT, "from_ns", "from", "Since when.", "") \
	C(LOSS_SUMMARY_TO, to_ns, MOMENT, "to_ns", "to", "Until when.", "") \
	C(LOSS_SUMMARY_TOGETHER, together_ns, NS, "together_ns", "time missing", "The time of all of them.", "")

#define WEFT__COLUMNS_COST_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, COST_SUMMARY) \
	C(COST_SUMMARY_WHAT, what, NAME, "what", "", "As in table cost.", "") \
	C(COST_SUMMARY_CPU, cpu_ns, NS, "cpu_ns", "", "CPU time that it took.", "") \
	C(COST_SUMMARY_SPAN, span_ns, NS, "span_ns", "", "In how much time.", "") \
	C(COST_SUMMARY_HZ, last_hz, COUNT, "last_hz", "", "Samples of the CPU or wall samples a second at the end.", \
	  "of what has no such rate") \
	C(COST_SUMMARY_RECORDED, last_share_recorded, SHARE, "last_share_recorded", "", \
	  "Share of the time in which switches were recorded, at the end.", "of what is no switches")

#define WEFT__COLUMNS_TOTAL_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, TOTAL_SUMMARY) \
	C(TOTAL_SUMMARY_EVENTS, lost_events, COUNT, "lost_events", "", \
	  "Events and samples for which there was no room.", "") \
	C(TOTAL_SUMMARY_SAMPLES, lost_samples, COUNT, "lost_samples", "", \
	  "CPU samples for whose stacks there was no memory.", "") \
	C(TOTAL_SUMMARY_MISSED, missed_samples, COUNT, "missed_samples", "", \
	  "About so many CPU samples are missing because another handler had their signal.", "") \
	C(TOTAL_SUMMARY_UNCOVERED, threads_not_sampled, COUNT, "threads_not_sampled", "", \
	  "Threads that could not be sampled, or ended before a sample came.", "") \
	C(TOTAL_SUMMARY_SWITCHES, lost_switches, COUNT, "lost_switches", "", \
	  "Records of context switches that are missing.", "") \
	C(TOTAL_SUMMARY_CAP, polls_beyond_cap, COUNT, "polls_beyond_cap", "", \
	  "Polls that were counted, but not recorded one by one: more than the cap.", "") \
	C(TOTAL_SUMMARY_MIXED, waits_not_attributed, COUNT, "waits_not_attributed", "", \
	  "Waits of which it is not known whether they were in what was asked for.", "") \
	C(TOTAL_SUMMARY_MIXED_NS, waits_not_attributed_ns, NS, "waits_not_attributed_ns", "", \
	  "Their duration together.", "") \
	WEFT__SUM_HIST(C, TOTAL_SUMMARY_POLLS, polls, "polls", "All polls", "there was none") \
	WEFT__SUM_HIST(C, TOTAL_SUMMARY_DELAYS, wake_to_poll, "polls woken", \
		       "Times from the wake of a task to its poll", "none was measured") \
	WEFT__SUM_SPLIT(C, TOTAL_SUMMARY, "time_in_polls", "none was recorded one by one")

#define WEFT__COLUMNS_TIME_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, TIME_SUMMARY) \
	C(TIME_SUMMARY_STATE, state, NAME, "state", "", "on_cpu, waiting, blocked or preempted.", "") \
	C(TIME_SUMMARY_SAMPLES, samples, COUNT, "samples", "", "Samples.", "") \
	C(TIME_SUMMARY_WALL, wall_ns, NS, "wall_ns", "", "Time that they stand for.", "") \
	C(TIME_SUMMARY_CPU, cpu_ns, NS, "cpu_ns", "", "CPU time in that.", "") \
	C(TIME_SUMMARY_UNKNOWN, cpu_not_measured, COUNT, "cpu_not_measured", "", \
	  "Samples whose CPU time is not known.", "")

#define WEFT__COLUMNS_STACK_SUMMARY(C) \
	WEFT__SUM_RECORDING(C, STACK_SUMMARY) \
	C(STACK_SUMMARY_STATE, state, NAME, "state", "", \
	  "complete, cut, lost, none or undefined, which add up to all; the others are some of these.", "") \
	C(STACK_SUMMARY_SAMPLES, samples, COUNT, "samples", "", "CPU samples.", "") \
	C(STACK_SUMMARY_CPU, cpu_ns, NS, "cpu_ns", "", "CPU time that they stand for.", "")

#define WEFT__EACH_SUMMARY(E) \
	E(WORKER_SUMMARY) E(LOCATION_SUMMARY) E(FUNCTION_SUMMARY) E(CPU_SUMMARY) E(THREAD_CPU_SUMMARY) E(WAIT_SUMMARY) \
	E(LOCK_SUMMARY) E(THREAD_WAIT_SUMMARY) E(THREAD_OFFCPU_SUMMARY) E(OFFCPU_SUMMARY) E(WALL_SUMMARY) \
	E(STUCK_SUMMARY) E(WAITING_SUMMARY) E(QUEUE_SUMMARY) E(LOSS_SUMMARY) E(COST_SUMMARY) E(TOTAL_SUMMARY) \
	E(TIME_SUMMARY) E(STACK_SUMMARY)
/* clang-format on */

#endif
