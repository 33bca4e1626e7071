/* SPDX-License-Identifier: Apache-2.0 */
/* A sample: where a thread was at one moment. It becomes an event in the thread's own ring, so that it stands in
 * order among the thread's polls; its stack goes to a table in shared memory (ring/stacks.h) and is named by number. */
#ifndef WEFT_SAMPLE_SAMPLE_H
#define WEFT_SAMPLE_SAMPLE_H

#include <stdint.h>

struct weft__sample {
	uint64_t tick; /* weft_tick() */
	const uint64_t
		*user; /* addresses, leaf first; flags as in unwind.h and enum weft_stack_flag, which are the same */
	const uint64_t *kernel; /* NULL: none */
	uint32_t n_user, n_kernel;
	uint32_t user_flags;
	uint32_t engine;    /* enum weft_engine */
	uint32_t cpu;       /* UINT32_MAX: not known */
	uint64_t weight_ns; /* of CPU time that this sample stands for */
};

/* HOT. Of the calling thread, which gets a ring if it has none. Answers 1; 0 when it was dropped, which is counted. */
int weft__sample_emit(const struct weft__sample *sample);
/* HOT. The same into a ring of the calling thread that has room for it; NULL: 0. */
struct weft_ring;
int weft__sample_emit_in(struct weft_ring *ring, const struct weft__sample *sample);

#endif
