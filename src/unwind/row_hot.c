/* SPDX-License-Identifier: Apache-2.0 */
/* From a row of call frame information to the rule that the walk follows. HOT. */
#include "unwind/row.h"

#include <errno.h>
#include <string.h>

const uint8_t weft__saved_regs[ARCH_SAVED] = ARCH_SAVED_REGS;

/* Whether the row is a plain frame, and then its rule. */
static int row_plain(const struct cfi_row *row, struct weft__rule *rule)
{
	if (row->signal || row->cfa.how != CFI_OFFSET || row->ra_reg != ARCH_RA || row->reg[ARCH_SP].how != CFI_SAME)
		return 0;
	if (ARCH_RA_FIXED && (row->reg[ARCH_RA].how != CFI_OFFSET || row->reg[ARCH_RA].value != ARCH_RA_OFFSET))
		return 0;
	rule->kind = RULE_PLAIN;
	rule->cfa_reg = row->cfa.reg;
	rule->cfa_off = row->cfa.value;
	rule->ra_signed = row->ra_signed;
	for (int i = 0; i < ARCH_SAVED; i++) {
		const struct cfi_where *where = &row->reg[weft__saved_regs[i]];

		if (where->how == CFI_UNDEFINED)
			rule->saved[i] = RULE_UNDEFINED;
		else if (where->how == CFI_OFFSET && where->value % 8 == 0 && where->value < 0 &&
			 where->value / 8 > RULE_UNDEFINED)
			rule->saved[i] = (int16_t)(where->value / 8);
		else if (where->how != CFI_SAME)
			return 0;
	}
	return 1;
}

static int is_saved(unsigned reg)
{
	for (int i = 0; i < ARCH_SAVED; i++)
		if (weft__saved_regs[i] == reg)
			return 1;
	return 0;
}

static void special_where(const uint8_t *section, struct weft__special *special, struct cfi_where *to,
			  const struct cfi_where *from, uint8_t reg)
{
	*to = *from;
	if (from->how == CFI_EXPR || from->how == CFI_VAL_EXPR) {
		to->value = special->bytes;
		memcpy((uint8_t *)special + special->bytes, section + from->value, from->len);
		special->bytes = (uint16_t)(special->bytes + from->len);
	} else if (from->how == CFI_REGISTER) {
		to->len = from->reg;
	}
	to->reg = reg;
}

/* Whether a special has to say something of a register. */
static int has_say(const struct cfi_row *row, unsigned reg)
{
	return row->reg[reg].how != CFI_SAME && (row->signal || is_saved(reg) || reg == row->ra_reg || reg == ARCH_SP);
}

void weft__row_rule(const struct cfi_row *row, struct weft__rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	if (row->reg[row->ra_reg].how == CFI_UNDEFINED) {
		rule->kind = RULE_END;
	} else if (!row_plain(row, rule)) {
		memset(rule, 0, sizeof(*rule));
		rule->kind = RULE_SPECIAL;
	}
}

int weft__row_special(const struct cfi_row *row, const uint8_t *section, union weft__special_room *room)
{
	struct weft__special *special = &room->special;
	size_t expr_bytes = row->cfa.how == CFI_VAL_EXPR ? row->cfa.len : 0, n = 0, at;

	for (unsigned reg = 0; reg < ARCH_REGS; reg++) {
		const struct cfi_where *where = &row->reg[reg];

		if (!has_say(row, reg))
			continue;
		n++;
		if (where->how == CFI_EXPR || where->how == CFI_VAL_EXPR)
			expr_bytes += where->len;
	}
	at = sizeof(*special) + n * sizeof(special->where[0]);
	if (at + expr_bytes + 8 > sizeof(*room))
		return -E2BIG;
	memset(room, 0, at + expr_bytes + 8);
	special->bytes = (uint16_t)at;
	special->signal = row->signal;
	special->ra_reg = row->ra_reg;
	special->ra_signed = row->ra_signed;
	special_where(section, special, &special->cfa, &row->cfa, row->cfa.reg);
	for (unsigned reg = 0; reg < ARCH_REGS; reg++)
		if (has_say(row, reg))
			special_where(section, special, &special->where[special->n++], &row->reg[reg], (uint8_t)reg);
	special->bytes = (uint16_t)((special->bytes + 7u) & ~7u);
	return 0;
}
