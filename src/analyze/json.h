/* SPDX-License-Identifier: Apache-2.0 */
/* Prints JSON as it goes, indented. Commas are the printer's business; nesting is the caller's. Text is made valid
 * whatever its bytes are: what is not UTF-8 becomes U+FFFD. Context: CALLER. */
#ifndef WEFT_ANALYZE_JSON_H
#define WEFT_ANALYZE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct weft__json {
	FILE *out;
	uint32_t depth;
	bool filled; /* the open object or array has a member */
};

/* {.out = file} is ready for use. `key` is NULL inside an array. `bracket` is '{' or '['. */
void weft__json_begin(struct weft__json *json, const char *key, char bracket);
void weft__json_end(struct weft__json *json, char bracket);                       /* '}' or ']' */
void weft__json_text(struct weft__json *json, const char *key, const char *text); /* NULL text: null */
void weft__json_u64(struct weft__json *json, const char *key, uint64_t value);    /* UINT64_MAX: null */
void weft__json_i64(struct weft__json *json, const char *key, int64_t value);
void weft__json_f64(struct weft__json *json, const char *key, double value); /* not finite: null */
void weft__json_bool(struct weft__json *json, const char *key, bool value);
void weft__json_null(struct weft__json *json, const char *key);

/* "KEY": null, "KEY_why": "WHY": how everything that was not measured is shown. */
void weft__json_absent(struct weft__json *json, const char *key, const char *why);

/* The length of the well-formed UTF-8 sequence that `text` (which ends in a zero byte) begins with, or 0. */
size_t weft__utf8_length(const char *text);

#endif
