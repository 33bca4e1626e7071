/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "unwind/cfi.h"

enum pointer_enc { ENC_OMIT = 0xff, ENC_INDIRECT = 0x80, ENC_PCREL = 0x10, ENC_DATAREL = 0x30, ENC_ALIGNED = 0x50 };

/* More than the section's size can only be asked for by entries that share or repeat programs. */
#define BUDGET_FACTOR 4
#define BUDGET_MIN 65536

void weft__cfi_init(struct weft__cfi *cfi, const struct weft__cfi_input *in)
{
	memset(cfi, 0, sizeof(*cfi));
	cfi->in = *in;
	cfi->budget = (uint64_t)in->n * BUDGET_FACTOR + BUDGET_MIN;
}

static int64_t in_sleb(struct weft__in *in)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = in_u8(in);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !in->bad);
	if (shift < 64 && b & 0x40)
		v |= ~(uint64_t)0 << shift;
	return (int64_t)v;
}

static uint64_t in_fixed(struct weft__in *in, unsigned bytes)
{
	const uint8_t *p = in_bytes(in, bytes);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, bytes);
	return v;
}

/* The format part of an encoding: only the number. */
static uint64_t in_number(struct weft__in *in, uint8_t enc, unsigned addr_size)
{
	switch (enc & 0x0f) {
	case 0x00:
		return in_fixed(in, addr_size);
	case 0x01:
		return in_varint(in);
	case 0x02:
		return in_fixed(in, 2);
	case 0x03:
		return in_fixed(in, 4);
	case 0x04:
	case 0x0c:
		return in_fixed(in, 8);
	case 0x09:
		return (uint64_t)in_sleb(in);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)in_fixed(in, 2);
	case 0x0b:
		return (uint64_t)(int64_t)(int32_t)in_fixed(in, 4);
	}
	return in_fail(in);
}

/* A pointer: `vaddr` is where `start` is. Those that have to be followed, or that start from a base which nothing tells, fail. */
static uint64_t in_pointer(struct weft__in *in, uint8_t enc, const uint8_t *start, uint64_t vaddr, uint64_t data_vaddr,
			   unsigned addr_size)
{
	uint64_t here, v;

	if (enc == ENC_ALIGNED)
		in_bytes(in, -(vaddr + (uint64_t)(in->p - start)) & (addr_size - 1));
	here = vaddr + (uint64_t)(in->p - start);
	v = in_number(in, enc == ENC_ALIGNED ? 0 : enc, addr_size);
	switch (enc & 0xf0) {
	case 0x00:
	case ENC_ALIGNED:
		return v;
	case ENC_PCREL:
		return v + here;
	case ENC_DATAREL:
		return v + data_vaddr;
	}
	return in_fail(in);
}

/* The entry at `at`: its body without the length. `id` is the CIE pointer as stored, `id_at` where that is. */
struct entry {
	struct weft__in body;
	uint64_t id, id_at, next;
	int is_cie;
};

static int entry_read(const struct weft__cfi_input *sec, uint64_t at, struct entry *entry)
{
	struct weft__in in;
	uint64_t n;
	unsigned wide;

	if (at >= sec->n)
		return 0;
	in = weft__in(sec->bytes + at, sec->n - at);
	n = in_fixed(&in, 4);
	wide = n == 0xffffffff;
	if (wide)
		n = in_fixed(&in, 8);
	if (in.bad || n == 0 || n > in_left(&in))
		return 0;
	in.end = in.p + n;
	entry->next = (uint64_t)(in.end - sec->bytes);
	entry->id_at = (uint64_t)(in.p - sec->bytes);
	/* In .eh_frame the id is always 4 bytes, whatever the length. */
	entry->id = in_fixed(&in, sec->debug_frame && wide ? 8 : 4);
	entry->is_cie = sec->debug_frame ? entry->id == (wide ? UINT64_MAX : 0xffffffff) : entry->id == 0;
	entry->body = in;
	return in.bad ? 0 : 1;
}

