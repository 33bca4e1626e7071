/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, and the conversion of ticks to CLOCK_MONOTONIC. COLLECTOR and CALLER, but for weft__clock_mono, which is
 * HOT too.
 *
 * The emit path stores raw ticks. The collector reads (tick, monotonic, realtime) at each drain; a tick between two
 * such readings is interpolated, and one after the last is carried on with the last slope, which is at most one
 * drain old. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <stdint.h>

#include "weft/segment.h"

enum weft__tick_source { WEFT__TICK_COUNTER = 1, WEFT__TICK_MONOTONIC = 2 }; /* values of weft_gate.on */

uint64_t weft__clock_mono(void);
uint64_t weft__clock_real(void);

/* Whether the CPU's counter can be the tick. `why` says why not, for people; "" when it can. */
enum weft__tick_source weft__clock_source(const char **why);
const char *weft__clock_source_name(enum weft__tick_source source);
uint64_t weft__clock_tick(enum weft__tick_source source);
struct weft_clock weft__clock_read(enum weft__tick_source source);

struct weft__timeline {
	enum weft__tick_source source;
	struct weft_clock before; /* slope is from here */
	struct weft_clock last;   /* to here */
	double ns_per_tick;
	int64_t scale; /* the same times 2^SCALE_BITS; 0: too much for that */
};

/* Begins with one reading and a short measurement of the slope (about 2 ms). */
void weft__timeline_init(struct weft__timeline *line, enum weft__tick_source source);
/* Begins with two readings that somebody else made. */
void weft__timeline_set(struct weft__timeline *line, const struct weft_clock *a, const struct weft_clock *b);
/* Adds a reading. Those closer than 50 ms to the one before are not taken: their slope would be noise. */
void weft__timeline_add(struct weft__timeline *line, const struct weft_clock *now);

/* ns of a tick, as weft_gate.ns_scale has it. */
static inline uint64_t weft__timeline_scale(const struct weft__timeline *line)
{
	return (uint64_t)(line->ns_per_tick * 4294967296.0 + 0.5);
}

/* The tick at a time of CLOCK_MONOTONIC. */
static inline uint64_t weft__timeline_tick(const struct weft__timeline *line, uint64_t mono_ns)
{
	return line->last.tick +
	       (uint64_t)(int64_t)((double)(int64_t)(mono_ns - line->last.mono_ns) / line->ns_per_tick);
}

#define SLOPE_MIN_NS 50000000

/* Whether a reading would be taken; to make one costs more than to ask. */
static inline int weft__timeline_due(const struct weft__timeline *line, uint64_t mono_ns)
{
	return mono_ns - line->last.mono_ns >= SLOPE_MIN_NS;
}

#define TICK_BITS 56     /* of a tick in a slot */
#define SCALE_BITS 48    /* behind the point: a day of ticks is converted to within a nanosecond */
#define SCALE_MAX_NS 100 /* per tick: the span that a slot's bits can hold then fits an int64_t */
#define SPAN_MAX_NS 9e18 /* fits an int64_t */

/* The distance of a tick from the last reading, sign-extended from the bits that a slot keeps. */
static inline int64_t weft__timeline_ticks(const struct weft__timeline *line, uint64_t low)
{
	return (int64_t)((low - line->last.tick) << (64 - TICK_BITS)) >> (64 - TICK_BITS);
}

static inline int64_t weft__ticks_ns(int64_t ticks, int64_t scale)
{
	return (int64_t)(((__int128)ticks * scale) >> SCALE_BITS);
}

/* `low` is a tick of which only the low 56 bits are known; the answer is near the last reading. */
static inline uint64_t weft__timeline_mono(const struct weft__timeline *line, uint64_t low)
{
	int64_t ticks = weft__timeline_ticks(line, low);
	double ns;

	if (__builtin_expect(line->scale != 0, 1))
		return line->last.mono_ns + (uint64_t)weft__ticks_ns(ticks, line->scale);
	ns = (double)ticks * line->ns_per_tick; /* readings that a torn file claims; no real ones come near */
	if (ns > SPAN_MAX_NS || ns < -SPAN_MAX_NS)
		ns = ns > 0 ? SPAN_MAX_NS : -SPAN_MAX_NS;
	return line->last.mono_ns + (uint64_t)(int64_t)ns;
}

/* Whether something that is due at `due`, `pace` after the last time, may be done now, so that it need not wake
 * anybody up. */
static inline int weft__nearly_due(uint64_t now, uint64_t due, uint64_t pace)
{
	return now + pace / 4 >= due;
}

#endif
