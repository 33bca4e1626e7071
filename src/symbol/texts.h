/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, each kept once, with what they demangle to. CALLER. */
#ifndef WEFT_SYMBOL_TEXTS_H
#define WEFT_SYMBOL_TEXTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define WEFT__TEXT_MAX 65535 /* longer ones are cut */

struct weft__texts_entry;
struct weft__texts_chunk;

struct weft__texts {
	struct weft__texts_entry **entries;
	size_t n, cap;
	struct weft__map by_hash; /* a hash, or the next free number behind it, to an entry */
	struct weft__texts_chunk *chunks;
};

/* The kept text, or NULL when out of memory. */
const char *weft__texts_add(struct weft__texts *texts, const char *text);
const char *weft__texts_add_n(struct weft__texts *texts, const char *text, size_t n);
/* `raw` came from weft__texts_add. Answers the text for people, `raw` itself when it is not mangled, or NULL. */
const char *weft__texts_demangled(struct weft__texts *texts, const char *raw);
void weft__texts_fini(struct weft__texts *texts);

#endif
