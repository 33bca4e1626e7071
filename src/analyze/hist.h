/* SPDX-License-Identifier: Apache-2.0 */
/* Histogram of 64-bit values with buckets that grow with the value. Values below 128 have a bucket of their own;
 * above, each power of two is cut in 64, so the middle of a bucket is within 0.8 % of every value in it. Memory is
 * at most 30 KiB, and only powers of two that occur take any. Context: CALLER. */
#ifndef WEFT_ANALYZE_HIST_H
#define WEFT_ANALYZE_HIST_H

#include <stdint.h>

#include "base/arena.h"

#define WEFT__HIST_BITS 6
#define WEFT__HIST_OCTAVES (64 - WEFT__HIST_BITS + 1)

struct weft__hist {
	uint64_t n;
	uint64_t sum; /* stays at UINT64_MAX instead of overflowing */
	uint64_t min; /* exact; meaningless while n is 0 */
	uint64_t max;
	uint64_t *octave[WEFT__HIST_OCTAVES];
};

/* A zeroed histogram is ready for use. Its memory is of the arena, always the same, which needs 8-byte alignment.
 * Returns 0, or -ENOMEM with the value not counted. */
int weft__hist_add_n(struct weft__hist *hist, struct weft__arena *arena, uint64_t value,
		     uint64_t n); /* the same n times */

/* Most values are between the least and the most that were there before, in a power of two that occurred. */
static inline int weft__hist_add(struct weft__hist *hist, struct weft__arena *arena, uint64_t value)
{
	unsigned shift = value >> WEFT__HIST_BITS ? 63u - WEFT__HIST_BITS - (unsigned)__builtin_clzll(value) : 0;
	uint64_t *octave = hist->octave[value >> WEFT__HIST_BITS ? shift + 1 : 0], sum;

	if (!octave || hist->n + 1 < 2 || value < hist->min || value > hist->max ||
	    __builtin_add_overflow(hist->sum, value, &sum))
		return weft__hist_add_n(hist, arena, value, 1);
	octave[value >> shift & ((1u << WEFT__HIST_BITS) - 1)]++;
	hist->n++;
	hist->sum = sum;
	return 0;
}

/* All that is in `from` into `to`. Returns 0 or -ENOMEM. */
int weft__hist_merge(struct weft__hist *to, struct weft__arena *arena, const struct weft__hist *from);

/* The value below or at which `per_10000` ten-thousandths of all values lie (nearest rank), 0 when there are none. */
uint64_t weft__hist_at(const struct weft__hist *hist, uint32_t per_10000);

double weft__hist_mean(const struct weft__hist *hist);

#endif
