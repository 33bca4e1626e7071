/* SPDX-License-Identifier: Apache-2.0 */
/* What was chosen for wall samples. CALLER writes it, at open. */
#ifndef WEFT_WALL_STATE_H
#define WEFT_WALL_STATE_H

#include <stddef.h>
#include <stdint.h>

struct weft__wall_choice {
	uint32_t hz; /* 0: none */
	int brief;   /* only that a thread waits is known, not where */
	char why[96];
	char degraded[160]; /* "": nothing is */
};
extern struct weft__wall_choice weft__wall_choice;

struct ring_page;

/* list.c, COLLECTOR. Ids of the threads that there are, in order, into memory that grows. Answers how many, or -1 when
 * the list could not be read. */
long weft__wall_ids(uint32_t **ids, size_t *cap);
/* The ring of a thread, whose polls are in it; NULL: it has none. `*known` is its number plus 1 when it was found the
 * last time; without `search` no other is looked for. */
struct ring_page *weft__wall_ring(uint32_t tid, uint32_t *known, int search);

#endif
