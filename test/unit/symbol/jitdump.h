/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a jitdump, for the tests of reading one. */
#ifndef WEFT_TEST_SYMBOL_JITDUMP_H
#define WEFT_TEST_SYMBOL_JITDUMP_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

static inline void jit_u32(struct weft__buf *buf, uint32_t v)
{
	weft__buf_put(buf, &v, 4);
}

static inline void jit_u64(struct weft__buf *buf, uint64_t v)
{
	weft__buf_put(buf, &v, 8);
}

static inline void jit_header(struct weft__buf *buf, uint64_t flags)
{
	jit_u32(buf, 0x4A695444);
	jit_u32(buf, 1);
	jit_u32(buf, 40);
	jit_u32(buf, 62);
	jit_u32(buf, 0);
	jit_u32(buf, 1234);
	jit_u64(buf, 1);
	jit_u64(buf, flags);
}

static inline size_t jit_begin(struct weft__buf *buf, uint32_t id, uint64_t time)
{
	size_t at = buf->n;

	jit_u32(buf, id);
	jit_u32(buf, 0);
	jit_u64(buf, time);
	return at;
}

static inline void jit_end(struct weft__buf *buf, size_t at)
{
	put_u32(buf->bytes + at + 4, (uint32_t)(buf->n - at));
}

static inline void jit_load(struct weft__buf *buf, uint64_t time, uint64_t address, uint64_t bytes, uint64_t index,
			    const char *name)
{
	size_t at = jit_begin(buf, 0, time);

	jit_u64(buf, 0);
	jit_u64(buf, address);
	jit_u64(buf, address);
	jit_u64(buf, bytes);
	jit_u64(buf, index);
	weft__buf_put(buf, name, strlen(name) + 1);
	for (uint64_t i = 0; i < bytes; i++)
		weft__buf_u8(buf, 0xcc);
	jit_end(buf, at);
}

static inline void jit_move(struct weft__buf *buf, uint64_t time, uint64_t from, uint64_t to, uint64_t bytes,
			    uint64_t index)
{
	size_t at = jit_begin(buf, 1, time);

	jit_u64(buf, 0);
	jit_u64(buf, to);
	jit_u64(buf, from);
	jit_u64(buf, to);
	jit_u64(buf, bytes);
	jit_u64(buf, index);
	jit_end(buf, at);
}

/* Two lines of one file, at the start and at 8. */
static inline void jit_lines(struct weft__buf *buf, uint64_t address, const char *file, uint32_t first, uint32_t second)
{
	size_t at = jit_begin(buf, 2, 0);

	jit_u64(buf, address);
	jit_u64(buf, 2);
	jit_u64(buf, address);
	jit_u32(buf, first);
	jit_u32(buf, 0);
	weft__buf_put(buf, file, strlen(file) + 1);
	jit_u64(buf, address + 8);
	jit_u32(buf, second);
	jit_u32(buf, 0);
	weft__buf_put(buf, "\xff", 2);
	jit_end(buf, at);
}

#endif
