/* SPDX-License-Identifier: Apache-2.0 */
/* As qsort(), which calls malloc: see heap.h. Equal elements stay in order. CALLER and COLLECTOR. */
#ifndef WEFT_BASE_SORT_H
#define WEFT_BASE_SORT_H

#include <stddef.h>

void weft__sort(void *array, size_t n, size_t elem_bytes, int (*compare)(const void *, const void *));

#endif
