/* SPDX-License-Identifier: Apache-2.0 */
/* How many polls of each length there were, in the modes slow and caught: threads count them in shared memory, and the
 * collector reports what has come to each count as events of its own. COLLECTOR. */
#ifndef WEFT_COLLECT_POLL_COUNTS_H
#define WEFT_COLLECT_POLL_COUNTS_H

#include <stdint.h>

struct weft__collector;

/* Reports the polls that ended before the call, so that they are in the active segment once that is flushed. 0 or an
 * error; then the rest is reported the next time. */
int weft__poll_counts_report(struct weft__collector *c);
/* The same when it is due: once for each time that events wait in shared memory at most. */
int weft__poll_counts_tend(struct weft__collector *c, uint64_t now_ns);
/* The next time is so soon from now on, or as soon as ever if that is sooner. */
void weft__poll_counts_soon(struct weft__collector *c, uint64_t now_ns, uint64_t in_ns);

#endif
