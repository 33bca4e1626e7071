/* SPDX-License-Identifier: Apache-2.0 */
/* The program of an entry: what each operation does to the row, and where a new row begins. */
#include <errno.h>
#include <string.h>

#include "unwind/cfi_in.h"

static void where_set(struct cfi_row *row, uint64_t reg, uint8_t how, int64_t value, struct weft__in *in)
{
	if (reg >= ARCH_REGS) /* floating point and the like: nobody asks for it */
		return;
	if (value != (int32_t)value) {
		in_fail(in);
		return;
	}
	row->reg[reg] = (struct cfi_where){how, 0, 0, (int32_t)value};
}

static void cfa_set(struct cfi_row *row, uint64_t reg, int64_t value, struct weft__in *in)
{
	if (reg >= ARCH_REGS || value != (int32_t)value) {
		in_fail(in);
		return;
	}
	row->cfa = (struct cfi_where){CFI_OFFSET, (uint8_t)reg, 0, (int32_t)value};
}

static struct cfi_where expression(const struct weft__cfi *cfi, struct weft__in *in, uint8_t how)
{
	uint64_t n = in_varint(in);
	const uint8_t *p = in_bytes(in, n);

	if (!p || n > UINT16_MAX || p - cfi->in.bytes > INT32_MAX) {
		in_fail(in);
		return (struct cfi_where){CFI_UNDEFINED, 0, 0, 0};
	}
	return (struct cfi_where){how, 0, (uint16_t)n, (int32_t)(p - cfi->in.bytes)};
}

/* The operations on rows: all but those that move the place. */
static void row_op(struct weft__cfi *cfi, uint8_t op, struct weft__in *in, unsigned *n_kept)
{
	struct cfi_row *row = &cfi->row;
	const struct cfi_cie *cie = &cfi->cie;
	int64_t da = cie->data_align;
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
		return;
	case 0x05: /* offset_extended */
		reg = in_varint(in);
		where_set(row, reg, CFI_OFFSET, (int64_t)in_u32(in) * da, in);
		return;
	case 0x06: /* restore_extended */
		reg = in_varint(in);
		if (reg < ARCH_REGS)
			row->reg[reg] = cie->initial.reg[reg];
		return;
	case 0x07: /* undefined */
		where_set(row, in_varint(in), CFI_UNDEFINED, 0, in);
		return;
	case 0x08: /* same_value */
		where_set(row, in_varint(in), CFI_SAME, 0, in);
		return;
	case 0x09: { /* register */
		uint64_t from;

		reg = in_varint(in);
		from = in_varint(in);
		if (reg < ARCH_REGS)
			row->reg[reg] = (struct cfi_where){from < ARCH_REGS ? CFI_REGISTER : CFI_UNDEFINED,
							   (uint8_t)from, 0, 0};
		return;
	}
	case 0x0a: /* remember_state */
		if (*n_kept < sizeof(cfi->kept) / sizeof(cfi->kept[0]))
			cfi->kept[(*n_kept)++] = *row;
		else
			in_fail(in);
		return;
	case 0x0b: /* restore_state */
		if (*n_kept)
			*row = cfi->kept[--*n_kept];
		else
			in_fail(in);
		return;
	case 0x0c: /* def_cfa */
		reg = in_varint(in);
		cfa_set(row, reg, (int64_t)in_u32(in), in);
		return;
	case 0x0d: /* def_cfa_register: keeps the offset */
		reg = in_varint(in);
		cfa_set(row, reg, row->cfa.how == CFI_OFFSET ? row->cfa.value : 0, in);
		return;
	case 0x0e: /* def_cfa_offset */
		cfa_set(row, row->cfa.reg, (int64_t)in_u32(in), in);
		return;
	case 0x0f: /* def_cfa_expression */
		row->cfa = expression(cfi, in, CFI_VAL_EXPR);
		return;
	case 0x10:   /* expression */
	case 0x16: { /* val_expression */
		struct cfi_where where;

		reg = in_varint(in);
		where = expression(cfi, in, op == 0x10 ? CFI_EXPR : CFI_VAL_EXPR);
		if (reg < ARCH_REGS)
			row->reg[reg] = where;
		return;
	}
	case 0x11: /* offset_extended_sf */
		reg = in_varint(in);
		where_set(row, reg, CFI_OFFSET, (int64_t)(int32_t)in_sleb(in) * da, in);
		return;
	case 0x12: /* def_cfa_sf */
		reg = in_varint(in);
		cfa_set(row, reg, (int64_t)(int32_t)in_sleb(in) * da, in);
		return;
	case 0x13: /* def_cfa_offset_sf */
		cfa_set(row, row->cfa.reg, (int64_t)(int32_t)in_sleb(in) * da, in);
		return;
	case 0x14: /* val_offset */
		reg = in_varint(in);
		where_set(row, reg, CFI_VAL_OFFSET, (int64_t)in_u32(in) * da, in);
		return;
	case 0x15: /* val_offset_sf */
		reg = in_varint(in);
		where_set(row, reg, CFI_VAL_OFFSET, (int64_t)(int32_t)in_sleb(in) * da, in);
		return;
	case 0x2d: /* AARCH64_negate_ra_state; elsewhere GNU_window_save, which our machines do not have */
		row->ra_signed ^= 1;
		return;
	case 0x2e: /* GNU_args_size */
		in_varint(in);
		return;
	case 0x2f: /* GNU_negative_offset_extended */
		reg = in_varint(in);
		where_set(row, reg, CFI_OFFSET, -(int64_t)in_u32(in) * da, in);
		return;
	}
	in_fail(in);
}

