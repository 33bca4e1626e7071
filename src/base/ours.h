/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the process' threads are weft's, so that it is known when the program has none of its own any more. Any
 * context. */
#ifndef WEFT_BASE_OURS_H
#define WEFT_BASE_OURS_H

#include <stdint.h>

/* The first that each thread of ours calls. One that has not begun yet passes for the program's. */
void weft__ours_begin(void);
/* In a child of fork, which has none. */
void weft__ours_forked(void);
/* How many there are, those that are on their way out included. */
uint32_t weft__ours(void);
/* Whether the calling thread is one. */
int weft__ours_is_self(void);

/* Threads of the process that are not ours, a first thread that has ended but still has its place included. -1: not
 * known. */
int weft__others(void);
/* Whether the first thread has surely not ended. For next to nothing; 0 may be said of one that lives, too. */
int weft__first_lives(void);
/* Whether the first thread has ended while others go on. */
int weft__first_ended(void);
/* The code that it ended with. */
int weft__first_code(void);

#endif
