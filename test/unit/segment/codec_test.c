/* SPDX-License-Identifier: Apache-2.0 */
/* Events to a block and back. */
#include "make.h"

#include "base/bytes.h"
#include "segment/format.h"

/* One kind with one field that holds these values, an event each. */
static void check_values(const uint64_t *values, size_t n)
{
	struct make_list list = {0};
	struct weft__batch batch;
	size_t i;

	weft__batch_init(&batch, 8);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (i = 0; i < n; i++)
		make_add(&list, &batch, 1, 1000 + 16 * i, 64, &values[i], 1);
	weft__batch_end(&batch, n);
	make_check_block(&batch, &list);
	weft__batch_fini(&batch);
	free(list.all);
}

TEST(columns_of_every_width_are_decoded_as_encoded)
{
	uint64_t values[700], seed = 1;
	uint32_t width;
	size_t i;

	for (width = 1; width <= 8; width++) {
		for (i = 0; i < 700; i++)
			values[i] = make_random(&seed) >> (64 - 8 * width);
		check_values(values, 700);
		values[0] = 0;
		values[1] = UINT64_MAX >> (64 - 8 * width);
		check_values(values, 2);
		check_values(values + 1, 1);
	}
}

TEST(dictionaries_of_few_and_of_too_many)
{
	static const uint32_t sizes[] = {1, 2, 3, 255, 256, 257, 600};
	uint64_t values[5000], words[600], seed = 2;
	size_t s, i;

	for (i = 0; i < 600; i++)
		words[i] = make_random(&seed);
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (i = 0; i < 5000; i++)
			values[i] = words[i % sizes[s]];
		check_values(values, 5000);
	}
}

TEST(columns_of_differences_are_decoded_as_encoded)
{
	uint64_t values[3000], seed = 3;
	size_t i;

	for (i = 0; i < 3000; i++) /* equal differences from the first on */
		values[i] = (i + 1) * UINT64_C(0x123456789abcdef);
	check_values(values, 3000);
	for (i = 0; i < 3000; i++) /* small ones, up and down, from a small value to large ones */
		values[i] = i ? values[i - 1] + make_random(&seed) % 100 + 4000 * (i < 40) : 5;
	check_values(values, 3000);
	for (i = 0; i < 3000; i++) /* few of them, at the ends of the range */
		values[i] = i % 2 ? UINT64_MAX - i / 2 : i / 2;
	check_values(values, 3000);
	for (i = 0; i < 3000; i++)
		values[i] = 0 - i * 7;
	check_values(values, 3000);
}

/* What the first differences promise, a later one breaks. */
TEST(differences_that_grow_late_are_decoded_as_encoded)
{
	static const size_t from[] = {1, 255, 256, 257, 1023, 1024, 2999};
	uint64_t values[3000];
	size_t f, i;

	for (f = 0; f < sizeof(from) / sizeof(from[0]); f++) {
		for (i = 0; i < 3000; i++) /* one byte each, the same difference until then */
			values[i] = i < from[f] ? i % 128 : i * 31 % 256;
		check_values(values, 3000);
		for (i = 0; i < 3000; i++) /* few of them, neighbours near each other until then */
			values[i] = 1000000 + i % 2 + (i < from[f] ? 0 : i % 5 * 100000);
		check_values(values, 3000);
		for (i = 0; i < 3000; i++) /* many of them */
			values[i] = (i + 1) * 3 + (i < from[f] ? 0 : i * i * UINT64_C(10000000));
		check_values(values, 3000);
	}
}

TEST(zigzag_decodes_what_it_encodes)
{
	static const uint64_t values[] = {0, 1, 2, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1};
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		CHECK_EQ(unzigzag(zigzag(values[i])), values[i]);
	CHECK_EQ(zigzag(1), 2);
	CHECK_EQ(zigzag(UINT64_MAX), 1);
}

TEST(gaps_of_every_class_are_decoded_as_encoded)
{
	struct make_list list = {0};
	struct weft__batch batch;
	uint32_t class, side;
	uint64_t fields[1] = {0};

	weft__batch_init(&batch, 1);
	for (class = 0; class <= CLASS_MAX; class ++) {
		for (side = 0; side < 2; side++) {
			uint64_t most = class_bits(class) ? (UINT64_C(1) << class_bits(class)) - 1 : 0;
			uint64_t gap = class_base(class) + side * most;

			CHECK_EQ(gap_class(gap), class);
			CHECK_EQ(gap_bits(gap), class_bits(class));
			CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
			make_add(&list, &batch, 1, UINT64_MAX - gap, 4, fields, 0);
			make_add(&list, &batch, 1, UINT64_MAX, 4, fields, 0);
			weft__batch_end(&batch, 2);
		}
	}
	make_check_block(&batch, &list);
	weft__batch_fini(&batch);
	free(list.all);
}

