/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of protobuf against bytes that its specification gives. */
#include "export/proto.h"

#include "weft_test.h"

static void check_bytes(const struct weft__buf *buf, const char *bytes, size_t n)
{
	CHECK_EQ(buf->n, n);
	CHECK(buf->n == n && memcmp(buf->bytes, bytes, n) == 0);
}
#define CHECK_BYTES(buf, text) check_bytes(buf, text, sizeof(text) - 1)

TEST(numbers_texts_and_messages_are_as_the_specification_has_them)
{
	struct weft__buf buf = {0};
	size_t begin;

	proto_u64(&buf, 1, 150);
	CHECK_BYTES(&buf, "\x08\x96\x01");
	weft__buf_clear(&buf);
	proto_text(&buf, 2, "testing");
	CHECK_BYTES(&buf, "\x12\x07testing");
	weft__buf_clear(&buf);
	begin = proto_begin(&buf, 3);
	proto_u64(&buf, 1, 150);
	proto_end(&buf, begin);
	CHECK_BYTES(&buf, "\x1a\x03\x08\x96\x01");
	weft__buf_clear(&buf);
	proto_i64(&buf, 1, -1);
	CHECK_BYTES(&buf, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	weft__buf_clear(&buf);
	proto_fixed64(&buf, 16, 0x0102030405060708);
	CHECK_BYTES(&buf, "\x81\x01\x08\x07\x06\x05\x04\x03\x02\x01");
	weft__buf_free(&buf);
}

TEST(what_is_zero_is_left_out_but_for_elements_of_lists)
{
	struct weft__buf buf = {0};

	proto_u64(&buf, 1, 0);
	proto_fixed64(&buf, 1, 0);
	proto_text(&buf, 1, "");
	proto_text(&buf, 1, NULL);
	CHECK_EQ(buf.n, 0);
	proto_put_u64(&buf, 1, 0);
	proto_put_bytes(&buf, 2, "", 0);
	CHECK_BYTES(&buf, "\x08\x00\x12\x00");
	weft__buf_free(&buf);
}

/* At these lengths the length itself gets a byte longer. */
TEST(messages_of_all_lengths_have_theirs_in_front)
{
	static const size_t lengths[] = {0, 1, 126, 127, 128, 129, 16383, 16384, 2097151, 2097152};
	size_t i, k;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct weft__buf buf = {0};
		struct weft__in in;
		const uint8_t *body;
		size_t outer = proto_begin(&buf, 1), inner = proto_begin(&buf, 2);

		for (k = 0; k < lengths[i]; k++)
			weft__buf_u8(&buf, (uint8_t)k);
		proto_end(&buf, inner);
		proto_end(&buf, outer);
		in = weft__in(buf.bytes, buf.n);
		CHECK_EQ(in_varint(&in), 1 << 3 | PROTO_LEN);
		k = in_varint(&in);
		CHECK_EQ(k, in_left(&in));
		CHECK_EQ(in_varint(&in), 2 << 3 | PROTO_LEN);
		CHECK_EQ(in_varint(&in), lengths[i]);
		CHECK_EQ(in_left(&in), lengths[i]);
		body = in_bytes(&in, lengths[i]);
		for (k = 0; body && k < lengths[i]; k++)
			if (body[k] != (uint8_t)k)
				break;
		CHECK_EQ(k, lengths[i]);
		weft__buf_free(&buf);
	}
}
