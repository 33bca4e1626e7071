/* SPDX-License-Identifier: Apache-2.0 */
/* Packages as facts of a segment, for who reads it on another machine: "package:PATH" is "ORIGIN MANAGER NAME VERSION",
 * where MANAGER is "-" when there is none and VERSION may be missing. Whoever puts names into segments puts these in,
 * too: that is on the machine that recorded, after a segment was sealed. Context: CALLER. */
#ifndef WEFT_EXPORT_PACKAGES_H
#define WEFT_EXPORT_PACKAGES_H

#define PACKAGE_FACT "package:"

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
