/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that a binding puts into stacks (weft/frame.h). */
#ifndef WEFT_TABLES_FRAMES_H
#define WEFT_TABLES_FRAMES_H

#include <stdint.h>

#include "weft/frame.h"

/* HOT. A stack of the calling thread, with what its interpreter runs. Answers the number of frames. */
uint32_t weft__frames_mix(uint64_t *frames, uint32_t n, uint32_t max, uint32_t *flags);

/* Whether the address stands for a frame of a binding. */
static inline int weft__frame_is_named(uint64_t address)
{
	return address - WEFT_FRAME_BASE < 0x20000 + WEFT_FRAMES_LATER;
}

/* COLLECTOR. Its location; 0: it has no name yet. */
uint32_t weft__frame_location(uint64_t address);
/* COLLECTOR. What such frames are of; "" when there is no binding. */
const char *weft__frames_runtime(void);

#endif
