/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each reason for which something is missing, from the list in weft/segment.h. CALLER. */
#ifndef WEFT_ANALYZE_LOSS_H
#define WEFT_ANALYZE_LOSS_H

#include <stdbool.h>

#include "weft/segment.h"

enum weft__loss_counts {
	WEFT__LOST_EVENTS,
	WEFT__LOST_POLLS,
	WEFT__LOST_SAMPLES,
	WEFT__LOST_MISSED,
	WEFT__LOST_THREADS,
	WEFT__LOST_SWITCHES,
	WEFT__LOST_TIME,
	WEFT__LOST_COUNTS,
};

enum weft__loss_gap { WEFT__GAP_THREAD, WEFT__GAP_ALL, WEFT__GAP_NONE };

struct weft__loss_reason {
	const char *name;
	const char *meaning;
	enum weft__loss_counts counts;
	enum weft__loss_gap gap;
};

/* Of a reason that this version does not know: events of a thread, with a gap in its time. */
const struct weft__loss_reason *weft__loss_reason(uint32_t reason);

/* Whether the count of such a loss says something; else only its time does. */
static inline bool weft__loss_counted(uint32_t reason)
{
	return weft__loss_reason(reason)->counts != WEFT__LOST_TIME;
}

#endif
