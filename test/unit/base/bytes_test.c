/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include "weft_test.h"

static uint64_t read_varint(const char *bytes, size_t n, int *bad, size_t *used)
{
	struct weft__in in = weft__in(bytes, n);
	uint64_t v = in_varint(&in);

	*bad = in.bad;
	*used = n - in_left(&in);
	return v;
}

TEST(a_varint_is_read_as_it_was_written)
{
	uint8_t bytes[VARINT_MAX];
	size_t used, n;
	int bad, bit, d;

	for (bit = 0; bit < 64; bit++) {
		for (d = -1; d <= 1; d++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)d;

			n = (size_t)(put_varint(bytes, v) - bytes);
			CHECK(n >= 1 && n <= VARINT_MAX);
			CHECK_EQ(read_varint((char *)bytes, n, &bad, &used), v);
			CHECK(!bad && used == n);
			read_varint((char *)bytes, n - 1, &bad, &used);
			CHECK(bad);
		}
	}
	CHECK_EQ(put_varint(bytes, UINT64_MAX) - bytes, 10);
	CHECK_EQ(put_varint(bytes, 127) - bytes, 1);
	CHECK_EQ(put_varint(bytes, 128) - bytes, 2);
}

TEST(varints_that_are_too_long)
{
	size_t used;
	int bad;

	CHECK_EQ(read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, &bad, &used), UINT64_MAX);
	CHECK(!bad);
	read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, &bad, &used);
	CHECK(bad);
	read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00", 11, &bad, &used);
	CHECK(bad);
	CHECK_EQ(read_varint("\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, &bad, &used), 5); /* needless zeros */
	CHECK(!bad && used == 10);
}

TEST(after_a_fault_all_is_zero)
{
	struct weft__in in = weft__in("\x05\x06\x07", 3);

	CHECK_EQ(in_u8(&in), 5);
	CHECK(in_bytes(&in, 3) == NULL);
	CHECK(in.bad);
	CHECK_EQ(in_left(&in), 0);
	CHECK_EQ(in_u8(&in), 0);
	CHECK_EQ(in_varint(&in), 0);
	CHECK(in_bytes(&in, 0) != NULL);
	in = weft__in("ab", 2);
	CHECK(in_bytes(&in, UINT64_MAX) == NULL);
}

TEST(no_bytes_may_be_given_as_null)
{
	struct weft__in in = weft__in(NULL, 0);

	CHECK_EQ(in_left(&in), 0);
	CHECK(in_bytes(&in, 0) != NULL && !in.bad);
	CHECK_EQ(in_u8(&in), 0);
	CHECK(in.bad);
}

TEST(a_varint_of_more_than_32_bits_is_refused_where_32_are_wanted)
{
	struct weft__in in = weft__in("\xff\xff\xff\xff\x0f\x80\x80\x80\x80\x10\x01", 11);

	CHECK_EQ(in_u32(&in), UINT32_MAX);
	CHECK_EQ(in_u32(&in), 0);
	CHECK(in.bad);
}

TEST(fixed_numbers_are_little_endian)
{
	uint8_t bytes[8];

	put_u64(bytes, UINT64_C(0x0807060504030201));
	CHECK_EQ(bytes[0], 1);
	CHECK_EQ(bytes[7], 8);
	CHECK_EQ(get_u64(bytes), UINT64_C(0x0807060504030201));
	CHECK_EQ(get_u32(bytes), 0x04030201);
	CHECK_EQ(get_u16(bytes + 1), 0x0302);
	put_u32(bytes, 0xaabbccdd);
	put_u16(bytes + 4, 0xeeff);
	CHECK_EQ(bytes[3], 0xaa);
	CHECK_EQ(bytes[5], 0xee);
}
