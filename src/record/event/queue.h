/* SPDX-License-Identifier: Apache-2.0 */
/* The length of each runtime's global queue, some times a second. */
#ifndef WEFT_EVENT_QUEUE_H
#define WEFT_EVENT_QUEUE_H

#include "record/source.h"

extern const struct weft__source weft__queue_source;
/* COLLECTOR. To wake up for a queue is a good part of what the collector costs: does so less often from now on, or
 * as often as asked for. */
void weft__queue_spare(int spare);

#endif
