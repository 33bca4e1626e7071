/* SPDX-License-Identifier: Apache-2.0 */
/* Which package a file of code is of. Facts of a segment say it: "package:PATH" is "ORIGIN MANAGER NAME VERSION", where
 * MANAGER is "-" when there is none and VERSION may be missing. Context: CALLER, and threads of weft that do slow
 * work. */
#ifndef WEFT_PACKAGE_PACKAGE_H
#define WEFT_PACKAGE_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "package/dpkg.h"

#define PACKAGE_FACT "package:"
#define PACKAGE_FACT_BYTES 700 /* of its value, at most */

enum weft__origin {
	WEFT__ORIGIN_UNKNOWN,   /* in no module that is known */
	WEFT__ORIGIN_PROGRAM,   /* the file that was started */
	WEFT__ORIGIN_LIBRARY,   /* what it brings with it, crates too */
	WEFT__ORIGIN_SYSTEM,    /* C library, loader, the compiler's runtime, Debian's base */
	WEFT__ORIGIN_KERNEL,    /* vdso too */
	WEFT__ORIGIN_GENERATED, /* made while the program ran */
	WEFT__ORIGINS
};
const char *weft__origin_name(enum weft__origin origin);

/* Texts are not ended by a zero byte; they are in the path, in the lists or constant. */
struct weft__package_found {
	enum weft__origin origin;
	const char *manager; /* "debian", "cargo", "rust", "gem", "python", "npm", "file" or "" */
	const char *name, *version;
	size_t name_bytes, version_bytes; /* version: 0, not known */
};

void weft__package_name(struct weft__package_found *to, const char *text, size_t n);
void weft__package_version(struct weft__package_found *to, const char *text, size_t n);
/* A source file of a crate or of Rust's library, wherever it was built. False: it is none. */
bool weft__package_of_source(const char *file, struct weft__package_found *to);
/* A mapped file: of Debian by what was read, of a language's package manager by its path, or by itself. */
void weft__package_of_file(const struct weft__dpkg *dpkg, const char *path, struct weft__package_found *to);
/* The value of a fact. */
void weft__package_fact(const struct weft__package_found *of, char *to, size_t bytes);

#endif
