/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of which a dump has had the same before. Each piece has all that its events need, so a dump of many would have
 * them many times: too many of them for a reader. COLLECTOR, or CALLER while there is none. */
#ifndef WEFT_COLLECT_RETOLD_H
#define WEFT_COLLECT_RETOLD_H

#include "segment/decode.h"
#include "segment/defs.h"

struct weft__told_def {
	uint64_t what; /* tag and id, or key, as a hash; 0: free */
	uint64_t said; /* about it last, as a hash */
};

struct weft__retold { /* all 0: nothing was told */
	struct weft__told_def *defs;
	size_t n, cap; /* a power of two */
	struct weft__decoder *decoder;
	struct weft__buf expanded;
	struct weft__defs news;
};

/* The records of a block of definitions, compressed or not, that say something new, in `news`. 0, or -errno: then ask
 * weft__retold_forget. */
int weft__retold_news(struct weft__retold *r, const uint8_t *payload, size_t n, uint32_t flags);
/* The last news did not get where they belong: from here on everything is new. */
void weft__retold_forget(struct weft__retold *r);
void weft__retold_fini(struct weft__retold *r);

#endif
