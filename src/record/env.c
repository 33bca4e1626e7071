/* SPDX-License-Identifier: Apache-2.0 */
/* A recorder whose options come from the environment. CALLER. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/place.h"
#include "record/setup.h"

int weft_recorder_open_env(struct weft_recorder **ret, const struct weft_recorder_opts *given, struct weft_error *err)
{
	struct weft__options labels = {0};
	const char *off = getenv("WEFT_OFF");
	struct weft_recorder_opts opts;
	int r;

	*ret = NULL;
	if (off && !strcmp(off, "1"))
		return 1;
	r = weft__options_take(&opts, given, err);
	if (!r)
		r = weft__options_env(&opts, &labels, err);
	if (!r && !(opts.dir && *opts.dir) && !(opts.ship_to && *opts.ship_to))
		r = 1;
	if (!r)
		r = weft_recorder_open(ret, &opts, err);
	weft__options_fini(&labels);
	return r;
}

static int keep_text(const char **text)
{
	*text = *text ? weft__strdup(*text) : NULL;
	return *text != NULL;
}

int weft__recorder_options(struct weft_recorder_opts *opts, struct weft_error *err)
{
	static struct weft__options labels FORK_DATA; /* where pages are written to anyway */
	const char *off = getenv("WEFT_OFF"), *dir = opts->dir;
	int r;

	if (off && !strcmp(off, "1"))
		return 1;
	r = weft__options_env(opts, &labels, err);
	opts->dir = dir;
	if (r)
		return r;
	if ((opts->name && !keep_text(&opts->name)) || (opts->sample_event && !keep_text(&opts->sample_event)) ||
	    (opts->ship_to && !keep_text(&opts->ship_to)) || (opts->off_file && !keep_text(&opts->off_file)))
		return weft__fail(err, -ENOMEM, "out of memory");
	return 0;
}
