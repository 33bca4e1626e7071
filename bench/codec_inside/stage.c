/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_inside/stage.h"

#include "bench.h"

#define DRAIN_SLOTS 2048 /* a ring that is half full is drained, and all others with it */

/* What a thread has emitted since the last drain. */
struct stream {
	uint32_t id;
	uint32_t n;
	uint64_t first_slot;
	uint64_t n_events;
	struct weft_slot slots[DRAIN_SLOTS + EVENT_SLOTS_MAX];
};

struct reading {
	struct stage *stage;
	struct stream *streams;
	uint32_t n_streams;
};

static struct image *new_image(struct stage *stage)
{
	struct image *image;

	stage->images = realloc(stage->images, (stage->n_images + 1) * sizeof(*stage->images));
	if (!stage->images)
		abort();
	image = &stage->images[stage->n_images++];
	*image = (struct image){.bytes = calloc(1, STAGING_BYTES)};
	if (!image->bytes)
		abort();
	return image;
}

static void put_run(struct stage *stage, uint32_t ring, struct stream *stream)
{
	struct image *image = stage->n_images ? &stage->images[stage->n_images - 1] : new_image(stage);
	struct staged_run run = {RUN_EVENTS, stream->n, ring, stream->id, stream->first_slot};
	size_t bytes = sizeof(run) + stream->n * sizeof(struct weft_slot);

	if (!stream->n)
		return;
	if (image->used + bytes > STAGING_BYTES)
		image = new_image(stage);
	memcpy(image->bytes + image->used, &run, sizeof(run));
	memcpy(image->bytes + image->used + sizeof(run), stream->slots, bytes - sizeof(run));
	image->used += bytes;
	image->n_events += stream->n_events;
	stage->n_events += stream->n_events;
	stage->n_slots += stream->n;
	stream->first_slot += stream->n;
	stream->n = 0;
	stream->n_events = 0;
}

static void drain(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->n_streams; i++)
		put_run(reading->stage, i, &reading->streams[i]);
}

static struct stream *stream_of(struct reading *reading, uint32_t id)
{
	struct stream *stream;

	for (uint32_t i = 0; i < reading->n_streams; i++)
		if (reading->streams[i].id == id)
			return &reading->streams[i];
	reading->streams = realloc(reading->streams, (reading->n_streams + 1) * sizeof(*reading->streams));
	if (!reading->streams)
		abort();
	stream = &reading->streams[reading->n_streams++];
	memset(stream, 0, sizeof(*stream));
	stream->id = id;
	return stream;
}

/* An event back to its slots. Returns how many; 0: left out, because it means something only in its own process. */
static uint32_t pack(const struct weft_event_view *ev, struct weft_slot *slots)
{
	memset(slots, 0, EVENT_SLOTS_MAX * sizeof(*slots));
	slots[0].w0 = ev->time_ns << 8 | (ev->kind < WEFT_KIND_USER ? ev->kind : WEFT_KIND_USER);
	switch (ev->kind) {
	case WEFT_KIND_WORKER:
		return 0;
	case WEFT_KIND_POLL_BEGIN:
	case WEFT_KIND_POLL_NEXT:
	case WEFT_KIND_SPAWN:
	case WEFT_KIND_WAKE:
	case WEFT_KIND_QUEUE:
		slots[0].w1 = ev->fields[0] | ev->fields[1] << WEFT_TASK_BITS;
		return 1;
	case WEFT_KIND_SCHED:
		slots[0].w1 = ev->fields[0];
		slots[1].w0 = ev->fields[1];
		return 2;
	default:
		break;
	}
	if (ev->kind < WEFT_KIND_USER) {
		slots[0].w1 = ev->n_fields ? ev->fields[0] : 0;
		return event_slots(slots);
	}
	slots[0].w1 = ev->kind | (uint64_t)ev->n_fields << 32;
	memcpy(&slots[1], ev->fields, ev->n_fields * sizeof(ev->fields[0]));
	return event_slots(slots);
}

/* The collector asks how many fields an event of the program's own has. Kinds get their numbers in order. */
static void define_kinds(const struct weft_segment *seg)
{
	size_t n;
	const struct weft_kind_def *kinds = weft_segment_kinds(seg, &n);

	for (size_t i = 0; i < n; i++)
		if (kinds[i].id >= WEFT_KIND_USER)
			weft_event_define(kinds[i].name, kinds[i].fields, kinds[i].n_fields, NULL);
}

struct stage stage_read(const void *segment, size_t n_bytes)
{
	struct stage stage = {0};
	struct reading reading = {.stage = &stage};
	struct weft_event_view ev;
	struct weft_segment *seg;
	struct weft_cursor *cursor;
	struct weft_error err;

	bench_check(weft_segment_open_memory(&seg, segment, n_bytes, &err), &err);
	define_kinds(seg);
	bench_check(weft_cursor_open(&cursor, seg, WEFT_ORDER_TIME, 0, UINT64_MAX, &err), &err);
	while (weft_cursor_next(cursor, &ev) == 1) {
		struct stream *stream = stream_of(&reading, ev.thread);
		uint32_t n = pack(&ev, &stream->slots[stream->n]);

		stream->n += n;
		stream->n_events += n > 0;
		stage.first_ns = stage.first_ns ? stage.first_ns : ev.time_ns;
		stage.last_ns = ev.time_ns;
		if (stream->n >= DRAIN_SLOTS)
			drain(&reading);
	}
	drain(&reading);
	stage.n_rings = reading.n_streams;
	weft_cursor_close(cursor);
	weft_segment_close(seg);
	free(reading.streams);
	return stage;
}
