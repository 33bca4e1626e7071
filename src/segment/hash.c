/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t weft__hash(const void *bytes, size_t n)
{
	return XXH64(bytes, n, 0);
}

uint64_t weft__hash2(const void *a, size_t n_a, const void *b, size_t n_b)
{
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	XXH64_update(&state, a, n_a);
	if (n_b)
		XXH64_update(&state, b, n_b);
	return XXH64_digest(&state);
}
