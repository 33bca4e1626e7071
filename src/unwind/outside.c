/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/outside.h"

#include <string.h>

#include "base/atomic.h"
#include "unwind/walk.h"

struct outside {
	struct weft__outside *in;
	struct weft__walk w;
	unsigned reads; /* of code, while a frame pointer is looked for */
};

/* Where a frame is, and what describes it. */
struct outside_place {
	const struct weft__module *module;
	const struct weft__unwind_table *table;
	const struct weft__rule *rule; /* NULL: none */
	uint64_t vaddr;
};

static struct outside_place place_of(const struct weft__modules *set, uint64_t addr)
{
	struct outside_place at = {weft__modules_find(set, addr), NULL, NULL, 0};
	uint32_t number = 0;

	if (!at.module)
		return at;
	at.table = weft__module_table(at.module);
	at.vaddr = addr - at.module->bias;
	if (at.table)
		number = weft__unwind_table_find(at.table, at.vaddr);
	if (number)
		at.rule = &at.table->rules[number];
	return at;
}

static enum walk_step outside_step(struct weft__walk *w, const struct outside_place *at)
{
	return at->rule ? weft__walk_rule(w, at->table, at->rule) : weft__walk_blind(w, at->module);
}

#if ARCH_RA_FIXED

#define GUESS_READS 64
#define GUESS_CODE 96   /* bytes of a function's beginning that are looked at */
#define ENTRY_ROWS 4096 /* looked at on the way back to a function's beginning */

/* The rows of a table one by one, backwards. */
struct row_at {
	const struct weft__unwind_table *table;
	uint32_t row, page;
};

static uint64_t row_vaddr(const struct row_at *at)
{
	return at->table->base + ((uint64_t)at->page << TABLE_PAGE_BITS) + at->table->row_low[at->row];
}

static const struct weft__rule *outside_rule(const struct row_at *at)
{
	return &at->table->rules[at->table->row_rule[at->row]];
}

/* 0: there is none before. Row 0 belongs to no page. */
static int row_back(struct row_at *at)
{
	if (at->row <= 1)
		return 0;
	at->row--;
	while (at->page && at->row < at->table->page[at->page])
		at->page--;
	return 1;
}

static int row_find(struct row_at *at, const struct weft__unwind_table *table, uint64_t vaddr)
{
	uint64_t page = (vaddr - table->base) >> TABLE_PAGE_BITS;

	if (vaddr < table->base || vaddr - table->base >= table->bytes)
		return 0;
	*at = (struct row_at){table, table->page[page + 1], (uint32_t)page};
	do
		if (!row_back(at))
			return 0;
	while (row_vaddr(at) > vaddr);
	return 1;
}

/* The rows at the beginning of a function with a frame pointer: before the push, after it, and from the move on. A
 * return in the middle looks like the first, but the third follows it at once. */
struct outside_entry {
	uint64_t low, high; /* a call of the function goes somewhere in here */
	uint64_t framed;    /* from here on the frame pointer is set */
};

static int entry_find(const struct outside_place *place, struct outside_entry *entry)
{
	uint64_t next = 0;
	struct row_at at;
	int after_push = 0;

	if (!row_find(&at, place->table, place->vaddr))
		return 0;
	for (int i = 0; i < ENTRY_ROWS; i++) {
		const struct weft__rule *rule = outside_rule(&at);
		int by_sp = rule->kind == RULE_PLAIN && rule->cfa_reg == ARCH_SP;

		if (by_sp && rule->cfa_off == 8 && after_push) {
			entry->low = row_vaddr(&at);
			entry->high = next;
			return 1;
		}
		if (by_sp && rule->cfa_off == 16) {
			after_push = 1;
			entry->framed = next;
		} else {
			after_push = 0;
		}
		next = row_vaddr(&at);
		if (!row_back(&at))
			return 0;
	}
	return 0;
}

static int code_read(struct outside *o, uint64_t addr, uint8_t *to, size_t n)
{
	return o->reads++ < GUESS_READS && o->in->read(addr, to, n);
}

