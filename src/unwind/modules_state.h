/* SPDX-License-Identifier: Apache-2.0 */
/* The set of now and who is in it; only modules.c and modules_hot.c look here. */
#ifndef WEFT_UNWIND_MODULES_STATE_H
#define WEFT_UNWIND_MODULES_STATE_H

#include "unwind/modules.h"

struct weft__modules_now {
	struct weft__modules *set;
	uint32_t phase; /* the count that newcomers use */
	uint32_t readers[2];
};

extern struct weft__modules_now weft__modules_now;

#endif
