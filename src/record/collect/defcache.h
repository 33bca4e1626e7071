/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that a dump has already. Each segment in memory has all that its events need, so a dump of many
 * would have them many times: too many of them for a reader. COLLECTOR, or CALLER while there is none. */
#ifndef WEFT_COLLECT_DEFCACHE_H
#define WEFT_COLLECT_DEFCACHE_H

#include "base/map.h"
#include "segment/decode.h"
#include "segment/defs.h"

struct weft__defcache {         /* all 0: nothing was written */
	struct weft__map about; /* tag and id, or key, as a hash, to a number of `last` */
	uint64_t *last;         /* what a definition had last, as a hash */
	size_t n, cap;
	struct weft__decoder *decoder;
	struct weft__buf expanded;
	struct weft__defs news;
};

/* The records of a block of definitions, compressed or not, that say something new, in `news`. 0, or -errno: then ask
 * weft__defcache_forget. */
int weft__defcache_news(struct weft__defcache *r, const uint8_t *payload, size_t n, uint32_t flags);
/* The last news did not get where they belong: from here on everything is new. */
void weft__defcache_forget(struct weft__defcache *r);
void weft__defcache_fini(struct weft__defcache *r);

#endif
