/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's own stack, from inside it. HOT. Frames go to memory that is not on the stack, as in the engine's
 * handler. */
#include "base/place.h"
#include "record/ring/ring.h"
#include "record/tables/frames.h"
#include "record/tables/tables.h"
#include "record/wait/wait.h"
#include "unwind/stack.h"
#include "unwind/unwind.h"

#define WAIT_SCRATCHES 32

static uint64_t wait_scratch[WAIT_SCRATCHES][WEFT__UNWIND_DEPTH_MAX] LARGE_TABLE;
static uint32_t wait_scratch_taken; /* bit by bit */

static int wait_buffer_take(void)
{
	for (int i = 0; i < WAIT_SCRATCHES; i++) {
		uint32_t bit = 1u << i;

		if (!(load_relaxed(&wait_scratch_taken) & bit) &&
		    !(__atomic_fetch_or(&wait_scratch_taken, bit, __ATOMIC_ACQUIRE) & bit))
			return i;
	}
	return -1;
}

void weft__wait_stack_give(int buffer)
{
	__atomic_fetch_and(&wait_scratch_taken, ~(1u << buffer), __ATOMIC_RELEASE);
}

/* The thread's own stack is looked up once; another one, a coroutine's or a handler's, each time, as it may be gone
 * the next. */
static void wait_own_stack(struct weft_waits *waits, uint64_t sp, struct weft__unwind_stack *stack)
{
	struct weft__stack_bounds bounds;

	stack->range[0] = stack->range[1] = weft__unwind_live(0, 0);
	if (sp >= waits->stack_low && sp < waits->stack_high) {
		stack->range[0] = weft__unwind_live(sp, waits->stack_high);
		return;
	}
	if (weft__stack_bounds_find(sp, &bounds) < 0)
		return;
	stack->range[0] = weft__unwind_live(sp, bounds.high);
	if (waits->stack_high)
		stack->range[1] = weft__unwind_live(waits->stack_low, waits->stack_high);
	if (bounds.sure) {
		waits->stack_low = bounds.low;
		waits->stack_high = bounds.high;
	}
}

/* Without the frames up to the one that `from` returns to. When the way there was lost, that one is known all the
 * same. */
static uint32_t frames_of_caller(uint64_t *frames, uint32_t n, uint64_t from, const uint64_t **ret)
{
	uint32_t i = 0;

	while (i < n && frames[i] + 1 != from)
		i++;
	*ret = i < n ? frames + i : frames;
	if (i == n)
		frames[0] = from - 1;
	return i < n ? n - i : 1;
}

uint32_t weft__wait_stack(struct weft_waits *waits, uint64_t from, const uint64_t **ret, uint32_t *flags, int *buffer)
{
	uint32_t depth = weft__unwinding.depth, visit, n;
	const struct weft__modules *modules;
	struct weft__unwind_stack stack;
	struct weft__unwind_regs regs;

	*flags = 0;
	*buffer = depth == 1 ? -1 : wait_buffer_take(); /* the one frame is that of the call, which the event names */
	if (*buffer < 0)
		return 0;
	regs.pc = arch_here(regs.r, &regs.valid);
	wait_own_stack(waits, regs.r[ARCH_SP], &stack);
	modules = weft__modules_enter(&visit);
	n = (uint32_t)weft__unwind(modules, &regs, &stack, wait_scratch[*buffer],
				   depth ? depth : WEFT__UNWIND_DEPTH_MAX, flags);
	/* Code that came since the last look, or no samples, and so no tables yet: the next one should find them. */
	weft__tables_want();
	if (*flags & WEFT__UNWIND_LOST && !load_relaxed(&weft__unwinding.stale) &&
	    !swap_seq_cst(&weft__unwinding.stale, 1u))
		weft__collector_wake();
	weft__modules_leave(visit);
	n = frames_of_caller(wait_scratch[*buffer], n, from, ret);
	return weft__frames_mix((uint64_t *)(uintptr_t)*ret, n,
				WEFT__UNWIND_DEPTH_MAX - (uint32_t)(*ret - wait_scratch[*buffer]), flags);
}
