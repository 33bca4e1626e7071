/* SPDX-License-Identifier: Apache-2.0 */
#define WEFT_NO_INLINE 1
#include "event/event.h"

#include <weft/event.h>

void burst_call(struct floor_ring *ring, uint32_t n)
{
	uint32_t i;

	(void)ring;
	for (i = 0; i < n; i++) {
		weft_poll_begin(i, 3);
		weft_poll_end();
	}
}

void burst_wake_call(struct floor_ring *ring, uint32_t n)
{
	uint32_t i;

	(void)ring;
	for (i = 0; i < n; i++)
		weft_wake(i, 1);
}
