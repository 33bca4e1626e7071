/* SPDX-License-Identifier: Apache-2.0 */
/* All that can be found of one build of a file: itself, its debug file, its MiniDebugInfo. CALLER. */
#ifndef WEFT_SYMBOL_OBJECT_H
#define WEFT_SYMBOL_OBJECT_H

#include "symbol/debuginfod.h"
#include "symbol/dwarf.h"
#include "symbol/fdes.h"
#include "symbol/symtab.h"

struct weft__object {
	struct weft__elf_image file;
	struct weft__elf_image debug;
	struct weft__elf_image mini;
	struct weft__symtab symtab;
	struct weft__fdes fdes; /* of `file` */
	struct weft__dwarf *dwarf;
};

/* Finds what there is for the module. An object that knows nothing is no failure; the module then has its `why`. 0
 * or -ENOMEM. */
int weft__object_open(struct weft__object *object, struct weft__symbol_env *env, struct weft__symbol_entry *module,
		      struct weft__debuginfod *servers);
/* One that is all in memory. */
int weft__object_open_memory(struct weft__object *object, void *bytes, size_t n);
/* The frames of an address of the module: their number, 0, -ENOMEM. With 0, out->within may be known. */
int weft__object_resolve(struct weft__object *object, struct weft__symbol_env *env,
			 const struct weft__symbol_module *module, uint64_t ip, struct weft__frame_list *out);
void weft__object_close(struct weft__object *object);

#endif
