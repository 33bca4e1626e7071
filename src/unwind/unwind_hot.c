/* SPDX-License-Identifier: Apache-2.0 */
/* The walk. Nearly every frame is plain: the CFA is the stack or the frame pointer plus a number, the return address
 * and perhaps the frame pointer are at fixed places under it. Such a rule fits one word, found by address in a cache;
 * a frame then costs one look there and one or two loads from the stack. The other frames, and walks that turn out to
 * need a register besides these two, go through step_hot.c; the latter begin again at the leaf and carry all
 * registers. */
#include "base/atomic.h"
#include "unwind/on_demand.h"
#include "unwind/walk.h"

/* A rule in one word. */
enum {
	PACK_KIND = 7,
	PACK_FAST = 1,
	PACK_RULE = 2, /* module << 8, rule << 32 */
	PACK_END = 3,
	PACK_NONE = 4,      /* (module + 1) << 8, or 0 */
	PACK_ON_DEMAND = 5, /* module << 8: has no table yet */
	PACK_CFA_FP = 1 << 3,
	PACK_FP_SAVED = 1 << 4,
	PACK_RA_SIGNED = 1 << 5,
};
#define PACK_RA_SHIFT 8  /* 12 bits, of 8 bytes, signed */
#define PACK_FP_SHIFT 20 /* 16 bits, of 8 bytes, signed */
#define PACK_CFA_SHIFT 36
#define PACK_MODULE(pack) ((uint32_t)((pack) >> 8) & 0xffffff)

static int64_t bits(uint64_t pack, unsigned shift, unsigned n)
{
	return (int64_t)(pack << (64 - shift - n)) >> (64 - n);
}

/* The word of a rule, or 0 when it does not fit one. */
static uint64_t pack_plain(const struct weft__rule *rule)
{
	uint64_t pack = PACK_FAST | (rule->cfa_reg == ARCH_FP ? PACK_CFA_FP : 0);
	int16_t fp = rule->saved[ARCH_SAVED_FP];

	if ((rule->cfa_reg != ARCH_FP && rule->cfa_reg != ARCH_SP) || rule->cfa_off >= 1 << 27 ||
	    rule->cfa_off < -(1 << 27))
		return 0;
	if (fp != RULE_SAME && fp != RULE_UNDEFINED)
		pack |= PACK_FP_SAVED | (uint64_t)(uint16_t)fp << PACK_FP_SHIFT;
#if !ARCH_RA_FIXED
	int16_t ra = rule->saved[ARCH_SAVED_RA];

	if (ra == RULE_SAME || ra == RULE_UNDEFINED || ra < -2048)
		return 0;
	pack |= (uint64_t)(ra & 0xfff) << PACK_RA_SHIFT;
	if (rule->ra_signed)
		pack |= PACK_RA_SIGNED;
#endif
	return pack | (uint64_t)(int64_t)rule->cfa_off << PACK_CFA_SHIFT;
}

/* Of a module whose table is not made yet; kept in the cache when the word is all there is to know. */
static uint64_t pack_on_demand(struct weft__unwind_slot *slot, struct weft__module *module, uint64_t i, uint64_t addr)
{
	struct weft__on_demand *demand = weft__on_demand_take(module, addr);
	uint64_t pack = 0;

	if (demand) {
		if (demand->rule.kind == RULE_END)
			pack = PACK_END;
		else if (demand->rule.kind == RULE_PLAIN)
			pack = pack_plain(&demand->rule);
		weft__on_demand_give(demand);
	} else if (!module->mapped.hdr && !load_relaxed(&module->wanted)) {
		store_relaxed(&module->wanted, 1u);
	}
	if (!pack)
		return (demand ? PACK_ON_DEMAND | i << 8 : PACK_NONE | (i + 1) << 8);
	store_relaxed(&slot->rule, pack);
	store_relaxed(&slot->check, addr ^ pack);
	return pack;
}

static uint64_t pack_miss(const struct weft__modules *set, struct weft__unwind_slot *slot, uint64_t addr)
{
	const struct weft__module *module = weft__modules_find(set, addr);
	uint64_t pack = PACK_NONE, i = 0;

	if (module) {
		int pending = load_acquire(&module->pending) != 0;
		const struct weft__unwind_table *table = pending ? NULL : module->table;
		uint32_t number = table ? weft__unwind_table_find(table, addr - module->bias) : 0;

		while (set->module[i] != module)
			i++;
		if (pending)
			return pack_on_demand(slot, set->module[i], i, addr);
		if (!number)
			pack = PACK_NONE | (i + 1) << 8;
		else if (table->rules[number].kind == RULE_END)
			pack = PACK_END;
		else if (table->rules[number].kind != RULE_PLAIN || !(pack = pack_plain(&table->rules[number])))
			pack = PACK_RULE | i << 8 | (uint64_t)number << 32;
	}
	store_relaxed(&slot->rule, pack);
	store_relaxed(&slot->check, addr ^ pack);
	return pack;
}

