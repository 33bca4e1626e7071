/* SPDX-License-Identifier: Apache-2.0 */
/* A table of definitions: records are added as they are read, then sorted once, then looked up. COLLECTOR and
 * CALLER. */
#ifndef WEFT_SEGMENT_TABLE_H
#define WEFT_SEGMENT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct weft__table {
	void *items;
	size_t n;
	size_t cap;
};

/* Room for one more record of `bytes`, if the one in `in` is whole and there are fewer than `most`; else NULL, with
 * `in` bad or `*oom` set. */
void *weft__table_add(struct weft__table *table, size_t bytes, size_t most, struct weft__in *in, int *oom);

/* Orders by key, keeping only the last of those that are equal. 0 or -ENOMEM. */
int weft__table_sort(struct weft__table *table, size_t bytes, int (*compare)(const void *, const void *));

/* For records that begin with a uint32_t id. */
int weft__table_sort_ids(struct weft__table *table, size_t bytes);
const void *weft__table_find(const struct weft__table *table, size_t bytes, uint32_t id);

#endif
