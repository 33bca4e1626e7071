/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "record/collect/collector.h"
#include "record/symbolize.h"
#include "segment/format.h"

#define COPY_BYTES 65536

/* A block of a piece, as its header says. */
struct block_head {
	uint16_t type;
	uint32_t bytes; /* with the header */
	uint32_t count;
	uint64_t first_ns, last_ns;
};

static int read_whole(int fd, uint64_t at, void *to, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, (char *)to + got, n - got, (off_t)(at + got));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		got += (size_t)r;
	}
	return 0;
}

static int write_whole(int fd, uint64_t at, const void *from, size_t n)
{
	size_t put = 0;

	while (put < n) {
		ssize_t r = pwrite(fd, (const char *)from + put, n - put, (off_t)(at + put));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -ENOSPC;
		put += (size_t)r;
	}
	return 0;
}

/* The block at `at`; 0: there is one, 1: the index comes, which is no part of what is copied, or -errno. */
static int read_block_head(const struct weft__kept *piece, uint64_t at, struct block_head *ret)
{
	uint8_t head[BLOCK_HEADER_BYTES];
	int err = at + sizeof(head) > piece->bytes ? -EIO : read_whole(piece->fd, at, head, sizeof(head));

	if (err)
		return err;
	ret->type = get_u16(head + BLOCK_TYPE_AT);
	ret->bytes = BLOCK_HEADER_BYTES + get_u32(head + BLOCK_LENGTH_AT);
	ret->count = get_u32(head + BLOCK_COUNT_AT);
	ret->first_ns = get_u64(head + BLOCK_FIRST_AT);
	ret->last_ns = get_u64(head + BLOCK_LAST_AT);
	return ret->type == BLOCK_INDEX;
}

/* Whether a piece has events of that time: 1, 0 or -errno. What is newer belongs to it, too: the collector tells of the
 * window when it is over. */
static int piece_wanted(const struct weft__kept *piece, const struct weft__dump *dump)
{
	uint64_t at = SEG_HEADER_BYTES;
	struct block_head block;
	int r;

	if (!weft__own_is(&piece->own, piece->fd))
		return -EBADF; /* the program closed it */
	while (!(r = read_block_head(piece, at, &block))) {
		if (block.type == BLOCK_EVENTS && block.last_ns >= dump->from_ns)
			return 1;
		at += block.bytes;
	}
	return r < 0 ? r : 0;
}

static int copy_block(struct weft__writer *w, const struct weft__kept *piece, uint64_t at,
		      const struct block_head *block)
{
	char bytes[COPY_BYTES];
	uint32_t done = 0;
	int err = weft__writer_told(w, block->type, w->offset, block->bytes, block->count, block->first_ns,
				    block->last_ns);

	while (!err && done < block->bytes) {
		size_t n = block->bytes - done < sizeof(bytes) ? block->bytes - done : sizeof(bytes);

		err = read_whole(piece->fd, at + done, bytes, n);
		if (!err)
			err = write_whole(w->fd, w->offset + done, bytes, n);
		done += (uint32_t)n;
	}
	w->offset += block->bytes;
	return err;
}

/* All of it, although the window may begin in the middle: later blocks go on where earlier ones have left off, with a
 * thread's context for example, or a poll that is open. */
static int copy_piece(struct weft__writer *w, const struct weft__kept *piece)
{
	uint64_t at = SEG_HEADER_BYTES;
	struct block_head block;
	int err = 0, r;

	while (!err && !(r = read_block_head(piece, at, &block))) {
		err = copy_block(w, piece, at, &block);
		at += block.bytes;
	}
	return err ? err : r < 0 ? r : 0;
}

/* A dump begins when its first piece did. */
static int begin_dump(struct weft__collector *c, struct weft__writer *w, int fd, const struct weft__kept *first)
{
	struct weft__segment_head head = {.sequence = c->flight.n_dumps};
	uint8_t bytes[SEG_HEADER_BYTES];
	int err = read_whole(first->fd, 0, bytes, sizeof(bytes));

	if (err)
		return err;
	memcpy(head.recording, c->segments.recording, sizeof(head.recording));
	head.mono_ns = get_u64(bytes + SEG_MONO_AT);
	head.real_ns = get_u64(bytes + SEG_REAL_AT);
	return weft__writer_begin(w, fd, &head);
}

static int add_dump_facts(struct weft__collector *c, struct weft__writer *w, const struct weft__dump *dump)
{
	struct weft__defs facts = {0};
	char text[32];
	int err;

	weft__defs_fact(&facts, "dump.why", dump->why);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)dump->from_ns);
	weft__defs_fact(&facts, "dump.from_ns", text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)dump->until_ns);
	weft__defs_fact(&facts, "dump.to_ns", text);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)c->flight.unheard);
	weft__defs_fact(&facts, "dump.unheard", text);
	err = weft__defs_oom(&facts) ? -ENOMEM : weft__writer_defs(w, c->encoder, &facts);
	weft__defs_fini(&facts);
	return err;
}

static int fill_dump(struct weft__collector *c, int fd, const struct weft__dump *dump)
{
	const struct weft__segments *s = &c->segments;
	struct weft__writer w = {0};
	int begun = 0, err = 0;
	size_t i;

	for (i = 0; i < s->n_kept && !err; i++) {
		int wanted = piece_wanted(&s->kept[i], dump);

		if (wanted <= 0) {
			err = wanted;
			continue;
		}
		if (!begun)
			err = begin_dump(c, &w, fd, &s->kept[i]);
		begun = 1;
		if (!err)
			err = copy_piece(&w, &s->kept[i]);
	}
	if (!err)
		err = begun ? add_dump_facts(c, &w, dump) : -ENODATA;
	if (!err)
		err = weft__writer_seal(&w, 0);
	if (!err && s->sync && fdatasync(fd) < 0)
		err = -errno;
	weft__writer_fini(&w);
	return err;
}

/* In the directory of dumps, which is made when it is gone; locked, so that nobody takes it for what a dead process
 * left. */
static int create_dump(const char *dir, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), err;

	if (fd < 0 && errno == ENOENT) {
		err = weft__make_dirs(dir);
		if (err)
			return err;
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	}
	if (fd < 0)
		return -errno;
	err = weft__file_lock(fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

static void after_dump(struct weft__collector *c, const char *path)
{
	struct weft__segments dumps = {
		.dir = c->flight.dir, .fd = -1, .keep_bytes = c->flight.keep_bytes, .keep_ns = c->flight.keep_ns};

	if (c->segments.symbolize)
		weft__symbolize_submit(c->segments.symbolize, path);
	weft__segments_retain(&dumps);
}

int weft__dump_write(struct weft__collector *c, struct weft__dump *dump)
{
	char path[sizeof(dump->path)], begun[sizeof(dump->path) + sizeof(NEW_END)];
	int fd, err;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s-dump-%06llu.weft", c->flight.dir, c->segments.stem,
			     (unsigned long long)c->flight.n_dumps) >= sizeof(path))
		return -ENAMETOOLONG;
	snprintf(begun, sizeof(begun), "%s" NEW_END, path);
	fd = create_dump(c->flight.dir, begun);
	if (fd < 0)
		return fd;
	err = fill_dump(c, fd, dump);
	if (!err && rename(begun, path) < 0)
		err = -errno;
	if (err)
		unlink(begun);
	close(fd);
	if (err)
		return err;
	snprintf(dump->path, sizeof(dump->path), "%s", path);
	after_dump(c, path);
	return 0;
}
