/* SPDX-License-Identifier: Apache-2.0 */
/* Switches recording, or its samples, on and off while the server serves, and notes what was served meanwhile: what
 * that costs, measured in one process, under one load, within moments of each other. bench/server.py and
 * bench/overhead.py make figures of it. */
#ifndef DEMO_ALTERNATE_H
#define DEMO_ALTERNATE_H

#include <semaphore.h>
#include <stdio.h>

#include <weft/weft.h>

#include "server.h"

struct alternate {
	const struct server *server;
	struct weft_recorder *rec; /* NULL: nothing is switched, and what the slices show is chance */
	uint32_t slice_ms;         /* between two switches */
	bool samples;              /* only samples are switched, when perf events make them, and recording stays on */
	FILE *log;                 /* taken: stop closes it */
	pthread_t thread;
	sem_t end;
};

/* Writes a line of JSON for each slice to `log`. `rec` must be recording. Returns 0 or a negative errno. */
int alternate_start(struct alternate *alternate);

/* Ends it with recording on. Returns 0, or a negative errno when the log could not be written. */
int alternate_stop(struct alternate *alternate);

#endif