/* Wide gaps in a row make every offset in the mantissa. */
TEST(gaps_of_many_bits_in_a_row)
{
	struct make_list list = {0};
	struct weft__batch batch;
	uint64_t seed = 4, fields[1] = {0};
	int c, i;

	weft__batch_init(&batch, 1);
	for (c = 0; c < 200; c++) {
		uint64_t time = 0;

		CHECK_EQ(weft__batch_begin(&batch, (uint32_t)c, 0, 0, 0), 0);
		for (i = 0; i < 60; i++) {
			make_add(&list, &batch, (uint32_t)c, time, 4, fields, 0);
			time += make_random(&seed) >> (4 + make_random(&seed) % 60);
			if (time < list.all[list.n - 1].time_ns)
				break;
		}
		weft__batch_end(&batch, 1);
	}
	make_check_block(&batch, &list);
	weft__batch_fini(&batch);
	free(list.all);
}

TEST(more_pairs_of_kind_and_gap_than_symbols_are_decoded_as_encoded)
{
	struct make_list list = {0};
	struct weft__batch batch;
	uint64_t seed = 5, time = 0;
	int i;

	weft__batch_init(&batch, 8);
	CHECK_EQ(weft__batch_begin(&batch, 9, 0, 0, 0), 0);
	for (i = 0; i < 20000; i++) {
		uint64_t fields[14] = {make_random(&seed)};
		uint32_t kind = 64 + (uint32_t)(make_random(&seed) % 250);

		time += make_random(&seed) >> (34 + make_random(&seed) % 30);
		make_add(&list, &batch, 9, time, kind, fields, kind % 15);
	}
	weft__batch_end(&batch, 1);
	make_check_block(&batch, &list);
	weft__batch_fini(&batch);
	free(list.all);
}

/* 256 pairs need no escape, one more needs it. */
TEST(as_many_pairs_as_symbols)
{
	int extra, i;

	for (extra = 0; extra < 3; extra++) {
		struct make_list list = {0};
		struct weft__batch batch;
		uint64_t time = 0, fields[1] = {0};

		weft__batch_init(&batch, 1);
		CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
		for (i = 0; i < 255 + extra; i++) {
			time += i < 8 ? (uint64_t)i : (uint64_t)(i % 8);
			make_add(&list, &batch, 1, time, 64 + (uint32_t)i / 8, fields, 0);
		}
		weft__batch_end(&batch, 1);
		make_check_block(&batch, &list);
		weft__batch_fini(&batch);
		free(list.all);
	}
}

TEST(random_batches_are_decoded_as_encoded)
{
	uint64_t seed = 6;
	int round;

	for (round = 0; round < 60; round++) {
		struct make_list list = {0};
		struct weft__batch batch;
		uint32_t chunks = (uint32_t)(make_random(&seed) % 6), i, f;

		weft__batch_init(&batch, 1u << make_random(&seed) % 11);
		while (chunks--) {
			uint32_t n = (uint32_t)(make_random(&seed) % 400), stream = (uint32_t)make_random(&seed);
			uint64_t time = make_random(&seed) >> make_random(&seed) % 64;

			CHECK_EQ(weft__batch_begin(&batch, stream, 1, 2, 0), 0);
			for (i = 0; i < n && time < UINT64_MAX / 2; i++) { /* n may be 0: such a chunk is dropped */
				uint64_t fields[14];
				uint32_t kind = 1 + (uint32_t)(make_random(&seed) % 15);

				for (f = 0; f < kind % 15; f++)
					fields[f] = make_random(&seed) >> make_random(&seed) % 64;
				make_add(&list, &batch, stream, time, kind, fields, kind % 15);
				time += make_random(&seed) >> make_random(&seed) % 64 >> 8;
			}
			weft__batch_end(&batch, n);
		}
		make_check_block(&batch, &list);
		weft__batch_fini(&batch);
		free(list.all);
	}
}

TEST(no_events_and_one_event)
{
	struct make_list list = {0};
	struct weft__batch batch;
	uint64_t fields[2] = {UINT64_MAX, 0};

	weft__batch_init(&batch, 8);
	make_check_block(&batch, &list);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	weft__batch_end(&batch, 5);
	CHECK_EQ(batch.n_chunks, 0);
	make_check_block(&batch, &list);
	CHECK_EQ(weft__batch_begin(&batch, UINT32_MAX, UINT32_MAX, UINT64_MAX, 0), 0);
	make_add(&list, &batch, UINT32_MAX, UINT64_MAX, 1, fields, 2);
	weft__batch_end(&batch, 1);
	make_check_block(&batch, &list);
	weft__batch_fini(&batch);
	free(list.all);
}

