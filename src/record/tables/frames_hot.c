/* SPDX-License-Identifier: Apache-2.0 */
/* HOT, but for weft_frames_set. */
#include "record/tables/frames.h"

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/place.h"

static uint32_t frames_taken; /* 1: somebody sets it, or has */
static weft_frames_fn *mix_frames;
static void *mix_data;
static char frames_runtime[32];
static uint32_t frames_named[WEFT_FRAMES_LATER] LARGE_TABLE; /* locations */

int weft_frames_set(const char *name, weft_frames_fn *fn, void *data)
{
	size_t n = name ? strlen(name) : 0;

	if (swap_seq_cst(&frames_taken, 1u))
		return -EEXIST;
	if (n)
		memcpy(frames_runtime, name, n < sizeof(frames_runtime) ? n : sizeof(frames_runtime) - 1);
	mix_data = data;
	store_release(&mix_frames, fn);
	return 0;
}

void weft_frame_name(uint32_t number, uint32_t location)
{
	if (number < WEFT_FRAMES_LATER)
		store_relaxed(&frames_named[number], location);
}

uint32_t weft__frames_mix(uint64_t *frames, uint32_t n, uint32_t max, uint32_t *flags)
{
	weft_frames_fn *fn = load_acquire(&mix_frames);

	return fn ? fn(frames, n, max, flags, mix_data) : n;
}

uint32_t weft__frame_location(uint64_t address)
{
	return address < WEFT_FRAME_LATER ? (uint32_t)(address - WEFT_FRAME_BASE)
					  : load_relaxed(&frames_named[address - WEFT_FRAME_LATER]);
}

const char *weft__frames_runtime(void)
{
	return load_acquire(&mix_frames) ? frames_runtime : "";
}