static inline uint64_t pack_of(const struct weft__modules *set, uint64_t addr)
{
	struct weft__unwind_slot *slot;
	uint64_t pack;

	slot = &set->cache[(addr ^ addr >> WEFT__UNWIND_CACHE_BITS) & ((1u << WEFT__UNWIND_CACHE_BITS) - 1)];
	pack = load_relaxed(&slot->rule);
	if (__builtin_expect((load_relaxed(&slot->check) ^ pack) == addr, 1))
		return pack;
	return pack_miss(set, slot, addr);
}

static enum walk_step step_on_demand(struct weft__walk *w, const struct weft__module *module, uint64_t addr)
{
	struct weft__on_demand *demand = weft__on_demand_take(module, addr);
	enum walk_step step;

	if (!demand)
		return weft__walk_blind(w, module);
	step = weft__walk_rule(w, &demand->table, &demand->rule);
	weft__on_demand_give(demand);
	return step;
}

/* A frame that is not fast, or any when all registers are carried. A word of another thread's may be here before the
 * table that it was made from can be seen. */
static enum walk_step step_slow(struct weft__walk *w, uint64_t pack, uint64_t addr)
{
	const struct weft__module *module = NULL;
	const struct weft__unwind_table *table;
	uint32_t number;

	switch (pack & PACK_KIND) {
	case PACK_ON_DEMAND:
		return step_on_demand(w, w->set->module[PACK_MODULE(pack)], addr);
	case PACK_END:
		w->flags |= WEFT__UNWIND_COMPLETE;
		return WALK_STOP;
	case PACK_RULE:
		module = w->set->module[PACK_MODULE(pack)];
		number = (uint32_t)(pack >> 32);
		break;
	case PACK_FAST:
		module = weft__modules_find(w->set, addr);
		number = UINT32_MAX;
		break;
	default:
		if (PACK_MODULE(pack))
			module = w->set->module[PACK_MODULE(pack) - 1];
		return weft__walk_blind(w, module);
	}
	table = module ? weft__module_table(module) : NULL;
	if (!table)
		return module ? step_on_demand(w, module, addr) : weft__walk_blind(w, NULL);
	if (number == UINT32_MAX)
		number = weft__unwind_table_find(table, addr - module->bias);
	return weft__walk_rule(w, table, &table->rules[number]);
}

/* As long as frames are fast. Answers the word of the frame that is not, with its registers in w, or 0 when the walk
 * is over. */
WALK_RAW static uint64_t run_fast(struct weft__walk *w, uint64_t *out, size_t *ret_n, size_t max)
{
	const struct weft__modules *set = w->set;
	uint64_t sp = w->r[ARCH_SP], fp = w->r[ARCH_FP], ra = w->pc, addr = w->exact ? ra : ra - 1, pack;
	size_t n = *ret_n;
	int exact = w->exact;

	for (;;) {
		uint64_t cfa;

		if (n == max) {
			w->flags |= WEFT__UNWIND_CUT;
			pack = 0;
			break;
		}
		out[n++] = addr;
		pack = pack_of(set, addr);
		if ((pack & PACK_KIND) != PACK_FAST || w->full)
			break;
		cfa = (pack & PACK_CFA_FP ? fp : sp) + (uint64_t)((int64_t)pack >> PACK_CFA_SHIFT);
		if (pack & PACK_FP_SAVED) {
			uint64_t slot = cfa + 8 * (uint64_t)bits(pack, PACK_FP_SHIFT, 16);

			if (!walk_load(w, slot, &fp) && !walk_restored(slot, sp, exact))
				goto lost;
		}
		if (!walk_load(w,
			       cfa + (ARCH_RA_FIXED ? (uint64_t)ARCH_RA_OFFSET
						    : 8 * (uint64_t)bits(pack, PACK_RA_SHIFT, 12)),
			       &ra) ||
		    cfa <= sp)
			goto lost;
		if (pack & PACK_RA_SIGNED)
			ra = arch_strip(ra);
		exact = 0;
		sp = cfa;
		addr = ra - 1;
		if (ra == 0) {
			w->flags |= WEFT__UNWIND_COMPLETE | WALK_ZERO;
			pack = 0;
			break;
		}
	}
done:
	if (sp != w->r[ARCH_SP]) /* moved on: only these were carried along */
		w->valid = WALK_BIT(ARCH_SP) | WALK_BIT(ARCH_FP);
	w->r[ARCH_SP] = sp;
	w->r[ARCH_FP] = fp;
	w->pc = ra;
	w->exact = exact;
	*ret_n = n;
	return pack;
lost:
	w->flags |= WEFT__UNWIND_LOST;
	pack = 0;
	goto done;
}

static const uint64_t nothing;

static struct weft__walk_range range_of(const struct weft__unwind_range *range)
{
	struct weft__walk_range empty = {UINT64_MAX, 0, (const uint8_t *)&nothing};

