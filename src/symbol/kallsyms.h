/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/kallsyms: a line `ADDRESS type name [module]` for each symbol of the kernel. CALLER. */
#ifndef WEFT_SYMBOL_KALLSYMS_H
#define WEFT_SYMBOL_KALLSYMS_H

#include "symbol/range.h"

struct weft__kallsyms {
	struct weft__ranges ranges; /* values: indices of `at` */
	struct weft__kallsym {
		uint64_t address;
		char *name; /* into the text, which is changed to hold whole names */
	} * at;
	size_t n;
	size_t cap;
	uint64_t text; /* where the kernel's code begins: _stext, else _text; 0: not said */
	int hidden;    /* there are symbols, but every address is 0: kernel.kptr_restrict */
};

/* `text` ends with a 0 and has to stay. 0 or -ENOMEM. */
int weft__kallsyms_parse(struct weft__kallsyms *syms, char *text);
const struct weft__kallsym *weft__kallsyms_get(const struct weft__kallsyms *syms, uint64_t address);
void weft__kallsyms_fini(struct weft__kallsyms *syms);

#endif
