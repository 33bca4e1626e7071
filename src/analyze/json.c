/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/json.h"

#include <inttypes.h>
#include <math.h>

size_t weft__utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len, i;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	else
		return 0;
	for (i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, beyond U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void escaped(FILE *out, const char *text)
{
	putc('"', out);
	while (*text) {
		unsigned char c = (unsigned char)*text;
		size_t len = weft__utf8_length(text);

		if (len == 0) {
			fputs("\\ufffd", out);
			len = 1;
		} else if (c == '"' || c == '\\') {
			putc('\\', out);
			putc(c, out);
		} else if (c == '\n') {
			fputs("\\n", out);
		} else if (c == '\t') {
			fputs("\\t", out);
		} else if (c < 0x20 || c == 0x7f) {
			fprintf(out, "\\u%04x", c);
		} else if (c == 0xc2 &&
			   (unsigned char)text[1] < 0xa0) { /* U+0080 to U+009F: control sequences to some */
			fprintf(out, "\\u%04x", (unsigned char)text[1]);
		} else {
			fwrite(text, 1, len, out);
		}
		text += len;
	}
	putc('"', out);
}

static void indent(struct weft__json *json)
{
	uint32_t i;

	putc('\n', json->out);
	for (i = 0; i < json->depth; i++)
		fputs("  ", json->out);
}

static void member(struct weft__json *json, const char *key)
{
	if (json->filled)
		putc(',', json->out);
	if (json->depth > 0)
		indent(json);
	if (key) {
		escaped(json->out, key);
		fputs(": ", json->out);
	}
	json->filled = true;
}

void weft__json_begin(struct weft__json *json, const char *key, char bracket)
{
	member(json, key);
	putc(bracket, json->out);
	json->depth++;
	json->filled = false;
}

void weft__json_end(struct weft__json *json, char bracket)
{
	json->depth--;
	if (json->filled)
		indent(json);
	putc(bracket, json->out);
	json->filled = true;
	if (json->depth == 0)
		putc('\n', json->out);
}

void weft__json_text(struct weft__json *json, const char *key, const char *text)
{
	member(json, key);
	if (text)
		escaped(json->out, text);
	else
		fputs("null", json->out);
}

void weft__json_u64(struct weft__json *json, const char *key, uint64_t value)
{
	member(json, key);
	if (value == UINT64_MAX) /* not known, or a sum that does not fit: no reader should take it for a number */
		fputs("null", json->out);
	else
		fprintf(json->out, "%" PRIu64, value);
}

void weft__json_i64(struct weft__json *json, const char *key, int64_t value)
{
	member(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void weft__json_f64(struct weft__json *json, const char *key, double value)
{
	member(json, key);
	if (isfinite(value))
		fprintf(json->out, "%.9g", value);
	else
		fputs("null", json->out);
}

void weft__json_bool(struct weft__json *json, const char *key, bool value)
{
	member(json, key);
	fputs(value ? "true" : "false", json->out);
}

void weft__json_null(struct weft__json *json, const char *key)
{
	member(json, key);
	fputs("null", json->out);
}

void weft__json_absent(struct weft__json *json, const char *key, const char *why)
{
	char why_key[80];

	weft__json_null(json, key);
	snprintf(why_key, sizeof(why_key), "%s_why", key);
	weft__json_text(json, why_key, why);
}
