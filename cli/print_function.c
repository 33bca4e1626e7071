/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in few columns. Those of C++ and Rust are mostly arguments and type parameters. */
#include <string.h>

#include "print.h"

#define NAME_BYTES 1300 /* of cli_safe */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, size_t n, const char *with)
{
	size_t m = strlen(with);

	return n >= m && memcmp(text + n - m, with, m) == 0;
}

/* Behind the bracket that closes the one at `text`; the end of the text when none does. */
static const char *behind(const char *text, char open, char close)
{
	size_t depth = 0;
	const char *at;

	for (at = text; *at; at++) {
		if (*at == open)
			depth++;
		else if (*at == close && !(close == '>' && at > text && at[-1] == '-') && --depth == 0)
			return at + 1;
	}
	return at;
}

/* What is between brackets goes: "f<>", "f()". The first of `<A as B>::f` says what f is, so it stays. */
static size_t strip(const char *name, char *out)
{
	size_t n = 0;
	const char *at = name;

	while (*at) {
		bool is_operator = ends(out, n, "operator") || ends(out, n, "operator<");

		if (begins(at, "(anonymous namespace)")) {
			memcpy(out + n, at, 21);
			n += 21;
			at += 21;
		} else if (*at == '(' || (*at == '<' && n > 0 && !is_operator)) {
			const char *next = behind(at, *at, *at == '(' ? ')' : '>');

			out[n++] = *at;
			out[n++] = *at == '(' ? ')' : '>';
			at = next;
		} else {
			out[n++] = *at++;
		}
	}
	out[n] = 0;
	if (ends(out, n, " const"))
		out[n -= 6] = 0;
	if (ends(out, n, "()") && !ends(out, n, "operator()"))
		out[n -= 2] = 0;
	return n;
}

/* The text without outer scopes, as many as it takes; the text itself where that is not enough. */
static const char *inner(const char *name, size_t columns)
{
	const char *at = name;

	while ((at = strstr(at, "::")) != NULL) {
		if (cli_columns(at) + 2 <= columns)
			return at;
		at += 2;
	}
	return name;
}

const char *cli_function(const char *name, size_t columns, char *buf)
{
	char text[2 * NAME_BYTES];
	const char *shown = cli_safe(name);
	size_t at = 0, n = 0;

	buf[0] = 0;
	if (cli_columns(shown) > columns) {
		strip(shown, text);
		shown = text;
	}
	if (cli_columns(shown) > columns) {
		shown = inner(text, columns);
		if (shown != text)
			strcpy(buf, "..");
	}
	if (cli_columns(shown) + strlen(buf) <= columns)
		return strcat(buf, shown);
	/* One long word: its beginning. */
	while (shown[at] && n < columns - 2) {
		at++;
		while (((unsigned char)shown[at] & 0xc0) == 0x80)
			at++;
		n++;
	}
	memcpy(buf, shown, at);
	strcpy(buf + at, "..");
	return buf;
}
