/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_PRELOAD_SYMBOL_H
#define WEFT_PRELOAD_SYMBOL_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_OBJECTS 48

struct symbol_object {
	uintptr_t base;
	const uint32_t *table; /* of kind GNU; NULL: it has none, and may have any name */
	const ElfW(Sym) * symbols;
	const ElfW(Half) * versions;
	const char *names;
	bool is_libc;
};

/* What is loaded, but for this library, which has the names that it stands for, and the kernel's page. Of use until
 * something is loaded or unloaded. */
struct symbol_objects {
	size_t n;
	bool more; /* than fit */
	struct symbol_object at[SYMBOL_OBJECTS];
};

void weft__preload_objects(struct symbol_objects *ret);
/* Whether one of them has the symbol, or may have it. */
bool weft__preload_may_have(const struct symbol_objects *objects, const char *name);
/* What dlsym would find in the C library, when no other has the name. NULL: nobody has it (*NOBODY is true then), or
 * ask dlsym. */
void *weft__preload_in_libc_only(const struct symbol_objects *objects, const char *name, bool *nobody);

#endif
