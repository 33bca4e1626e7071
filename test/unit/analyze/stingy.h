/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that gives so many times and then no more, and counts what is alive. */
#ifndef WEFT_TEST_STINGY_H
#define WEFT_TEST_STINGY_H

#include <stdlib.h>

struct stingy {
	long left;
	long live;
};

static inline void *stingy_resize(void *ptr, size_t bytes, void *data)
{
	struct stingy *stingy = data;

	if (stingy->left == 0)
		return NULL;
	stingy->left--;
	if (!ptr)
		stingy->live++;
	return realloc(ptr, bytes);
}

static inline void stingy_release(void *ptr, void *data)
{
	((struct stingy *)data)->live--;
	free(ptr);
}

#endif
