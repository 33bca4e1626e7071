/* SPDX-License-Identifier: Apache-2.0 */
/* Small questions about strings. Any context but HOT. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <string.h>

/* Whether `name` is something followed by `end`. */
static inline int weft__ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

#endif