/* How far an operation moves the place; 0 and `moves` = 0 for all others. */
static uint64_t advance(const struct weft__cfi *cfi, uint8_t op, struct weft__in *in, uint64_t pc, int *moves)
{
	*moves = 1;
	if (op >> 6 == 1)
		return (op & 0x3f) * cfi->cie.code_align;
	switch (op) {
	case 0x01: /* set_loc */
		return in_pointer(in, cfi->in.debug_frame ? 0 : cfi->cie.fde_enc, cfi->in.bytes, cfi->in.vaddr,
				  cfi->in.hdr_vaddr, cfi->cie.addr_size) -
		       pc;
	case 0x02:
		return in_u8(in) * cfi->cie.code_align;
	case 0x03:
		return in_fixed(in, 2) * cfi->cie.code_align;
	case 0x04:
		return in_fixed(in, 4) * cfi->cie.code_align;
	}
	*moves = 0;
	return 0;
}

int weft__cfi_program(struct weft__cfi *cfi, struct weft__in in, uint64_t pc, uint64_t end,
		      void (*row)(void *arg, uint64_t pc, const struct cfi_row *row), void *arg)
{
	unsigned n_kept = 0;

	if (in_left(&in) > cfi->budget)
		return -E2BIG;
	cfi->budget -= in_left(&in);
	while (in.p < in.end) {
		uint8_t op = *in.p++;
		int moves = 0;
		uint64_t by;

		if (op >> 6 == 2) { /* offset */
			where_set(&cfi->row, op & 0x3f, CFI_OFFSET, (int64_t)in_u32(&in) * cfi->cie.data_align, &in);
		} else if (op >> 6 == 3) { /* restore */
			if ((op & 0x3f) < ARCH_REGS)
				cfi->row.reg[op & 0x3f] = cfi->cie.initial.reg[op & 0x3f];
		} else if (by = advance(cfi, op, &in, pc, &moves), moves) {
			if (in.bad)
				return -EINVAL;
			if (by > end - pc)
				return -ERANGE;
			if (by && row)
				row(arg, pc, &cfi->row);
			pc += by;
		} else {
			row_op(cfi, op, &in, &n_kept);
		}
		if (in.bad)
			return -EINVAL;
	}
	if (row && pc < end)
		row(arg, pc, &cfi->row);
	return 0;
}
