/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: events of some threads, gathered into columns, that become one events block. COLLECTOR, and CALLER in
 * recovery.
 *
 * The arrays are as the encoder wants them: times and kinds of all events in order, and per kind one array for each
 * field. A batch is made once and reused; it grows to the largest block and stays there. */
#ifndef WEFT_SEGMENT_BATCH_H
#define WEFT_SEGMENT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "segment/format.h"
#include "weft/define.h"

#define KIND_LIMIT 4096   /* kinds are below this */
#define PREFIX_BODY_MAX 4 /* of one event in the body: prefix and escape */

struct weft__chunk {
	uint32_t stream;
	uint32_t n_events;
	uint32_t ring;
	uint64_t n_slots;
	uint64_t first_slot;
	uint64_t first_q;
};

struct weft__kind_rows {
	uint16_t kind;
	uint16_t n_fields;
	size_t n;
	size_t cap;
	uint64_t *field[WEFT_FIELDS_MAX];
};

struct weft__batch {
	uint32_t quantum_ns;
	uint32_t shift; /* log2 of it */
	size_t n;
	size_t cap;
	uint64_t *q;   /* time of each event, in quanta */
	uint8_t *kind; /* of each event: index into rows */
	struct weft__chunk *chunks;
	size_t n_chunks;
	size_t chunks_cap;
	struct weft__kind_rows *rows;
	size_t n_rows;
	size_t rows_cap;
	uint8_t row_of[KIND_LIMIT]; /* kind to index into rows, plus 1 */
	uint64_t last_q;            /* in the open chunk */
	size_t body_most;           /* the body can become no larger than this */
	uint64_t moves;             /* how often an array moved or was added */
};

/* `quantum_ns` is a power of two. */
void weft__batch_init(struct weft__batch *batch, uint32_t quantum_ns);
void weft__batch_fini(struct weft__batch *batch);
/* Empties it; memory stays. */
void weft__batch_clear(struct weft__batch *batch);

/* Events are added between begin and end, each chunk those of one stream. An event that is older than the one before
 * it in the chunk gets that one's time: a thread's events keep the order in which it emitted them. Both answer 0 or
 * -ENOMEM; after that the batch holds what it had before. -EOVERFLOW: more events, bytes or kinds than a block can
 * have. */
int weft__batch_begin(struct weft__batch *batch, uint32_t stream, uint32_t ring, uint64_t first_slot,
		      uint64_t not_before_ns);
int weft__batch_add(struct weft__batch *batch, uint64_t time_ns, uint32_t kind, const uint64_t *fields,
		    uint32_t n_fields);
/* Room for `n` more events in the open chunk, for a caller that stores them into the arrays by itself and then says
 * with weft__batch_added how many there were. 0: there is none, or the chunk is still empty; weft__batch_add has to
 * do. What was found stays good for `n` events, however they are added, until `moves` changes. */
int weft__batch_room(struct weft__batch *batch, size_t n);
/* The rows of a kind with room for `n` more; NULL: the kind has none yet, not `n_fields` of at most two, or no
 * memory. */
struct weft__kind_rows *weft__batch_rows(struct weft__batch *batch, uint32_t kind, uint32_t n_fields, size_t n);
void weft__batch_added(struct weft__batch *batch, size_t n, uint64_t last_q);
/* Drops the chunk when it is empty. */
void weft__batch_end(struct weft__batch *batch, uint64_t n_slots);

/* The time of the last event of the open chunk, ns. */
static inline uint64_t weft__batch_last_ns(const struct weft__batch *batch)
{
	return batch->last_q << batch->shift;
}

struct weft__encoder;

/* -ENOMEM or 0. */
int weft__encoder_open(struct weft__encoder **ret, int level);
void weft__encoder_close(struct weft__encoder *enc);

/* Writes the payload of an events block for the batch into `out` (cleared first), and its first and last time.
 * 0, -ENOMEM or -WEFT_E_CODEC. */
int weft__encoder_events(struct weft__encoder *enc, const struct weft__batch *batch, struct weft__buf *out,
			 uint64_t *first_ns, uint64_t *last_ns);

/* Compresses `in` as one frame into `out` (cleared first) when that makes it smaller: 1, else 0; or a negative
 * error. */
int weft__encoder_squeeze(struct weft__encoder *enc, const struct weft__buf *in, struct weft__buf *out);

#endif