static void augmentation(struct cfi_cie *cie, const struct weft__cfi_input *sec, struct weft__in *in, const char *text)
{
	uint64_t n;
	struct weft__in data;

	if (*text != 'z')
		return;
	cie->z = 1;
	n = in_varint(in);
	data = weft__in(in->p, n <= in_left(in) ? n : 0);
	in_bytes(in, n);
	while (*++text && !data.bad) {
		uint8_t enc;

		switch (*text) {
		case 'R':
			cie->fde_enc = in_u8(&data);
			break;
		case 'L':
			in_u8(&data);
			break;
		case 'P':
			enc = in_u8(&data);
			if (enc != ENC_OMIT)
				in_pointer(&data, enc & (uint8_t)~ENC_INDIRECT & 0x1f, sec->bytes, sec->vaddr, 0,
					   cie->addr_size);
			break;
		case 'S':
			cie->initial.signal = 1;
			break;
		case 'B':
			break;
		default:
			/* What follows an unknown letter cannot be told apart, but its length is known. */
			return;
		}
	}
}

static int run(struct weft__cfi *cfi, struct weft__in in, uint64_t pc, uint64_t end,
	       void (*row)(void *arg, uint64_t pc, const struct cfi_row *row), void *arg);

static int cie_read(struct weft__cfi *cfi, uint64_t at)
{
	struct cfi_cie *cie = &cfi->cie;
	const struct weft__cfi_input *sec = &cfi->in;
	struct entry entry;
	const char *text;
	const uint8_t *text_end;
	uint8_t version;
	uint64_t ra;

	if (cie->known && cie->at == at)
		return cie->known < 0 ? -EINVAL : 0;
	memset(cie, 0, sizeof(*cie));
	cie->at = (uint32_t)at;
	cie->known = -1;
	cie->addr_size = 8;
	if (at > UINT32_MAX || !entry_read(sec, at, &entry) || !entry.is_cie)
		return -EINVAL;
	version = in_u8(&entry.body);
	text = (const char *)entry.body.p;
	text_end = memchr(text, 0, in_left(&entry.body));
	if ((version != 1 && version != 3 && version != 4) || !text_end)
		return -EINVAL;
	entry.body.p = text_end + 1;
	if (version == 4) {
		cie->addr_size = in_u8(&entry.body);
		cie->seg_size = in_u8(&entry.body);
	}
	if (strcmp(text, "eh") == 0) /* of GCC 2 */
		in_bytes(&entry.body, 8);
	else if (*text && *text != 'z')
		return -EINVAL;
	cie->code_align = in_varint(&entry.body);
	cie->data_align = in_sleb(&entry.body);
	ra = version == 1 ? in_u8(&entry.body) : in_varint(&entry.body);
	if (entry.body.bad || ra >= ARCH_REGS || cie->addr_size != 8 || cie->seg_size)
		return -EINVAL;
	cie->initial.ra_reg = (uint8_t)ra;
	augmentation(cie, sec, &entry.body, text);
	if (entry.body.bad)
		return -EINVAL;
	memset(&cfi->row, 0, sizeof(cfi->row));
	cfi->row.ra_reg = cie->initial.ra_reg;
	cfi->row.signal = cie->initial.signal;
	if (run(cfi, entry.body, 0, UINT64_MAX, NULL, NULL) < 0)
		return -EINVAL;
	cie->initial = cfi->row;
	cie->known = 1;
	return 0;
}

int weft__cfi_fde(struct weft__cfi *cfi, uint64_t at, struct cfi_fde *fde)
{
	const struct weft__cfi_input *sec = &cfi->in;
	struct entry entry;
	uint64_t cie_at, n;
	uint8_t enc;

	if (at > UINT32_MAX || !entry_read(sec, at, &entry) || entry.is_cie)
		return -EINVAL;
	cie_at = sec->debug_frame ? entry.id : entry.id_at - entry.id;
	if (cie_at >= sec->n || cie_read(cfi, cie_at) < 0)
		return -EINVAL;
	enc = sec->debug_frame ? 0 : cfi->cie.fde_enc;
	fde->at = (uint32_t)at;
	fde->cie_at = (uint32_t)cie_at;
	fde->begin = in_pointer(&entry.body, enc, sec->bytes, sec->vaddr, sec->hdr_vaddr, cfi->cie.addr_size);
	fde->end = fde->begin + in_number(&entry.body, enc, cfi->cie.addr_size);
	if (cfi->cie.z) {
		n = in_varint(&entry.body);
		in_bytes(&entry.body, n);
	}
	if (entry.body.bad || fde->end < fde->begin)
		return -EINVAL;
	fde->ops_at = (uint64_t)(entry.body.p - sec->bytes);
	fde->ops_n = in_left(&entry.body);
	return 0;
}

