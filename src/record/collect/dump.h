/* SPDX-License-Identifier: Apache-2.0 */
/* Slices in memory to one segment file. COLLECTOR, or CALLER while there is none.
 *
 * A dump that is not over yet has a draft: what there is of it is in the directory, as the active segment of a
 * recording is, and each flush adds to it. So a process that is killed meanwhile leaves it to recovery, which puts
 * there what is in the rings. There is one draft at a time: of dumps that overlap, the others are written when they
 * are over. */
#ifndef WEFT_COLLECT_DUMP_H
#define WEFT_COLLECT_DUMP_H

struct weft__collector;
struct weft__draft;
struct weft__dump;

/* Begins the draft of a dump, with what there is. 0 or -errno, and then there is none. */
int weft__draft_begin(struct weft__collector *c, struct weft__dump *dump);
/* Adds what was flushed since. One that is gone is forgotten. 0, or -errno: it stays, and the next call goes on. */
int weft__draft_more(struct weft__collector *c);
/* Removes it. */
void weft__draft_discard(struct weft__collector *c);
/* In a child of fork: the file is the parent's. */
void weft__draft_forked(struct weft__draft *draft);

/* Writes the blocks of all slices that have something to say about the time of the dump; `path` is set then. 0 or
 * -errno, and then there is no file, or still a draft. -ENODATA: there is nothing of that time. */
int weft__dump_write(struct weft__collector *c, struct weft__dump *dump);

#endif
