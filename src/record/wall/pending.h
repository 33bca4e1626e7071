/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks that do not end, recorded while they last: what is waited for, who has it, and where both threads
 * are. A deadlock is seen in no other way. COLLECTOR. */
#ifndef WEFT_WALL_PENDING_H
#define WEFT_WALL_PENDING_H

#include "record/source.h"

extern const struct weft__source weft__pending_source;

#endif
