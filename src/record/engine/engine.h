/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling. One engine at a time, one process-wide state: there is one recorder.
 *
 *     open     looks at what the machine allows, chooses, and remembers why; takes nothing yet
 *     start    handler installed, threads covered; stop undoes all of it
 *     tend     the collector, now and then: threads that came and went, intervals drawn anew, modules looked at again */
#ifndef WEFT_ENGINE_ENGINE_H
#define WEFT_ENGINE_ENGINE_H

#include <pthread.h>
#include <stdint.h>

#include "segment/defs.h"
#include "weft/recorder.h"

/* What the engine has done since open; the collector makes stats and loss records of the differences. */
struct weft__engine_counts {
	uint64_t samples;   /* taken by handlers */
	uint64_t uncovered; /* threads that could not be covered, each once */
	uint64_t signals;   /* that came for a sample, whether or not there was one */
	uint64_t spent_ns;  /* in the handler */
};

/* What the program used of the CPU since it began, without weft's own threads, and what samples stand for. While nothing is sampled, as it was
 * when sampling ended. */
struct weft__engine_cpu {
	uint64_t program_ns, sampled_ns;
	uint64_t unhit, unhit_ns; /* threads that ended without a sample, and their CPU time, as far as it is known */
	uint64_t run;             /* how often sampling has begun */
};

/* CALLER, under the recorder's mutex. What cannot be done is degraded and told by the facts; only an option that makes no sense
 * fails: -WEFT_E_OPTION with a message. */
int weft__engine_open(const struct weft_recorder_opts *opts, struct weft_error *err);
/* CALLER. 0 or a negative error. Nothing to do when sampling is off. The collector, which runs, is not sampled. Unwind tables are compiled by a
 * thread of their own, for which it waits some milliseconds at most. */
int weft__engine_start(pthread_t collector);
void weft__engine_stop(void);
/* The same, but unwind tables that are being compiled are finished meanwhile. */
void weft__engine_pause(void);
void weft__engine_close(void);
/* Whether one thread closes files that another one has opened, so that all must have the same table. Known at open. */
int weft__engine_shares_files(void);
/* CALLER, around a fork, so that the child finds nothing half done. */
void weft__engine_lock(void);
void weft__engine_unlock(void);
/* In the child of a fork, whether or not it was locked: nothing of the parent's is there any more, but the handler, which goes too. */
void weft__engine_forked(void);

/* CALLER and COLLECTOR. "sample.engine", "sample.hz", "sample.event", "sample.why", "degraded.sampling"... */
void weft__engine_facts(struct weft__defs *defs);
/* Another number when they are not the same any more: what worked at open did not work later. */
uint32_t weft__engine_facts_changed(void);

/* COLLECTOR, between start and stop. Answers when it wants to be called next; sooner when it is pressing: a sample was in code that
 * the unwinder does not know. */
uint64_t weft__engine_tend(uint64_t now_ns);
int weft__engine_pressing(uint64_t now_ns);
struct weft__engine_counts weft__engine_counts(void);
struct weft__engine_cpu weft__engine_cpu(void);
/* 1: a loss to be told. */
struct weft_loss;
int weft__engine_loss(struct weft_loss *ret);
/* CPU time of the thread that compiles unwind tables, so far. */
uint64_t weft__tables_cost(void);
/* COLLECTOR. The thread that encodes, which is not sampled, and a clock of its CPU time; NULL: there is none any more. */
void weft__engine_encoder(const pthread_t *thread);
/* COLLECTOR. The signal that a thread of ours has to let through while it runs; 0: none. */
int weft__engine_let(void);
/* Samples a second of CPU time that were asked for; 0: none. */
uint32_t weft__engine_hz(void);
/* COLLECTOR. Takes `level` of `full` of them from now on, each thread as soon as it has its next one; what each sample stands for stays
 * right. Answers how many a second that is. */
uint32_t weft__engine_slow(uint32_t level, uint32_t full);

/* COLLECTOR. Where perf events are there for the rate alone, and all threads have timers, too: timers sample from now on, which cost nothing at context switches. 1: they do. */
int weft__engine_give_up(void);
/* COLLECTOR, now and then: whether perf events interrupt for nothing most of the time. 1: weft__engine_turn is due. */
int weft__engine_look(uint64_t now_ns);
/* COLLECTOR, when rates were set, and then when it is due. Switches what is on for a part of the time. Answers when it is due; UINT64_MAX: only
 * when rates are set again. */
uint64_t weft__engine_turn(uint64_t now_ns);

/* HOT. The calling thread got a ring: covers it at once. */
void weft__engine_thread_here(uint32_t tid);
/* HOT. The calling thread begins, or ends: for who sees that (bindings/preload). */
void weft__engine_thread_begin(void);
void weft__engine_thread_end(void);

/* perf.c. The calling thread is about to become another program, and has no event from now on that counts in the kernel: its signal would
 * come to the new program. True when it had one; then the other is called when it went on as it was. Async-signal-safe. */
int weft__engine_exec_begin(void);
void weft__engine_exec_failed(void);

#endif
