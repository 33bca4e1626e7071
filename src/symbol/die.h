/* SPDX-License-Identifier: Apache-2.0 */
/* The entries (DIEs) of one DWARF unit, one after the other as they lie in the section. CALLER.
 *
 * libdw walks the same tree, but looks into each entry anew for each attribute and, where the compiler writes no
 * sibling references, passes over all that is below an entry once for each level above it. Most entries are types,
 * which nobody asks for: here an entry whose forms have fixed sizes is passed over by one addition. Nothing ever
 * goes backwards, so damaged input ends. */
#ifndef WEFT_SYMBOL_DIE_H
#define WEFT_SYMBOL_DIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct weft__abbrev {
	uint64_t code;
	uint32_t first; /* in `specs` */
	uint32_t n;
	uint32_t fixed_bytes; /* of the whole entry; UINT32_MAX: not fixed */
	uint16_t tag;
	bool has_children;
};

struct weft__abbrev_spec {
	uint16_t attribute;
	uint16_t form;
	int64_t implicit;
};

struct weft__dies {
	struct weft__in in;
	const uint8_t *unit; /* its header */
	uint8_t address_bytes;
	uint8_t offset_bytes;
	uint16_t version;
	struct weft__abbrev *abbrevs;
	size_t n_abbrevs;
	size_t cap_abbrevs;
	struct weft__abbrev_spec *specs;
	size_t n_specs;
	size_t cap_specs;
};

/* What is wanted of an entry; only DW_TAG_subprogram and DW_TAG_inlined_subroutine have more than the first line. */
struct weft__die {
	const uint8_t *at;
	uint16_t tag; /* 0: the end of a list of children */
	bool has_children;
	bool has_range; /* low and high are good */
	bool has_code;  /* it has a range, perhaps one that libdw has to look up */
	uint64_t low;
	uint64_t high;
	uint32_t call_file;
	uint32_t call_line;
};

/* `unit` is where the unit's header is, `n` what is left of the section. 0; -EINVAL; -ENOMEM. */
int weft__dies_init(struct weft__dies *dies, const uint8_t *unit, size_t n, const uint8_t *abbrevs, size_t abbrevs_n);
/* 1; 0 at the end of the unit or where it is damaged. */
int weft__dies_next(struct weft__dies *dies, struct weft__die *ret);
void weft__dies_fini(struct weft__dies *dies);

#endif