/* Bytes that an operand of `call *` has behind its first one. */
static unsigned operand_bytes(const uint8_t *modrm)
{
	unsigned mod = *modrm >> 6, rm = *modrm & 7;
	unsigned n = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (mod != 3 && rm == 4) {
		n += 1;
		n += mod == 0 && (modrm[1] & 7) == 5 ? 4 : 0;
	}
	return mod == 0 && rm == 5 ? 4 : n;
}

/* Whether what comes before a return address is a call; *target: whom it names, or 0. */
static int call_before(struct outside *o, uint64_t ra, uint64_t *target)
{
	uint8_t code[8] = {0}; /* the last byte is for an operand that is none */
	int32_t rel;

	*target = 0;
	if (!code_read(o, ra - 7, code, 7))
		return 0;
	if (code[2] == 0xe8) {
		memcpy(&rel, code + 3, sizeof(rel));
		*target = ra + (uint64_t)(int64_t)rel;
		return 1;
	}
	for (unsigned n = 2; n <= 7; n++) {
		const uint8_t *modrm = code + 7 - n + 1;

		if (code[7 - n] == 0xff && (*modrm >> 3 & 7) == 2 && operand_bytes(modrm) == n - 2)
			return 1;
	}
	return 0;
}

/* Where a stub of the linker jumps to; `target` itself when it is none. */
static uint64_t through_stub(struct outside *o, uint64_t target)
{
	static const uint8_t endbr[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint64_t at = 0, slot;
	uint8_t code[16];
	int32_t rel;

	if (!code_read(o, target, code, sizeof(code)))
		return target;
	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		at = sizeof(endbr);
	if (code[at] == 0xf2)
		at++;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return target;
	memcpy(&rel, code + at + 2, sizeof(rel));
	slot = target + at + 6 + (uint64_t)(int64_t)rel;
	return code_read(o, slot, (uint8_t *)&slot, sizeof(slot)) ? slot : target;
}

enum trust { TRUST_NOT, TRUST_ELSEWHERE, TRUST_SOME, TRUST_ALL };

/* How much there is to be said for a frame pointer. ELSEWHERE: behind a call of another function, which jumped here
 * perhaps. */
static enum trust trust(struct outside *o, const struct outside_place *place, const struct outside_entry *entry,
			uint64_t fp)
{
	struct weft__walk w = o->w;
	uint64_t target;

	w.r[ARCH_FP] = fp;
	w.valid |= WALK_BIT(ARCH_FP);
	if (outside_step(&w, place) != WALK_ON)
		return w.flags & WEFT__UNWIND_COMPLETE && !(w.flags & WALK_ZERO) ? TRUST_ALL : TRUST_NOT;
	if (!place_of(w.set, w.pc - 1).rule || !call_before(o, w.pc, &target))
		return TRUST_NOT;
	if (!target || !entry)
		return TRUST_SOME;
	target -= place->module->bias;
	if (target < entry->low || target >= entry->high)
		target = through_stub(o, target + place->module->bias) - place->module->bias;
	return target >= entry->low && target < entry->high ? TRUST_ALL : TRUST_ELSEWHERE;
}

/* How far above the stack pointer the frame pointer points, going by what the function takes off the stack after it
 * set it. */
static uint64_t frame_bytes(struct outside *o, const struct outside_place *place, const struct outside_entry *entry)
{
	uint64_t n = place->vaddr > entry->framed ? place->vaddr - entry->framed : 0, pushed = 0;
	uint8_t code[GUESS_CODE];
	int32_t wide;

	for (int i = 0; i < ARCH_SAVED; i++) {
		int16_t at = place->rule->kind == RULE_PLAIN ? place->rule->saved[i] : RULE_SAME;

		if (at != RULE_SAME && at != RULE_UNDEFINED && at < -2 && (uint64_t)(-2 - at) > pushed)
			pushed = (uint64_t)(-2 - at);
	}
	if (n > sizeof(code))
		n = sizeof(code);
	if (n && code_read(o, place->module->bias + entry->framed, code, n))
		for (uint64_t i = 0; i + 7 <= n; i++) {
			if (code[i] != 0x48 || code[i + 2] != 0xec)
				continue;
			if (code[i + 1] == 0x83)
				return 8 * pushed + code[i + 3];
			memcpy(&wide, code + i + 3, sizeof(wide));
			if (code[i + 1] == 0x81 && wide > 0)
				return 8 * pushed + (uint64_t)wide;
		}
	return 8 * pushed;
}

/* Finds the frame pointer that a frame goes by. */
static int guess(struct outside *o, const struct outside_place *place)
{
	uint64_t sp = o->w.r[ARCH_SP], end = o->in->sp + o->in->n, fp, some = 0;
	struct outside_entry entry;
	int entered;

	if (!place->rule || (place->rule->kind == RULE_PLAIN && place->rule->cfa_reg != ARCH_FP))
		return 0;
	o->reads = 0;
	entered = entry_find(place, &entry);
	if (entered) {
		fp = sp + frame_bytes(o, place, &entry);
		if (trust(o, place, &entry, fp) > TRUST_NOT)
			goto found;
	}
	for (fp = sp; fp + 16 <= end && o->reads < GUESS_READS; fp += 8) {
		enum trust t = trust(o, place, entered ? &entry : NULL, fp);

		if (t == TRUST_ALL)
			goto found;
		if (t == TRUST_SOME && !some)
			some = fp;
	}
	if (!some)
		return 0;
	fp = some;
found:
	o->w.r[ARCH_FP] = fp;
	o->w.valid |= WALK_BIT(ARCH_FP);
	o->w.flags |= WEFT__UNWIND_FP;
	return 1;
}

#else

static int guess(struct outside *o, const struct outside_place *place)
{
	(void)o;
	(void)place;
	return 0;
}

#endif

size_t weft__unwind_outside(const struct weft__modules *modules, struct weft__outside *in, uint64_t *out, size_t max,
			    uint32_t *flags)
{
	struct outside o = {.in = in};
	size_t n = 0;

	*flags = 0;
	in->pending = !modules;
	in->last_sp = in->sp;
	if (!max)
		return 0;
	out[n++] = in->pc;
	if (!modules || in->n < 8) {
		*flags = WEFT__UNWIND_LOST;
		return n;
	}
	o.w.set = modules;
	o.w.range[0] = (struct weft__walk_range){in->sp, in->n - 8, in->bytes};
	o.w.range[1] = (struct weft__walk_range){UINT64_MAX, 0, in->bytes};
	o.w.r[ARCH_SP] = in->sp;
	o.w.valid = WALK_BIT(ARCH_SP);
	o.w.pc = in->pc;
	o.w.exact = o.w.full = 1;
	for (;;) {
		struct weft__walk before = o.w;
		struct outside_place place = place_of(modules, out[n - 1]);
		enum walk_step done = outside_step(&o.w, &place);

		/* Perhaps it is there by now. */
		in->pending |= place.module && !place.table &&
			       (load_acquire(&place.module->pending) || weft__module_table(place.module));
		if (done != WALK_ON && !(o.w.flags & WEFT__UNWIND_COMPLETE) && !(before.valid & WALK_BIT(ARCH_FP))) {
			o.w = before;
			done = guess(&o, &place) ? outside_step(&o.w, &place) : WALK_STOP;
			if (done != WALK_ON && !(o.w.flags & WEFT__UNWIND_COMPLETE))
				o.w.flags |= WEFT__UNWIND_LOST;
		}
		if (done != WALK_ON)
			break;
		if (o.w.exact && !before.exact)
			out[n - 1]++; /* a signal's trampoline, which nobody called */
		if (n == max) {
			o.w.flags |= WEFT__UNWIND_CUT;
			break;
		}
		out[n++] = o.w.exact ? o.w.pc : o.w.pc - 1;
	}
	in->last_sp = o.w.r[ARCH_SP];
	*flags = o.w.flags & ~WALK_ZERO;
	return n;
}
