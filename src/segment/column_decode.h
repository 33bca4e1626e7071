/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of an events block, for the decoder. CALLER. The bytes are not trusted.
 *
 * Column heads come before the body in the payload, but their counts can be checked only after the prefixes were read:
 * hence two steps. */
#ifndef WEFT_SEGMENT_COLUMN_DECODE_H
#define WEFT_SEGMENT_COLUMN_DECODE_H

#include "base/bytes.h"
#include "segment/decode.h"

struct weft__column_reader {
	struct weft__decoded *block;
	const uint16_t *kind_index; /* kind to index into the block's kinds, plus 1 */
	struct weft__in heads;
	uint64_t n;
	const char *why; /* set on failure */
};

/* Passes over the heads in `in` and answers how many values they need in all, for one allocation. 0 or -WEFT_E_DAMAGED. */
int weft__column_heads(struct weft__column_reader *reader, struct weft__in *in, uint64_t *ret_values);
/* The values, from what is left of the body into the block's value_mem, which has room for them. 0 or -WEFT_E_DAMAGED. */
int weft__column_values(struct weft__column_reader *reader, struct weft__in body);

#endif
