/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling. One engine at a time, one process-wide state: there is one recorder.
 *
 *     open     looks at what the machine allows, chooses, and remembers why; takes nothing yet
 *     start    handler installed, threads covered; stop undoes all of it
 *     tend     the collector, now and then: threads that came and went, intervals drawn anew, modules looked at
 *              again */
#ifndef WEFT_SAMPLE_ENGINE_H
#define WEFT_SAMPLE_ENGINE_H

#include <pthread.h>
#include <stdint.h>

#include "record/source.h"
#include "segment/defs.h"

/* What the engine has done since open; the collector makes stats and loss records of the differences. */
struct weft__engine_counts {
	uint64_t samples;   /* taken by handlers */
	uint64_t uncovered; /* threads that could not be covered, each once */
	uint64_t signals;   /* that came for a sample, whether or not there was one */
	uint64_t spent_ns;  /* in the handler */
};

/* What the program used of the CPU since it began, without weft's own threads, and what samples stand for. While
 * nothing is sampled, as it was when sampling ended. */
extern const struct weft__source weft__sample_source;

/* Whether one thread closes files that another one has opened, so that all must have the same table. Known at open. */
int weft__engine_shares_files(void);

/* COLLECTOR. */
struct weft__engine_counts weft__engine_counts(void);
struct weft__source_cpu weft__engine_cpu(void);
/* Samples a second of CPU time that were asked for; 0: none. */
uint32_t weft__engine_hz(void);
/* COLLECTOR. Takes `level` of `full` of them from now on, each thread as soon as it has its next one; what each
 * sample stands for stays right. Answers how many a second that is. */
uint32_t weft__engine_slow(uint32_t level, uint32_t full);

/* COLLECTOR, when rates were set, and then when it is due. Switches what is on for a part of the time. Answers when
 * it is due; UINT64_MAX: only when rates are set again. */
uint64_t weft__engine_turn(uint64_t now_ns);

/* HOT. The calling thread begins, or ends: for who sees that (bindings/preload). */
void weft__engine_thread_begin(void);
void weft__engine_thread_end(void);

/* perf.c. The calling thread is about to become another program, and has no event from now on that counts in the
 * kernel: its signal would come to the new program. True when it had one; then the other is called when it went on
 * as it was. Async-signal-safe. */
int weft__engine_exec_begin(void);
void weft__engine_exec_failed(void);

#endif
