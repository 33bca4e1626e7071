/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of this process, looked at from outside while it waits in the kernel: nothing is sent to it, it is not
 * woken, and no system call of its ends sooner. COLLECTOR.
 *
 *     /proc/self/task/TID/syscall   in which call it waits, its stack pointer and program counter; "running" when it
 *                                   does not wait
 *     process_vm_readv              its stack, as far as it is there
 *     the clock of its CPU time     the same before and after: it did not run meanwhile, so all of this belongs
 *                                   together */
#ifndef WEFT_WALL_REMOTE_H
#define WEFT_WALL_REMOTE_H

#include <stdint.h>

enum weft__remote_state {
	REMOTE_GONE = 0,    /* there is no such thread any more */
	REMOTE_RUNNING = 1, /* it runs or could run, or it did so each time that it was looked at */
	REMOTE_WAITS = 2,
};

struct weft__remote {
	enum weft__remote_state state;
	uint64_t cpu_ns;  /* its CPU time then */
	uint32_t call;    /* WAITS: number of the system call, plus 1; 0: none, or not known */
	uint32_t n;       /* frames; 0: not known */
	uint32_t flags;   /* of the stack, enum weft_stack_flag */
	uint64_t *frames; /* until the next look */
	int pending;      /* when tables that are being made are there, there may be more of them */
};

/* CALLER. Whether the kernel says where a thread waits: 0 or a negative error. */
int weft__remote_probe(void);
/* The time that a thread that could run has waited for a CPU; 0 when that is not known. */
uint64_t weft__remote_queue(uint32_t tid);
/* Whether a thread's name begins like that. */
int weft__remote_named(uint32_t tid, const char *prefix);
/* Looks at a thread. `brief`: at its state only, without stack and call. */
void weft__remote_look(uint32_t tid, int brief, struct weft__remote *ret);

#endif
