/* SPDX-License-Identifier: Apache-2.0 */
/* File names of recordings: a stem, NAME-PID-ID, then .rings, or -NUMBER.weft, or -dump-NUMBER.weft, and behind that
 * .active or .new while it is made. Any context but HOT. */
#ifndef WEFT_RING_NAMES_H
#define WEFT_RING_NAMES_H

#include <string.h>

#define DECIMAL "0123456789"
#define HEXADECIMAL DECIMAL "abcdef"

/* The length of `text` without characters of `set` at its end and a '-' before them; 0: it does not end so. */
static inline size_t name_without(const char *text, size_t n, const char *set)
{
	size_t end = n;

	while (n && strchr(set, text[n - 1]))
		n--;
	return n > 1 && n < end && text[n - 1] == '-' ? n - 1 : 0;
}

/* The length of NAME in a stem; 0: that is none. */
static inline size_t name_of_stem(const char *stem, size_t n)
{
	n = name_without(stem, n, HEXADECIMAL);
	return n ? name_without(stem, n, DECIMAL) : 0;
}

/* The length of the stem of a segment's name, which ends in `end`; 0: no segment of weft is called so. */
static inline size_t stem_of_segment(const char *name, const char *end)
{
	static const char dump[] = "-dump";
	size_t n = strlen(name), m = strlen(end);

	if (n <= m || strcmp(name + n - m, end) != 0)
		return 0;
	n = name_without(name, n - m, DECIMAL);
	if (n > sizeof(dump) - 1 && !memcmp(name + n - (sizeof(dump) - 1), dump, sizeof(dump) - 1))
		n -= sizeof(dump) - 1;
	return n && name_of_stem(name, n) ? n : 0;
}

/* The same for rings. */
static inline size_t stem_of_rings(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end) && name_of_stem(name, n - m) ? n - m : 0;
}

#endif
