/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a profile, by number: those that the aggregate has, and behind them those that an encoder needs beside
 * them. Context: CALLER. */
#ifndef WEFT_EXPORT_STRING_TABLE_H
#define WEFT_EXPORT_STRING_TABLE_H

#include <stdbool.h>

#include "base/buf.h"
#include "package/keys.h"

struct weft__strings {
	const struct weft__keys *known; /* the aggregate's */
	struct weft__keys more;
	bool oom;
};

/* Its number; without memory 0. No more than 511 bytes of it. */
uint32_t weft__string_add(struct weft__strings *strings, const char *text, size_t n);
uint32_t weft__string_name(struct weft__strings *strings, const char *text);
/* Good until the next one is added. */
const char *weft__string_at(const struct weft__strings *strings, uint32_t number);
/* All of them, as a repeated field. */
void weft__strings_write(const struct weft__strings *strings, struct weft__buf *out, uint32_t field);

#endif
