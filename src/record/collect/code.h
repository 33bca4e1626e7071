/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to places in modules. COLLECTOR, and CALLER in recovery. */
#ifndef WEFT_COLLECT_CODE_H
#define WEFT_COLLECT_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/segment.h"

struct weft__code_range {
	uint64_t start, end;
	uint32_t module; /* id in segments */
	uint32_t tag;    /* the caller's */
};

/* Of ranges that overlap the one that was added last counts: a module that was unloaded stays until another takes
 * its place, since stacks from before are still on their way. */
struct weft__code {
	struct weft__code_range *ranges;
	size_t n;
	size_t cap;
	uint32_t kernel; /* module for frames of the kernel; 0: none yet */
};

/* 0 or -ENOMEM. */
int weft__code_add(struct weft__code *code, const struct weft__code_range *range);
void weft__code_fini(struct weft__code *code);
/* `frames` has room for n. Addresses of stacks of the kernel all belong to its module. */
void weft__code_frames(const struct weft__code *code, const uint64_t *addresses, uint32_t n, int kernel,
		       struct weft_frame *frames);

#endif
