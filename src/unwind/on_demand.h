/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a module whose table is not made yet, looked up in its call frame information as it is mapped: some
 * hundred nanoseconds for one place. Only of modules that nobody unloads, because nothing else keeps them there.
 * HOT. */
#ifndef WEFT_UNWIND_ON_DEMAND_H
#define WEFT_UNWIND_ON_DEMAND_H

#include "unwind/modules.h"
#include "unwind/row.h"

/* Room to work in, too large for the stack that a handler may have. */
struct weft__on_demand {
	struct weft__cfi cfi;
	struct weft__rule rule;
	struct weft__unwind_table table; /* has the special, and nothing else */
	union weft__special_room room;
};

/* The rule of a place, in `rule`, and in `table` what it refers to. NULL: there is none, or no room. It has to be
 * given back. */
struct weft__on_demand *weft__on_demand_take(const struct weft__module *module, uint64_t addr);
void weft__on_demand_give(struct weft__on_demand *demand);
/* In the child of a fork: who had one is not there any more. */
void weft__on_demand_forked(void);

#endif
