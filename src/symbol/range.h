/* SPDX-License-Identifier: Apache-2.0 */
/* Address ranges that may overlap, made flat: add all, seal, then look up. Where several cover an address the one
 * that was added last wins, so add what is outside before what is inside. CALLER. */
#ifndef WEFT_SYMBOL_RANGE_H
#define WEFT_SYMBOL_RANGE_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__RANGE_NONE UINT32_MAX

struct weft__range {
	uint64_t lo;
	uint64_t hi; /* not in it */
	uint32_t value;
	uint32_t order;
};

struct weft__ranges {
	struct weft__range *at; /* until sealed */
	size_t n;
	size_t cap;
	uint64_t *starts; /* when sealed: values[i] holds from starts[i] to starts[i + 1] */
	uint32_t *values;
	size_t n_starts;
};

/* Empty ranges are not an error and not kept. -ENOMEM; -E2BIG at `max` ranges. */
int weft__ranges_add(struct weft__ranges *ranges, uint64_t lo, uint64_t hi, uint32_t value, size_t max);
int weft__ranges_seal(struct weft__ranges *ranges);
uint32_t weft__ranges_find(const struct weft__ranges *ranges, uint64_t address);
void weft__ranges_fini(struct weft__ranges *ranges);

#endif
