/* SPDX-License-Identifier: Apache-2.0 */
/* jit-PID.dump: records of code that was loaded and moved, with lines and times. CALLER. */
#ifndef WEFT_SYMBOL_JITDUMP_H
#define WEFT_SYMBOL_JITDUMP_H

#include "symbol/code.h"

/* Adds the pieces, whose texts point into `bytes`. A file that is cut gives what is whole. -EINVAL when it is not a
 * jitdump; -ENOMEM. */
int weft__jitdump_parse(struct weft__jitcode *code, const void *bytes, size_t n);

#endif
