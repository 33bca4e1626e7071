/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait, sampled from outside (remote.h) some times a second, and polls that do not end. COLLECTOR,
 * but for what says otherwise.
 *
 * A thread that has used no CPU time since the last wall sample still waits where it waited then: that costs one
 * reading of a clock, and its sample stands for one more. Threads that run are not looked at any closer: CPU samples
 * see them. */
#ifndef WEFT_WALL_WALL_H
#define WEFT_WALL_WALL_H

#include <stdint.h>

#include "record/source.h"

extern const struct weft__source weft__wall_source;

/* wall_choice.c, CALLER, at open. Chooses: by the options and by what the machine allows. */
int weft__wall_open(const struct weft_recorder_opts *opts, struct weft_error *err);
/* Any context, constant from open to close. Looks a second; 0: none. */
uint32_t weft__wall_hz(void);
/* CALLER and COLLECTOR. "wall.hz", "wall.why", "degraded.wall". */
void weft__wall_facts(struct weft__defs *defs);

/* Any context. CPU time that all turns took so far, in ns. */
uint64_t weft__wall_cost(void);

#endif
