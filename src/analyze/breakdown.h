/* SPDX-License-Identifier: Apache-2.0 */
/* What the time of a poll was spent on, and what threads did when they did not run. All of it is part of a result
 * (analysis.h).
 *
 * A poll's time is cut into parts that do not overlap and add up to its length. How long it was on the CPU its own
 * thread says at its end (poll_cpu), exactly; waits, records of switches and wall samples say what the rest was, and
 * are made to fit. Of a wait, what was on the CPU is time on the CPU. Where the thread did not say: time off the CPU
 * is what waits, switches and wall samples say, and the rest was on the CPU if the switches of the thread are known.
 * If they are not, CPU time is what samples say, and the rest is not measured. Nothing but samples says that a poll
 * which has not ended was on the CPU. Context: CALLER. */
#ifndef WEFT_ANALYZE_BREAKDOWN_H
#define WEFT_ANALYZE_BREAKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/samples.h"

enum weft__part {
	WEFT__ON_CPU,
	WEFT__BLOCKED,
	WEFT__WAITING, /* for a lock or a runtime, by an event that said so */
	WEFT__PREEMPTED,
	WEFT__NOT_MEASURED,
	WEFT__N_PARTS
};

struct weft__split {
	uint64_t n; /* polls */
	uint64_t ns[WEFT__N_PARTS];
	uint64_t throttled_ns; /* of what was preempted: by a CPU quota */
};

/* What the thread itself said of a poll's time, when it ended. */
enum weft__cpu_known {
	WEFT__CPU_UNKNOWN, /* nothing: there is no detector, or it could not tell */
	WEFT__CPU_ALL,     /* it never left the CPU */
	WEFT__CPU_SPLIT
};
struct weft__cpu {
	enum weft__cpu_known known;
	uint64_t cpu_ns, ready_ns, unsure_ns; /* ready: WEFT_NOT_MEASURED, it is not known */
	uint64_t waiting_ns;                  /* in short waits, but for calls */
};

/* Whether it is known when a thread was off the CPU. */
enum weft__switches { WEFT__SWITCHES_NONE, WEFT__SWITCHES_SOME, WEFT__SWITCHES_ALL };

/* The thread that held what another waited for, in that time. */
struct weft__holder {
	uint32_t tid;       /* 0: not known */
	uint32_t thread_id; /* 0: it has none: it never emitted anything */
	uint32_t worker;
	bool in_poll;
	uint32_t location; /* of that poll's task */
	uint64_t task;
	uint64_t cpu_ns, off_ns, wait_ns; /* sampled, off the CPU, in waits of its own; of the time of the wait */
	uint32_t stack, kernel;           /* the most of what is the most of these; 0: none */
	uint32_t what, name;              /* its own wait, if it was in one */
	uint64_t object;
	const struct weft__holder *next; /* who held what it waited for; NULL: not known */
	uint64_t held_ns;                /* of the wait, that it held the lock; 0: not known */
	const struct weft__holder *also; /* who held the same lock for the next longest time; NULL: nobody */
};

/* Why a part of a poll was blocked or waiting. */
struct weft__cause {
	enum weft__part part;
	uint64_t n; /* times */
	uint64_t ns;
	uint32_t what; /* enum weft_wait; 0: no event says it */
	uint32_t name; /* id of a string */
	uint64_t object;
	uint32_t call;          /* of the system, plus 1, as a wall sample of the thread showed it; 0: not known */
	uint32_t stack, kernel; /* of the longest; 0: none */
	uint64_t longest_ns;
	struct weft__holder holder; /* of the longest */
};

struct weft__breakdown {
	bool known; /* there is one */
	enum weft__cpu_known cpu;
	enum weft__switches switches;
	struct weft__split split;
	struct weft__cause *causes; /* the longest first */
	size_t n_causes;
};

/* Context of a thread, as the program or another tracer gave it. All 0: none. */
struct weft__context {
	uint64_t trace_hi, trace_lo, span, root;
	uint32_t endpoint, labels; /* ids of strings */
};

static inline bool weft__context_is_set(const struct weft__context *context)
{
	return context->trace_hi || context->trace_lo || context->span || context->root || context->endpoint ||
	       context->labels;
}

/* Waits of one kind for one thing. */
struct weft__wait_row {
	uint32_t what, name;
	uint64_t object; /* of those that were reported one by one; 0: more than one, or not known */
	bool objects;    /* ... more than one */
	uint64_t n, ns, longest_ns;
	uint64_t worker_ns;  /* of ns, that of threads that are workers or poll */
	uint64_t n_reported; /* one by one */
	uint64_t n_cpu;      /* of those, whose CPU time is known; how long they were, and on the CPU */
	uint64_t cpu_of_ns, cpu_ns;
};

