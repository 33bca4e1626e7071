/* SPDX-License-Identifier: Apache-2.0 */
/* Where the stack of a thread ends. An unwinder reads from the stack pointer up to `high`; `low` is how far the stack
 * may grow, and says whether a stack pointer is on it.
 *
 * `sure` means that all of it stays readable for as long as the thread lives, so it can be kept. Otherwise it is the
 * mapping that the stack pointer was in (a coroutine's stack, a thread made by a bare clone): true at that moment,
 * but a part of it may belong to somebody else who unmaps it; then keep it for one sample only. */
#ifndef WEFT_UNWIND_STACK_H
#define WEFT_UNWIND_STACK_H

#include <pthread.h>
#include <stdint.h>

struct weft__stack_bounds {
	uint64_t low, high;
	int sure;
};

/* CALLER, on the thread itself: from the thread library. 0 or negative errno. */
int weft__stack_bounds_self(struct weft__stack_bounds *ret);

/* CALLER. So that the stacks of most threads are found without a file: the end of the first thread's, and where in a
 * thread's descriptor the thread library keeps its stack, which is found by looking into that of `other`, a thread
 * that the thread library made. */
void weft__stack_learn(pthread_t other);

/* HOT. By what was learned; else from /proc/self/maps, with bare system calls, for a thread that was first met in a
 * handler: 0 or negative errno. Linux 6.11 and later are asked for the one mapping, others give the whole list, which
 * costs tens of microseconds, and milliseconds where there are thousands of threads. As every fault does, it waits
 * while another thread changes the address space. `stack_pointer` is that of the interrupted code. The thread's own
 * descriptor lies at the upper end of the stacks that the thread library makes, which gives their end exactly. */
int weft__stack_bounds_find(uint64_t stack_pointer, struct weft__stack_bounds *ret);
/* HOT. The same of the calling thread's own stack, wherever it runs now: for one that was first met on an alternate
 * stack. Not for a thread that shares the thread-local memory of another. */
int weft__stack_bounds_own(struct weft__stack_bounds *ret);

/* What was learned; 0: it was not. */
struct weft__stack_learned {
	int32_t block_at; /* from the thread pointer: begin, length and guard of the thread's stack, a word each */
	uint64_t main_high, main_most;
};
extern struct weft__stack_learned weft__stack_learned;
/* CALLER. The mapping of an address; 0: the first thread's stack, by its name in /proc/self/maps. */
int weft__stack_map(uint64_t address, struct weft__stack_bounds *ret);

#endif
