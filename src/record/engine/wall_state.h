/* SPDX-License-Identifier: Apache-2.0 */
/* What was chosen for looks at threads that wait. CALLER writes it, at open. */
#ifndef WEFT_ENGINE_WALL_STATE_H
#define WEFT_ENGINE_WALL_STATE_H

#include <stdint.h>

struct weft__wall_choice {
	uint32_t hz; /* 0: none */
	int brief;   /* only that a thread waits can be told, not where */
	char why[96];
	char degraded[160]; /* "": nothing is */
};
extern struct weft__wall_choice weft__wall_choice;

#endif
