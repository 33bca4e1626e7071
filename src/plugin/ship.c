/* SPDX-License-Identifier: Apache-2.0 */
/* libweft-ship.so: workers for the recorder's targets, one for each. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ship_plugin.h"
#include "ship/host.h"
#include "ship/worker.h"

__attribute__((visibility("default"))) weft_ship_plugin_fn weft_ship_plugin;

static int plugin_open(void **ret, const struct weft_ship_target *target, char *why, size_t why_bytes)
{
	const struct weft__worker_opts opts = {
		.target = {.url = target->url,
			   .timeout_ns = target->timeout_ns,
			   .stop = target->stop,
			   .fn = target->fn,
			   .data = target->data},
		.dir = target->dir,
		.age_ns = target->age_ns,
		.reach = 1,
		.delete = target->delete,
		.all_urls = target->all_urls,
	};
	struct weft__worker *w = weft__calloc(1, sizeof(*w));
	struct weft_error err = {0};
	int r;

	weft_set_log(target->log, WEFT_LOG_INFO, NULL);
	r = w ? weft__worker_open(w, &opts, &err) : -ENOMEM;
	if (r) {
		snprintf(why, why_bytes, "%s", err.msg);
		if (w)
			weft__worker_close(w);
		weft__free(w);
		return r;
	}
	*ret = w;
	return 0;
}

static uint64_t plugin_turn(void *state, uint64_t now_ns)
{
	return weft__worker_turn(state, now_ns);
}

static void plugin_state(void *state, struct weft_ship_state *ret)
{
	const struct weft__worker_state *s = &((const struct weft__worker *)state)->state;

	*ret = (struct weft_ship_state){.sent = s->sent,
					.bytes = s->bytes,
					.retries = s->retries,
					.refused = s->refused,
					.waiting = s->waiting,
					.sent_real_ns = s->sent_real_ns,
					.failing = s->failing,
					.reached = s->reached,
					.busy = s->busy};
	snprintf(ret->why, sizeof(ret->why), "%s", s->why);
}

static void plugin_close(void *state)
{
	weft__worker_close(state);
	weft__free(state);
}

static void plugin_host(const uint32_t *stop, weft__host_fn *fn, void *data)
{
	struct weft__http *http;

	if (weft__http_open(&http, stop, NULL) < 0)
		return;
	weft__host_facts(http, fn, data);
	weft__http_close(http);
}

const struct weft_ship_plugin *weft_ship_plugin(void)
{
	static const struct weft_ship_plugin plugin = {WEFT_SHIP_ABI, plugin_open,  plugin_turn,
						       plugin_state,  plugin_close, plugin_host};

	return &plugin;
}
