/* SPDX-License-Identifier: Apache-2.0 */
/* libweft-symbolize.so: an annotator for the recorder, which keeps what it read from one segment to the next. */
#include <errno.h>
#include <stdio.h>

#include "analyze/annotate.h"
#include "base/alloc.h"
#include "base/plugin.h"
#include "export/packages.h"

__attribute__((visibility("default"))) weft_symbolize_plugin_fn weft_symbolize_plugin;

struct state {
	struct weft__annotator *annotator;
	struct weft__package_cache *packages;
};

static void plugin_close(void *data)
{
	struct state *state = data;

	if (state->annotator)
		weft__annotator_close(state->annotator);
	weft__packages_close(state->packages);
	weft__free(state);
}

static int plugin_open(void **ret, char *why, size_t why_bytes)
{
	/* A server that is slow must not keep the program from ending; weft symbolize can ask later. */
	struct weft__annotate_opts opts = {.symbols = {.no_debuginfod = true}, .more = weft__packages_add};
	struct state *state = weft__calloc(1, sizeof(*state));
	struct weft_error err = {0};
	int r = -ENOMEM;

	if (state)
		opts.more_data = state->packages = weft__packages_open();
	if (opts.more_data)
		r = weft__annotator_open(&state->annotator, &opts, &err);
	if (r) {
		snprintf(why, why_bytes, "%s", err.msg[0] ? err.msg : "out of memory");
		if (state)
			plugin_close(state);
		return r;
	}
	*ret = state;
	return 0;
}

static int plugin_run(void *state, const char *path, char *why, size_t why_bytes)
{
	struct weft__annotated done;
	struct weft_error err = {0};
	int r = weft__annotator_run(((struct state *)state)->annotator, path, NULL, &done, &err);

	if (r)
		snprintf(why, why_bytes, "%s", err.msg);
	return r;
}

const struct weft_symbolize_plugin *weft_symbolize_plugin(void)
{
	static const struct weft_symbolize_plugin plugin = {WEFT_SYMBOLIZE_ABI, plugin_open, plugin_run, plugin_close};

	return &plugin;
}
