/* SPDX-License-Identifier: Apache-2.0 */
/* One frame the long way: any rule, all registers, or no rule at all. */
#include "unwind/walk.h"

static const uint8_t carried[ARCH_SAVED] = ARCH_SAVED_REGS;

static enum walk_step lost(struct weft__walk *w)
{
	w->flags |= WEFT__UNWIND_LOST;
	return WALK_STOP;
}

/* A register that this walk did not carry: perhaps one that does has it. */
static enum walk_step missing(struct weft__walk *w)
{
	return w->full ? lost(w) : WALK_AGAIN;
}

static enum walk_step arrive(struct weft__walk *w, uint64_t ra, uint64_t sp, int exact)
{
	w->pc = ra;
	w->r[ARCH_SP] = sp;
	w->valid |= WALK_BIT(ARCH_SP);
	w->exact = exact;
	if (ra)
		return WALK_ON;
	w->flags |= WEFT__UNWIND_COMPLETE | WALK_ZERO;
	return WALK_STOP;
}

/* What a function need not keep, and may have kept all the same: code that was written by hand finds its frame by
 * such a register across calls of its own (OpenSSL's AES-GCM). Nobody asks for it otherwise. */
static uint64_t not_kept(const struct weft__walk *w)
{
	uint64_t valid = w->valid;

	for (int i = 0; i < ARCH_SAVED; i++)
		valid &= ~WALK_BIT(carried[i]);
	return valid;
}

static enum walk_step plain(struct weft__walk *w, const struct weft__rule *rule)
{
	uint64_t cfa, ra, valid = not_kept(w) | WALK_BIT(ARCH_SP);

	if (!(w->valid & WALK_BIT(rule->cfa_reg)))
		return missing(w);
	cfa = w->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_off;
	/* A leaf may not have moved the stack pointer where the return address is in a register. */
	if (cfa < w->r[ARCH_SP] || (cfa == w->r[ARCH_SP] && !w->exact))
		return lost(w);
	ra = w->r[ARCH_RA];
	if (ARCH_RA_FIXED && !walk_load(w, cfa + (uint64_t)ARCH_RA_OFFSET, &ra))
		return lost(w);
	if (!ARCH_RA_FIXED && rule->saved[ARCH_SAVED - 1] == RULE_SAME && !(w->valid & WALK_BIT(ARCH_RA)))
		return missing(w);
	for (int i = 0; i < ARCH_SAVED; i++) {
		uint8_t reg = carried[i];

		if (rule->saved[i] == RULE_SAME) {
			valid |= w->valid & WALK_BIT(reg);
		} else if (rule->saved[i] != RULE_UNDEFINED) {
			uint64_t slot = cfa + 8 * (uint64_t)(int64_t)rule->saved[i];

			if (walk_load(w, slot, &w->r[reg]))
				valid |= WALK_BIT(reg);
			else if (walk_restored(slot, w->r[ARCH_SP], w->exact))
				valid |= w->valid & WALK_BIT(reg);
			else
				return lost(w);
			if (!ARCH_RA_FIXED && reg == ARCH_RA)
				ra = w->r[reg];
		}
	}
	w->valid = valid;
	return arrive(w, rule->ra_signed ? arch_strip(ra) : ra, cfa, 0);
}

/* What a register of the caller is; 0 when that cannot be had. */
static int where_value(const struct weft__walk *w, const struct weft__special *special, const struct cfi_where *where,
		       uint64_t cfa, uint64_t *value, int *want_full)
{
	const uint8_t *expr = (const uint8_t *)special + where->value;
	uint64_t at;

	switch (where->how) {
	case CFI_OFFSET:
		return walk_load(w, cfa + (uint64_t)(int64_t)where->value, value);
	case CFI_VAL_OFFSET:
		*value = cfa + (uint64_t)(int64_t)where->value;
		return 1;
	case CFI_REGISTER:
		*value = w->r[where->len];
		*want_full |= !(w->valid >> where->len & 1);
		return w->valid >> where->len & 1;
	case CFI_EXPR:
		if (!weft__walk_expr(w, expr, where->len, &cfa, &at, want_full))
			return 0;
		/* GCC's epilogues of realigned stacks find registers through rbp even after they popped it. */
		if (w->exact && !special->signal && (at < w->r[ARCH_SP] || at >= cfa) &&
		    w->valid & WALK_BIT(where->reg)) {
			*value = w->r[where->reg];
			return 1;
		}
		return walk_load(w, at, value);
	case CFI_VAL_EXPR:
		return weft__walk_expr(w, expr, where->len, &cfa, value, want_full);
	}
	return 0;
}

