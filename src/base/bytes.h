/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers, varints and bounded reading. Any context. */
#ifndef WEFT_BASE_BYTES_H
#define WEFT_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weft stores little-endian numbers by copying them; this machine needs byte swaps in base/bytes.h"
#endif

static inline uint16_t get_u16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t get_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void put_u16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put_u64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

#define VARINT_MAX 10

/* Writes a varint of at most VARINT_MAX bytes; answers the end. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p++ = (uint8_t)v;
	return p;
}

/* A place in bytes that are not trusted. Reading past the end, or a varint that is too long, sets `bad`; from then
 * on everything reads as zero. */
struct weft__in {
	const uint8_t *p;
	const uint8_t *end;
	int bad;
};

static inline struct weft__in weft__in(const void *bytes, size_t n)
{
	const uint8_t *p = n ? (const uint8_t *)bytes : (const uint8_t *)""; /* nothing may be NULL, which has no end */
	struct weft__in in = {p, p + n, 0};

	return in;
}

static inline size_t in_left(const struct weft__in *in)
{
	return (size_t)(in->end - in->p);
}

static inline uint64_t in_fail(struct weft__in *in)
{
	in->bad = 1;
	in->p = in->end;
	return 0;
}

static inline uint64_t in_varint(struct weft__in *in)
{
	uint64_t v = 0;
	int shift;

	for (shift = 0; shift < 64 && in->p < in->end; shift += 7) {
		uint8_t b = *in->p++;

		if (shift == 63 && b > 1)
			break;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
	return in_fail(in);
}

/* A varint that has to fit 32 bits. */
static inline uint32_t in_u32(struct weft__in *in)
{
	uint64_t v = in_varint(in);

	return (uint32_t)(v <= UINT32_MAX ? v : in_fail(in));
}

static inline uint8_t in_u8(struct weft__in *in)
{
	return in->p < in->end ? *in->p++ : (uint8_t)in_fail(in);
}

/* The next n bytes, or NULL. */
static inline const uint8_t *in_bytes(struct weft__in *in, uint64_t n)
{
	const uint8_t *p = in->p;

	if (n > in_left(in)) {
		in_fail(in);
		return NULL;
	}
	in->p += n;
	return p;
}

/* A signed LEB128 number, as DWARF has them; bits beyond 64 are dropped. */
static inline int64_t in_sleb(struct weft__in *in)
{
	uint64_t v = 0;
	uint32_t shift = 0;
	uint8_t b;

	do {
		b = in_u8(in);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !in->bad);
	if (shift < 64 && b & 0x40)
		v |= ~UINT64_C(0) << shift;
	return (int64_t)v;
}

#endif
