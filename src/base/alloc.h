/* SPDX-License-Identifier: Apache-2.0 */
/* The one allocator of the library (weft_set_allocator). CALLER and COLLECTOR; never HOT. All answer NULL when out of
 * memory; free takes NULL. */
#ifndef WEFT_BASE_ALLOC_H
#define WEFT_BASE_ALLOC_H

#include <stddef.h>

/* From now on it is malloc: for weft's own programs, before they call anything else. */
void weft__alloc_plain(void);
void *weft__alloc(size_t bytes);
void *weft__calloc(size_t n, size_t bytes);
void *weft__realloc(void *ptr, size_t bytes);
void weft__free(void *ptr);
char *weft__strdup(const char *text);

/* Makes room for one more element in an array that doubles. Answers the array, moved perhaps, or NULL: the old one is
 * then still good. */
void *weft__grow(void *array, size_t *cap, size_t n, size_t elem_bytes);

#endif
