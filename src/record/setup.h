/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorder is made of, and putting it together and taking it apart. CALLER, under the recorder's mutex. */
#ifndef WEFT_RECORD_SETUP_H
#define WEFT_RECORD_SETUP_H

#include <sys/types.h>

#include "record/collect/collector.h"
#include "record/options.h"
#include "record/ring/region.h"
#include "record/ship.h"
#include "record/symbolize.h"

struct weft_recorder {
	struct weft__options options;
	struct weft__region region;
	struct weft__collector collector;
	enum weft_recorder_state state;
	uint32_t source; /* of ticks: enum weft__tick_source */
	uint32_t gate;   /* its value when recording, but for the epoch */
	uint64_t recovered;
	pid_t pid;    /* whose it is */
	int stop_err; /* what the last stop could not write is in the rings */
	int orphan;   /* of a fork: nothing to stop or remove */
};

/* Everything but the options, which are there. Used by open, and by a forked child that begins again. 0 or a
 * negative error. */
int weft__recorder_setup(struct weft_recorder *rec, struct weft_error *err);
void weft__recorder_teardown(struct weft_recorder *rec);

/* recorder.c. The recorder's mutex. A child that was made behind the fork handlers' back finds out there. */
void weft__recorder_lock(void);
void weft__recorder_unlock(void);

/* recorder.c, for the preload library, which opens the recorder late. What is done once in a process: handlers of
 * fork and exit, in their place among those of the program. */
void weft__recorder_prepare(void);
/* Variables of the environment over `opts`, but for the directory; they may change later, so texts are copies, and
 * kept for good. Once in a process. 1: recording is off; 0 or a negative error. */
int weft__recorder_options(struct weft_recorder_opts *opts, struct weft_error *err);
/* In the child of a fork: records again, with the options it had. 0 or a negative error. */
int weft__recorder_restart(struct weft_recorder *rec);
/* In the child of a fork, with weft__late_restarts: gives back what was held for the fork. Before anything of the
 * recorder is used there. */
void weft__recorder_settle(void);
/* HOT. Whether that is still to be done. */
int weft__recorder_unsettled(void);

#endif
