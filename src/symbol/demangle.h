/* SPDX-License-Identifier: Apache-2.0 */
/* Mangled names of C++ (Itanium) and Rust (legacy and v0) to what people wrote. CALLER. */
#ifndef WEFT_SYMBOL_DEMANGLE_H
#define WEFT_SYMBOL_DEMANGLE_H

/* A text to be freed with weft__free, without return type and without Rust's hash; NULL when `raw` is not mangled.
 * Symbol versions (name@@VERSION) are cut off. */
char *weft__demangle(const char *raw);

#endif
