/* SPDX-License-Identifier: Apache-2.0 */
/* The different addresses of code that the stacks of a segment go through. CALLER. */
#ifndef WEFT_ANALYZE_ANNOTATE_ADDRESSES_H
#define WEFT_ANALYZE_ANNOTATE_ADDRESSES_H

#include "base/map.h"
#include "weft/segment.h"

struct weft__code_address {
	uint32_t module;
	uint32_t stack; /* the first that goes through it */
	uint64_t offset;
	uint64_t time_ns; /* code without a file: when that stack was first sampled; else 0 */
	uint32_t next;    /* inside: index of another with the same key */
};

struct weft__addresses {
	struct weft__code_address *at;
	size_t n;
	size_t cap;
	struct weft__map by_key; /* of module and offset: index */
};

/* 0 or -ENOMEM. */
int weft__addresses_collect(struct weft__addresses *addresses, struct weft_segment *seg);
void weft__addresses_fini(struct weft__addresses *addresses);

#endif