	if (range->high <= range->low || range->high - range->low < 8)
		return empty;
	return (struct weft__walk_range){range->low, range->high - range->low - 8, range->bytes};
}

/* At the leaf. */
static void walk_begin(struct weft__walk *w, const struct weft__unwind_regs *regs, int full)
{
	for (int i = 0; i < ARCH_REGS; i++)
		w->r[i] = regs->r[i];
	w->valid = regs->valid;
	w->pc = regs->pc;
	w->exact = 1;
	w->full = full;
	w->flags = 0;
}

static size_t walk_from(struct weft__walk *w, const struct weft__unwind_regs *regs, size_t n, uint64_t *out, size_t max)
{
	for (;;) {
		uint64_t pack = run_fast(w, out, &n, max);
		int called = !w->exact;
		enum walk_step step;

		if (!pack)
			return n;
		step = step_slow(w, pack, out[n - 1]);
		if (step == WALK_ON) {
			/* That was a signal's trampoline, which nobody called: the byte before it is another
			 * function's. */
			if (w->exact && called)
				out[n - 1]++;
			continue;
		}
		if (step == WALK_STOP || w->full)
			return n;
		n = 0;
		walk_begin(w, regs, 1);
	}
}

/* Whether the leaf may be in an unwinder that jumps to who catches. */
static int in_throw(const struct weft__modules *set, uint64_t pc)
{
	const struct weft__module *module = weft__modules_find(set, pc);

	const struct weft__unwind_table *table = module ? weft__module_table(module) : NULL;

	return table && table->eh_return;
}

/* A walk that was lost, or seemed to end, from an unwinder's own frames on, perhaps because these are being
 * overwritten: on from the landing pad. Before the stack pointer moves there, a context says where; afterwards the
 * rules do, but for the place, which is no call's. The context is in the frame of whoever jumps: the leaf, or who
 * called it. */
static size_t walk_throw(struct weft__walk *w, const struct weft__unwind_regs *regs, size_t n, uint64_t *out,
			 size_t max)
{
	uint64_t context, pack = pack_of(w->set, regs->pc), sp = UINT64_MAX;

	walk_begin(w, regs, 1);
	if (step_slow(w, pack, regs->pc) == WALK_ON)
		sp = w->r[ARCH_SP];
	walk_begin(w, regs, 1);
	context = weft__walk_landing(w);
	if (context) {
		n = walk_from(w, regs, context < sp || n < 2 ? 1 : 2, out, max);
		if (!(w->flags & (WEFT__UNWIND_LOST | WALK_ZERO)))
			return n;
	}
	walk_begin(w, regs, 1);
	if (step_slow(w, pack, regs->pc) == WALK_ON) {
		w->exact = 1;
		n = walk_from(w, regs, 1, out, max);
		if (!(w->flags & (WEFT__UNWIND_LOST | WALK_ZERO)))
			return n;
	}
	walk_begin(w, regs, 1);
	return walk_from(w, regs, 0, out, max);
}

/* A walk that was lost: perhaps behind the end of a stack that makecontext made. What its first function returns to
 * is the begin of another one, which no call led to, so that what comes next is no frame. Or behind a frame whose
 * caller is on another stack: it is lost there. */
static size_t walk_end(struct weft__walk *w, size_t n, uint64_t *out)
{
	for (size_t i = n > 4 ? n - 3 : 1; i < n; i++) {
		enum walk_end end = weft__walk_ends(w, out[i] + 1);

		if (end == WALK_LEFT)
			return i + 1;
		if (end == WALK_GOES_ON)
			continue;
		out[i]++;
		w->flags = (w->flags & ~(uint32_t)(WEFT__UNWIND_LOST | WEFT__UNWIND_FP)) | WEFT__UNWIND_COMPLETE;
		return i + 1;
	}
	return n;
}

size_t weft__unwind(const struct weft__modules *modules, const struct weft__unwind_regs *regs,
		    const struct weft__unwind_stack *stack, uint64_t *out, size_t max, uint32_t *flags)
{
	struct weft__walk w;
	size_t n;

	*flags = 0;
	if (!max)
		return 0;
	if (!modules) {
		out[0] = regs->pc;
		*flags = WEFT__UNWIND_LOST;
		return 1;
	}
	w.set = modules;
	for (int i = 0; i < 2; i++)
		w.range[i] = range_of(&stack->range[i]);
	walk_begin(&w, regs, 0);
	if (max > WEFT__UNWIND_DEPTH_MAX)
		max = WEFT__UNWIND_DEPTH_MAX;
	n = walk_from(&w, regs, 0, out, max);
	if (__builtin_expect(w.flags & (WEFT__UNWIND_LOST | WALK_ZERO), 0) && max > 2 && in_throw(modules, regs->pc))
		n = walk_throw(&w, regs, n, out, max);
	if (__builtin_expect(w.flags & WEFT__UNWIND_LOST, 0))
		n = walk_end(&w, n, out);
	*flags = w.flags & ~WALK_ZERO;
	return n;
}
