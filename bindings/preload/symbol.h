/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of the libraries that are loaded. */
#ifndef WEFT_PRELOAD_SYMBOL_H
#define WEFT_PRELOAD_SYMBOL_H

#include <stdbool.h>

/* Whether another library than this one has NAME, as far as can be said; then dlsym knows. Waits for the loader:
 * from the constructor. */
bool weft__preload_may_have(const char *name);

#endif
