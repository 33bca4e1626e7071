/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sources. A new one is a line here. */
#include "record/collect/flight.h"
#include "record/event/queue.h"
#include "record/host/cloud.h"
#include "record/package.h"
#include "record/sample/engine.h"
#include "record/source.h"
#include "record/switch/switch.h"
#include "record/wait/context.h"
#include "record/wait/wait.h"
#include "record/wall/pending.h"
#include "record/wall/wall.h"
#include "record/wall/watch.h"

/* The order matters:
 *
 *     context before sample    a fork takes its lock first, as the thread that compiles unwind tables does
 *     sample before switch     a fork takes locks in this order; files of switches are closed before those of samples
 *     switch before wall       there are wall samples by default only where switches cannot be recorded
 *     flight at the end        it writes what the others made of the round */
static const struct weft__source *const sources_all[] = {
	&weft__context_source, &weft__queue_source,   &weft__sample_source, &weft__switch_source,
	&weft__wall_source,    &weft__stuck_source,   &weft__wait_source,   &weft__pending_source,
	&weft__cloud_source,   &weft__package_source, &weft__flight_source,
};

struct weft__source_list weft__sources = {.all = sources_all, .n = sizeof(sources_all) / sizeof(sources_all[0])};
