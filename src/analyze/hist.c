/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/hist.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

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

int weft__hist_add(struct weft__hist *hist, uint64_t value)
{
	unsigned octave, sub;

	locate(value, &octave, &sub);
	if (!hist->octave[octave]) {
		hist->octave[octave] = weft__alloc(SUBS * sizeof(uint64_t));
		if (!hist->octave[octave])
			return -ENOMEM;
		memset(hist->octave[octave], 0, SUBS * sizeof(uint64_t));
	}
	hist->octave[octave][sub]++;
	if (hist->n == 0 || value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
	hist->n++;
	if (__builtin_add_overflow(hist->sum, value, &hist->sum))
		hist->sum = UINT64_MAX;
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

void weft__hist_fini(struct weft__hist *hist)
{
	unsigned octave;

	for (octave = 0; octave < WEFT__HIST_OCTAVES; octave++)
		weft__free(hist->octave[octave]);
	memset(hist, 0, sizeof(*hist));
}
