/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: the last so many seconds are kept in memory, as segments of a second or a few (slices), and a
 * dump makes one segment in the directory of those that it needs. COLLECTOR; the functions that CALLER may use say so.
 *
 * Since ids are the same in all segments of a recording, a dump is the blocks of its slices, one after the other; of
 * definitions that say the same the first is enough. Its own facts stand at the end, where they are the last word. */
#ifndef WEFT_COLLECT_FLIGHT_H
#define WEFT_COLLECT_FLIGHT_H

#include <stdint.h>

#include "base/own.h"
#include "record/collect/defcache.h"
#include "segment/writer.h"
#include "weft/error.h"

#define DUMP_PATH_BYTES 512

struct weft__collector;
struct weft_recorder_opts;

/* One dump. Times are CLOCK_MONOTONIC. */
struct weft__dump {
	uint64_t from_ns;
	uint64_t until_ns; /* it is written then */
	char why[128];
	char path[DUMP_PATH_BYTES]; /* written */
	int err;
	int done;                /* under the mutex */
	struct weft__dump *next; /* that callers wait for */
};

/* A dump on its way to the disk (dump.h). */
struct weft__draft {
	struct weft__dump *of; /* NULL: there is none */
	int fd;
	struct weft__own own;
	struct weft__writer writer; /* offset 0: nothing is in it */
	struct weft__defcache defcache;
	struct weft__buf defs;      /* of a slice */
	uint64_t number;            /* of the dump */
	uint64_t sequence, at;      /* the slice that was copied last, and how far; at 0: none */
	char path[DUMP_PATH_BYTES]; /* its name by now */
};

struct weft__flight {
	/* set at open, then constant */
	const char *dir; /* NULL: no flight recorder */
	uint64_t span_ns;
	uint64_t quiet_ns;
	uint64_t forward_ns;          /* of triggers */
	uint64_t keep_bytes, keep_ns; /* of the directory */

	/* collector; CALLER while there is none */
	uint64_t n_dumps;
	uint64_t n_named; /* numbers of dumps given so far */
	struct weft__draft draft;
	uint64_t draft_ns;         /* no try before */
	struct weft__dump trigger; /* what a trigger asked for; until_ns is 0: nothing */
	uint64_t retry_ns;         /* not before */
	uint64_t quiet_until_ns;
	uint64_t unheard; /* triggers since the last dump */

	/* under the mutex */
	struct weft__dump *asked; /* by callers, who wait */
	uint32_t n_waiting;
};

extern const struct weft__source weft__flight_source;

/* After each flush: puts what was flushed into the draft of a dump that is not over yet. */
void weft__flight_follow(struct weft__collector *c, uint64_t now_ns);

/* CALLER, with the recorder's mutex: asks for a dump of so long before and after now (0 before: all there is). 1:
 * weft__flight_wait has to wait for it, which needs no mutex. Without a collector it is written at once: 0 or
 * -errno. */
int weft__flight_ask(struct weft__collector *c, struct weft__dump *dump, uint64_t back_ns, uint64_t forward_ns);
int weft__flight_wait(struct weft__collector *c, struct weft__dump *dump);

#endif
