/* SPDX-License-Identifier: Apache-2.0 */
#include "event/event.h"

#include <weft/event.h>

void burst_inline(struct floor_ring *ring, uint32_t n)
{
	uint32_t i;

	(void)ring;
	for (i = 0; i < n; i++) {
		weft_poll_begin(i, 3);
		weft_poll_end();
	}
}

void burst_next(struct floor_ring *ring, uint32_t n)
{
	uint32_t i;

	(void)ring;
	for (i = 0; i < 2 * n; i++)
		weft_poll_next(i, 3);
	weft_poll_end();
}

void burst_wake_inline(struct floor_ring *ring, uint32_t n)
{
	uint32_t i;

	(void)ring;
	for (i = 0; i < n; i++)
		weft_wake(i, 1);
}
