/* SPDX-License-Identifier: Apache-2.0 */
/* The stack recorder: sums values by stack and labels, in bounded memory.
 *
 * It has each stack and each set of labels once, and a row for each pair that was met. When it has as many bytes as it
 * may, what needs no new memory still goes to its row; the rest is added to `dropped`, so that sums stay right and
 * whoever encodes them can say what has no stack.
 *
 * Samplers know nothing of it: they write to the segment, which is rotated without stopping them, and reporters sum up
 * the sealed one (docs/decisions/068-profiles-of-segments.md). Context: CALLER, one thread. Never HOT. */
#ifndef WEFT_EXPORT_STACKS_H
#define WEFT_EXPORT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "package/keys.h"

#define WEFT__SUMS_VALUES_MAX 16
#define WEFT__SUMS_NONE UINT32_MAX /* as stack or labels: there was no room for them */

struct weft__sums_row {
	uint32_t stack, labels;
};

struct weft__sums {
	struct weft__keys stacks; /* of uint32_t frames, leaf first */
	struct weft__keys labels;
	struct weft__sums_row *rows;
	int64_t *values; /* n_values for each row */
	size_t n_rows, cap_rows, cap_values;
	struct weft__map row_by_key;
	size_t n_values;
	uint64_t max_bytes;
	uint64_t n_dropped; /* additions that are in no row */
	int64_t dropped[WEFT__SUMS_VALUES_MAX];
};

void weft__sums_init(struct weft__sums *sums, size_t n_values, uint64_t max_bytes);
void weft__sums_fini(struct weft__sums *sums);
/* About what it uses, and whether that is all it may. */
uint64_t weft__sums_bytes(const struct weft__sums *sums);
bool weft__sums_full(const struct weft__sums *sums);

/* Numbers of a stack and of a set of labels, WEFT__SUMS_NONE when they do not fit. 0 or -ENOMEM. */
int weft__sums_stack(struct weft__sums *sums, const uint32_t *frames, size_t n, uint32_t *ret);
int weft__sums_labels(struct weft__sums *sums, const void *labels, size_t bytes, uint32_t *ret);
/* Adds n_values values. Sums stay at the most instead of overflowing. 0 or -ENOMEM. */
int weft__sums_add(struct weft__sums *sums, uint32_t stack, uint32_t labels, const int64_t *values);

/* A stack, good until the next is added. */
static inline const uint32_t *weft__sums_frames(const struct weft__sums *sums, uint32_t stack, size_t *n)
{
	const void *frames = weft__keys_at(&sums->stacks, stack, n);

	*n /= sizeof(uint32_t);
	return frames;
}

#endif
