/* SPDX-License-Identifier: Apache-2.0 */
/* The self-check: a recorder that cannot do its work says so in its first seconds, and not when somebody looks for a
 * segment that is not there. The collector does it, at its usual turns; the program waits for nothing. The check of
 * targets is that of their own threads (ship/worker.c). COLLECTOR. */
#ifndef WEFT_COLLECT_CHECK_H
#define WEFT_COLLECT_CHECK_H

#include <stdint.h>

struct weft__collector;

struct weft__check {
	uint32_t turns;
	uint32_t passed, failed; /* enum weft_check; read by others, under the collector's mutex */
	char why[160];           /* what failed first */
};

/* A turn: tries what is not known yet. */
void weft__check_tend(struct weft__collector *c);

#endif
