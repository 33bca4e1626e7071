/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait, looked at from outside (remote.h) some times a second, and polls that do not end. COLLECTOR, but for what says otherwise.
 *
 * A thread that has used no CPU time since the last look still waits where it waited then: that costs one reading of a clock, and one more
 * look that its sample stands for. Threads that run are not looked at any closer: CPU samples see them. */
#ifndef WEFT_ENGINE_WALL_H
#define WEFT_ENGINE_WALL_H

#include <stdint.h>

#include "segment/defs.h"
#include "weft/recorder.h"

/* CALLER, at open and close. Chooses: by the options and by what the machine allows. */
void weft__wall_open(const struct weft_recorder_opts *opts);
void weft__wall_close(void);
/* In the child of a fork. */
void weft__wall_forked(void);
/* Any context, constant from open to close. Looks a second; 0: none. */
uint32_t weft__wall_hz(void);
/* CALLER and COLLECTOR. "wall.hz", "wall.why", "degraded.wall". */
void weft__wall_facts(struct weft__defs *defs);

/* Looks at some threads, if that is due and something records. */
void weft__wall_turn(uint64_t now_ns);
/* When the next turn is due; UINT64_MAX: never. */
uint64_t weft__wall_due(void);
/* Tells what has been seen and not told yet, at a rotation or at the end, when nothing records any more. 1: there is more to tell, when the
 * ring has been drained. */
int weft__wall_tell(void);
/* Any context. CPU time that all turns took so far, in ns. */
uint64_t weft__wall_cost(void);
/* Looks a second that may be made from now on, at most; 0: as many as chosen. */
void weft__wall_limit(uint32_t hz);

#endif
