/* SPDX-License-Identifier: Apache-2.0 */
#include "work/work.h"

#include <weft/event.h>

/* What any recorder of events in memory must do at least: read the counter and store 16 bytes, into memory that
 * nobody else knows of. */
static struct weft_slot floor_slots[4096];
static uint64_t floor_at;

static inline void floor_event(uint64_t kind, uint64_t arg)
{
	struct weft_slot *slot = &floor_slots[floor_at++ % 4096];

	slot->w0 = weft_tick(1) << 8 | kind;
	slot->w1 = arg;
	__asm__ volatile("" : : "r"(slot) : "memory"); /* nobody reads them: without this there would be no stores */
}

/* The compiler moves no work across this: an event is where it was written, as ours are, which have branches. */
static inline void in_order(struct chains *c)
{
	__asm__ volatile(""
			 : "+r"(c->x[0]), "+r"(c->x[1]), "+r"(c->x[2]), "+r"(c->x[3]), "+r"(c->x[4]), "+r"(c->x[5]),
			   "+r"(c->x[6]), "+r"(c->x[7]));
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
			in_order(&local);                                                                              \
			unit_##kind(&local);                                                                           \
			in_order(&local);                                                                              \
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
		uint64_t now = weft_now_ticks();                                                                       \
                                                                                                                       \
		for (uint32_t i = 0; i < n; i++) {                                                                     \
			weft_poll_begin_at(i, 3, now);                                                                 \
			unit_##kind(&local);                                                                           \
			now = weft_now_ticks();                                                                        \
			weft_poll_end_at(now);                                                                         \
		}                                                                                                      \
		*c = local;                                                                                            \
	}

LOOPS(latency)
LOOPS(throughput)