int weft__cfi_next(struct weft__cfi *cfi, uint64_t *at, struct cfi_fde *fde, uint32_t *bad)
{
	struct entry entry;

	while (entry_read(&cfi->in, *at, &entry)) {
		uint64_t here = *at;

		*at = entry.next;
		if (entry.is_cie)
			continue;
		if (weft__cfi_fde(cfi, here, fde) == 0)
			return 1;
		++*bad;
	}
	return 0;
}

/* The header: version, three encodings, where .eh_frame is, how many entries; then pairs (code, entry). */
struct header {
	uint64_t frame;
	uint64_t count;
	struct weft__in table;
};

static int header_read(const uint8_t *hdr, size_t n, uint64_t vaddr, struct header *ret)
{
	struct weft__in in = weft__in(hdr, n);
	uint8_t version = in_u8(&in), frame_enc = in_u8(&in), count_enc = in_u8(&in), table_enc = in_u8(&in);

	if (version != 1 || frame_enc == ENC_OMIT)
		return -EINVAL;
	ret->frame = in_pointer(&in, frame_enc, hdr, vaddr, vaddr, 8);
	ret->count = 0;
	ret->table = in;
	/* Every linker makes this form of the table; with another the section is walked. */
	if (in.bad || count_enc == ENC_OMIT || table_enc != (ENC_DATAREL | 0x0b))
		return in.bad ? -EINVAL : 0;
	ret->count = in_pointer(&in, count_enc, hdr, vaddr, vaddr, 8);
	ret->table = in;
	if (in.bad || ret->count > in_left(&in) / 8)
		ret->count = 0;
	return 0;
}

int weft__cfi_extent(const uint8_t *hdr, size_t avail, uint64_t hdr_vaddr, uint64_t *begin, uint64_t *last, size_t *hdr_n)
{
	struct header header;
	uint64_t top = 0;

	if (!hdr || header_read(hdr, avail, hdr_vaddr, &header) < 0)
		return -EINVAL;
	for (uint64_t i = 0; i < header.count; i++) {
		uint64_t fde = hdr_vaddr + (uint64_t)(int64_t)(int32_t)get_u32(header.table.p + i * 8 + 4);

		top = fde > top ? fde : top;
	}
	*begin = header.frame;
	*last = top;
	*hdr_n = (size_t)(header.table.p - hdr) + header.count * 8;
	return 0;
}

uint32_t weft__cfi_listed(const struct weft__cfi *cfi)
{
	struct header header;

	if (!cfi->in.hdr || header_read(cfi->in.hdr, cfi->in.hdr_n, cfi->in.hdr_vaddr, &header) < 0)
		return 0;
	return header.count <= UINT32_MAX ? (uint32_t)header.count : 0;
}

int weft__cfi_listed_at(const struct weft__cfi *cfi, uint32_t i, uint64_t *at)
{
	const struct weft__cfi_input *sec = &cfi->in;
	struct header header;
	uint64_t fde;

	if (header_read(sec->hdr, sec->hdr_n, sec->hdr_vaddr, &header) < 0 || i >= header.count)
		return -EINVAL;
	fde = sec->hdr_vaddr + (uint64_t)(int64_t)(int32_t)get_u32(header.table.p + (size_t)i * 8 + 4) - sec->vaddr;
	if (fde >= sec->n)
		return -EINVAL;
	*at = fde;
	return 0;
}

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
	case 0x10: /* expression */
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

static int run(struct weft__cfi *cfi, struct weft__in in, uint64_t pc, uint64_t end,
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
			if (in.bad || by > end - pc)
				return -EINVAL;
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

int weft__cfi_run(struct weft__cfi *cfi, const struct cfi_fde *fde,
		  void (*row)(void *arg, uint64_t pc, const struct cfi_row *row), void *arg)
{
	if (cie_read(cfi, fde->cie_at) < 0)
		return -EINVAL;
	cfi->row = cfi->cie.initial;
	return run(cfi, weft__in(cfi->in.bytes + fde->ops_at, fde->ops_n), fde->begin, fde->end, row, arg);
}
