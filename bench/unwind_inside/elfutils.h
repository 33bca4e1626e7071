/* SPDX-License-Identifier: Apache-2.0 */
/* elfutils (libdwfl) on a copied stack of this process, as perf has it unwind. */
#ifndef WEFT_BENCH_ELFUTILS_H
#define WEFT_BENCH_ELFUTILS_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind.h"

/* NULL: it cannot. Reads what is mapped now. */
void *elfutils_open(void);
/* How many frames it finds from these registers, in [low, high) whose bytes are at `bytes`. */
size_t elfutils_walk(void *state, const struct weft__unwind_regs *regs, const struct weft__unwind_range *copy);
void elfutils_close(void *state);

#endif
