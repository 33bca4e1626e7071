/* SPDX-License-Identifier: Apache-2.0 */
/* weft's own threads: small stacks, all signals blocked but one. CALLER and COLLECTOR. */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Of address space. The most that was seen in use is 28 KiB; the thread-local memory of the program comes out of it,
 * too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define THREAD_STACK 0u /* as the program's: sanitizers need more */
#else
#define THREAD_STACK (1u << 20)
#endif

/* A signal that threads made from now on do not block; 0: none. The kernel gives a signal of the process to the thread
 * that runs, and when that one blocks it to another, which may be one of the program's that waits. */
extern uint32_t weft__thread_let;

/* 0 or a negative error. A detached one is not to be joined. */
int weft__thread_make(pthread_t *ret, int detached, void *(*start)(void *), void *data);
/* pthread_create() calls malloc for a new stack (heap.h), and not for one that an earlier thread left with the C
 * library. So who is not a thread of weft makes threads that end at once, for those that threads of weft will make;
 * and when they have ended they are joined, by anybody. One at a time; does nothing the second time, when earlier
 * threads of weft have left theirs. */
void weft__thread_spares(void);
void weft__thread_spares_end(void);

#endif
