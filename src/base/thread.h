/* SPDX-License-Identifier: Apache-2.0 */
/* weft's own threads: small stacks, all signals blocked. CALLER and COLLECTOR. */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>

/* Of address space. The most that was seen in use is 28 KiB; the thread-local memory of the program comes out of it,
 * too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define THREAD_STACK 0u /* as the program's: sanitizers need more */
#else
#define THREAD_STACK (1u << 20)
#endif

/* 0 or a negative error. A detached one is not to be joined. */
int weft__thread_make(pthread_t *ret, int detached, void *(*start)(void *), void *data);
/* pthread_create() calls malloc for a new stack (heap.h), and not for one that an earlier thread left with the C
 * library. So who is not a thread of weft makes threads that end at once, for those that threads of weft will make;
 * and when they have ended they are joined, by anybody. One at a time; does nothing the second time, when earlier
 * threads of weft have left theirs. */
void weft__thread_spares(void);
void weft__thread_spares_end(void);

#endif
