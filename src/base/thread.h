/* SPDX-License-Identifier: Apache-2.0 */
/* weft's own threads: small stacks, all signals blocked. CALLER and COLLECTOR. */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>

/* Of address space. The most that was seen in use is 28 KiB; the thread-local memory of the program comes out of it, too. */
#define THREAD_STACK (1u << 20)

/* 0 or a negative error. A detached one is not to be joined. */
int weft__thread_make(pthread_t *ret, int detached, void *(*start)(void *), void *data);
/* Makes a thread that ends at once: its stack stays with the C library, for the next thread that is made, and with it memory that would
 * be malloc's. So a thread of weft that makes the next one calls no malloc (heap.h). */
void weft__thread_spare(void);

#endif