TEST(time_does_not_fall_within_a_chunk)
{
	struct weft__batch batch;

	weft__batch_init(&batch, 8);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 4096), 0);
	CHECK_EQ(weft__batch_add(&batch, 1000, 4, NULL, 0), 0);
	CHECK_EQ(weft__batch_add(&batch, 8000, 4, NULL, 0), 0);
	CHECK_EQ(weft__batch_add(&batch, 7000, 4, NULL, 0), 0);
	CHECK_EQ(batch.q[0] * 8, 4096);
	CHECK_EQ(batch.q[1] * 8, 8000);
	CHECK_EQ(batch.q[2] * 8, 8000);
	CHECK_EQ(weft__batch_last_ns(&batch), 8000);
	weft__batch_fini(&batch);
}

/* What a reader refuses, a batch does not take. */
TEST(batch_ends_where_a_block_must)
{
	uint64_t fields[14] = {0}, seed = 7;
	struct weft__encoder *enc = NULL;
	struct weft__decoder *dec = NULL;
	struct weft__decoded block = {0};
	struct weft__buf out = {0};
	struct weft__batch batch;
	uint64_t first, last;
	const char *why = "";
	uint32_t kind, i;
	int err;

	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (kind = 1; kind <= 255; kind++)
		CHECK_EQ(weft__batch_add(&batch, 0, kind, fields, 1), 0);
	CHECK_EQ(weft__batch_add(&batch, 0, 256, fields, 1), -EOVERFLOW);
	CHECK_EQ(weft__batch_add(&batch, 0, KIND_LIMIT, fields, 1), -EOVERFLOW);
	CHECK_EQ(weft__batch_add(&batch, 0, 255, fields, 1), 0);
	weft__batch_fini(&batch);

	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	do {
		for (i = 0; i < 14; i++)
			fields[i] = make_random(&seed);
		err = weft__batch_add(&batch, 0, 64, fields, 14);
	} while (!err);
	CHECK_EQ(err, -EOVERFLOW);
	CHECK(batch.n > 100000);
	weft__batch_end(&batch, 1);
	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__decoder_open(&dec), 0);
	CHECK_EQ(weft__encoder_events(enc, &batch, &out, &first, &last), 0);
	if (!CHECK_EQ(weft__decoder_events(dec, out.bytes, out.n, (uint32_t)batch.n, &block, &why), 0))
		printf("\t%s\n", why);
	weft__decoded_fini(&block);
	weft__decoder_close(dec);
	weft__encoder_close(enc);
	weft__buf_free(&out);
	weft__batch_fini(&batch);
}

TEST(a_block_with_the_most_events_is_decoded_as_encoded)
{
	struct weft__batch batch;
	struct make_list list = {0};
	uint64_t none = 0, i;

	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	for (i = 0; i < BLOCK_EVENTS_MAX; i++)
		make_add(&list, &batch, 1, i * 9, 4 + i % 2, &none, 0);
	CHECK_EQ(weft__batch_add(&batch, i * 9, 4, &none, 0), -EOVERFLOW);
	weft__batch_end(&batch, 1);
	make_check_block(&batch, &list);
	weft__batch_fini(&batch);
	free(list.all);
}

static int encode_and_decode(struct weft__batch *batch)
{
	struct weft__encoder *enc = NULL;
	struct weft__decoder *dec = NULL;
	struct weft__decoded block = {0};
	struct weft__buf out = {0};
	uint64_t seed = 9, first, last;
	const char *why;
	uint32_t i;
	int err;

	err = weft__batch_begin(batch, 1, 0, 0, 0);
	for (i = 0; !err && i < 5000; i++) {
		uint64_t fields[2] = {i, make_random(&seed)};

		err = weft__batch_add(batch, 100 * i, 64 + i % 200, fields, 2);
	}
	if (!err)
		weft__batch_end(batch, 1);
	if (!err)
		err = weft__encoder_open(&enc, 1);
	if (!err)
		err = weft__encoder_events(enc, batch, &out, &first, &last);
	if (!err)
		err = weft__decoder_open(&dec);
	if (!err)
		err = weft__decoder_events(dec, out.bytes, out.n, 5000, &block, &why);
	weft__decoded_fini(&block);
	weft__decoder_close(dec);
	weft__encoder_close(enc);
	weft__buf_free(&out);
	return err;
}

TEST(out_of_memory_at_every_allocation)
{
	struct make_memory memory = {0, 0};
	struct weft_allocator allocator = {make_resize, make_release, &memory};
	long n;
	int err = -ENOMEM;

	weft_set_allocator(&allocator);
	for (n = 0; err && n < 100000; n++) {
		struct weft__batch batch;

		memory.left = n;
		weft__batch_init(&batch, 1);
		err = encode_and_decode(&batch);
		weft__batch_fini(&batch);
		CHECK_EQ(memory.live, 0);
		if (err && !CHECK_EQ(err, -ENOMEM))
			break;
	}
	CHECK_EQ(err, 0);
	CHECK(n > 20);
	weft_set_allocator(NULL);
}
