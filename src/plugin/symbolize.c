/* SPDX-License-Identifier: Apache-2.0 */
/* libweft-symbolize.so: an annotator for the recorder, which keeps what it read from one segment to the next. */
#include <stdio.h>

#include "analyze/annotate.h"
#include "base/plugin.h"

__attribute__((visibility("default"))) weft_symbolize_plugin_fn weft_symbolize_plugin;

static int plugin_open(void **ret, char *why, size_t why_bytes)
{
	/* A server that is slow must not keep the program from ending; weft symbolize can ask later. */
	struct weft__annotate_opts opts = {.symbols = {.no_debuginfod = true}};
	struct weft__annotator *annotator;
	struct weft_error err = {0};
	int r = weft__annotator_open(&annotator, &opts, &err);

	if (r)
		snprintf(why, why_bytes, "%s", err.msg);
	else
		*ret = annotator;
	return r;
}

static int plugin_run(void *state, const char *path, char *why, size_t why_bytes)
{
	struct weft__annotated done;
	struct weft_error err = {0};
	int r = weft__annotator_run(state, path, NULL, &done, &err);

	if (r)
		snprintf(why, why_bytes, "%s", err.msg);
	return r;
}

static void plugin_close(void *state)
{
	weft__annotator_close(state);
}

const struct weft_symbolize_plugin *weft_symbolize_plugin(void)
{
	static const struct weft_symbolize_plugin plugin = {WEFT_SYMBOLIZE_ABI, plugin_open, plugin_run, plugin_close};

	return &plugin;
}
