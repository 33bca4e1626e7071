/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that no writer makes. */
#include "make.h"

#include "base/bytes.h"
#include "segment/format.h"
#include "weft/error.h"

/* A payload cut anywhere, or with any byte changed, is refused or gives as many events; ASan watches. */
TEST(a_payload_spoiled_anywhere_does_not_parse_or_harm)
{
	struct make_list list = {0};
	struct weft__encoder *enc = NULL;
	struct weft__decoder *dec = NULL;
	struct weft__decoded block = {0};
	struct weft__batch batch;
	struct weft__buf out = {0};
	uint64_t seed = 8, first, last;
	const char *why;
	size_t n, at;
	uint32_t i;

	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (i = 0; i < 40; i++) {
		uint64_t fields[2] = {i, make_random(&seed)};

		make_add(&list, &batch, 1, i * i * i, 3 + i % 3, fields, i % 3);
	}
	weft__batch_end(&batch, 40);
	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__decoder_open(&dec), 0);
	CHECK_EQ(weft__encoder_events(enc, &batch, &out, &first, &last), 0);
	for (n = 0; n < out.n; n++) {
		uint8_t *copy = malloc(n + 1);

		memcpy(copy, out.bytes, n);
		CHECK_EQ(weft__decoder_events(dec, copy, n, 40, &block, &why), -WEFT_E_DAMAGED);
		free(copy);
	}
	for (at = 0; at < out.n; at++) {
		for (i = 0; i < 256; i++) {
			uint8_t was = out.bytes[at];

			out.bytes[at] = (uint8_t)i;
			if (weft__decoder_events(dec, out.bytes, out.n, 40, &block, &why) == 0)
				CHECK_EQ(block.n, 40);
			out.bytes[at] = was;
		}
	}
	CHECK_EQ(weft__decoder_events(dec, out.bytes, out.n, 40, &block, &why), 0);
	CHECK_EQ(weft__decoder_events(dec, out.bytes, out.n, 41, &block, &why), -WEFT_E_DAMAGED);
	CHECK_EQ(weft__decoder_events(dec, out.bytes, out.n, BLOCK_EVENTS_MAX + 1, &block, &why), -WEFT_E_DAMAGED);
	weft__decoded_fini(&block);
	weft__decoder_close(dec);
	weft__encoder_close(enc);
	weft__buf_free(&out);
	weft__batch_fini(&batch);
	free(list.all);
}

static int decode_made(const struct weft__batch *batch)
{
	struct weft__encoder *enc = NULL;
	struct weft__decoder *dec = NULL;
	struct weft__decoded block = {0};
	struct weft__buf out = {0};
	uint64_t first, last;
	const char *why;
	int err;

	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__decoder_open(&dec), 0);
	CHECK_EQ(weft__encoder_events(enc, batch, &out, &first, &last), 0);
	err = weft__decoder_events(dec, out.bytes, out.n, (uint32_t)batch->n, &block, &why);
	weft__decoded_fini(&block);
	weft__decoder_close(dec);
	weft__encoder_close(enc);
	weft__buf_free(&out);
	return err;
}

/* Times that only a faulty writer makes. */
TEST(a_block_with_times_that_cannot_be_does_not_parse)
{
	struct weft__batch batch;
	int i;

	weft__batch_init(&batch, 2);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(weft__batch_add(&batch, 100, 4, NULL, 0), 0);
	weft__batch_end(&batch, 1);
	CHECK_EQ(decode_made(&batch), 0);
	batch.chunks[0].first_q--; /* a gap before the first event */
	CHECK_EQ(decode_made(&batch), -WEFT_E_DAMAGED);
	batch.chunks[0].first_q++;
	batch.q[1]--; /* falls: a gap of nearly 2^64 */
	CHECK_EQ(decode_made(&batch), -WEFT_E_DAMAGED);
	batch.q[1] = batch.q[2] = UINT64_MAX / 2 + 1; /* in quanta of 2 ns: one too late */
	CHECK_EQ(decode_made(&batch), -WEFT_E_DAMAGED);
	batch.q[1] = batch.q[2] = UINT64_MAX / 2;
	CHECK_EQ(decode_made(&batch), 0);
	weft__batch_fini(&batch);
}

/* Small gaps that go past the largest time, and a large one that brings it back to where it was, at every place in a
 * row. */
TEST(a_block_whose_times_overflow_does_not_parse)
{
	uint32_t n, large;

	for (n = 3; n < 10; n++) {
		for (large = 1; large <= n; large++) {
			struct weft__batch batch;
			uint32_t i;

			weft__batch_init(&batch, 1);
			CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
			for (i = 0; i < n; i++)
				CHECK_EQ(weft__batch_add(&batch, UINT64_MAX - 1, 4, NULL, 0), 0);
			weft__batch_end(&batch, 1);
			CHECK_EQ(decode_made(&batch), 0);
			for (i = 1; i < n; i++)
				batch.q[i] += 3 * i; /* falls once, from the first to the second */
			for (i = large; i < n; i++)
				batch.q[i] = UINT64_MAX - 1;
			CHECK_EQ(decode_made(&batch), large == 1 ? 0 : -WEFT_E_DAMAGED);
			weft__batch_fini(&batch);
		}
	}
}

/* Bytes of a large block changed: it is refused, or gives as many events, whatever they are; ASan watches. */
TEST(a_large_payload_spoiled_anywhere_does_not_parse_or_harm)
{
	struct weft__encoder *enc = NULL;
	struct weft__decoder *dec = NULL;
	struct weft__decoded block = {0};
	struct weft_event_view ev;
	struct weft__batch batch;
	struct weft__buf out = {0};
	uint64_t seed = 12, time = 0, first, last;
	uint32_t i, n_events = 6000, n_read = 0;
	const char *why;

	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (i = 0; i < n_events; i++) {
		uint64_t fields[6] = {i, make_random(&seed) % 300, make_random(&seed), 7, i % 3, 9};

		time += make_random(&seed) >> (30 + make_random(&seed) % 30);
		CHECK_EQ(weft__batch_add(&batch, time, 3 + i % 7, fields, i % 7), 0);
	}
	weft__batch_end(&batch, 1);
	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__decoder_open(&dec), 0);
	CHECK_EQ(weft__encoder_events(enc, &batch, &out, &first, &last), 0);
	for (i = 0; i < 600; i++) {
		size_t at = make_random(&seed) % (i % 2 ? out.n : 200);
		uint8_t was = out.bytes[at];
		uint32_t n = 0;

		out.bytes[at] ^= (uint8_t)(1 + make_random(&seed) % 255);
		if (weft__decoder_events(dec, out.bytes, out.n, n_events, &block, &why) == 0) {
			while (weft__decoded_event(&block, &ev))
				n += ev.n_fields <= WEFT_FIELDS_MAX;
			CHECK_EQ(n, n_events);
			n_read++;
		}
		out.bytes[at] = was;
	}
	CHECK(n_read > 100 && n_read < 600);
	weft__decoded_fini(&block);
	weft__decoder_close(dec);
	weft__encoder_close(enc);
	weft__buf_free(&out);
	weft__batch_fini(&batch);
}
