/* SPDX-License-Identifier: Apache-2.0 */
/* Polls that do not end, told while they last. COLLECTOR, but for what says otherwise. */
#ifndef WEFT_ENGINE_WATCH_H
#define WEFT_ENGINE_WATCH_H

#include <stdint.h>

#include "record/ring/chunks.h"
#include "weft/recorder.h"

/* CALLER. */
void weft__watch_open(const struct weft_recorder_opts *opts);
void weft__watch_close(void);
/* Any context. The gate is about to have this value. Polls that began before it was opened are not known to be open still. */
void weft__watch_gate(uint32_t on);
/* Any context. How often it was opened, and when it was shut last. */
uint32_t weft__watch_opened(void);
uint64_t weft__watch_shut_ns(void);

/* Looks at all rings, if that is due and something records. Answers how many polls were told, which should be in the file soon. */
uint32_t weft__watch_turn(const struct rings_map *map, const struct rings_head *head, uint64_t now_ns);
/* When it is due next; UINT64_MAX: never. */
uint64_t weft__watch_due(void);
/* Whether unwind tables are wanted for it, from now on. */
int weft__watch_wants(void);

#endif
