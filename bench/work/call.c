/* SPDX-License-Identifier: Apache-2.0 */
#define WEFT_NO_INLINE 1
#include "work/work.h"

#include <weft/event.h>

void latency_call(struct chains *c, uint32_t n)
{
	struct chains local = *c;

	for (uint32_t i = 0; i < n; i++) {
		weft_poll_begin(i, 3);
		unit_latency(&local);
		weft_poll_end();
	}
	*c = local;
}

void throughput_call(struct chains *c, uint32_t n)
{
	struct chains local = *c;

	for (uint32_t i = 0; i < n; i++) {
		weft_poll_begin(i, 3);
		unit_throughput(&local);
		weft_poll_end();
	}
	*c = local;
}
