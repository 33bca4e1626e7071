/* SPDX-License-Identifier: Apache-2.0 */
/* The late start. A process that has not lived for long costs next to nothing: no thread, no file, no table, nothing is
 * measured. What is needed to start later is a timer on its CPU time.
 *
 *  - A process that waits in an event loop, makes a thread or changes its user starts at once, and waits for that.
 *  - Else it starts beside itself when it has used WEFT_START_AFTER_MS of CPU time (a signal says so), or at one of the
 *    interposed calls when it has lived that long and is worth it. CPU time in fork does not count.
 *  - A child of fork is a process of its own. Its fork handler takes no lock and allocates nothing; it writes to the
 *    thread's own memory only. The rest is done when it is worth it (settle).
 *  - A process that ends before is counted in a page that all share (base/short.h).
 *  - Without that page it is a line in the directory's short-processes.txt.
 *
 * The recorder is opened by a thread of ours. To make that thread takes memory and locks of the C library, so it is
 * not done while the program is in a signal handler, or interrupted in the C library. CALLER, but for what says HOT. */
#ifndef WEFT_PRELOAD_LATE_H
#define WEFT_PRELOAD_LATE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

extern uint32_t weft__preload_late; /* the recorder is still to be started */

/* calm.c. From the constructor: where the C library and the loader are, and what handlers return to, by the signal
 * that has one; 0: none. */
void weft__preload_code_init(void);
void weft__preload_restorer_find(int signal);
bool weft__preload_in_libc(const void *at);
/* HOT. Code in which a lock may be held: the C library, the loader, the vDSO, ours. */
bool weft__preload_is_closed(uintptr_t pc);
/* HOT. Whether the program is in no signal handler: one may have interrupted the C library anywhere. A stack that is
 * too deep to be looked at counts as one. */
bool weft__preload_is_calm(uintptr_t sp);

/* short.c. The page in which processes are counted. Then: this one begins. */
void weft__preload_counts_open(void);
void weft__preload_counts_born(void);
/* This process is accounted for, or a child that is not settled is (N is 1; -1: it is not, after all). A settled child
 * is a process of its own. Leave answers false when it was before. */
bool weft__preload_counts_leave(void);
void weft__preload_counts_left(int n);
void weft__preload_counts_settle(void);
/* HOT. In the child of a fork: now it begins, with a timer if there is a SIGNAL for it. */
void weft__preload_child_begin(int signal, uint64_t after_ns);
/* HOT. A process that began then ends, and is counted with its CPU time, or there is no page for that. */
bool weft__preload_counts_end(clockid_t cpu_clock, uint64_t born_ns);
/* HOT. A timer on the CPU time of the calling thread, which is TID; -1: none. */
int weft__preload_timer_new(int signal, int tid, uint64_t after_ns);
int weft__preload_small_pid(void);
/* HOT. The process ends: a line in the directory. */
void weft__preload_short_line(const char *dir, uint64_t born_ns);

/* From the constructor. 0 ns: start now. */
void weft__preload_late_init(const char *dir, bool children, uint64_t after_ns);
/* An interposed call in which nothing records. Any context. */
void weft__preload_late_call(void);
/* Starts, and returns when it has been done or given up. Not in signal handlers: for calls that are not allowed
 * there. */
void weft__preload_late_now(void);
/* A call of poll or select that may wait for longer than a start takes: others would come back too late. Any
 * context. */
void weft__preload_late_polls(void);
/* HOT. Whether this is the process whose state it is. In the child of a vfork everything is shared and nothing is
 * ours. */
bool weft__preload_is_own(void);
/* HOT. The child of a fork becomes a process like others. */
void weft__preload_settle(void);
/* HOT. Around exec, also in the child of a vfork, where both do nothing: what the process is becomes another one's. */
int weft__preload_late_exec(void);
void weft__preload_late_exec_failed(int was);
/* The program wants SIGNAL for itself. */
void weft__preload_late_give_signal(int signal);

/* start.c: opens the recorder and starts it, or starts it again in the child of a fork. On a quiet thread. 0 or not. */
int weft__preload_open(void);
/* Whether none of the recorder's files has to be in the program's table: src/record/setup.c decides by the same. */
bool weft__preload_private_fds(void);

#endif
