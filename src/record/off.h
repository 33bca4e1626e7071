/* SPDX-License-Identifier: Apache-2.0 */
/* The switch: a file whose presence, and a signal whose every other arrival, pause recording. A thread of its own,
 * "weft-off", looks once a second, and at once after the signal. Only where one of the options is set. CALLER. */
#ifndef WEFT_RECORD_OFF_H
#define WEFT_RECORD_OFF_H

#include "weft/recorder.h"

/* Under the recorder's mutex. Begins to look, if there is something to look at and nobody does yet. Answers whether it
 * is to be paused now. */
int weft__off_start(struct weft_recorder *rec, const struct weft_recorder_opts *opts);
/* Without the mutex: the thread may wait for it. Ends the thread; the signal is the program's again. */
void weft__off_stop(void);
/* In the child of a fork, which has no such thread. */
void weft__off_forked(void);

#endif
