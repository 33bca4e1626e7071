/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of segments: XXH64, seed 0. Any context but HOT. */
#ifndef WEFT_SEGMENT_HASH_H
#define WEFT_SEGMENT_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t weft__hash(const void *bytes, size_t n);
/* Of two pieces, one after the other. */
uint64_t weft__hash2(const void *a, size_t n_a, const void *b, size_t n_b);

#endif
