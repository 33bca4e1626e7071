/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions in few columns. Those of C++ and Rust are mostly arguments and type parameters. */
#include <stdio.h>
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
static void strip(const char *name, char *out)
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
		out[n - 2] = 0;
}

/* The text without outer scopes, as many as it takes; the text itself where that is not enough. */
static const char *inner(const char *name, size_t columns)
{
	const char *at = name;

	if (cli_columns(name) <= columns)
		return name;
	while ((at = strstr(at, "::")) != NULL) {
		if (cli_columns(at) + 2 <= columns)
			return at;
		at += 2;
	}
	return name;
}

/* The bytes that the first so many columns of a text take. */
static size_t bytes_of(const char *text, size_t columns)
{
	size_t at = 0;

	while (text[at] && columns-- > 0)
		do
			at++;
		while (((unsigned char)text[at] & 0xc0) == 0x80);
	return at;
}

const char *cli_function(const char *name, size_t columns, char *buf)
{
	char text[2 * NAME_BYTES];
	const char *shown = cli_safe(name), *before = "";
	size_t bytes = 4 * columns + 1;

	if (cli_columns(shown) > columns) {
		strip(shown, text);
		shown = inner(text, columns);
		before = shown == text ? "" : "..";
	}
	if (cli_columns(shown) + strlen(before) <= columns)
		snprintf(buf, bytes, "%s%s", before, shown);
	else /* one long word: its beginning */
		snprintf(buf, bytes, "%.*s..", (int)bytes_of(shown, columns - 2), shown);
	return buf;
}
