/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and inlined functions from DWARF. CALLER.
 *
 * Opening reads only the first entry of each unit. The functions of a unit are read when an address in it is first
 * asked for, into a flat map from address to the innermost inlined function, and names only when they are shown. */
#ifndef WEFT_SYMBOL_DWARF_H
#define WEFT_SYMBOL_DWARF_H

#include "symbol/image.h"
#include "symbol/source.h"

struct weft__dwarf;

struct weft__dwarf_line {
	const char *file; /* NULL: not known */
	uint32_t line;
};

/* The image has to stay. -ENOENT when it has no DWARF; -EINVAL; -ENOMEM. */
int weft__dwarf_open(struct weft__dwarf **ret, const struct weft__elf_image *image);
void weft__dwarf_close(struct weft__dwarf *dwarf);
/* Adds the frames of the address: their number, or -ENOMEM. 0 when no function is known there; `line` may be, even
 * then. `start` is where the outermost function begins. */
int weft__dwarf_resolve(struct weft__dwarf *dwarf, struct weft__symbol_env *env, uint64_t address,
			struct weft__frame_list *out, struct weft__dwarf_line *line, uint64_t *start);

#endif
