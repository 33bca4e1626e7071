/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of workers and of locations in the result, and which of them were asked for. Context: CALLER. */
#ifndef WEFT_ANALYZE_LANE_H
#define WEFT_ANALYZE_LANE_H

#include "analyze/analysis.h"
#include "base/arena.h"
#include "base/map.h"

struct weft__lanes {
	const struct weft__analysis_opts *opts;
	struct weft__lane_result *result;
	struct weft__arena arena; /* of the rows, and of their histograms */
	size_t cap, cap_locations;
	struct weft__map by_key, location_by_id;
	struct weft__near locations;
};

bool weft__thread_asked(const struct weft__analysis_opts *opts, uint32_t thread_id);
bool weft__worker_asked(const struct weft__analysis_opts *opts, uint32_t worker, uint32_t thread_id);
int weft__lane_get(struct weft__lanes *all_lanes, uint32_t worker, uint32_t thread_id, uint32_t *ret);
int weft__location_get(struct weft__lanes *lanes, uint32_t id, struct weft__location **ret);
void weft__lanes_fini(struct weft__lanes *lanes);

#endif
