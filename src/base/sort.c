/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct sorting {
	size_t bytes;
	int (*compare)(const void *, const void *);
};

/* The sorted runs [0, middle) and [middle, n) of `from`, as one in `to`. */
static void merge_two(const struct sorting *s, const char *from, char *to, size_t middle, size_t n)
{
	const char *a = from, *a_end = from + middle * s->bytes, *b = a_end, *b_end = from + n * s->bytes;

	while (a < a_end && b < b_end) {
		const char **next = s->compare(a, b) <= 0 ? &a : &b;

		memcpy(to, *next, s->bytes);
		*next += s->bytes;
		to += s->bytes;
	}
	memcpy(to, a, (size_t)(a_end - a));
	to += a_end - a;
	memcpy(to, b, (size_t)(b_end - b));
}

void weft__sort(void *array, size_t n, size_t elem_bytes, int (*compare)(const void *, const void *))
{
	struct sorting s = {elem_bytes, compare};
	char few[1024];
	char *from = array, *room, *to;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	qsort(array, n, elem_bytes, compare); /* malloc is the sanitizer's, which keeps what is released */
	return;
#endif
	if (n < 2)
		return;
	room = n * elem_bytes <= sizeof(few) ? few : weft__alloc(n * elem_bytes);
	if (!room) {
		qsort(array, n, elem_bytes, compare);
		return;
	}
	to = room;
	for (size_t run = 1; run < n; run *= 2) {
		char *merged = to;

		for (size_t i = 0; i < n; i += 2 * run) {
			size_t left = n - i;

			merge_two(&s, from + i * elem_bytes, to + i * elem_bytes, run < left ? run : left,
				  2 * run < left ? 2 * run : left);
		}
		to = from;
		from = merged;
	}
	if (from != array)
		memcpy(array, from, n * elem_bytes);
	if (room != few)
		weft__free(room);
}
