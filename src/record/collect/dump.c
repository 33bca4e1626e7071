/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/dir.h"
#include "record/collect/collector.h"
#include "record/ship.h"
#include "record/symbolize.h"
#include "segment/format.h"

#define COPY_BYTES 65536

/* A block of a slice, as its header says. */
struct block_head {
	uint16_t type, flags;
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
static int read_block_head(const struct weft__kept *slice, uint64_t at, struct block_head *ret)
{
	uint8_t head[BLOCK_HEADER_BYTES];
	int err = at + sizeof(head) > slice->bytes ? -EIO : read_whole(slice->fd, at, head, sizeof(head));

	if (err)
		return err;
	ret->type = get_u16(head + BLOCK_TYPE_AT);
	ret->flags = get_u16(head + BLOCK_FLAGS_AT);
	ret->bytes = BLOCK_HEADER_BYTES + get_u32(head + BLOCK_LENGTH_AT);
	ret->count = get_u32(head + BLOCK_COUNT_AT);
	ret->first_ns = get_u64(head + BLOCK_FIRST_AT);
	ret->last_ns = get_u64(head + BLOCK_LAST_AT);
	return ret->type == BLOCK_INDEX;
}

/* Whether a slice has events of that time: 1, 0 or -errno. What is newer belongs to it, too: the collector reports the
 * window when it is over. */
static int slice_wanted(const struct weft__kept *slice, const struct weft__dump *dump)
{
	uint64_t at = SEG_HEADER_BYTES;
	struct block_head block;
	int r = 0;

	while (at < slice->bytes && !(r = read_block_head(slice, at, &block))) {
		if (block.type == BLOCK_EVENTS && block.last_ns >= dump->from_ns)
			return 1;
		at += block.bytes;
	}
	return r < 0 ? r : 0;
}

/* Whole or not at all, like those that are made here. */
static int copy_block(struct weft__writer *w, const struct weft__kept *slice, uint64_t at,
		      const struct block_head *block)
{
	size_t mark = w->index.n;
	char bytes[COPY_BYTES];
	uint32_t done = 0;
	int err = weft__writer_adopted(w, block->type, w->offset, block->bytes, block->count, block->first_ns,
				       block->last_ns);

	if (err)
		return err;
	while (!err && done < block->bytes) {
		size_t n = block->bytes - done < sizeof(bytes) ? block->bytes - done : sizeof(bytes);

		err = read_whole(slice->fd, at + done, bytes, n);
		if (!err)
			err = write_whole(w->fd, w->offset + done, bytes, n);
		done += (uint32_t)n;
	}
	if (err) {
		w->index.n = mark;
		w->n_blocks--;
		w->n_events -= block->type == BLOCK_EVENTS ? block->count : 0;
		(void)!ftruncate(w->fd, (off_t)w->offset);
		return err;
	}
	w->offset += block->bytes;
	return 0;
}

/* What of it is new. */
static int copy_defs(struct weft__collector *c, struct weft__draft *d, const struct weft__kept *slice, uint64_t at,
		     const struct block_head *block)
{
	size_t n = block->bytes - BLOCK_HEADER_BYTES;
	int err;

	weft__buf_clear(&d->defs);
	if (!weft__buf_room(&d->defs, n + 1))
		return -ENOMEM;
	err = read_whole(slice->fd, at + BLOCK_HEADER_BYTES, d->defs.bytes, n);
	if (!err)
		err = weft__defcache_news(&d->defcache, d->defs.bytes, n, block->flags);
	if (!err)
		err = weft__writer_defs(&d->writer, c->encoder, &d->defcache.news);
	if (err)
		weft__defcache_forget(&d->defcache);
	return err;
}

/* A dump begins when its first slice did. */
static int begin_writing_dump(struct weft__collector *c, struct weft__draft *d, const struct weft__kept *first)
{
	struct weft__segment_head head = {.sequence = d->number};
	uint8_t bytes[SEG_HEADER_BYTES];
	int err = read_whole(first->fd, 0, bytes, sizeof(bytes));

	if (err)
		return err;
	memcpy(head.recording, c->segments.recording, sizeof(head.recording));
	head.mono_ns = get_u64(bytes + SEG_MONO_AT);
	head.real_ns = get_u64(bytes + SEG_REAL_AT);
	return weft__writer_begin(&d->writer, d->fd, &head);
}

/* What of a slice is not in the dump yet: all of it, although the window may begin in the middle, since later blocks
 * go on where earlier ones have left off, with a thread's context for example, or a poll that is open. */
static int copy_slice(struct weft__collector *c, struct weft__draft *d, const struct weft__kept *slice)
{
	struct block_head block;
	int r;

	if (slice->sequence < d->sequence)
		return 0;
	if (!weft__own_is(&slice->own, slice->fd))
		return -EBADF; /* the program closed it */
	if (slice->sequence > d->sequence || !d->at) {
		r = slice_wanted(slice, d->of);
		if (r <= 0)
			return r;
		d->sequence = slice->sequence;
		d->at = SEG_HEADER_BYTES;
	}
	r = d->writer.offset ? 0 : begin_writing_dump(c, d, slice);
	while (!r && d->at < slice->bytes && !(r = read_block_head(slice, d->at, &block))) {
		r = block.type == BLOCK_DEFS ? copy_defs(c, d, slice, d->at, &block)
					     : copy_block(&d->writer, slice, d->at, &block);
		if (!r)
			d->at += block.bytes;
	}
	return r < 0 ? r : 0;
}

/* The slices, and the one that is being written. */
static int copy_slices(struct weft__collector *c, struct weft__draft *d)
{
	const struct weft__segments *s = &c->segments;
	struct weft__kept active = {.fd = s->fd, .own = s->own, .bytes = s->writer.offset, .sequence = s->sequence};
	int err = 0;
	size_t i;

	for (i = 0; i < s->n_kept && !err; i++)
		err = copy_slice(c, d, &s->kept[i]);
	if (!err && s->fd >= 0)
		err = copy_slice(c, d, &active);
	if (!err && s->sync && d->writer.offset && fdatasync(d->fd) < 0)
		err = -errno;
	return err;
}

static int add_dump_facts(struct weft__collector *c, struct weft__draft *d)
{
	const struct weft__dump *dump = d->of;
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
	err = weft__defs_oom(&facts) ? -ENOMEM : weft__writer_defs(&d->writer, c->encoder, &facts);
	weft__defs_fini(&facts);
	return err;
}

static const char *draft_name(const struct weft__draft *d)
{
	return strrchr(d->path, '/') + 1;
}

/* In the directory of dumps, which is made when it is gone; locked, so that nobody takes it for what a dead process
 * left. */
static int create_dump(struct weft__collector *c, struct weft__draft *d)
{
	unsigned mode = c->segments.mode;
	int dir = weft__dir_use(c->flight.dir, mode == FILE_MODE_GROUP ? DIR_MODE_GROUP : DIR_MODE, NULL);

	if (dir < 0)
		return dir;
	d->fd = weft__dir_create(dir, draft_name(d), mode);
	close(dir);
	if (d->fd < 0)
		return d->fd;
	d->own = weft__own_of(d->fd);
	return weft__file_lock(d->fd);
}

/* `end` is what its name has behind that of a whole one. */
static int name_draft(struct weft__collector *c, const struct weft__draft *d, const char *end, char *path)
{
	return snprintf(path, DUMP_PATH_BYTES, "%s/%s-dump-%06llu.weft%s", c->flight.dir, c->segments.stem,
			(unsigned long long)d->number, end) < DUMP_PATH_BYTES
		       ? 0
		       : -ENAMETOOLONG;
}

static int rename_draft(struct weft__collector *c, struct weft__draft *d, const char *end)
{
	char path[DUMP_PATH_BYTES];
	int err = name_draft(c, d, end, path);
	int dir = err ? err : weft__dir_use(c->flight.dir, 0, NULL);

	if (dir < 0)
		return dir;
	err = weft__dir_rename(dir, draft_name(d), strrchr(path, '/') + 1);
	close(dir);
	if (!err)
		memcpy(d->path, path, sizeof(path));
	return err;
}

/* What the rings of a process that was killed have belongs to the draft. */
static void name_for_recovery(struct weft__collector *c, const char *active)
{
	snprintf(c->region->head->active, sizeof(c->region->head->active), "%s", active);
}

static void close_draft(struct weft__draft *d)
{
	int fd = d->fd;

	d->fd = -1;
	weft__own_close(&d->own, fd);
	weft__writer_fini(&d->writer);
	weft__defcache_fini(&d->defcache);
	weft__buf_free(&d->defs);
	*d = (struct weft__draft){.fd = -1};
}

/* With the definitions and events that there are, and what the dump is for. */
static int open_draft(struct weft__collector *c, struct weft__draft *d, struct weft__dump *dump)
{
	int err;

	*d = (struct weft__draft){.of = dump, .fd = -1, .number = c->flight.n_named};
	err = name_draft(c, d, NEW_END, d->path);
	if (!err)
		err = create_dump(c, d);
	if (!err)
		err = copy_slices(c, d);
	if (!err)
		err = d->writer.offset ? add_dump_facts(c, d) : -ENODATA;
	return err;
}

static void discard_draft(struct weft__collector *c, struct weft__draft *d)
{
	if (d->fd >= 0 && weft__own_is(&d->own, d->fd))
		weft__path_remove(c->flight.dir, draft_name(d), &d->own);
	close_draft(d);
}

int weft__draft_begin(struct weft__collector *c, struct weft__dump *dump)
{
	struct weft__draft *d = &c->flight.draft;
	int err = open_draft(c, d, dump);

	if (!err)
		err = rename_draft(c, d, ".active");
	if (err) {
		discard_draft(c, d);
		return err;
	}
	c->flight.n_named++;
	name_for_recovery(c, draft_name(d));
	return 0;
}

/* Somebody deleted it, or the program closed it. */
static int draft_gone(const struct weft__draft *d)
{
	struct stat st;

	return !weft__own_is(&d->own, d->fd) || fstat(d->fd, &st) < 0 || !st.st_nlink;
}

int weft__draft_more(struct weft__collector *c)
{
	struct weft__draft *d = &c->flight.draft;

	if (draft_gone(d)) {
		weft__draft_discard(c);
		return 0;
	}
	return copy_slices(c, d);
}

void weft__draft_discard(struct weft__collector *c)
{
	discard_draft(c, &c->flight.draft);
	name_for_recovery(c, c->segments.active);
}

void weft__draft_forked(struct weft__draft *d)
{
	weft__own_close(&d->own, d->fd);
}

static void after_dump(struct weft__collector *c, const char *path)
{
	struct weft__segments dumps = {
		.dir = c->flight.dir, .fd = -1, .keep_bytes = c->flight.keep_bytes, .keep_ns = c->flight.keep_ns};

	memcpy(dumps.stem, c->segments.stem, sizeof(dumps.stem));
	if (c->segments.symbolize)
		weft__symbolize_submit(c->segments.symbolize, path);
	weft__ship_poke(c->segments.ship);
	weft__segments_retain(&dumps);
}

/* Its name is the last thing that it gets; without it there is a draft still. */
static int seal_dump(struct weft__collector *c, struct weft__draft *d)
{
	uint64_t mark = d->writer.offset;
	int err = weft__writer_seal(&d->writer, 0);

	if (err)
		return err;
	if (c->segments.sync && fdatasync(d->fd) < 0)
		err = -errno;
	if (!err)
		err = rename_draft(c, d, "");
	if (err) {
		(void)!ftruncate(d->fd, (off_t)mark);
		d->writer.offset = mark;
	}
	return err;
}

static int write_from_draft(struct weft__collector *c, struct weft__dump *dump)
{
	struct weft__draft *d = &c->flight.draft;
	int err = copy_slices(c, d);

	if (!err)
		err = add_dump_facts(c, d); /* the last word */
	if (err)
		return err;
	name_for_recovery(c,
			  c->segments.active); /* before the draft's name is gone: what comes now is not the dump's */
	err = seal_dump(c, d);
	if (err) {
		name_for_recovery(c, draft_name(d));
		return err;
	}
	memcpy(dump->path, d->path, sizeof(dump->path));
	close_draft(d);
	return 0;
}

static int write_at_once(struct weft__collector *c, struct weft__dump *dump)
{
	struct weft__draft d;
	int err = open_draft(c, &d, dump);

	if (!err)
		err = seal_dump(c, &d);
	if (err) {
		discard_draft(c, &d);
		return err;
	}
	c->flight.n_named++;
	memcpy(dump->path, d.path, sizeof(dump->path));
	close_draft(&d);
	return 0;
}

int weft__dump_write(struct weft__collector *c, struct weft__dump *dump)
{
	struct weft__draft *d = &c->flight.draft;
	int err;

	if (d->of == dump && draft_gone(d))
		weft__draft_discard(c);
	err = d->of == dump ? write_from_draft(c, dump) : write_at_once(c, dump);
	if (!err)
		after_dump(c, dump->path);
	return err;
}
