/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the program itself, and depths of queues. Context: CALLER. */
#ifndef WEFT_ANALYZE_CUSTOM_H
#define WEFT_ANALYZE_CUSTOM_H

#include "analyze/analysis.h"
#include "base/arena.h"
#include "base/map.h"

struct weft__event;

struct weft__customs {
	const struct weft__analysis_opts *opts;
	struct weft__custom_result *result;
	struct weft__arena arena;
	size_t cap, cap_queues;
	struct weft__map by_kind, queue_by_runtime;
};

int weft__custom_add(struct weft__customs *all_customs, const struct weft__event *ev);
int weft__queue_add(struct weft__customs *customs, const struct weft__event *ev);
void weft__customs_fini(struct weft__customs *customs);

#endif
