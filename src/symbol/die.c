/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/die.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define ABBREVS_MAX ((size_t)1 << 20)
#define SPECS_MAX 256 /* of one abbreviation */
#define VARIABLE UINT32_MAX

/* The size of a value of that form, VARIABLE when the value itself says. */
static uint32_t form_bytes(const struct weft__dies *dies, uint32_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return dies->address_bytes;
	case DW_FORM_ref_addr:
		return dies->version <= 2 ? dies->address_bytes : dies->offset_bytes;
	case DW_FORM_sec_offset:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return dies->offset_bytes;
	default:
		return VARIABLE;
	}
}

static void skip_leb(struct weft__in *in)
{
	while (in->p < in->end && *in->p & 0x80)
		in->p++;
	in_u8(in);
}

static void skip_variable(struct weft__in *in, uint32_t form)
{
	const uint8_t *p;

	switch (form) {
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		skip_leb(in);
		break;
	case DW_FORM_string:
		p = memchr(in->p, 0, in_left(in));
		if (p)
			in->p = p + 1;
		else
			in_fail(in);
		break;
	case DW_FORM_block1:
		in_bytes(in, in_u8(in));
		break;
	case DW_FORM_block2:
		p = in_bytes(in, 2);
		in_bytes(in, p ? get_u16(p) : 0);
		break;
	case DW_FORM_block4:
		p = in_bytes(in, 4);
		in_bytes(in, p ? get_u32(p) : 0);
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		in_bytes(in, in_varint(in));
		break;
	default:
		in_fail(in);
	}
}

/* The value of a form that holds a number. Negative ones do not matter to us. */
static uint64_t number(struct weft__in *in, const struct weft__dies *dies, const struct weft__abbrev_spec *spec)
{
	uint32_t n = form_bytes(dies, spec->form);
	uint64_t v = 0;
	const uint8_t *p;

	if (spec->form == DW_FORM_implicit_const)
		return (uint64_t)spec->implicit;
	if (spec->form == DW_FORM_udata || spec->form == DW_FORM_sdata)
		return in_varint(in);
	if (n == VARIABLE) {
		skip_variable(in, spec->form);
		return 0;
	}
	p = in_bytes(in, n);
	if (p && n <= 8)
		memcpy(&v, p, n);
	return v;
}

static int add_spec(struct weft__dies *dies, uint64_t attribute, uint64_t form, int64_t implicit)
{
	struct weft__abbrev_spec *specs;

	specs = weft__grow(dies->specs, &dies->cap_specs, dies->n_specs, sizeof(*specs));
	if (!specs)
		return -ENOMEM;
	dies->specs = specs;
	specs[dies->n_specs++] = (struct weft__abbrev_spec){(uint16_t)attribute, (uint16_t)form, implicit};
	return 0;
}

static int add_abbrev(struct weft__dies *dies, struct weft__in *in, uint64_t code)
{
	struct weft__abbrev abbrev = {.code = code, .first = (uint32_t)dies->n_specs};
	struct weft__abbrev *abbrevs;

	if (dies->n_abbrevs >= ABBREVS_MAX)
		return -EINVAL;
	abbrev.tag = (uint16_t)in_varint(in);
	abbrev.has_children = in_u8(in);
	while (!in->bad) {
		uint64_t attribute = in_varint(in), form = in_varint(in);
		int64_t implicit = form == DW_FORM_implicit_const ? in_sleb(in) : 0;
		uint32_t bytes;
		int failed;

		if (!attribute && !form)
			break;
		if (attribute > UINT16_MAX || form > UINT16_MAX || dies->n_specs - abbrev.first >= SPECS_MAX)
			return -EINVAL;
		failed = add_spec(dies, attribute, form, implicit);
		if (failed)
			return failed;
		bytes = form_bytes(dies, (uint32_t)form);
		abbrev.fixed_bytes =
			bytes == VARIABLE || abbrev.fixed_bytes == VARIABLE ? VARIABLE : abbrev.fixed_bytes + bytes;
	}
	if (in->bad)
		return -EINVAL;
	abbrev.n = (uint32_t)dies->n_specs - abbrev.first;
	abbrevs = weft__grow(dies->abbrevs, &dies->cap_abbrevs, dies->n_abbrevs, sizeof(*abbrevs));
	if (!abbrevs)
		return -ENOMEM;
	dies->abbrevs = abbrevs;
	abbrevs[dies->n_abbrevs++] = abbrev;
	return 0;
}

