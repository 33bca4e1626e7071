/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoint of LTTng that stands beside an event of ours: two 32-bit fields. LTTng reads this file more than
 * once. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER weft_bench
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "provider.h"

#if !defined(BENCH_LTTNG_PROVIDER_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/* clang-format off */
TRACEPOINT_EVENT(weft_bench, poll,
	TP_ARGS(uint32_t, task, uint32_t, depth),
	TP_FIELDS(ctf_integer(uint32_t, task, task) ctf_integer(uint32_t, depth, depth)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
