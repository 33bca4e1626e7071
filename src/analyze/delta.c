/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/delta.h"

void weft__delta_from(struct weft__delta *thread, uint64_t now_ns)
{
	if (!thread->known || now_ns > thread->since_ns)
		thread->since_ns = now_ns;
	thread->known = true;
}

uint64_t weft__delta_sample(struct weft__delta *thread, uint64_t now_ns)
{
	uint64_t wall_ns = thread->known && now_ns > thread->since_ns ? now_ns - thread->since_ns : 0;

	weft__delta_from(thread, now_ns);
	return wall_ns;
}
