/* SPDX-License-Identifier: Apache-2.0 */
/* Polls that do not end, reported while they last. COLLECTOR, but for what says otherwise. */
#ifndef WEFT_WALL_WATCH_H
#define WEFT_WALL_WATCH_H

#include <stdint.h>

#include "record/source.h"

extern const struct weft__source weft__stuck_source;

/* Any context. How often the gate was opened, and when it was shut last. */
uint32_t weft__watch_opened(void);
uint64_t weft__watch_shut_ns(void);

#endif
