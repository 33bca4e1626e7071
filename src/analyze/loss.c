/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/loss.h"

const struct weft__loss_reason *weft__loss_reason(uint32_t reason)
{
	static const struct weft__loss_reason of[WEFT_LOSS_END] = {
		[0] = {"unknown reason", "a later version of weft knows why", WEFT__LOST_EVENTS, WEFT__GAP_THREAD},
#define X(NAME, number, name, counts, gap, meaning) [number] = {name, meaning, WEFT__LOST_##counts, WEFT__GAP_##gap},
		WEFT_LOSSES(X)
#undef X
	};

	return &of[reason < WEFT_LOSS_END ? reason : 0];
}
