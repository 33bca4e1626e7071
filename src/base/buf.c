/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

void weft__buf_free(struct weft__buf *buf)
{
	weft__free(buf->bytes);
	memset(buf, 0, sizeof(*buf));
}

void weft__buf_clear(struct weft__buf *buf)
{
	buf->n = 0;
	buf->oom = 0;
}

uint8_t *weft__buf_room(struct weft__buf *buf, size_t bytes)
{
	size_t cap = buf->cap ? buf->cap : 256;
	uint8_t *moved;

	if (buf->oom)
		return NULL;
	if (buf->bytes && buf->cap - buf->n >= bytes)
		return buf->bytes + buf->n;
	while (cap - buf->n < bytes && cap <= SIZE_MAX / 2)
		cap *= 2;
	moved = cap - buf->n < bytes ? NULL : weft__realloc(buf->bytes, cap);
	if (!moved) {
		buf->oom = 1;
		return NULL;
	}
	buf->bytes = moved;
	buf->cap = cap;
	return buf->bytes + buf->n;
}

void weft__buf_put(struct weft__buf *buf, const void *bytes, size_t n)
{
	uint8_t *room = weft__buf_room(buf, n);

	if (!room || !n)
		return;
	memcpy(room, bytes, n);
	buf->n += n;
}

void weft__buf_u8(struct weft__buf *buf, uint8_t v)
{
	weft__buf_put(buf, &v, 1);
}

void weft__buf_varint(struct weft__buf *buf, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	weft__buf_put(buf, bytes, (size_t)(put_varint(bytes, v) - bytes));
}

void weft__buf_text_n(struct weft__buf *buf, const char *text, size_t n)
{
	weft__buf_varint(buf, n);
	weft__buf_put(buf, text, n);
}

void weft__buf_text(struct weft__buf *buf, const char *text)
{
	weft__buf_text_n(buf, text, strlen(text));
}
