/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/minidebug.h"

#include <errno.h>
#include <lzma.h>

#include "base/buf.h"

#define MEMORY_MAX ((uint64_t)128 << 20)
#define BYTES_MAX ((size_t)256 << 20)
#define STEP 65536

static int unpack(struct weft__buf *buf, const void *packed, size_t n)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret ret = lzma_stream_decoder(&stream, MEMORY_MAX, 0);

	stream.next_in = packed;
	stream.avail_in = n;
	while (ret == LZMA_OK && buf->n < BYTES_MAX) {
		stream.next_out = weft__buf_room(buf, STEP);
		stream.avail_out = STEP;
		if (!stream.next_out)
			ret = LZMA_MEM_ERROR;
		else
			ret = lzma_code(&stream, LZMA_FINISH);
		if (stream.next_out)
			buf->n += STEP - stream.avail_out;
	}
	lzma_end(&stream);
	return ret == LZMA_STREAM_END ? 0 : ret == LZMA_MEM_ERROR ? -ENOMEM : -EINVAL;
}

int weft__minidebug_open(struct weft__elf_image *mini, const struct weft__elf_image *image)
{
	Elf_Data *data = weft__elf_image_section(image, ".gnu_debugdata");
	struct weft__buf buf = {0};
	int failed;

	if (!data)
		return -ENOENT;
	failed = unpack(&buf, data->d_buf, data->d_size);
	if (failed) {
		weft__buf_free(&buf);
		return failed;
	}
	return weft__elf_image_open_memory(mini, buf.bytes, buf.n, true) < 0 ? -EINVAL : 0;
}
