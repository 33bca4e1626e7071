/* SPDX-License-Identifier: Apache-2.0 */
#include "work/work.h"

#include <weft/event.h>

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
