/* SPDX-License-Identifier: Apache-2.0 */
#include "work/work.h"

#include <weft/event.h>

/* What any recorder of events in memory must do at least: read the counter and store 16 bytes, into memory that nobody else
 * knows of. */
static struct weft_slot floor_slots[4096];
static uint64_t floor_at;

static inline void floor_event(uint64_t kind, uint64_t arg)
{
	struct weft_slot *slot = &floor_slots[floor_at++ % 4096];

	slot->w0 = weft_tick(1) << 8 | kind;
	slot->w1 = arg;
	__asm__ volatile("" : : : "memory");
}

#define LOOPS(kind)                                                                                                    \
	void kind##_bare(struct chains *c, uint32_t n)                                                                 \
	{                                                                                                              \
		struct chains local = *c;                                                                              \
                                                                                                                       \
		for (uint32_t i = 0; i < n; i++)                                                                       \
			unit_##kind(&local);                                                                           \
		*c = local;                                                                                            \
	}                                                                                                              \
                                                                                                                       \
	void kind##_floor(struct chains *c, uint32_t n)                                                                \
	{                                                                                                              \
		struct chains local = *c;                                                                              \
                                                                                                                       \
		for (uint32_t i = 0; i < n; i++) {                                                                     \
			floor_event(1, i);                                                                             \
			unit_##kind(&local);                                                                           \
			floor_event(2, i);                                                                             \
		}                                                                                                      \
		*c = local;                                                                                            \
	}                                                                                                              \
                                                                                                                       \
	void kind##_pair(struct chains *c, uint32_t n)                                                                 \
	{                                                                                                              \
		struct chains local = *c;                                                                              \
                                                                                                                       \
		for (uint32_t i = 0; i < n; i++) {                                                                     \
			weft_poll_begin(i, 3);                                                                         \
			unit_##kind(&local);                                                                           \
			weft_poll_end();                                                                               \
		}                                                                                                      \
		*c = local;                                                                                            \
	}                                                                                                              \
                                                                                                                       \
	void kind##_shared(struct chains *c, uint32_t n)                                                               \
	{                                                                                                              \
		struct chains local = *c;                                                                              \
		uint64_t now = weft_now();                                                                             \
                                                                                                                       \
		for (uint32_t i = 0; i < n; i++) {                                                                     \
			weft_poll_begin_at(i, 3, now);                                                                 \
			unit_##kind(&local);                                                                           \
			now = weft_now();                                                                              \
			weft_poll_end_at(now);                                                                         \
		}                                                                                                      \
		*c = local;                                                                                            \
	}

LOOPS(latency)
LOOPS(throughput)
