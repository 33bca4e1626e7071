/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of interpreted code. To the machine, code of an interpreter is the interpreter; only the interpreter knows
 * which functions it runs. A binding gives weft a function that puts them into stacks, among the native ones:
 *
 *     static uint32_t mix(uint64_t *frames, uint32_t n, uint32_t max, uint32_t *flags, void *data)
 *     {
 *             memmove(frames + 1, frames, n * sizeof(*frames));       the leaf is what is interpreted
 *             frames[0] = weft_frame_of(location);                    of weft_location(name, file, line)
 *             return n + 1;
 *     }
 *     weft_frames_set("ruby", mix, NULL);
 *
 * A name takes a mutex, which a signal handler must not. So a frame that has none yet is a number of the binding's own
 * choice, weft_frame_later(number), and weft_frame_name says soon after what it is. */
#ifndef WEFT_FRAME_H
#define WEFT_FRAME_H

#include <stdint.h>

#include "define.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Addresses that no code has. Not promised: use the functions. */
#define WEFT_FRAME_BASE UINT64_C(0x7765667400000000)
#define WEFT_FRAME_LATER (WEFT_FRAME_BASE + 0x20000)

#define WEFT_FRAMES_LATER 65536 /* numbers of frames that are named later */

/* The frame of a location, which says what it is called, and in which file and line it is. 0: without a name. */
static inline uint64_t weft_frame_of(uint32_t location)
{
	return WEFT_FRAME_BASE + (location & 0x1ffff);
}

/* A frame that weft_frame_name will name. */
static inline uint64_t weft_frame_later(uint32_t number)
{
	return number < WEFT_FRAMES_LATER ? WEFT_FRAME_LATER + number : WEFT_FRAME_BASE;
}

/* Changes a stack of the calling thread, leaf first: `n` addresses in native code, in memory for `max`; `flags` are of
 * enum weft_stack_flag. Answers how many there are then. It is called in signal handlers, and where long waits end:
 * no lock, no memory, and no stack of its own to speak of. */
typedef uint32_t weft_frames_fn(uint64_t *frames, uint32_t n, uint32_t max, uint32_t *flags, void *data);

/* From here on `fn` sees each stack that a thread takes of itself. `runtime` is what its frames are of: "ruby". It
 * stays for the life of the process. Any thread. Returns 0, or -EEXIST when there is one already. */
WEFT_API int weft_frames_set(const char *runtime, weft_frames_fn *fn, void *data);

/* The frame weft_frame_later(number) is that location. It should be said within flush_ns: stacks that are written
 * before have a frame without a name. Any thread; async-signal-safe. */
WEFT_API void weft_frame_name(uint32_t number, uint32_t location);

#ifdef __cplusplus
}
#endif
#endif
