/* SPDX-License-Identifier: Apache-2.0 */
/* Packages as facts of a segment (package/package.h), for who reads it on another machine. A recorder finds them out
 * while it records; who puts names into segments adds what is missing. Context: CALLER. */
#ifndef WEFT_EXPORT_PACKAGES_H
#define WEFT_EXPORT_PACKAGES_H

struct weft_segment;
struct weft__defs;
struct weft__package_cache;

/* Files are looked up once, however many segments have them. NULL: out of memory. */
struct weft__package_cache *weft__packages_open(void);
void weft__packages_close(struct weft__package_cache *cache);
/* Adds facts about files that the segment has none of. None, if it was recorded on another machine. `cache` is one of
 * these, as a pointer to anything: for struct weft__annotate_opts. 0 or -ENOMEM. */
int weft__packages_add(void *cache, const struct weft_segment *segment, struct weft__defs *defs);

#endif
