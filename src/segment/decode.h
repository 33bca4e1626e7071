/* SPDX-License-Identifier: Apache-2.0 */
/* Events blocks back to events. CALLER. The bytes are not trusted.
 *
 * A block is decoded in two steps. weft__decoder_events checks all of it and keeps the times. Then events are made
 * one by one, the values of their columns some rows at a time: so what is touched for one event is little, and stays
 * near the CPU. */
#ifndef WEFT_SEGMENT_DECODE_H
#define WEFT_SEGMENT_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "segment/batch.h"
#include "segment/event.h"
#include "weft/segment.h"

/* One kind in a block. Its rows are made some at a time, from its columns. */
struct weft__decoded_kind {
	const uint64_t *next, *end; /* rows that are made and not given out yet, RECORD_FIELDS words each */
	uint16_t kind;
	uint16_t n_fields;
	uint32_t n;                    /* rows in all, */
	uint32_t n_made;               /* and so far */
	uint32_t is_varied;            /* not all rows are equal */
	uint32_t first_column, column; /* the first and the last, plus 1 */
	uint64_t *rows;                /* where they are made */
	const uint64_t *wide; /* all fields of all rows, where there are more than RECORD_FIELDS; none are made then */
};

struct weft__column;

/* What the prefix of an event says besides its time. */
struct weft__prefix {
	uint64_t head; /* kind and n_fields where struct weft__record has them */
	struct weft__decoded_kind *kind;
};

struct weft__decoded {
	uint32_t n;
	uint32_t n_chunks;
	uint32_t n_kinds;
	uint32_t quantum_ns;
	uint64_t first_ns, last_ns; /* smallest and largest time; 0 and 0 when there are no events */
	struct weft__chunk *chunks;
	uint64_t *time; /* ns, of each event */
	struct weft__decoded_kind *kinds;
	struct weft__column *columns;
	const uint8_t *prefix;
	struct weft__prefix symbols[SYMBOLS_MAX];
	/* where reading has come to */
	uint32_t at, chunk_end; /* event, and the end of its chunk */
	uint32_t thread;        /* of the chunk */
	uint32_t chunk;         /* chunks that were begun */
	uint32_t n_escaped;
	/* what the above point into; the kinds of escapes are u16 */
	struct weft__buf chunk_mem, time_mem, kinds_mem, column_mem, row_mem, wide_mem, body, escaped;
};

void weft__decoded_fini(struct weft__decoded *block);
/* What a prefix stands for: the index of a kind, or ESCAPED. */
void weft__decoded_symbol(struct weft__decoded *block, uint32_t prefix, uint32_t index);
#define ESCAPED UINT32_MAX
/* Bytes of memory that it holds. */
size_t weft__decoded_bytes(const struct weft__decoded *block);

/* To the first event of the next chunk, when `at` is `chunk_end`; after decoding too. 0 at the end of the block. */
int weft__decoded_chunk(struct weft__decoded *block);
/* The next event, when weft__decoded_quick does not do it. Answers how many fields it has. */
uint32_t weft__decoded_rare(struct weft__decoded *block, void *to);

/* The next event of the chunk, which must have one, into a struct weft__record or weft_event_view: 1, and `at` is
 * one on. Or 0: weft__decoded_rare has to do it. Two fields are copied always, since which kind comes next cannot be
 * predicted. */
static inline int weft__decoded_quick(struct weft__decoded *block, void *to)
{
	uint32_t at = block->at;
	const struct weft__prefix *prefix = &block->symbols[block->prefix[at]];
	struct weft__decoded_kind *kind = prefix->kind;
	const uint64_t *row = kind->next;
	uint64_t head = prefix->head | block->thread;

	memcpy(to, &block->time[at], 8); /* here, lest a compiler joins it with the head into one slower store */
	if (__builtin_expect(row == kind->end, 0))
		return 0;
	block->at = at + 1;
	kind->next = row + RECORD_FIELDS;
	memcpy((uint8_t *)to + 8, &head, 8);
	memcpy((uint8_t *)to + 16, row, RECORD_FIELDS * 8);
	return 1;
}

/* The fields of an event that has more of them than a record, from their address there. A constant number of them is
 * copied faster. */
static inline void weft__record_wide(uint64_t address, struct weft_event_view *ev)
{
	memcpy(ev->fields, (const void *)(uintptr_t)address, sizeof(ev->fields));
}

/* The next event of the block, whole: 1, or 0 when there is none left. */
int weft__decoded_event(struct weft__decoded *block, struct weft_event_view *ev);

struct weft__decoder;
int weft__decoder_open(struct weft__decoder **ret);
void weft__decoder_close(struct weft__decoder *dec);

/* Decodes the payload of an events block whose header counts `n_events`. 0; -ENOMEM; -WEFT_E_DAMAGED with what is
 * wrong in `*why`. The payload is not needed any more then. */
int weft__decoder_events(struct weft__decoder *dec, const uint8_t *payload, size_t n, uint32_t n_events,
			 struct weft__decoded *block, const char **why);

/* Decompresses the one frame that `bytes` is, which says its size, at most `max`, into `out` (cleared first). */
int weft__decoder_expand(struct weft__decoder *dec, const uint8_t *bytes, size_t n, size_t max, struct weft__buf *out);

/* Room for `bytes` in an emptied buffer: nothing of what it held is kept. */
void *weft__decode_room(struct weft__buf *buf, size_t bytes);

#endif
