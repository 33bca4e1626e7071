/* SPDX-License-Identifier: Apache-2.0 */
/* How far the figures of samples may be from the truth: what chance does to so many, and no more. tools/test-checks
 * holds them against wrong answers. */
#ifndef WEFT_TEST_STATISTICS_H
#define WEFT_TEST_STATISTICS_H

#include <stdint.h>
#include <stdio.h>

#define STATISTICS_SIGMAS 4.5 /* once in 150,000 */

/* Whether `part` of `n` samples that fall by chance can be of what has `of` in `all` of the time. The more samples,
 * the less may differ: with 500 and two thirds it is 57 to 76 %, with 2,000 it is 62 to 71 %. */
static inline int statistics_share(uint64_t part, uint64_t n, uint64_t of, uint64_t all)
{
	double off = (double)part * (double)all - (double)n * (double)of;
	double variance = (double)n * (double)of * (double)(all - of);

	if (n && off * off <= STATISTICS_SIGMAS * STATISTICS_SIGMAS * variance)
		return 1;
	printf("\t%llu of %llu samples are not %llu in %llu\n", (unsigned long long)part, (unsigned long long)n,
	       (unsigned long long)of, (unsigned long long)all);
	return 0;
}

/* Whether `n` samples of a thread that together stand for told_ns can be those of its CPU time. They come with that
 * time: the first may be an interval early or late, and what the thread did after the last is missing. Where ticks
 * find others on the CPU, that is as long as from one sample to the next, and hardly ever six times that (1 in 400,
 * were it all by chance). So few samples say little: who calls this sees to it that there are enough. */
static inline int statistics_cover(uint64_t told_ns, uint64_t n, uint64_t used_ns, uint32_t hz)
{
	uint64_t off = told_ns > used_ns ? told_ns - used_ns : used_ns - told_ns;
	uint64_t slack = 1000000000 / hz + 6 * used_ns / (n + 1);

	if (off <= slack)
		return 1;
	printf("\t%llu samples stand for %.1f ms of %.1f\n", (unsigned long long)n, (double)told_ns / 1e6,
	       (double)used_ns / 1e6);
	return 0;
}

#endif
