/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/hist.h"

#include <errno.h>
#include <string.h>

#define SUBS (1u << WEFT__HIST_BITS)

static void locate(uint64_t value, unsigned *octave, unsigned *sub)
{
	unsigned top;

	if (value < SUBS) {
		*octave = 0;
		*sub = (unsigned)value;
		return;
	}
	top = 63u - (unsigned)__builtin_clzll(value);
	*octave = top - WEFT__HIST_BITS + 1;
	*sub = (unsigned)(value >> (top - WEFT__HIST_BITS)) & (SUBS - 1);
}

static uint64_t middle(unsigned octave, unsigned sub)
{
	unsigned shift;

	if (octave == 0)
		return sub;
	shift = octave - 1;
	return ((uint64_t)(SUBS + sub) << shift) + ((UINT64_C(1) << shift) >> 1);
}

static int octave_get(struct weft__hist *hist, struct weft__arena *arena, unsigned octave)
{
	if (hist->octave[octave])
		return 0;
	hist->octave[octave] = weft__arena_take(arena, SUBS * sizeof(uint64_t));
	if (!hist->octave[octave])
		return -ENOMEM;
	memset(hist->octave[octave], 0, SUBS * sizeof(uint64_t));
	return 0;
}

static void add_sum(struct weft__hist *hist, uint64_t value, uint64_t n)
{
	uint64_t all;

	if (__builtin_mul_overflow(value, n, &all) || __builtin_add_overflow(hist->sum, all, &hist->sum))
		hist->sum = UINT64_MAX;
}

int weft__hist_add_n(struct weft__hist *hist, struct weft__arena *arena, uint64_t value, uint64_t n)
{
	unsigned octave, sub;

	locate(value, &octave, &sub);
	if (n == 0 || n > UINT64_MAX - hist->n)
		return 0;
	if (octave_get(hist, arena, octave) < 0)
		return -ENOMEM;
	hist->octave[octave][sub] += n;
	if (hist->n == 0 || value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
	hist->n += n;
	add_sum(hist, value, n);
	return 0;
}

int weft__hist_merge(struct weft__hist *to, struct weft__arena *arena, const struct weft__hist *from)
{
	unsigned octave, sub;

	if (from->n == 0 || from->n > UINT64_MAX - to->n)
		return 0;
	for (octave = 0; octave < WEFT__HIST_OCTAVES; octave++) {
		if (!from->octave[octave])
			continue;
		if (octave_get(to, arena, octave) < 0)
			return -ENOMEM;
		for (sub = 0; sub < SUBS; sub++)
			to->octave[octave][sub] += from->octave[octave][sub];
	}
	to->min = to->n == 0 || from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
	to->n += from->n;
	add_sum(to, from->sum, 1);
	return 0;
}

uint64_t weft__hist_at(const struct weft__hist *hist, uint32_t per_10000)
{
	uint64_t rank, seen = 0;
	unsigned octave, sub;

	if (hist->n == 0)
		return 0;
	rank = (uint64_t)(((unsigned __int128)hist->n * per_10000 + 9999) / 10000);
	if (rank == 0)
		rank = 1;
	if (rank >= hist->n)
		return hist->max;
	for (octave = 0; octave < WEFT__HIST_OCTAVES; octave++) {
		if (!hist->octave[octave])
			continue;
		for (sub = 0; sub < SUBS; sub++) {
			uint64_t value;

			seen += hist->octave[octave][sub];
			if (seen < rank)
				continue;
			value = middle(octave, sub);
			return value < hist->min ? hist->min : value > hist->max ? hist->max : value;
		}
	}
	return hist->max;
}

double weft__hist_mean(const struct weft__hist *hist)
{
	return hist->n ? (double)hist->sum / (double)hist->n : 0.0;
}
