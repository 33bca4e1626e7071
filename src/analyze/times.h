/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the time of a thread, on and off the CPU, each with the CPU time that belongs to it. They are for those
 * who show all of a thread's time at once, such as a wall-clock profile; tables of CPU time count CPU samples by
 * their own weight and not these.
 *
 *     a CPU sample            stands for the time since the sample before, with the CPU time in it
 *     a wait reported by itself   is two: the time before it, with all CPU time since the sample before, and the wait, with none
 *     time off the CPU        is summed, and each multiple of the sampling interval is a sample (offcpu.h): a group of them
 *
 * CPU time is the time between switches, so it is known where these are; else a CPU sample has its weight, and the
 * time before a wait none that is known. They come in order of time for each thread, some time after the events that
 * they are made from. Context: CALLER. */
#ifndef WEFT_ANALYZE_TIMES_H
#define WEFT_ANALYZE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

struct weft__context;

enum weft__time_state {
	WEFT__TIME_CPU,
	WEFT__TIME_WAITING,
	WEFT__TIME_BLOCKED,
	WEFT__TIME_PREEMPTED,
	WEFT__TIME_STATES
};

struct weft__time_sample {
	enum weft__time_state state;
	uint64_t begin_ns, end_ns; /* of the time that it stands for; of a group: the first sample and the last */
	uint64_t count;            /* samples; 1 but for groups */
	uint64_t wall_ns;          /* that all of it stands for; 0: not known, of the first of a thread */
	uint64_t cpu_ns;
	bool cpu_known;
	uint32_t tid, thread_id;             /* id 0: the thread emits nothing */
	uint32_t what, name;                 /* waiting: for what, as in the event */
	uint64_t object;                     /* waiting */
	uint32_t stack, kernel;              /* 0: not known */
	const struct weft__context *context; /* of its end, or of the wait; NULL: none, or not known */
};

/* Those of one state, added up. */
struct weft__time_sum {
	uint64_t n, wall_ns, cpu_ns;
	uint64_t cpu_unknown; /* samples whose CPU time is not known */
};

struct weft__analysis;
struct weft__thread_timeline;

/* Those of what ended up to then, which nothing comes late for. 0 or -ENOMEM. */
int weft__times_run(struct weft__analysis *a, struct weft__thread_timeline *timeline, uint64_t until_ns);
int weft__times_settle(struct weft__analysis *a);

#endif
