/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "codec_inside/stage.h"
#include "record/collect/collector.h"

struct collect {
	struct weft__region region;
	struct weft__collector collector;
};

struct collect *collect_new(const struct stage *stage)
{
	static const uint8_t id[16] = {1};
	struct collect *collect = calloc(1, sizeof(*collect));
	struct weft__region_want want = {
		.place = WEFT_RING_MEMORY,
		.stem = "bench",
		.service = "bench",
		.ring_slots = 4096,
		.max_rings = stage->n_rings + 1,
		.quantum_ns = 8,
		.source = WEFT__TICK_MONOTONIC,
		.recording = id,
	};
	struct weft_clock from = {stage->first_ns, stage->first_ns, stage->first_ns};
	struct weft_clock to = {stage->last_ns, stage->last_ns, stage->last_ns};
	struct weft_error err;

	if (!collect)
		abort();
	bench_check(weft__region_open(&collect->region, &want, &err), &err);
	collect->collector.region = &collect->region;
	collect->collector.segments.fd = -1;
	if (weft__collector_init(&collect->collector) < 0 || weft__encoder_open(&collect->collector.encoder, 1) < 0)
		abort();
	weft__timeline_set(&collect->collector.timeline, &from, &to);
	return collect;
}

uint64_t collect_run(struct collect *collect, const struct stage *stage, uint64_t *ret_bytes)
{
	struct weft__collector *c = &collect->collector;
	struct rings_head *head = collect->region.head;
	uint64_t before = c->stats.events;
	uint64_t ns = 0;

	for (size_t i = 0; i < stage->n_images; i++) {
		const struct image *image = &stage->images[i];
		uint64_t begin;

		memcpy(staging_half(collect->region.base, head, head->staging_now), image->bytes, image->used);
		head->staging_used[head->staging_now] = image->used;
		begin = bench_cpu_ns();
		if (weft__flush(c) < 0)
			abort();
		ns += bench_cpu_ns() - begin;
	}
	if (c->stats.events - before != stage->n_events)
		abort();
	*ret_bytes = c->segments.writer.offset;
	weft__segments_abandon(&c->segments);
	memset(c->notes, 0, (stage->n_rings + 1) * sizeof(*c->notes)); /* the next run begins at the same time again */
	return ns;
}
