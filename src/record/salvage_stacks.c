/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of samples that a dead process left. What its collector had defined already may be in an earlier
 * segment than the one that is being recovered, so each stack that the file does not have is defined anew, under a
 * new id. */
#include <errno.h>

#include "record/recover.h"
#include "record/ring/stacks.h"

/* In a stack's id word, which is a copy of our own: the low half is the id that it got here. */
#define HERE (UINT64_C(0x5741) << 32)
#define HERE_MASK (UINT64_MAX << 32)

int weft__salvage_modules(struct weft__salvage *s)
{
	size_t n, i;
	const struct weft_module *modules = weft_segment_modules(s->known, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		struct weft__code_range range = {modules[i].start, modules[i].end, modules[i].id, 0};

		if (modules[i].kind == WEFT_MODULE_KERNEL)
			s->code.kernel = modules[i].id;
		else if (modules[i].end > modules[i].start)
			err = weft__code_add(&s->code, &range);
	}
	return err;
}

void weft__salvage_pass_stacks(struct weft__salvage *s)
{
	const struct weft_stack *stacks;
	size_t n, i;

	s->next_stack = s->region.head->next_stack;
	if (!s->next_stack) /* no process leaves that: it is spoiled */
		s->next_stack = 1;
	if (!s->active)
		return;
	stacks = weft_segment_stacks(s->active, &n);
	for (i = 0; i < n; i++)
		if (stacks[i].id >= s->next_stack)
			s->next_stack = stacks[i].id + 1;
}

/* Whether the file has this stack already, under the id that its process gave it. */
static int in_file(const struct weft__salvage *s, uint64_t id, const struct weft_stack *stack)
{
	const struct weft_stack *there;
	uint32_t i;

	there = s->active && id && id <= UINT32_MAX ? weft_segment_stack(s->active, (uint32_t)id) : NULL;
	if (!there || there->flags != stack->flags || there->n_frames != stack->n_frames)
		return 0;
	for (i = 0; i < stack->n_frames; i++)
		if (there->frames[i].module != stack->frames[i].module ||
		    there->frames[i].offset != stack->frames[i].offset)
			return 0;
	return 1;
}

uint64_t weft__salvage_stack(struct weft__salvage *s, uint32_t ref)
{
	/* Private memory: what is written to an adopted region does not reach the file. */
	uint64_t *words = (uint64_t *)(uintptr_t)weft__stacks_get(s->region.base, s->region.head, ref);
	struct weft_frame frames[STACK_DEPTH_MAX];
	struct weft_stack stack = {.frames = frames};

	if (!words)
		return 0;
	if ((words[STACK_ID] & HERE_MASK) == HERE)
		return (uint32_t)words[STACK_ID];
	stack.flags = (uint32_t)(words[STACK_SIZE] >> 32);
	stack.n_frames = (uint32_t)words[STACK_SIZE];
	if (stack.n_frames > STACK_DEPTH_MAX) {
		stack.n_frames = STACK_DEPTH_MAX;
		stack.flags |= WEFT_STACK_CUT;
	}
	weft__code_frames(&s->code, &words[STACK_ADDRESSES], stack.n_frames, (stack.flags & WEFT_STACK_KERNEL) != 0,
			  frames);
	if (in_file(s, words[STACK_ID], &stack)) {
		stack.id = (uint32_t)words[STACK_ID];
	} else if (!s->next_stack) {
		return 0; /* all numbers are used up, and 0 names none */
	} else {
		stack.id = s->next_stack++;
		weft__defs_stack(&s->defs, &stack);
	}
	words[STACK_ID] = HERE | stack.id;
	return stack.id;
}
