/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weft/hooks.h"

static void *malloc_resize(void *ptr, size_t bytes, void *data)
{
	(void)data;
	return realloc(ptr, bytes);
}

static void malloc_release(void *ptr, void *data)
{
	(void)data;
	free(ptr);
}

static struct weft_allocator allocator = {malloc_resize, malloc_release, NULL};

void weft_set_allocator(const struct weft_allocator *replacement)
{
	static const struct weft_allocator standard = {malloc_resize, malloc_release, NULL};

	allocator = replacement ? *replacement : standard;
}

void *weft__alloc(size_t bytes)
{
	return allocator.resize(NULL, bytes ? bytes : 1, allocator.data);
}

void *weft__calloc(size_t n, size_t bytes)
{
	void *ptr;

	if (bytes && n > SIZE_MAX / bytes)
		return NULL;
	ptr = weft__alloc(n * bytes);
	if (ptr)
		memset(ptr, 0, n * bytes);
	return ptr;
}

void *weft__realloc(void *ptr, size_t bytes)
{
	return allocator.resize(ptr, bytes ? bytes : 1, allocator.data);
}

void weft__free(void *ptr)
{
	if (ptr)
		allocator.release(ptr, allocator.data);
}

char *weft__strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = weft__alloc(bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

void *weft__grow(void *array, size_t *cap, size_t n, size_t elem_bytes)
{
	size_t want = *cap ? *cap * 2 : 8;
	void *moved;

	if (n < *cap)
		return array;
	if (want > SIZE_MAX / elem_bytes)
		return NULL;
	moved = weft__realloc(array, want * elem_bytes);
	if (moved)
		*cap = want;
	return moved;
}
