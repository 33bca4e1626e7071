/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is not malloc's. The C library gives a thread that calls malloc 64 MiB of address space of its own,
 * which the program may have little of, or lock; weft's threads call this instead. CALLER and COLLECTOR; never HOT. */
#ifndef WEFT_BASE_HEAP_H
#define WEFT_BASE_HEAP_H

#include <stddef.h>

/* As realloc(). NULL: out of memory, and what was there is still good. */
void *weft__heap_resize(void *ptr, size_t bytes);
void weft__heap_release(void *ptr);
/* Whether all of it is 0 as long as nobody wrote to it: pages fresh from the kernel. For what
 * weft__heap_resize(NULL) has just given. */
int weft__heap_is_zero(const void *ptr);
/* Around a fork, in that order; both in parent and child. */
void weft__heap_lock(void);
void weft__heap_unlock(void);
/* In a child that was made without these: what other threads were at is left alone for good. */
void weft__heap_forked(void);

#endif
