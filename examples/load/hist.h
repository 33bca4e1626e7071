/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations with a fixed size and a relative error of at most 1/64: 64 buckets per power of two. */
#ifndef LOAD_HIST_H
#define LOAD_HIST_H

#include <stdint.h>
#include <stdio.h>

enum { HIST_SUB_BITS = 6, HIST_BUCKETS = (64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS };

struct hist {
	uint64_t count;
	uint64_t max;
	uint64_t buckets[HIST_BUCKETS];
};

void hist_add(struct hist *hist, uint64_t value);

/* The value that `share` (0..1) of all values do not exceed, rounded up to its bucket; 0 when there is none. */
uint64_t hist_quantile(const struct hist *hist, double share);

/* Writes what is there as pairs of a bucket's number and its count: "[[512, 3], [513, 8]]". */
void hist_write(const struct hist *hist, FILE *file);

#endif
