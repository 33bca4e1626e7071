/* SPDX-License-Identifier: Apache-2.0 */
/* The stack of a thread that waits in the kernel, seen from another thread, which knows its stack pointer and
 * program counter and no other register. COLLECTOR.
 *
 * Most frames need no more than that: what a function saved for its caller is on the stack. It is the innermost
 * frames that may go by a frame pointer that nobody has saved yet. That one is looked for: where the code of the
 * function says that its frame begins, else word by word up the stack. What is taken for it must lead to a place
 * behind a call, and that call, where it names whom it calls, to this function. Such a stack has WEFT__UNWIND_FP
 * among its flags. */
#ifndef WEFT_UNWIND_OUTSIDE_H
#define WEFT_UNWIND_OUTSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/modules.h"

struct weft__outside {
	uint64_t sp, pc;
	const void *bytes; /* of the stack, from sp on */
	size_t n;
	/* Reads memory of this process that may be gone: 1, or 0 when that is so. */
	int (*read)(uint64_t addr, void *to, size_t n);
	uint64_t last_sp; /* answered: of the last frame */
	int pending; /* answered: a table that was wanted is still being made, and another time there may be more */
};

/* Addresses and flags as weft__unwind gives them. */
size_t weft__unwind_outside(const struct weft__modules *modules, struct weft__outside *in, uint64_t *out, size_t max,
			    uint32_t *flags);

#endif
