/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables: who wants them, and the thread that compiles them. Whoever takes stacks shares it: samples, waits,
 * wall samples. */
#ifndef WEFT_TABLES_TABLES_H
#define WEFT_TABLES_TABLES_H

#include <stdint.h>

struct weft__unwinding {
	uint32_t depth;  /* CALLER, at open: frames of a stack at most; 0: as many as there are */
	uint32_t wanted; /* any context: somebody takes stacks, or did since open */
	uint32_t stale;  /* HOT: a leaf was in no known module */
	/* CALLER, at open; NULL: nothing. What the thread does first, for as long as the answer is not 0. */
	int (*first)(void);
	/* The same. What it does when libraries may have come, under the lock of the modules. */
	void (*looked)(void);
};
extern struct weft__unwinding weft__unwinding;

/* Any context. Somebody takes stacks from now on, or will. */
void weft__tables_want(void);

/* CALLER, and COLLECTOR where it says so, one at a time. Forgets the recording before. */
void weft__tables_open(void);
/* Tables are made, as many as can be in a moment, and the others later. */
void weft__tables_start(void);
/* COLLECTOR. Has what came since then looked at. */
void weft__tables_look(void);
/* COLLECTOR. The thread has ended: its number may be another's one day. */
void weft__tables_forget(void);
/* The thread is gone then, and what it had not finished is left for the next time. */
void weft__tables_stop(void);
/* Any context. A signal that the thread lets through; 0: none. And which that is, for other threads of ours. */
void weft__tables_let(int signal);
int weft__tables_lets(void);
/* Any context. Why there was no thread; 0: there was none to want, or there was one. */
int weft__tables_refused(void);
/* Any context. CPU time of the thread, so far. */
uint64_t weft__tables_cost(void);
/* CALLER, around a fork, and in the child. */
void weft__tables_lock(void);
void weft__tables_unlock(void);
void weft__tables_forked(void);

#endif
