/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of an events block, for the decoder. CALLER. The bytes are not trusted.
 *
 * Column heads come before the body in the payload, but their counts can be checked only after the prefixes were read:
 * hence two steps. A third makes rows of them, when they are wanted. */
#ifndef WEFT_SEGMENT_COLUMN_DECODE_H
#define WEFT_SEGMENT_COLUMN_DECODE_H

#include "base/bytes.h"
#include "segment/decode.h"

/* A column whose bytes were checked, and how far it was read. */
struct weft__column {
	const uint8_t *bytes; /* of the next value, in its lowest plane; or its index */
	const uint8_t *dict;  /* NULL: planes */
	uint64_t value;       /* the one before, where differences are stored */
	uint32_t n;           /* values: bytes of a plane */
	uint32_t next;        /* column of the kind, plus 1 */
	uint8_t width;
	uint8_t transform;
};

struct weft__column_reader {
	struct weft__decoded *block;
	const uint16_t *kind_index; /* kind to index into the block's kinds, plus 1 */
	struct weft__in heads;
	uint64_t n;
	const char *why; /* set on failure */
};

/* Passes over the heads in `in`. 0 or -WEFT_E_DAMAGED. */
int weft__column_heads(struct weft__column_reader *reader, struct weft__in *in);
/* Finds and checks the columns in what is left of the body, and makes the kinds of the block, whose numbers of
 * events are known, ready to give out rows. 0, -ENOMEM or -WEFT_E_DAMAGED. */
int weft__column_values(struct weft__column_reader *reader, struct weft__in body);
/* Makes the next rows of a kind that has some left. */
void weft__column_rows(struct weft__decoded *block, struct weft__decoded_kind *kind);

#endif
