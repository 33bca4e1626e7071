/* SPDX-License-Identifier: Apache-2.0 */
/* Writing protobuf, as far as profiles need it. Fields that are 0 or empty are left out, as proto3 does. A message
 * within a message gets its length when it ends: one byte is kept for it, and a longer one is moved by what its length
 * needs more. Nearly all messages of a profile are shorter than 128 bytes. docs/decisions/ says why this is written by
 * hand. Context: CALLER. */
#ifndef WEFT_EXPORT_PROTO_H
#define WEFT_EXPORT_PROTO_H

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

enum { PROTO_VARINT = 0, PROTO_I64 = 1, PROTO_LEN = 2 };

static inline void proto_tag(struct weft__buf *buf, uint32_t field, uint32_t wire)
{
	weft__buf_varint(buf, (uint64_t)field << 3 | wire);
}

/* An element of a repeated field that is not packed, or a value that counts even when it is 0. */
static inline void proto_put_u64(struct weft__buf *buf, uint32_t field, uint64_t v)
{
	proto_tag(buf, field, PROTO_VARINT);
	weft__buf_varint(buf, v);
}

static inline void proto_u64(struct weft__buf *buf, uint32_t field, uint64_t v)
{
	if (v)
		proto_put_u64(buf, field, v);
}

static inline void proto_i64(struct weft__buf *buf, uint32_t field, int64_t v)
{
	proto_u64(buf, field, (uint64_t)v);
}

static inline void proto_fixed64(struct weft__buf *buf, uint32_t field, uint64_t v)
{
	uint8_t bytes[8];

	if (!v)
		return;
	put_u64(bytes, v);
	proto_tag(buf, field, PROTO_I64);
	weft__buf_put(buf, bytes, sizeof(bytes));
}

/* Also when it is empty: an element of a repeated field. */
static inline void proto_put_bytes(struct weft__buf *buf, uint32_t field, const void *bytes, size_t n)
{
	proto_tag(buf, field, PROTO_LEN);
	weft__buf_varint(buf, n);
	weft__buf_put(buf, bytes, n);
}

static inline void proto_text(struct weft__buf *buf, uint32_t field, const char *text)
{
	if (text && text[0])
		proto_put_bytes(buf, field, text, strlen(text));
}

/* A message or a packed field. Answers what `end` wants. */
static inline size_t proto_begin(struct weft__buf *buf, uint32_t field)
{
	proto_tag(buf, field, PROTO_LEN);
	weft__buf_u8(buf, 0);
	return buf->n;
}

static inline void proto_end(struct weft__buf *buf, size_t begin)
{
	size_t n = buf->n - begin, more;
	uint8_t length[VARINT_MAX];

	if (buf->oom)
		return;
	more = (size_t)(put_varint(length, n) - length) - 1;
	if (more) {
		if (!weft__buf_room(buf, more))
			return;
		memmove(buf->bytes + begin + more, buf->bytes + begin, n);
		buf->n += more;
	}
	memcpy(buf->bytes + begin - 1, length, more + 1);
}

#endif