static enum walk_step special_step(struct weft__walk *w, const struct weft__special *special)
{
	uint64_t r[ARCH_REGS], cfa, sp, ra = 0, valid = not_kept(w), old_sp = w->r[ARCH_SP];
	int have_ra = 0, want_full = 0;

	if (special->cfa.how == CFI_VAL_EXPR) {
		if (!weft__walk_expr(w, (const uint8_t *)special + special->cfa.value, special->cfa.len, NULL, &cfa,
				     &want_full))
			return want_full ? missing(w) : lost(w);
	} else {
		if (special->cfa.how != CFI_OFFSET)
			return lost(w);
		if (!(w->valid & WALK_BIT(special->cfa.reg)))
			return missing(w);
		cfa = w->r[special->cfa.reg] + (uint64_t)(int64_t)special->cfa.value;
	}
	sp = cfa;
	for (int i = 0; i < ARCH_SAVED; i++)
		valid |= w->valid & WALK_BIT(carried[i]);
	for (int i = 0; i < ARCH_REGS; i++)
		r[i] = w->r[i];
	if (!ARCH_RA_FIXED && w->valid & WALK_BIT(special->ra_reg)) {
		ra = w->r[special->ra_reg];
		have_ra = 1;
	}
	for (unsigned i = 0; i < special->n; i++) {
		uint8_t reg = special->where[i].reg;
		int got = where_value(w, special, &special->where[i], cfa, &r[reg], &want_full);

		valid = got ? valid | WALK_BIT(reg) : valid & ~WALK_BIT(reg);
		if (reg == special->ra_reg) {
			have_ra = got;
			ra = r[reg];
		}
		if (reg == ARCH_SP && got)
			sp = r[reg];
	}
	if (!have_ra)
		return want_full ? missing(w) : lost(w);
	if (!special->signal && (sp < old_sp || (sp == old_sp && !w->exact)))
		return lost(w);
	for (int i = 0; i < ARCH_REGS; i++)
		w->r[i] = r[i];
	w->valid = valid;
	if (special->signal)
		w->flags |= WEFT__UNWIND_SIGNAL;
	return arrive(w, special->ra_signed ? arch_strip(ra) : ra, sp, special->signal);
}

enum walk_step weft__walk_rule(struct weft__walk *w, const struct weft__unwind_table *table,
			       const struct weft__rule *rule)
{
	if (rule->kind == RULE_PLAIN)
		return plain(w, rule);
	if (rule->kind == RULE_SPECIAL)
		return special_step(w, (const struct weft__special *)(const void *)(table->specials + rule->cfa_off));
	if (rule->kind == RULE_END) {
		w->flags |= WEFT__UNWIND_COMPLETE;
		return WALK_STOP;
	}
	return lost(w);
}

/* The interrupted registers, from the frame that the kernel made for a handler. */
static enum walk_step signal_step(struct weft__walk *w)
{
	uint64_t sp = w->r[ARCH_SP], pc = 0;

	for (unsigned i = 0; i < ARCH_REGS; i++)
		if (!walk_load(w, sp + arch_context_offset(i), i == ARCH_REGS - 1 ? &pc : &w->r[i]))
			return lost(w);
	w->valid = WALK_BIT(ARCH_REGS - 1) - 1;
	w->flags |= WEFT__UNWIND_SIGNAL;
	return arrive(w, pc, w->r[ARCH_SP], 1);
}