static int by_code(const void *a, const void *b)
{
	const struct weft__abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static int read_abbrevs(struct weft__dies *dies, const uint8_t *bytes, size_t n, uint64_t at)
{
	struct weft__in in = weft__in(bytes, n);
	uint64_t code;

	in_bytes(&in, at);
	while ((code = in_varint(&in))) {
		int failed = add_abbrev(dies, &in, code);

		if (failed)
			return failed;
	}
	if (in.bad)
		return -EINVAL;
	if (dies->n_abbrevs && dies->abbrevs[dies->n_abbrevs - 1].code != dies->n_abbrevs)
		qsort(dies->abbrevs, dies->n_abbrevs, sizeof(*dies->abbrevs), by_code);
	return 0;
}

/* Compilers number them from 1 on; others are searched for. */
static const struct weft__abbrev *abbrev_of(const struct weft__dies *dies, uint64_t code)
{
	struct weft__abbrev key = {.code = code};

	if (code <= dies->n_abbrevs && dies->abbrevs[code - 1].code == code)
		return &dies->abbrevs[code - 1];
	if (!dies->n_abbrevs)
		return NULL;
	return bsearch(&key, dies->abbrevs, dies->n_abbrevs, sizeof(key), by_code);
}

static uint64_t next_offset(struct weft__dies *dies)
{
	const uint8_t *p = in_bytes(&dies->in, dies->offset_bytes);

	return p ? (dies->offset_bytes == 8 ? get_u64(p) : get_u32(p)) : 0;
}

int weft__dies_init(struct weft__dies *dies, const uint8_t *unit, size_t n, const uint8_t *abbrevs, size_t abbrevs_n)
{
	uint64_t bytes, abbrev_at;
	const uint8_t *p;
	uint8_t type = DW_UT_compile;

	*dies = (struct weft__dies){.in = weft__in(unit, n), .unit = unit, .offset_bytes = 4};
	p = in_bytes(&dies->in, 4);
	bytes = p ? get_u32(p) : 0;
	if (bytes == UINT32_MAX) {
		dies->offset_bytes = 8;
		bytes = next_offset(dies);
	}
	if (bytes > in_left(&dies->in))
		return -EINVAL;
	dies->in.end = dies->in.p + bytes;
	p = in_bytes(&dies->in, 2);
	if (!p)
		return -EINVAL;
	dies->version = get_u16(p);
	if (dies->version >= 5) {
		type = in_u8(&dies->in);
		dies->address_bytes = in_u8(&dies->in);
		abbrev_at = next_offset(dies);
	} else {
		abbrev_at = next_offset(dies);
		dies->address_bytes = in_u8(&dies->in);
	}
	if (type == DW_UT_skeleton || type == DW_UT_split_compile)
		in_bytes(&dies->in, 8); /* the id that joins the two */
	if (dies->in.bad || dies->version < 2 || dies->version > 5 || dies->address_bytes > 8)
		return -EINVAL;
	return read_abbrevs(dies, abbrevs, abbrevs_n, abbrev_at);
}

static void attribute(struct weft__dies *dies, struct weft__die *die, const struct weft__abbrev_spec *spec,
		      bool *offset)
{
	uint32_t bytes;

	switch (spec->attribute) {
	case DW_AT_low_pc:
		die->has_code = true;
		die->has_range = spec->form == DW_FORM_addr;
		die->low = number(&dies->in, dies, spec);
		break;
	case DW_AT_high_pc:
		*offset = spec->form != DW_FORM_addr;
		die->high = number(&dies->in, dies, spec);
		break;
	case DW_AT_call_file:
		die->call_file = (uint32_t)number(&dies->in, dies, spec);
		break;
	case DW_AT_call_line:
		die->call_line = (uint32_t)number(&dies->in, dies, spec);
		break;
	default:
		if (spec->attribute == DW_AT_ranges)
			die->has_code = true;
		bytes = form_bytes(dies, spec->form);
		if (bytes == VARIABLE)
			skip_variable(&dies->in, spec->form);
		else
			in_bytes(&dies->in, bytes);
	}
}

static void skip(struct weft__dies *dies, const struct weft__abbrev *abbrev)
{
	const struct weft__abbrev_spec *spec = dies->specs + abbrev->first, *end = spec + abbrev->n;

	if (abbrev->fixed_bytes != VARIABLE) {
		in_bytes(&dies->in, abbrev->fixed_bytes);
		return;
	}
	for (; spec < end && !dies->in.bad; spec++) {
		uint32_t bytes = form_bytes(dies, spec->form);

		if (bytes == VARIABLE)
			skip_variable(&dies->in, spec->form);
		else
			in_bytes(&dies->in, bytes);
	}
}

int weft__dies_next(struct weft__dies *dies, struct weft__die *ret)
{
	const struct weft__abbrev *abbrev;
	bool offset = false, ranges = false;
	uint64_t code;
	uint32_t i;

	*ret = (struct weft__die){.at = dies->in.p};
	if (!in_left(&dies->in))
		return 0;
	code = in_varint(&dies->in);
	if (dies->in.bad)
		return 0;
	if (!code)
		return 1;
	abbrev = abbrev_of(dies, code);
	if (!abbrev || !abbrev->tag)
		return 0;
	ret->tag = abbrev->tag;
	ret->has_children = abbrev->has_children;
	if (abbrev->tag != DW_TAG_subprogram && abbrev->tag != DW_TAG_inlined_subroutine) {
		skip(dies, abbrev);
		return !dies->in.bad;
	}
	for (i = 0; i < abbrev->n && !dies->in.bad; i++) {
		const struct weft__abbrev_spec *spec = &dies->specs[abbrev->first + i];

		ranges |= spec->attribute == DW_AT_ranges;
		attribute(dies, ret, spec, &offset);
	}
	if (offset)
		ret->high += ret->low;
	if (ranges || ret->high <= ret->low)
		ret->has_range = false;
	return !dies->in.bad;
}

void weft__dies_fini(struct weft__dies *dies)
{
	weft__free(dies->abbrevs);
	weft__free(dies->specs);
	memset(dies, 0, sizeof(*dies));
}
