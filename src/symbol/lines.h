/* SPDX-License-Identifier: Apache-2.0 */
/* The line table of one unit, read from .debug_line. CALLER.
 *
 * libdw has one, too; it allocates for each row and sorts all of them, which took half of the time of a first
 * answer. Rows of a sequence are in order already, so here only sequences are put in order. */
#ifndef WEFT_SYMBOL_LINES_H
#define WEFT_SYMBOL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/texts.h"

struct weft__lines_sections {
	const uint8_t *line, *line_str, *str;
	size_t line_n, line_str_n, str_n;
};

/* Holds from `address` to that of the next row. */
struct weft__line_row {
	uint64_t address;
	uint32_t line;
	uint32_t file; /* UINT32_MAX: a sequence ends here */
};

struct weft__line_file {
	const char *name; /* in the section */
	uint32_t dir;
	const char *path; /* NULL: not made yet */
};

struct weft__line_sequence {
	uint64_t start;
	size_t first;
	size_t n;
};

struct weft__lines {
	struct weft__line_row *rows;
	size_t n, cap;
	struct weft__line_sequence *sequences;
	size_t n_sequences, cap_sequences;
	struct weft__line_file *files;
	size_t n_files, cap_files;
	const char **dirs;
	size_t n_dirs, cap_dirs;
	const char *comp_dir;
};

/* The table at `offset` of the section. The sections and `comp_dir`, which may be NULL, have to stay. -EINVAL when
 * it is not one that is understood; -ENOMEM. Fini in any case. */
int weft__lines_read(struct weft__lines *lines, const struct weft__lines_sections *sections, uint64_t offset,
		     uint32_t address_bytes, const char *comp_dir);
/* The row of an address, or NULL. */
const struct weft__line_row *weft__lines_find(const struct weft__lines *lines, uint64_t address);
/* The path of a file by its number. 0 with NULL when there is none; -ENOMEM. */
int weft__lines_file(struct weft__lines *lines, struct weft__texts *texts, uint32_t file, const char **ret);
void weft__lines_fini(struct weft__lines *lines);

#endif
