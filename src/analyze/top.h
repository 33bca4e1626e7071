/* SPDX-License-Identifier: Apache-2.0 */
/* The N polls with the highest rank, of any number. Of equal ones the earlier stay. Context: CALLER. */
#ifndef WEFT_ANALYZE_TOP_H
#define WEFT_ANALYZE_TOP_H

#include "analyze/analysis.h"
#include "base/arena.h"

struct weft__top {
	struct weft__poll *polls; /* a heap, the lowest rank first, until sorted */
	size_t n;
	size_t max;
	struct weft__arena *arena;
};

/* Stacks and causes of polls are of the same arena, which must outlive it. Returns 0 or -ENOMEM. */
int weft__top_init(struct weft__top *top, struct weft__arena *arena, size_t max);
bool weft__top_takes(const struct weft__top *top, const struct weft__poll *poll); /* whether add would keep it */
/* Owns the stacks and the breakdown of a poll that it keeps; one that it would not keep must have none. */
void weft__top_add(struct weft__top *top, const struct weft__poll *poll);
void weft__top_sort(struct weft__top *top); /* the highest first; add nothing afterwards */

#endif
