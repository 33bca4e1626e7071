/* SPDX-License-Identifier: Apache-2.0 */
/* MiniDebugInfo: a small ELF file with a .symtab, compressed with xz, in the section .gnu_debugdata. CALLER. */
#ifndef WEFT_SYMBOL_MINIDEBUG_H
#define WEFT_SYMBOL_MINIDEBUG_H

#include "symbol/image.h"

/* -ENOENT when there is none; -EINVAL when it is damaged or too large; -ENOMEM. */
int weft__minidebug_open(struct weft__elf_image *mini, const struct weft__elf_image *image);

#endif
