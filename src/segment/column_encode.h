/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of an events block, for the encoder: which form each field of a kind takes, and its bytes. COLLECTOR, and
 * CALLER in recovery. */
#ifndef WEFT_SEGMENT_COLUMN_ENCODE_H
#define WEFT_SEGMENT_COLUMN_ENCODE_H

#include "base/buf.h"
#include "segment/batch.h"
#include "segment/format.h"

/* A body that grows, and where its sections end: each may be compressed with statistics of its own. */
struct weft__body {
	struct weft__buf bytes;
	struct weft__buf cuts; /* u32 offsets */
};

static inline void weft__body_cut(struct weft__body *body)
{
	uint32_t end = (uint32_t)body->bytes.n;

	weft__buf_put(&body->cuts, &end, sizeof(end));
}

#define DISTINCT_SLOTS 1024 /* hash table of the values of a column; at most DICT_MAX are used */

struct weft__dict {
	uint64_t entries[DICT_MAX];
	uint32_t n;
	uint64_t key[DISTINCT_SLOTS];
	uint16_t index[DISTINCT_SLOTS]; /* plus 1; 0: free */
};

struct weft__columns {
	struct weft__buf heads; /* their descriptions */
	uint64_t n;
	struct weft__buf deltas; /* scratch: u64 */
	struct weft__buf codes;  /* scratch: place in the dictionary of each value */
	struct weft__dict dict;
};

void weft__columns_fini(struct weft__columns *columns);
void weft__columns_clear(struct weft__columns *columns);
/* Adds a column for each field of the kind: description to `columns->heads`, bytes to `body`. 0 or -ENOMEM; the
 * buffers' own `oom` has to be looked at too. */
int weft__columns_put(struct weft__columns *columns, const struct weft__kind_rows *rows, struct weft__body *body);

#endif
