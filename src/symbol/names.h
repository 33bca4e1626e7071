/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, each kept once, with what they demangle to. CALLER. */
#ifndef WEFT_SYMBOL_NAMES_H
#define WEFT_SYMBOL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__NAME_MAX 65535 /* longer ones are cut */

struct weft__name;
struct weft__name_chunk;

struct weft__names {
	struct weft__name **slots;
	uint32_t cap; /* a power of two */
	uint32_t n;
	struct weft__name_chunk *chunks;
};

/* The kept text, or NULL when out of memory. */
const char *weft__names_add(struct weft__names *names, const char *text);
const char *weft__names_add_n(struct weft__names *names, const char *text, size_t n);
/* `raw` came from weft__names_add. Answers the text for people, `raw` itself when it is not mangled, or NULL. */
const char *weft__names_demangled(struct weft__names *names, const char *raw);
void weft__names_fini(struct weft__names *names);

#endif
