/* SPDX-License-Identifier: Apache-2.0 */
/* perf-PID.map: a line `START SIZE name` for each piece of code, numbers in hexadecimal. CALLER. */
#ifndef WEFT_SYMBOL_PERF_MAP_H
#define WEFT_SYMBOL_PERF_MAP_H

#include "symbol/code.h"

/* Adds the pieces, whose names point into `text`. Lines that are none are passed over. 0 or -ENOMEM. */
int weft__perf_map_parse(struct weft__jitcode *code, const char *text, size_t n);

#endif
