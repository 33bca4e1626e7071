/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces in memory to one segment file. COLLECTOR, or CALLER while there is none. */
#ifndef WEFT_COLLECT_DUMP_H
#define WEFT_COLLECT_DUMP_H

struct weft__collector;
struct weft__dump;

/* Writes the blocks of all pieces that have something to say about the time of the dump; `path` is set then. 0 or
 * -errno, and then there is no file. -ENODATA: there is nothing of that time. */
int weft__dump_write(struct weft__collector *c, struct weft__dump *dump);

#endif
