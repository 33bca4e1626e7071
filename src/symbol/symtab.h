/* SPDX-License-Identifier: Apache-2.0 */
/* The functions in the symbol tables of one or several images of the same build. CALLER. */
#ifndef WEFT_SYMBOL_SYMTAB_H
#define WEFT_SYMBOL_SYMTAB_H

#include "symbol/image.h"
#include "symbol/range.h"

struct weft__sym {
	uint64_t start;
	uint64_t size;
	const char *name; /* in the image */
	int rank;         /* of several names for the same code the highest is shown */
	bool guessed;     /* the file gives no size, so it goes on until the next one or the end of its section */
	uint64_t most;    /* that end */
};

struct weft__symtab {
	struct weft__sym *at;
	size_t n;
	size_t cap;
	struct weft__ranges ranges; /* values: indices of `at` */
};

/* Takes in .dynsym and .symtab; the image has to stay. 0 or -ENOMEM. */
int weft__symtab_add(struct weft__symtab *symtab, const struct weft__elf_image *image);
/* After the last add. */
int weft__symtab_seal(struct weft__symtab *symtab);
const struct weft__sym *weft__symtab_get(const struct weft__symtab *symtab, uint64_t address);
void weft__symtab_fini(struct weft__symtab *symtab);
bool weft__symtab_in(const struct weft__elf_image *image); /* whether the image has a .symtab */

#endif
