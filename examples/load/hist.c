/* SPDX-License-Identifier: Apache-2.0 */
#include "hist.h"

/* Values below 64 have a bucket each; above, the top bit says which power of two and the next six bits which bucket. */
static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift;

	if (value < (1u << HIST_SUB_BITS))
		return (uint32_t)value;
	shift = 63u - (uint32_t)__builtin_clzll(value) - HIST_SUB_BITS;
	return ((shift + 1) << HIST_SUB_BITS) + (uint32_t)((value >> shift) & ((1u << HIST_SUB_BITS) - 1));
}

static uint64_t bucket_top(uint32_t bucket)
{
	uint32_t shift = bucket >> HIST_SUB_BITS;
	uint64_t low = bucket & ((1u << HIST_SUB_BITS) - 1);

	if (shift == 0)
		return low;
	return ((low + (1u << HIST_SUB_BITS) + 1) << (shift - 1)) - 1;
}

void hist_add(struct hist *hist, uint64_t value)
{
	hist->count++;
	hist->buckets[bucket_of(value)]++;
	if (value > hist->max)
		hist->max = value;
}

uint64_t hist_quantile(const struct hist *hist, double share)
{
	uint64_t rank = (uint64_t)(share * (double)hist->count);
	uint64_t seen = 0;
	uint32_t i;

	for (i = 0; i < HIST_BUCKETS; i++) {
		seen += hist->buckets[i];
		if (seen > rank)
			return bucket_top(i) < hist->max ? bucket_top(i) : hist->max;
	}
	return hist->max;
}

void hist_write(const struct hist *hist, FILE *file)
{
	const char *between = "";
	uint32_t i;

	putc('[', file);
	for (i = 0; i < HIST_BUCKETS; i++) {
		if (!hist->buckets[i])
			continue;
		fprintf(file, "%s[%u, %llu]", between, i, (unsigned long long)hist->buckets[i]);
		between = ", ";
	}
	putc(']', file);
}
