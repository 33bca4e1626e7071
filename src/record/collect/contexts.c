/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/contexts.h"

#include <errno.h>
#include <string.h>

#include "record/collect/collector.h"
#include "record/collect/unpack.h"

static const struct weft__chunk *open_chunk(const struct weft__collector *c)
{
	return &c->batch->chunks[c->batch->n_chunks - 1];
}

static struct ring_page *context_page(const struct weft__collector *c, uint32_t ring)
{
	return ring_page_at(c->region->map, ring);
}

int weft__contexts_begin(struct weft__collector *c, const struct weft_slot *slots)
{
	const struct weft__chunk *chunk = open_chunk(c);
	struct weft__ring_note *note = &c->notes[chunk->ring];
	int err;

	if (note->context_flush != c->n_flushes) {
		note->context_flush = c->n_flushes;
		note->context = context_page(c, chunk->ring)->context;
	}
	if (note->context.stream != chunk->stream)
		note->context = (struct ring_context){.stream = chunk->stream};
	if (note->context.segment == c->segments.sequence + 1)
		return 0;
	note->context.segment = c->segments.sequence + 1;
	if (!ring_context_any(&note->context))
		return 0;
	err = weft__batch_add(c->batch, weft__slot_ns(&c->timeline, slots), WEFT_KIND_CONTEXT, note->context.fields,
			      CONTEXT_FIELDS);
	return err == -EOVERFLOW ? 0 : err;
}

void weft__contexts_saw(struct weft__collector *c, const uint64_t *fields)
{
	memcpy(c->notes[open_chunk(c)->ring].context.fields, fields, CONTEXT_FIELDS * sizeof(*fields));
}

void weft__contexts_settle(struct weft__collector *c, int written)
{
	size_t i;

	for (i = 0; written && i < c->batch->n_chunks; i++) {
		uint32_t ring = c->batch->chunks[i].ring;

		if (ring < c->region->head->max_rings) /* else it is none of a thread's */
			context_page(c, ring)->context = c->notes[ring].context;
	}
	c->n_flushes++;
}
