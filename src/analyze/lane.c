/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the report: lanes (workers and threads) and locations (where tasks are spawned). */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "analyze/label.h"
#include "analyze/state.h"

static bool matches(const char *pattern, const char *text)
{
	return !pattern || fnmatch(pattern, text, 0) == 0;
}

bool weft__thread_asked(const struct weft__analysis_opts *opts, uint32_t thread_id)
{
	const struct weft_thread *thread = weft__names_thread(opts->names, thread_id);
	char label[WEFT__LABEL_BYTES];

	if (!opts->thread)
		return true;
	weft__label_thread(opts->names, thread_id, label, sizeof(label));
	if (matches(opts->thread, label) || (thread && matches(opts->thread, thread->name)))
		return true;
	snprintf(label, sizeof(label), "%u", thread ? thread->tid : 0);
	return thread && strcmp(opts->thread, label) == 0;
}

bool weft__worker_asked(const struct weft__analysis_opts *opts, uint32_t worker, uint32_t thread_id)
{
	char label[WEFT__LABEL_BYTES];

	return !opts->worker ||
	       matches(opts->worker, weft__label_lane(opts->names, worker, thread_id, label, sizeof(label)));
}

int weft__lane_get(struct weft__lanes *all_lanes, uint32_t worker, uint32_t thread_id, uint32_t *ret)
{
	struct weft__lane_result *r = all_lanes->result;
	uint64_t key = worker == WEFT_WORKER_NONE ? thread_id : UINT64_C(1) << 32 | worker;
	uint32_t at = weft__map_get(&all_lanes->by_key, key);
	struct weft__lane *lanes, *lane;

	if (at == WEFT__MAP_NONE && r->n_lanes >= all_lanes->opts->max_rows && worker != WEFT__LANE_OTHER)
		return weft__lane_get(all_lanes, WEFT__LANE_OTHER, 0, ret);
	if (at == WEFT__MAP_NONE) {
		lanes = weft__arena_grow(&all_lanes->arena, r->lanes, &all_lanes->cap, r->n_lanes, sizeof(*lanes));
		if (!lanes)
			return -ENOMEM;
		r->lanes = lanes;
		at = (uint32_t)r->n_lanes;
		if (weft__map_put(&all_lanes->by_key, key, at) < 0)
			return -ENOMEM;
		r->n_lanes++;
		memset(&lanes[at], 0, sizeof(lanes[at]));
		lanes[at].worker = worker;
		lanes[at].thread_id = ~thread_id;
	}
	lane = &r->lanes[at];
	if (lane->thread_id != thread_id) {
		lane->thread_id = thread_id;
		lane->match =
			lane->match || (weft__worker_asked(all_lanes->opts, worker, thread_id) &&
					(worker == WEFT__LANE_OTHER || weft__thread_asked(all_lanes->opts, thread_id)));
	}
	*ret = at;
	return 0;
}

int weft__location_get(struct weft__lanes *lanes, uint32_t id, struct weft__location **ret)
{
	struct weft__lane_result *r = lanes->result;
	uint32_t at = weft__near_get(&lanes->locations, id);
	struct weft__location *locations;

	if (at != WEFT__MAP_NONE) {
		*ret = &r->locations[at];
		return 0;
	}
	at = weft__map_get(&lanes->location_by_id, id);
	if (at == WEFT__MAP_NONE && r->n_locations >= lanes->opts->max_rows && id < WEFT__LOCATION_OTHER)
		return weft__location_get(lanes, WEFT__LOCATION_OTHER, ret);
	if (at == WEFT__MAP_NONE) {
		locations = weft__arena_grow(&lanes->arena, r->locations, &lanes->cap_locations, r->n_locations,
					     sizeof(*locations));
		if (!locations)
			return -ENOMEM;
		r->locations = locations;
		at = (uint32_t)r->n_locations;
		if (weft__map_put(&lanes->location_by_id, id, at) < 0)
			return -ENOMEM;
		r->n_locations++;
		memset(&locations[at], 0, sizeof(locations[at]));
		locations[at].id = id;
		locations[at].match = matches(lanes->opts->location, weft__label_location(lanes->opts->names, id));
	}
	weft__near_put(&lanes->locations, id, at);
	*ret = &r->locations[at];
	return 0;
}

void weft__lanes_fini(struct weft__lanes *lanes)
{
	weft__map_fini(&lanes->by_key);
	weft__map_fini(&lanes->location_by_id);
	weft__arena_fini(&lanes->arena);
}
