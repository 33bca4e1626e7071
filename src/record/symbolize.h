/* SPDX-License-Identifier: Apache-2.0 */
/* Names for sealed segments, inside the process: a thread of its own that opens libweft-symbolize.so and puts names
 * into the segments that it hears of, one after the other, in place. Nobody waits for it but who asks to. */
#ifndef WEFT_RECORD_SYMBOLIZE_H
#define WEFT_RECORD_SYMBOLIZE_H

#include <stdint.h>

#include "segment/defs.h"

struct weft__symbolize;

struct weft__symbolize_counts {
	uint64_t done;
	uint64_t failed;  /* segments that stay without names: weft symbolize can add them later */
	uint64_t dropped; /* of these, because too many were waiting */
};

/* CALLER. Starts the thread, "weft-symbolize", and waits a moment for it to open the plugin: the one at `plugin`, or
 * NULL for that beside libweft.so or in the loader's path. 0 or -ENOMEM; that there are no names and why is reported by
 * the facts. */
int weft__symbolize_open(struct weft__symbolize **ret, const char *plugin);
/* CALLER and COLLECTOR. "degraded.symbolize", when there is a reason. NULL is allowed, here and below. */
void weft__symbolize_facts(struct weft__symbolize *s, struct weft__defs *defs);
/* COLLECTOR. A segment was sealed and has its final name. Does not wait, and is soon done. */
void weft__symbolize_submit(struct weft__symbolize *s, const char *path);
/* CALLER. Waits until every segment it has heard of is done. */
void weft__symbolize_drain(struct weft__symbolize *s);
/* CALLER. Between them it is not freed: a close in another thread waits. For who drains without the recorder's
 * mutex. */
void weft__symbolize_hold(struct weft__symbolize *s);
void weft__symbolize_let(struct weft__symbolize *s);
/* Any context. CPU time that the thread used so far, in ns. */
uint64_t weft__symbolize_cost(struct weft__symbolize *s);
struct weft__symbolize_counts weft__symbolize_counts(struct weft__symbolize *s);
/* CALLER. Drains, ends the thread and frees everything. */
void weft__symbolize_close(struct weft__symbolize *s);
/* CALLER, in the child of a fork, which has no such thread: `s` is dead, and its memory is left alone, because the
 * thread may have been in the middle of anything. */
void weft__symbolize_forked(struct weft__symbolize *s);

#endif