/* Whether a word could be where a call returns to: in code that we know, or in code that is in no module. */
static int may_return_to(const struct weft__walk *w, uint64_t ra, int known_only)
{
	const struct weft__module *module = weft__modules_find(w->set, ra - 1);

	if (module)
		return ra > module->text_start && ra <= module->text_end;
	return !known_only && ra >= 0x10000 && ra >> 47 == 0 && ra - w->range[0].low > w->range[0].room &&
	       ra - w->range[1].low > w->range[1].room;
}

WALK_RAW static const uint8_t *code_at(const struct weft__walk *w, const struct weft__module *module)
{
	if (!module || !module->code_readable || w->pc < module->text_start || w->pc >= module->text_end ||
	    module->text_end - w->pc < ARCH_CODE_BYTES || (w->pc & 4095) > 4096 - ARCH_CODE_BYTES)
		return NULL;
	return (const uint8_t *)(uintptr_t)w->pc;
}

enum walk_end weft__walk_ends(struct weft__walk *w, uint64_t ra)
{
	const struct weft__module *module = weft__modules_find(w->set, ra);
	const uint8_t *code;

	w->pc = ra;
	code = module && module->stays ? code_at(w, module) : NULL;
	if (code && arch_is_context_end(code))
		return WALK_MADE;
	return code && arch_is_stack_left(code) ? WALK_LEFT : WALK_GOES_ON;
}

/* Code without rules: made at run time, or written by hand. Its frame pointer is believed when it leads upwards on
 * the stack to what could be a return address. */
enum walk_step weft__walk_blind(struct weft__walk *w, const struct weft__module *module)
{
	const uint8_t *code = w->exact || (module && module->stays) ? code_at(w, module) : NULL;
	uint64_t sp = w->r[ARCH_SP], fp = w->r[ARCH_FP], up, ra;
	int over;

	if (w->exact && !module)
		w->flags |= WEFT__UNWIND_NO_CODE;
	/* Else it was looked up, and has none: code written by hand, or made by a program that writes its own. */
	if (module && load_acquire(&module->pending) && !module->mapped.hdr)
		w->flags |= WEFT__UNWIND_EARLY;
	if (code && arch_is_sigreturn(code))
		return signal_step(w);
	over = code && w->exact ? arch_leaf_offset(code) : -1;
	if (over >= 0 && walk_load(w, sp + (uint64_t)over, &ra) && may_return_to(w, ra, 0)) {
		if (over)
			walk_load(w, sp, &w->r[ARCH_FP]);
		w->flags |= WEFT__UNWIND_FP;
		return arrive(w, ra, sp + (uint64_t)over + 8, 0);
	}
	w->flags |= WEFT__UNWIND_FP;
	/* A stub of the linker, or a leaf written by hand, has not moved the return address out of its register yet. */
	if (!ARCH_RA_FIXED && w->exact && module && w->valid & WALK_BIT(ARCH_RA)) {
		ra = arch_strip(w->r[ARCH_RA]);
		if (may_return_to(w, ra, 1))
			return arrive(w, ra, sp, 0);
	}
	if (w->valid & WALK_BIT(ARCH_FP) && fp >= sp && fp % 8 == 0 && walk_load(w, fp, &up) &&
	    walk_load(w, fp + 8, &ra)) {
		/* What its caller had in that register need not be a frame pointer, when the caller has rules. */
		int framed = up == 0 || up > fp;

		ra = arch_strip(ra);
		if ((ra == 0 && framed) || may_return_to(w, ra, !framed)) {
			w->r[ARCH_FP] = up;
			w->valid &= WALK_BIT(ARCH_FP);
			return arrive(w, ra, fp + 16, 0);
		}
	}
	/* A call to where no code is: its return address is all that was pushed. */
	if (ARCH_RA_FIXED && w->exact && walk_load(w, sp, &ra) && may_return_to(w, ra, 1))
		return arrive(w, ra, sp + 8, 0);
	return lost(w);
}
