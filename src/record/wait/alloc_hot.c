/* SPDX-License-Identifier: Apache-2.0 */
/* An allocation that stands for others. HOT. */
#include "record/event/wide.h"
#include "record/wait/wait.h"
#include "weft/event.h"

void weft_alloc(uint32_t name, uint64_t count, uint64_t bytes)
{
	struct weft__wide_stack stack = {.field = WEFT_FIELD_ALLOC_STACK};
	uint64_t fields[WEFT_FIELDS_OF_ALLOC] = {name, count, bytes, 0};
	uint64_t from = (uint64_t)(uintptr_t)__builtin_return_address(0);
	struct weft_waits *waits = weft_waits_self;
	uint32_t on = weft_gate_on();
	int buffer = -1;

	if (!on)
		return;
	if (!waits->tid)
		waits = weft_slow_waits();
	if (waits)
		stack.n = weft__wait_stack(waits, from, &stack.frames, &stack.flags, &buffer);
	weft__wide_emit_stacks(WEFT_KIND_ALLOC, weft_tick(on), fields, &stack, stack.n ? 1 : 0);
	if (buffer >= 0)
		weft__wait_stack_give(buffer);
}
