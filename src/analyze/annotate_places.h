/* SPDX-License-Identifier: Apache-2.0 */
/* The different places in code that the stacks of a segment go through. CALLER. */
#ifndef WEFT_ANALYZE_ANNOTATE_PLACES_H
#define WEFT_ANALYZE_ANNOTATE_PLACES_H

#include "weft/segment.h"

struct weft__location {
	uint32_t module;
	uint32_t stack; /* the first that goes through it */
	uint64_t offset;
	uint64_t time_ns; /* code without a file: when that stack was first sampled; else 0 */
};

struct weft__places {
	struct weft__location *at;
	size_t n;
	size_t cap;
	uint32_t *slots; /* by hash: indices + 1 */
	size_t n_slots;  /* a power of two */
};

/* 0 or -ENOMEM. */
int weft__places_collect(struct weft__places *places, struct weft_segment *seg);
void weft__places_fini(struct weft__places *places);

#endif
