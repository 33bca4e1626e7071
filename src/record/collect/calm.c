/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/calm.h"

#define CALM_SHARE 100                     /* of the time, the part one by this may be CPU time of the program */
#define CALM_SLOTS 256                     /* may be drained between two looks */
#define CALM_AFTER_NS UINT64_C(1000000000) /* for so long */

void weft__calm_check(struct weft__calm *calm, uint64_t slots)
{
	if (slots - calm->slots <= CALM_SLOTS)
		return;
	calm->on = 0;
	calm->since_ns = 0;
}

void weft__calm_see(struct weft__calm *calm, uint64_t now_ns, uint64_t span_ns, uint64_t program_ns, uint64_t slots)
{
	int is_calm = program_ns <= span_ns / CALM_SHARE && slots - calm->slots <= CALM_SLOTS;

	calm->slots = slots;
	if (!is_calm)
		calm->since_ns = 0;
	else if (!calm->since_ns)
		calm->since_ns = now_ns;
	calm->on = is_calm && now_ns >= calm->since_ns + CALM_AFTER_NS;
}
