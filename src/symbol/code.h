/* SPDX-License-Identifier: Apache-2.0 */
/* Code that a process made while it ran: ranges with names, and when each was there. CALLER. */
#ifndef WEFT_SYMBOL_CODE_H
#define WEFT_SYMBOL_CODE_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__JITCODE_MAX ((size_t)1 << 22) /* pieces of one process; more are not kept */

struct weft__jitcode_line {
	uint64_t address;
	const char *file; /* into what was parsed */
	uint32_t line;
};

struct weft__jitcode_piece {
	uint64_t lo;
	uint64_t hi;
	uint64_t most; /* the highest `hi` up to here, in the order of `lo` */
	uint64_t from; /* ns */
	uint64_t to;
	const char *name; /* `name_n` bytes of what was parsed */
	uint32_t name_n;
	uint32_t order;
	uint64_t index;      /* the jitdump's own number of it */
	uint64_t line_shift; /* added to an address here gives one in `lines`: code moves, its lines do not */
	size_t lines;        /* the first in `lines` of the code */
	uint32_t n_lines;
};

struct weft__jitcode {
	struct weft__jitcode_piece *pieces;
	size_t n;
	size_t cap;
	struct weft__jitcode_line *lines;
	size_t n_lines;
	size_t cap_lines;
	int timed; /* `from` and `to` mean something */
};

/* Later pieces hide earlier ones. -ENOMEM; -E2BIG when full. */
int weft__jitcode_add(struct weft__jitcode *code, const struct weft__jitcode_piece *piece);
int weft__jitcode_add_line(struct weft__jitcode *code, uint64_t address, const char *file, uint32_t line);
/* After the last add: makes it ready for get. */
void weft__jitcode_seal(struct weft__jitcode *code);
/* What was at the address at that time, or NULL; time 0: what came last. */
const struct weft__jitcode_piece *weft__jitcode_get(const struct weft__jitcode *code, uint64_t address,
						    uint64_t time_ns);
/* The line of an address of the piece, or NULL. */
const struct weft__jitcode_line *weft__jitcode_line(const struct weft__jitcode *code,
						    const struct weft__jitcode_piece *piece, uint64_t address);
void weft__jitcode_fini(struct weft__jitcode *code);

#endif
