/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to events to a block to events: all must be as they were. The input is read as a little program: each
 * command byte begins a chunk or adds an event, with gap and values of as many bytes as it says. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "segment/batch.h"
#include "segment/decode.h"

#define HOLDS(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			abort();                                                                                       \
	} while (0)
#define EVENTS 4096

struct made {
	uint64_t time_ns, fields[WEFT_FIELDS_MAX];
	uint32_t kind, n_fields, stream;
};

static struct made made[EVENTS];
static size_t n_made;

static uint64_t number(struct weft__in *in, uint32_t bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | in_u8(in);
	return v;
}

static void add(struct weft__batch *batch, struct weft__in *in, uint8_t command, uint64_t *time_ns, uint32_t stream)
{
	uint64_t gap = number(in, command & 7), kind = 1 + in_u8(in);
	struct made *one = &made[n_made];
	uint32_t f;
	int err;

	gap <<= command >> 3 & 1 ? 8 : 0;
	*time_ns = *time_ns + gap < *time_ns ? UINT64_MAX : *time_ns + gap;
	kind += command & 0x20 ? 3000 : 0;
	one->kind = (uint32_t)kind;
	one->n_fields = (uint32_t)kind % (WEFT_FIELDS_MAX + 1);
	one->stream = stream;
	one->time_ns = *time_ns >> batch->shift << batch->shift;
	for (f = 0; f < one->n_fields; f++)
		one->fields[f] = number(in, in_u8(in) % 9);
	err = weft__batch_add(batch, *time_ns, one->kind, one->fields, one->n_fields);
	HOLDS(err == 0 || n_made >= 255); /* more kinds than a block can have */
	n_made += !err;
}

static void build(struct weft__batch *batch, struct weft__in *in)
{
	uint64_t time_ns = 0;
	uint32_t stream = 0;

	HOLDS(weft__batch_begin(batch, stream, 0, 0, 0) == 0);
	while (in_left(in) && n_made < EVENTS) {
		uint8_t command = in_u8(in);

		if (command & 0x80) {
			weft__batch_end(batch, 1);
			stream = in_u8(in);
			time_ns = number(in, command & 7);
			HOLDS(weft__batch_begin(batch, stream, command, time_ns, 0) == 0);
		} else {
			add(batch, in, command, &time_ns, stream);
		}
	}
	weft__batch_end(batch, 1);
}

static void compare(struct weft__decoded *block)
{
	struct weft_event_view ev;
	size_t i;

	for (i = 0; weft__decoded_event(block, &ev); i++)
		HOLDS(i < n_made && ev.time_ns == made[i].time_ns && ev.kind == made[i].kind &&
		      ev.n_fields == made[i].n_fields && ev.thread == made[i].stream &&
		      !memcmp(ev.fields, made[i].fields, ev.n_fields * sizeof(ev.fields[0])));
	HOLDS(i == n_made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct weft__encoder *encoder;
	static struct weft__decoder *decoder;
	static struct weft__decoded block;
	static struct weft__batch batch;
	static struct weft__buf out;
	struct weft__in in = weft__in(data, size);
	uint64_t first, last;
	const char *why;

	if (!encoder) {
		HOLDS(weft__encoder_open(&encoder, 1) == 0 && weft__decoder_open(&decoder) == 0);
	}
	weft__batch_fini(&batch);
	weft__batch_init(&batch, 1u << (in_u8(&in) & 7));
	n_made = 0;
	build(&batch, &in);
	HOLDS(weft__encoder_events(encoder, &batch, &out, &first, &last) == 0);
	HOLDS(weft__decoder_events(decoder, out.bytes, out.n, (uint32_t)n_made, &block, &why) == 0);
	HOLDS(block.first_ns == first && block.last_ns == last);
	compare(&block);
	return 0;
}
