/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	char c;
} entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

/* One character, or a part of one, of an element's text. Answers how many bytes it was. */
static size_t decode_one(const char *text, char *to)
{
	size_t i;

	for (i = 0; *text == '&' && i < sizeof(entities) / sizeof(entities[0]); i++)
		if (!strncmp(text, entities[i].name, strlen(entities[i].name))) {
			*to = entities[i].c;
			return strlen(entities[i].name);
		}
	if (!strncmp(text, "&#", 2)) {
		char *end;
		int hex = text[2] == 'x';
		unsigned long c = strtoul(text + 2 + hex, &end, hex ? 16 : 10);

		if (*end == ';' && c && c < 128) {
			*to = (char)c;
			return (size_t)(end + 1 - text);
		}
	}
	*to = *text;
	return 1;
}

int weft__xml_element(const char **at, const char **end, const char *tag)
{
	char open[64], close[64];
	const char *begin, *stop;

	snprintf(open, sizeof(open), "<%s>", tag);
	snprintf(close, sizeof(close), "</%s>", tag);
	begin = strstr(*at, open);
	stop = begin ? strstr(begin, close) : NULL;
	if (!stop)
		return 0;
	*at = begin + strlen(open);
	*end = stop;
	return 1;
}

const char *weft__xml_text(const char *at, const char *end, const char *tag, char *to, size_t bytes)
{
	const char *stop;
	size_t n = 0;

	if (!weft__xml_element(&at, &stop, tag) || (end && stop > end))
		return NULL;
	while (at < stop) {
		if (n + 1 >= bytes)
			return NULL;
		at += decode_one(at, &to[n++]);
	}
	to[n] = 0;
	return stop;
}
