/* SPDX-License-Identifier: Apache-2.0 */
/* A byte buffer that grows. When memory runs out it remembers so (`oom`) and takes nothing more, so that a writer
 * checks once, at the end. CALLER and COLLECTOR. */
#ifndef WEFT_BASE_BUF_H
#define WEFT_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct weft__buf {
	uint8_t *bytes;
	size_t n;
	size_t cap;
	int oom;
};

void weft__buf_free(struct weft__buf *buf);
/* Empties it and forgets that memory ran out; the memory stays. */
void weft__buf_clear(struct weft__buf *buf);
/* Room for `bytes` more at the end; answers where, or NULL. `n` does not change. */
uint8_t *weft__buf_room(struct weft__buf *buf, size_t bytes);
void weft__buf_put(struct weft__buf *buf, const void *bytes, size_t n);
void weft__buf_u8(struct weft__buf *buf, uint8_t v);
void weft__buf_varint(struct weft__buf *buf, uint64_t v);
void weft__buf_text(struct weft__buf *buf, const char *text);
void weft__buf_text_n(struct weft__buf *buf, const char *text, size_t n);

#endif
