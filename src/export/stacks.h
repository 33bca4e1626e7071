/* SPDX-License-Identifier: Apache-2.0 */
/* The stack recorder: sums values by stack and labels, in bounded memory.
 *
 * A slot (struct weft__sums) has each stack and each set of labels once, and a row for each pair that was met. When it
 * has as many bytes as it may, what needs no new memory still goes to its row; the rest is added to `dropped`, so that
 * sums stay right and whoever encodes them can say what has no stack.
 *
 * A recorder has two slots. Adders use one; swap gives the other, emptied, to the adders and answers the full one, for
 * as long as until the next swap. The lock is held for one addition, or for the exchange of a pointer: an adder never
 * waits for an encoder. Context: CALLER; adders and the one who swaps may be different threads. Never HOT. */
#ifndef WEFT_EXPORT_STACKS_H
#define WEFT_EXPORT_STACKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/keys.h"

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
/* Forgets everything; some memory stays. */
void weft__sums_clear(struct weft__sums *sums);
/* About what it uses, and whether that is all it may. */
uint64_t weft__sums_bytes(const struct weft__sums *sums);
bool weft__sums_full(const struct weft__sums *sums);

/* Numbers of a stack and of a set of labels, WEFT__SUMS_NONE when they do not fit. 0 or -ENOMEM. */
int weft__sums_stack(struct weft__sums *sums, const uint32_t *frames, size_t n, uint32_t *ret);
int weft__sums_labels(struct weft__sums *sums, const void *labels, size_t bytes, uint32_t *ret);
/* Adds n_values values. Sums stay at the most instead of overflowing. 0 or -ENOMEM. */
int weft__sums_add(struct weft__sums *sums, uint32_t stack, uint32_t labels, const int64_t *values);

/* A stack of the slot, good until the next is added. */
static inline const uint32_t *weft__sums_frames(const struct weft__sums *sums, uint32_t stack, size_t *n)
{
	const void *frames = weft__keys_at(&sums->stacks, stack, n);

	*n /= sizeof(uint32_t);
	return frames;
}

struct weft__stack_recorder {
	pthread_mutex_t lock; /* of `active` and of that slot */
	struct weft__sums slots[2];
	unsigned active;
};

struct weft__stack_sample {
	const uint32_t *frames; /* leaf first */
	size_t n_frames;
	const void *labels;
	size_t labels_bytes;
	const int64_t *values;
};

void weft__stack_recorder_init(struct weft__stack_recorder *recorder, size_t n_values, uint64_t max_bytes);
void weft__stack_recorder_fini(struct weft__stack_recorder *recorder);
/* 0 or -ENOMEM. Any thread. */
int weft__stack_recorder_add(struct weft__stack_recorder *recorder, const struct weft__stack_sample *sample);
/* What was added since the last swap, good until the next. One thread at a time. */
const struct weft__sums *weft__stack_recorder_swap(struct weft__stack_recorder *recorder);

#endif
