/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places in code, kept from one recording to the next: who names segments of one process again and again
 * asks its files only about what is new. Bounded: when it is full all is forgotten. Context: CALLER, one thread at a
 * time. */
#ifndef WEFT_ANALYZE_NAME_CACHE_H
#define WEFT_ANALYZE_NAME_CACHE_H

#include "symbol/symbol.h"
#include "weft/segment.h"

struct weft__name_cache;

struct weft__cached_line {
	const char *function; /* NULL: nobody knows it */
	const char *file;     /* NULL: not known */
	uint64_t within;      /* where nobody knows it: it began so many bytes before */
	uint32_t line;
	bool inlined;
};

/* NULL: out of memory. */
struct weft__name_cache *weft__name_cache_open(size_t max_places);
void weft__name_cache_close(struct weft__name_cache *cache); /* NULL is allowed */
/* The lines of a place, innermost first, until the next put; NULL: it was not asked for before. */
const struct weft__cached_line *weft__name_cache_get(const struct weft__name_cache *cache,
						     const struct weft_module *module, uint64_t offset, uint32_t *n);
/* What the symbolizer answered. Only of files and the kernel: code that is made at run time may be other code later. */
void weft__name_cache_put(struct weft__name_cache *cache, const struct weft_module *module, uint64_t offset,
			  const struct weft__symbol_frames *found);

#endif