/* Of those of one thread that is no worker. */
struct weft__wait_thread {
	uint32_t thread_id;
	uint32_t what, name;
	uint64_t n, ns, longest_ns;
	uint32_t stack; /* in the longest; 0: not known */
};

/* Of waits that were reported one by one, those for one object: which lock it was, where many have one name. */
struct weft__wait_object {
	uint32_t what, name;
	uint64_t object;
	uint64_t n, ns, longest_ns;
	uint64_t worker_ns;         /* as above */
	struct weft__holder holder; /* in the longest of those of which it is known */
	uint64_t held_ns;           /* ... and its duration */
};

/* One long wait. */
struct weft__wait {
	uint64_t rank_ns; /* its duration */
	uint64_t end_ns;
	uint32_t thread_id, worker;
	uint32_t what, name;
	uint64_t object;
	uint32_t stack;
	bool in_poll;
	uint32_t location;
	uint64_t task;
	struct weft__context context;
	struct weft__holder holder;
};

/* A thread that was off the CPU, as far as switches say. */
struct weft__off_thread {
	uint32_t tid, thread_id, worker;
	uint64_t n_blocked, blocked_ns, n_preempted, preempted_ns; /* by weight, where not every switch is recorded */
	uint64_t throttled_ns;                                     /* of preempted_ns: by a CPU quota */
	uint64_t longest_ns;
	uint64_t samples; /* at the interval that CPU samples have */
	/* Between readings of its CPU time: what was off the CPU by the switches, in how many times, and by the
	 * clock. */
	uint64_t held_ns, held_n, rest_ns;
	uint64_t over_ns; /* that was taken off blocked_ns and preempted_ns, because the switches themselves took it */
};

/* What the CPU quota of the process' cgroup withheld, as the kernel counts it: added up over CPUs. */
struct weft__throttling {
	uint64_t n;       /* readings that found some */
	uint64_t span_ns; /* of those */
	uint64_t ns;
	uint64_t times;       /* that the quota was used up */
	uint64_t pressure_ns; /* in which threads of the cgroup wanted a CPU and had none; 0: not measured */
};

/* The CPU clock of the process beside its samples, in the same time. */
struct weft__cpu_clock {
	uint64_t n; /* readings; 0: not measured */
	uint64_t span_ns;
	uint64_t process_ns; /* without weft's own threads */
	uint64_t sampled_ns; /* that samples taken meanwhile stand for, whether or not they are in the file */
	uint64_t threads;    /* that ended without a sample, */
	uint64_t threads_ns; /* and their CPU time, as far as it is known */
};

/* Time off the CPU, or at which a wall sample found the thread waiting, by stack. */
struct weft__off_row {
	uint32_t tid, thread_id;
	uint32_t what; /* enum weft_offcpu; for wall samples the call of the system plus 1 */
	uint32_t stack, kernel;
	uint64_t n; /* times, or wall samples */
	uint64_t ns;
	uint64_t samples;
};

/* A poll that was reported while it ran. */
struct weft__stuck {
	uint64_t rank_ns; /* its age when it was last reported */
	uint64_t time_ns;
	uint64_t task;
	uint32_t tid, thread_id, worker, location;
	uint32_t stack; /* the last that there was */
	uint64_t n_reports;
	bool ended; /* later */
	uint64_t duration_ns;
};

/* A wait that lasts as the recording ends, as the collector saw it. */
#define WEFT__NO_PENDING UINT32_MAX
struct weft__pending {
	uint32_t tid, thread_id, worker;
	uint32_t what, name;
	uint64_t object;
	uint32_t holder; /* tid; 0: not known */
	uint64_t begin_ns, seen_ns;
	uint64_t age_ns; /* at the end of the recording */
	uint32_t stack, holder_stack;
	uint32_t next;     /* index of the wait that the holder is in itself, or WEFT__NO_PENDING */
	uint32_t deadlock; /* number of the ring of waits that it is in, from 1 on; 0: none */
	bool ended;
	bool counted; /* its length so far is recorded as that of a wait */
};

#define WEFT__COSTS 16 /* by enum weft_cost; the last also holds those that this version does not know */
struct weft__cost {
	uint64_t n;
	uint64_t cpu_ns, span_ns;
	uint64_t rate; /* that was last in force: of samples and wall samples Hz, of switches thousandths of the time */
};

#endif
