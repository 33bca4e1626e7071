/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The hexadecimal number at *p, with or without 0x, and the blank after it. */
static bool number(const char **p, const char *end, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;
	int digits = 0;

	if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	for (; s < end; s++, digits++) {
		int c = *s | 0x20;

		if (*s >= '0' && *s <= '9')
			v = v << 4 | (uint64_t)(*s - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	if (!digits || digits > 16 || s == end || (*s != ' ' && *s != '\t'))
		return false;
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	*p = s;
	*ret = v;
	return true;
}

int weft__perf_map_parse(struct weft__jitcode *code, const char *text, size_t n)
{
	const char *end = text + n, *line, *next;

	for (line = text; line < end; line = next) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		struct weft__jitcode_piece piece = {.from = 0, .to = UINT64_MAX};
		uint64_t bytes;
		int failed;

		next = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		if (stop > line && stop[-1] == '\r')
			stop--;
		if (!number(&line, stop, &piece.lo) || !number(&line, stop, &bytes) || line == stop)
			continue;
		if (!bytes || piece.lo + bytes < piece.lo)
			continue;
		piece.hi = piece.lo + bytes;
		piece.name = line;
		piece.name_n = (uint32_t)(stop - line > 65535 ? 65535 : stop - line);
		failed = weft__jitcode_add(code, &piece);
		if (failed)
			return failed == -E2BIG ? 0 : failed;
	}
	return 0;
}
