/* SPDX-License-Identifier: Apache-2.0 */
/* The late start. A process that has not lived for long costs next to nothing: no thread, no file, no table, nothing is
 * measured. What is needed to start later is a timer on its CPU time.
 *
 *  - A process that waits in an event loop, makes a thread or changes its user starts at once, and waits for that.
 *  - Else it starts beside itself when it has used WEFT_START_AFTER_MS of CPU time (a signal says so), or at one of the
 *    interposed calls when it has lived that long and is worth it.
 *  - A child of fork is a process of its own. Its fork handler takes no lock and allocates nothing.
 *  - A process that ends before is a line in the directory's short-processes.txt.
 *
 * The recorder is opened by a thread of ours. To make that thread takes memory and locks of the C library, so it is not done
 * while the program is in a signal handler, or interrupted in the C library. CALLER, but for what says HOT. */
#ifndef WEFT_PRELOAD_LATE_H
#define WEFT_PRELOAD_LATE_H

#include <stdbool.h>
#include <stdint.h>

extern uint32_t weft__preload_late; /* the recorder is still to be started */

/* From the constructor: where the C library and the loader are. */
void weft__preload_code_init(void);
bool weft__preload_in_libc(const void *at);
/* From the constructor. 0 ns: start now. */
void weft__preload_late_init(const char *dir, bool children, uint64_t after_ns);
/* An interposed call in which nothing records. Any context. */
void weft__preload_late_call(void);
/* Starts, and returns when it has been done or given up. Not in signal handlers: for calls that are not allowed there. */
void weft__preload_late_now(void);
/* A call of poll or select that may wait for longer than a start takes: others would come back too late. Any context. */
void weft__preload_late_polls(void);
/* The program wants SIGNAL for itself. */
void weft__preload_late_give_signal(int signal);

/* start.c: opens the recorder and starts it, or starts it again in the child of a fork. On a quiet thread. 0 or not. */
int weft__preload_open(void);
/* Whether none of the recorder's files has to be in the program's table: src/record/setup.c decides by the same. */
bool weft__preload_files_apart(void);

#endif
