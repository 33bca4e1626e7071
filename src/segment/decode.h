/* SPDX-License-Identifier: Apache-2.0 */
/* Events blocks back to columns. CALLER. The bytes are not trusted. */
#ifndef WEFT_SEGMENT_DECODE_H
#define WEFT_SEGMENT_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "segment/batch.h"
#include "weft/segment.h"

/* One kind in a decoded block. Field f of its row r is field[f][r & step[f]]: step is 0 for a column of equal values. */
struct weft__decoded_kind {
	uint16_t kind;
	uint16_t n_fields;
	uint32_t n;
	uint64_t *field[WEFT_FIELDS_MAX];
	uint32_t step[WEFT_FIELDS_MAX];
};

struct weft__decoded {
	uint32_t n;
	uint32_t n_chunks;
	uint32_t n_kinds;
	uint32_t quantum_ns;
	uint64_t first_ns, last_ns; /* smallest and largest time; 0 and 0 when there are no events */
	struct weft__chunk *chunks;
	uint64_t *time; /* ns, of each event */
	uint16_t *kind; /* of each event: index into kinds */
	uint32_t *row;  /* of each event: row of its kind */
	struct weft__decoded_kind *kinds;
	/* what the above point into */
	struct weft__buf chunk_mem, time_mem, kind_mem, row_mem, kinds_mem, value_mem;
};

void weft__decoded_fini(struct weft__decoded *block);
/* Bytes of memory that it holds. */
size_t weft__decoded_bytes(const struct weft__decoded *block);

struct weft__decoder;
int weft__decoder_open(struct weft__decoder **ret);
void weft__decoder_close(struct weft__decoder *dec);

/* Decodes the payload of an events block whose header counts `n_events`. 0; -ENOMEM; -WEFT_E_DAMAGED with what is wrong in `*why`. */
int weft__decoder_events(struct weft__decoder *dec, const uint8_t *payload, size_t n, uint32_t n_events,
			 struct weft__decoded *block, const char **why);

/* Decompresses the one frame that `bytes` is, which says its size, at most `max`, into `out` (cleared first). */
int weft__decoder_expand(struct weft__decoder *dec, const uint8_t *bytes, size_t n, size_t max, struct weft__buf *out);

#endif
