/* SPDX-License-Identifier: Apache-2.0 */
/* Where an exception is about to land. When libgcc has found who catches, it copies the registers of that frame over
 * those that its own frame saved, the return address among them, and then jumps there with another stack pointer
 * (uw_install_context, __builtin_eh_return). Half way the rules of its frame are true of nothing: they give the
 * catcher's registers and the thrower's stack pointer. What is true is the context that it copies from, which lies in
 * its frame: where the registers of the catcher are saved, the catcher's stack pointer, the landing pad. Such a
 * context is known by what stands side by side in it: an address further up the stack, then code, then the exception
 * table and the begin of the function, both in the same module. */
#include "unwind/walk.h"

/* The words of a context, from the stack pointer's: it has been the same in all releases of GCC for this machine. */
enum { CONTEXT_CFA, CONTEXT_PC, CONTEXT_LSDA, CONTEXT_TEXT, CONTEXT_DATA, CONTEXT_FUNCTION, CONTEXT_FLAGS };
#define CONTEXT_REGS ((uint64_t)ARCH_EH_REGS + 1) /* words before it: where each register is saved */
#define CONTEXT_BY_VALUE (8 * ((uint64_t)CONTEXT_FLAGS + 3))
#define FLAG_EXTENDED ((uint64_t)1 << 62) /* it says for each register whether that is the place or the value */

/* What is looked through: the two frames that are libgcc's then, of which one has two or three contexts. */
#define FRAME_WORDS 320

static int in_text(const struct weft__module *module, uint64_t addr)
{
	return addr >= module->text_start && addr < module->text_end;
}

static int on_stack(const struct weft__walk *w, uint64_t addr)
{
	uint64_t word;

	return addr % 8 == 0 && walk_load(w, addr, &word);
}

/* Whether a context has its stack pointer at `at`. */
static int context_here(const struct weft__walk *w, uint64_t at)
{
	const struct weft__module *module;
	uint64_t word[CONTEXT_FLAGS];

	if (!walk_load(w, at, &word[CONTEXT_CFA]) || word[CONTEXT_CFA] <= at || !on_stack(w, word[CONTEXT_CFA]))
		return 0;
	for (unsigned i = 1; i < CONTEXT_FLAGS; i++)
		if (!walk_load(w, at + 8 * (uint64_t)i, &word[i]))
			return 0;
	module = weft__modules_find(w->set, word[CONTEXT_PC]);
	return module && in_text(module, word[CONTEXT_PC]) && in_text(module, word[CONTEXT_FUNCTION]) &&
	       word[CONTEXT_LSDA] >= module->start && word[CONTEXT_LSDA] < module->end;
}

/* A register as the catcher will have it. */
static int context_reg(const struct weft__walk *w, uint64_t at, unsigned reg, uint64_t *value)
{
	uint64_t place, flags, by_value;

	if (!walk_load(w, at - 8 * CONTEXT_REGS + 8 * (uint64_t)reg, &place) ||
	    !walk_load(w, at + 8 * (uint64_t)CONTEXT_FLAGS, &flags) ||
	    !walk_load(w, at + CONTEXT_BY_VALUE + reg, &by_value))
		return 0;
	*value = place;
	return flags & FLAG_EXTENDED && by_value & 0xff ? 1 : place && walk_load(w, place, value);
}

uint64_t weft__walk_landing(struct weft__walk *w)
{
	static const uint8_t carried_over[ARCH_SAVED] = ARCH_SAVED_REGS;
	uint64_t sp = w->r[ARCH_SP], found = 0, top = 0, cfa;

	if (!ARCH_EH_REGS)
		return 0;
	for (uint64_t at = sp; at < sp + 8 * FRAME_WORDS; at += 8) {
		/* The other one is of libgcc's own caller, which is further down. */
		if (walk_load(w, at, &cfa) && cfa > top && context_here(w, at)) {
			found = at;
			top = cfa;
		}
	}
	if (!found)
		return 0;
	w->valid = WALK_BIT(ARCH_SP);
	for (int i = 0; i < ARCH_SAVED; i++)
		if (context_reg(w, found, carried_over[i], &w->r[carried_over[i]]))
			w->valid |= WALK_BIT(carried_over[i]);
	w->r[ARCH_SP] = top;
	walk_load(w, found + 8 * (uint64_t)CONTEXT_PC, &w->pc);
	w->exact = 1;
	return found;
}
