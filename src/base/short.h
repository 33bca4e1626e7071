/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end before weft starts in them: counted in a page that `weft run` shares with all of them, since a
 * line in a file would cost a forked child a tenth of its life. WEFT_PRELOAD_COUNTS says where the page is:
 * "PATH INODE", a sealed memfd of weft run's. What is in it becomes lines of short-processes.txt when the program
 * has ended: "*N CPU_NS LIVED_NS NAME" for N processes. Every process is counted there when it begins and when it is
 * accounted for: the difference, "?N", are those that a signal ended, and those that still run. Any context. */
#ifndef WEFT_BASE_SHORT_H
#define WEFT_BASE_SHORT_H

#include <stdint.h>

#define SHORT_ENV "WEFT_PRELOAD_COUNTS"
#define SHORT_MARK UINT64_C(0x74726f6873746677) /* "wftshort" */
#define SHORT_NAMES 63
#define SHORT_NAME_BYTES 36

/* One program. Its name is written once, by who takes the place; two places may have the same one. */
struct weft__short_name {
	uint32_t state; /* 0: free, 1: is being written, 2: in use */
	char name[SHORT_NAME_BYTES];
	uint64_t n, cpu_ns, lived_ns;
};

struct weft__short_page {
	uint64_t mark;
	uint32_t closed; /* nobody reads it any more */
	uint32_t unused;
	uint64_t born; /* processes in which weft is still to start */
	uint64_t left; /* of these: it started, they ended and were counted, or became another program */
	uint32_t pad[8];
	struct weft__short_name names[SHORT_NAMES];
};

_Static_assert(sizeof(struct weft__short_page) == 4096, "a page");

#endif
