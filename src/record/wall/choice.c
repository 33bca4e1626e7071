/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads that wait are looked at, and how often. CALLER. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "record/tables/tables.h"
#include "record/wall/remote.h"
#include "record/wall/state.h"
#include "record/wall/wall.h"
#include "segment/defs.h"

#define AUTO_HZ 10

struct weft__wall_choice weft__wall_choice;

static void choose(const struct weft_recorder_opts *opts)
{
	struct weft__wall_choice *choice = &weft__wall_choice;

	if (opts->wall_hz == WEFT_OFF)
		return;
	if (opts->wall_hz) {
		choice->hz = (uint32_t)opts->wall_hz;
		snprintf(choice->why, sizeof(choice->why), "asked for");
		return;
	}
	if (opts->sample_hz == WEFT_OFF || opts->switches == WEFT_SWITCH_OFF)
		return;
	if (weft__sources_see_switches())
		return;
	choice->hz = AUTO_HZ;
	snprintf(choice->why, sizeof(choice->why), "context switches cannot be recorded");
}

int weft__wall_open(const struct weft_recorder_opts *opts, struct weft_error *ret)
{
	struct weft__wall_choice *choice = &weft__wall_choice;
	int err;

	(void)ret;
	memset(choice, 0, sizeof(*choice));
	choose(opts);
	err = weft__remote_probe();
	choice->brief = err < 0;
	if (choice->hz)
		weft__tables_want();
	if (choice->hz && err)
		snprintf(choice->degraded, sizeof(choice->degraded),
			 "threads that wait are counted, without call and stack: /proc/self/task/TID/syscall: %s",
			 weft_strerror(err));
	return 0;
}

uint32_t weft__wall_hz(void)
{
	return weft__wall_choice.hz;
}

void weft__wall_facts(struct weft__defs *defs)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", weft__wall_choice.hz);
	weft__defs_fact(defs, "wall.hz", text);
	if (weft__wall_choice.hz)
		weft__defs_fact(defs, "wall.why", weft__wall_choice.why);
	if (weft__wall_choice.degraded[0])
		weft__defs_fact(defs, "degraded.wall", weft__wall_choice.degraded);
}
