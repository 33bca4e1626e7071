/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed segments leave the process: a thread for each target, "weft-ship", that opens libweft-ship.so and sends what
 * waits in the recorder's directory. A target that fails holds nobody but itself. Nobody waits for these threads but
 * who asks to. */
#ifndef WEFT_RECORD_SHIP_H
#define WEFT_RECORD_SHIP_H

#include <stdint.h>

#include "weft/recorder.h"
#include "weft/report.h"

struct weft__ship;

/* CALLER. The targets that the options name; `*ret` is NULL when there are none and no dir. No thread yet. 0 or
 * -ENOMEM. */
int weft__ship_open(struct weft__ship **ret, const struct weft_recorder_opts *opts);
/* CALLER. One more, before the start: 0, or an error as weft_recorder_report_to answers. NULL is allowed for `s` below,
 * not here. */
int weft__ship_add(struct weft__ship *s, const char *name, weft_report_fn *fn, void *data, struct weft_error *err);
/* CALLER. Starts the threads that do not run yet. */
void weft__ship_start(struct weft__ship *s);
/* COLLECTOR. A segment was sealed. */
void weft__ship_poke(struct weft__ship *s);
/* CALLER. Waits until the targets have everything, or cannot be reached, but not beyond the time that the options
 * name. */
void weft__ship_drain(struct weft__ship *s);
/* CALLER. Between them it is not freed. */
void weft__ship_hold(struct weft__ship *s);
void weft__ship_let(struct weft__ship *s);
/* Any context but HOT. CPU time of the threads so far. */
uint64_t weft__ship_cost(struct weft__ship *s);
/* Any context but HOT. Adds what is known of all targets. */
void weft__ship_health(struct weft__ship *s, struct weft_health *health);
/* CALLER. Ends the threads, soon, and frees everything. */
void weft__ship_close(struct weft__ship *s);
/* CALLER, in the child of a fork, which has no such threads: `s` is dead, and its memory is left alone. */
void weft__ship_forked(struct weft__ship *s);
/* CALLER, at exit, and COLLECTOR, when the program has no thread any more: the threads are asked to end and
 * not waited for. */
void weft__ship_quit(struct weft__ship *s);

#endif
