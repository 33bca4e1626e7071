/* SPDX-License-Identifier: Apache-2.0 */
/* Registers and a stack to addresses. HOT, but for what says otherwise: it takes no lock, allocates nothing, reads
 * only the modules' tables and the stack it is given, and ends.
 *
 *     struct weft__unwind_regs regs;
 *     weft__unwind_regs_set(&regs, ucontext);
 *     const struct weft__modules *modules = weft__modules_enter(&visit);
 *     n = weft__unwind(modules, &regs, &stack, out, max, &flags);
 *     weft__modules_leave(visit);
 *
 * An address in `out` lies in the instruction that runs: the program counter in the leaf and in what a signal
 * interrupted, and one byte before the return address in a caller. So a symbolizer takes every address as it is. */
#ifndef WEFT_UNWIND_UNWIND_H
#define WEFT_UNWIND_UNWIND_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "unwind/arch.h"
#include "unwind/modules.h"

#define WEFT__UNWIND_DEPTH_MAX 1024

enum weft__unwind_flag {
	WEFT__UNWIND_COMPLETE = 1, /* reached the thread's first function */
	WEFT__UNWIND_CUT = 2,      /* more frames than `max`: these are the innermost */
	WEFT__UNWIND_LOST = 4,     /* stopped where nothing said how to go on */
	WEFT__UNWIND_FP = 8,       /* some frames are from frame pointers, where there were no rules */
	WEFT__UNWIND_SIGNAL = 16,  /* went through a signal handler's frame */
	WEFT__UNWIND_NO_CODE = 32, /* the leaf is in no known module */
	WEFT__UNWIND_EARLY = 128,  /* some rules were not there yet: their table was still to be made */
};

struct weft__unwind_regs {
	uint64_t r[ARCH_REGS]; /* DWARF's numbers */
	uint64_t pc;
	/* Bit i: r[i] is known. At least the stack pointer; the frame pointer, the link register if they can be had. */
	uint64_t valid;
};

/* Memory that may be read: [low, high), whose bytes are at `bytes` (at low itself when it is our own stack). */
struct weft__unwind_range {
	uint64_t low, high;
	const void *bytes;
};

/* The second is for a handler on an alternate stack, whose frames lead to the thread's own; zero when there is none. */
struct weft__unwind_stack {
	struct weft__unwind_range range[2];
};

size_t weft__unwind(const struct weft__modules *modules, const struct weft__unwind_regs *regs,
		    const struct weft__unwind_stack *stack, uint64_t *out, size_t max, uint32_t *flags);

/* The registers that a signal handler was given. */
static inline void weft__unwind_regs_set(struct weft__unwind_regs *regs, const ucontext_t *uc)
{
	regs->pc = arch_from_context(regs->r, uc);
	regs->valid = ((uint64_t)1 << ARCH_REGS) - 1;
}

/* Our own stack. `low` may be the stack pointer itself. */
static inline struct weft__unwind_range weft__unwind_live(uint64_t low, uint64_t high)
{
	struct weft__unwind_range range = {low, high, (const void *)(uintptr_t)low};

	return range;
}

#endif
