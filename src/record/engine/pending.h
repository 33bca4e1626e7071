/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks that do not end, recorded while they last: what is waited for, who has it, and where both threads are. A deadlock is seen
 * in no other way. COLLECTOR. */
#ifndef WEFT_ENGINE_PENDING_H
#define WEFT_ENGINE_PENDING_H

#include <stdint.h>

/* Looks at all threads that wait, if that is due and something records. Answers how many were recorded, which should be in the file soon. */
uint32_t weft__pending_turn(uint64_t now_ns);
/* When it is due next; UINT64_MAX: never. */
uint64_t weft__pending_due(void);

#endif
