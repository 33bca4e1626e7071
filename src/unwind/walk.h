/* SPDX-License-Identifier: Apache-2.0 */
/* One walk up a stack, between the files that make it. HOT. */
#ifndef WEFT_UNWIND_WALK_H
#define WEFT_UNWIND_WALK_H

#include "unwind/unwind.h"

/* Other people's stacks have redzones and races; we read what lies there. */
#define WALK_RAW __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

typedef uint64_t __attribute__((aligned(1), may_alias)) walk_word;

struct weft__walk_range {
	uint64_t low;
	uint64_t room; /* size - 8: a word whose distance from low is at most this can be read */
	const uint8_t *bytes;
};

struct weft__walk {
	const struct weft__modules *set;
	struct weft__walk_range range[2];
	uint64_t r[ARCH_REGS];
	uint64_t valid;
	uint64_t pc; /* where this frame is: a return address, but for exact frames */
	int exact;   /* interrupted here, not calling */
	int full;    /* all saved registers are carried along, not just the stack and frame pointer */
	uint32_t flags;
};

enum walk_step { WALK_STOP, WALK_ON, WALK_AGAIN }; /* again: from the leaf, with all registers */

/* Among the flags, but for ourselves: complete because the return address was zero, which garbage is, too. */
#define WALK_ZERO ((uint32_t)1 << 31)

#define WALK_BIT(reg) ((uint64_t)1 << (reg))

WALK_RAW static inline int walk_load(const struct weft__walk *w, uint64_t addr, uint64_t *value)
{
	uint64_t at = addr - w->range[0].low;
	const uint8_t *p = w->range[0].bytes;

	if (__builtin_expect(at > w->range[0].room, 0)) {
		at = addr - w->range[1].low;
		p = w->range[1].bytes;
		if (at > w->range[1].room)
			return 0;
	}
	*value = *(const walk_word *)(const void *)(p + at);
	return 1;
}

/* Whether a register that should be saved in `slot` has its value back already: in an epilogue the rules still name
 * the slot after the register was popped, and what is below the stack pointer is nobody's. */
static inline int walk_restored(uint64_t slot, uint64_t sp, int exact)
{
	return exact && slot < sp && sp - slot <= 256;
}

/* The value of an expression; `begin`, when not NULL, is on its stack at the begin. 0: it cannot be had; then
 * `missing` says whether that is for want of a register. */
int weft__walk_expr(const struct weft__walk *w, const uint8_t *expr, uint32_t n, const uint64_t *begin, uint64_t *value,
		    int *missing);

/* From libgcc's frames, while it lets go of them, to the frame where an exception lands. Answers where the context is
 * that says so; 0: there is none to be seen. */
uint64_t weft__walk_landing(struct weft__walk *w);

/* Whether a stack ends with what returns to `ra`: because makecontext made it so, or because the caller is on
 * another stack. */
enum walk_end { WALK_GOES_ON, WALK_MADE, WALK_LEFT };
enum walk_end weft__walk_ends(struct weft__walk *w, uint64_t ra);

/* One frame by a rule of any kind, or without one. `module` may be NULL. */
enum walk_step weft__walk_rule(struct weft__walk *w, const struct weft__unwind_table *table,
			       const struct weft__rule *rule);
enum walk_step weft__walk_blind(struct weft__walk *w, const struct weft__module *module);

#endif
