/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a segment as the collector had them: raw slots in staging, drain by drain. */
#ifndef BENCH_STAGE_H
#define BENCH_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "record/ring/layout.h"

/* One filling of the staging memory, which becomes one block. */
struct image {
	uint64_t used;
	uint64_t n_events;
	uint8_t *bytes; /* STAGING_BYTES */
};

struct stage {
	struct image *images;
	size_t n_images;
	uint64_t n_events;
	uint64_t n_slots;
	uint64_t first_ns, last_ns;
	uint32_t n_rings;
};

/* Reads all events of the segment. Exits when it cannot. */
struct stage stage_read(const void *segment, size_t n_bytes);

struct collect;
/* A collector without a thread, whose segments are in memory. */
struct collect *collect_new(const struct stage *stage);
/* Encodes everything into a new segment, with the collector's own code. Returns the ns that it took, and the bytes. */
uint64_t collect_run(struct collect *collect, const struct stage *stage, uint64_t *ret_bytes);

#endif
