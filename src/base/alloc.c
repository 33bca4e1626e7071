/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "weft/hooks.h"

/* AddressSanitizer does not hold its allocator still in a fork: a child would wait for ever for a lock of a thread
 * that it does not have. So none of our threads is in it at a fork, as the heap's lock is held then. */
#ifdef __SANITIZE_ADDRESS__
#define HOLD_STILL() weft__heap_lock()
#define GO_ON() weft__heap_unlock()
#else
#define HOLD_STILL() (void)0
#define GO_ON() (void)0
#endif

static void *malloc_resize(void *ptr, size_t bytes, void *data)
{
	void *got;

	(void)data;
	HOLD_STILL();
	got = realloc(ptr, bytes);
	GO_ON();
	return got;
}

static void malloc_release(void *ptr, void *data)
{
	(void)data;
	HOLD_STILL();
	free(ptr);
	GO_ON();
}

/* Sanitizers know what malloc gave. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STANDARD                                                                                                       \
	{                                                                                                              \
		malloc_resize, malloc_release, NULL                                                                    \
	}
#else
static void *own_resize(void *ptr, size_t bytes, void *data)
{
	(void)data;
	return weft__heap_resize(ptr, bytes);
}

static void own_release(void *ptr, void *data)
{
	(void)data;
	weft__heap_release(ptr);
}

#define STANDARD                                                                                                       \
	{                                                                                                              \
		own_resize, own_release, NULL                                                                          \
	}
#endif

static struct weft_allocator allocator = STANDARD;

/* What is not written to takes no memory, and is nothing to copy in a fork. */
static int is_zero(const void *fresh)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)fresh;
	return 0;
#else
	return allocator.resize == own_resize && weft__heap_is_zero(fresh);
#endif
}

void weft_set_allocator(const struct weft_allocator *replacement)
{
	static const struct weft_allocator standard = STANDARD;

	allocator = replacement ? *replacement : standard;
}

void weft__alloc_plain(void)
{
	allocator = (struct weft_allocator){malloc_resize, malloc_release, NULL};
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
	if (ptr && !is_zero(ptr))
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
