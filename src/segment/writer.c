/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "segment/batch.h"
#include "segment/format.h"
#include "segment/hash.h"

/* All of it or an error; a short write is followed by another, whose error says why. */
static int write_at(int fd, uint64_t offset, const void *a, size_t n_a, const void *b, size_t n_b)
{
	struct iovec iov[2] = {{(void *)(uintptr_t)a, n_a}, {(void *)(uintptr_t)b, n_b}};
	int i = 0;

	while (i < 2) {
		ssize_t n;

		if (!iov[i].iov_len) {
			i++;
			continue;
		}
		n = pwritev(fd, iov + i, 2 - i, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		offset += (uint64_t)n;
		for (; i < 2 && (size_t)n >= iov[i].iov_len; i++) {
			n -= (ssize_t)iov[i].iov_len;
			iov[i].iov_len = 0;
		}
		if (i < 2) {
			iov[i].iov_base = (char *)iov[i].iov_base + n;
			iov[i].iov_len -= (size_t)n;
		}
	}
	return 0;
}

int weft__writer_begin(struct weft__writer *w, int fd, const struct weft__segment_head *head)
{
	uint8_t bytes[SEG_HEADER_BYTES] = SEG_MAGIC;
	int err;

	put_u16(bytes + SEG_VERSION_AT, SEG_VERSION);
	put_u16(bytes + SEG_HEADER_BYTES_AT, SEG_HEADER_BYTES);
	put_u32(bytes + SEG_FLAGS_AT, head->flags);
	memcpy(bytes + SEG_RECORDING_AT, head->recording, sizeof(head->recording));
	put_u64(bytes + SEG_SEQUENCE_AT, head->sequence);
	put_u64(bytes + SEG_MONO_AT, head->mono_ns);
	put_u64(bytes + SEG_REAL_AT, head->real_ns);
	put_u64(bytes + SEG_HASH_AT, weft__hash(bytes, SEG_HASH_AT));
	weft__writer_adopt(w, fd, SEG_HEADER_BYTES);
	err = write_at(fd, 0, bytes, sizeof(bytes), NULL, 0);
	if (err)
		(void)!ftruncate(fd, 0);
	return err;
}

void weft__writer_adopt(struct weft__writer *w, int fd, uint64_t offset)
{
	w->fd = fd;
	w->offset = offset;
	w->n_events = 0;
	w->n_blocks = 0;
	w->index.n = 0;
	w->index.oom = 0;
}

int weft__writer_adopted(struct weft__writer *w, uint32_t type, uint64_t offset, uint64_t bytes, uint64_t count,
			 uint64_t first_ns, uint64_t last_ns)
{
	size_t mark = w->index.n;

	w->index.oom = 0;
	weft__buf_varint(&w->index, type);
	weft__buf_varint(&w->index, offset);
	weft__buf_varint(&w->index, bytes);
	weft__buf_varint(&w->index, count);
	weft__buf_varint(&w->index, first_ns);
	weft__buf_varint(&w->index, last_ns - first_ns);
	if (w->index.oom) {
		w->index.n = mark;
		return -ENOMEM;
	}
	w->n_blocks++;
	if (type == BLOCK_EVENTS)
		w->n_events += count;
	return 0;
}

int weft__writer_block(struct weft__writer *w, uint32_t type, uint32_t flags, uint32_t count, uint64_t first_ns,
		       uint64_t last_ns, const struct weft__buf *payload)
{
	uint8_t head[BLOCK_HEADER_BYTES] = SEG_BLOCK_MAGIC;
	size_t mark = w->index.n;
	int err;

	put_u16(head + BLOCK_TYPE_AT, (uint16_t)type);
	put_u16(head + BLOCK_FLAGS_AT, (uint16_t)(flags | w->block_flags));
	put_u32(head + BLOCK_LENGTH_AT, (uint32_t)payload->n);
	put_u32(head + BLOCK_COUNT_AT, count);
	put_u64(head + BLOCK_FIRST_AT, first_ns);
	put_u64(head + BLOCK_LAST_AT, last_ns);
	put_u64(head + BLOCK_HASH_AT, weft__hash2(head, BLOCK_HASH_AT, payload->bytes, payload->n));
	err = weft__writer_adopted(w, type, w->offset, BLOCK_HEADER_BYTES + payload->n, count, first_ns, last_ns);
	if (err)
		return err;
	err = write_at(w->fd, w->offset, head, sizeof(head), payload->bytes, payload->n);
	if (err) {
		w->index.n = mark;
		w->n_blocks--;
		w->n_events -= type == BLOCK_EVENTS ? count : 0;
		(void)!ftruncate(w->fd, (off_t)w->offset);
		return err;
	}
	w->offset += BLOCK_HEADER_BYTES + payload->n;
	return 0;
}

int weft__writer_defs(struct weft__writer *w, struct weft__encoder *enc, const struct weft__defs *defs)
{
	int smaller;

	if (!defs->n)
		return 0;
	smaller = weft__encoder_squeeze(enc, &defs->out, &w->squeezed);
	if (smaller < 0)
		return smaller;
	return weft__writer_block(w, BLOCK_DEFS, smaller ? BLOCK_FLAG_ZSTD : 0, defs->n, 0, 0,
				  smaller ? &w->squeezed : &defs->out);
}

int weft__writer_seal(struct weft__writer *w, uint32_t flags)
{
	uint8_t trailer[TRAILER_BYTES] = SEG_END_MAGIC;
	struct weft__buf entries = w->index;
	uint64_t at = w->offset;
	int err;

	/* The index does not list itself. Its bytes are held apart, because writing it adds an entry. */
	memset(&w->index, 0, sizeof(w->index));
	err = weft__writer_block(w, BLOCK_INDEX, flags, w->n_blocks, 0, 0, &entries);
	weft__buf_free(&w->index);
	w->index = entries;
	if (err)
		return err;
	w->n_blocks--;
	put_u64(trailer + TRAILER_INDEX_AT, at);
	put_u64(trailer + TRAILER_HASH_AT, weft__hash(trailer, TRAILER_HASH_AT));
	err = write_at(w->fd, w->offset, trailer, sizeof(trailer), NULL, 0);
	if (err) {
		(void)!ftruncate(w->fd, (off_t)at);
		w->offset = at;
		return err;
	}
	w->offset += sizeof(trailer);
	return 0;
}

void weft__writer_fini(struct weft__writer *w)
{
	weft__buf_free(&w->index);
	weft__buf_free(&w->squeezed);
}
