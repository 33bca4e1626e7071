/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the program is calm: it has used next to no CPU time and emitted next to nothing for a while. Then the
 * collector wakes up for little more than its drains, half as often, and does what else is due in these rounds. A ring
 * that fills wakes it as always. COLLECTOR. */
#ifndef WEFT_COLLECT_CALM_H
#define WEFT_COLLECT_CALM_H

#include <stdint.h>

#define CALM_STRETCH 2                      /* times as long between two drains */
#define CALM_REPORT_NS UINT64_C(4000000000) /* between two reports of costs and CPU times */

struct weft__calm {
	int on;
	uint64_t since_ns; /* 0: it is not calm now */
	uint64_t slots;    /* drained up to the last look */
};

/* What the program used of the CPU in a time that ends now, and how many slots have been drained in all. */
void weft__calm_see(struct weft__calm *calm, uint64_t now_ns, uint64_t span_ns, uint64_t program_ns, uint64_t slots);
/* Not calm when much was drained since the last look. */
void weft__calm_check(struct weft__calm *calm, uint64_t slots);

#endif
