/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a segment: finding its blocks, by the index or by walking, and getting past damage. */
#include "segment/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "segment/format.h"
#include "segment/hash.h"

#define BLOCKS_MAX (1u << 22)
#define SCAN_BYTES 4096
#define OPEN_BYTES_MAX (1u << 30) /* thousands of threads that were killed at once need half of it */

void weft__segment_damaged(struct weft_segment *seg, uint64_t offset, uint64_t bytes, const char *why)
{
	struct weft_damage *damage = &seg->damage;

	if (!damage->places++ || offset < damage->first_offset) { /* definitions are read before events */
		damage->first_offset = offset;
		snprintf(seg->damage_text, sizeof(seg->damage_text),
			 "at byte %" PRIu64 ": %s, %" PRIu64 " bytes missing", offset, why, bytes);
	}
	damage->missing_bytes += bytes;
}

void weft__segment_block_bad(struct weft_segment *seg, struct weft__block *block, const char *why)
{
	if (block->bad)
		return;
	block->bad = 1;
	weft__segment_damaged(seg, block->offset, BLOCK_HEADER_BYTES + (uint64_t)block->bytes, why);
}

const uint8_t *weft__segment_at(struct weft_segment *seg, uint64_t offset, size_t n)
{
	uint8_t *to;
	size_t got = 0;

	if (offset > seg->n_bytes || n > seg->n_bytes - offset)
		return NULL;
	if (seg->memory)
		return seg->memory + offset;
	weft__buf_clear(&seg->scratch);
	to = weft__buf_room(&seg->scratch, n + 1);
	if (!to) {
		seg->oom = 1;
		return NULL;
	}
	while (got < n) {
		ssize_t r = pread(seg->fd, to + got, n - got, (off_t)(offset + got));

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return NULL;
		got += (size_t)r;
	}
	return to;
}

int weft__segment_block_head(struct weft_segment *seg, uint64_t offset, struct weft__block *block)
{
	const uint8_t *head = weft__segment_at(seg, offset, BLOCK_HEADER_BYTES);

	if (!head || memcmp(head, SEG_BLOCK_MAGIC, 4))
		return 0;
	block->offset = offset;
	block->type = get_u16(head + BLOCK_TYPE_AT);
	block->flags = get_u16(head + BLOCK_FLAGS_AT);
	block->bytes = get_u32(head + BLOCK_LENGTH_AT);
	block->count = get_u32(head + BLOCK_COUNT_AT);
	block->first_ns = get_u64(head + BLOCK_FIRST_AT);
	block->last_ns = get_u64(head + BLOCK_LAST_AT);
	block->bad = 0;
	return block->bytes <= BLOCK_PAYLOAD_MAX && block->bytes <= seg->n_bytes - offset - BLOCK_HEADER_BYTES;
}

const uint8_t *weft__segment_whole(struct weft_segment *seg, const struct weft__block *block)
{
	const uint8_t *all = weft__segment_at(seg, block->offset, BLOCK_HEADER_BYTES + (size_t)block->bytes);

	if (!all ||
	    get_u64(all + BLOCK_HASH_AT) != weft__hash2(all, BLOCK_HASH_AT, all + BLOCK_HEADER_BYTES, block->bytes))
		return NULL;
	return all + BLOCK_HEADER_BYTES;
}

/* Where blocks were found by the index, the block itself has to say the same. */
static int as_listed(const uint8_t *head, const struct weft__block *block)
{
	return get_u16(head + BLOCK_TYPE_AT) == block->type && get_u32(head + BLOCK_COUNT_AT) == block->count &&
	       get_u64(head + BLOCK_FIRST_AT) == block->first_ns && get_u64(head + BLOCK_LAST_AT) == block->last_ns;
}

const uint8_t *weft__segment_payload(struct weft_segment *seg, struct weft__block *block, int *oom)
{
	const uint8_t *payload = weft__segment_whole(seg, block);
	const char *why = "a block's checksum is wrong";

	*oom = !payload && seg->scratch.oom;
	if (payload && !as_listed(payload - BLOCK_HEADER_BYTES, block)) {
		payload = NULL;
		why = "a block is not what the index says";
	}
	if (!payload && !*oom)
		weft__segment_block_bad(seg, block, why);
	return payload;
}

int weft__segment_add_block(struct weft_segment *seg, const struct weft__block *block)
{
	struct weft__block *blocks;

	if (seg->n_blocks >= BLOCKS_MAX)
		return -WEFT_E_LIMIT;
	blocks = weft__grow(seg->blocks, &seg->blocks_cap, seg->n_blocks, sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	seg->blocks = blocks;
	blocks[seg->n_blocks++] = *block;
	return 0;
}

/* Whether a whole block begins at `offset`: 1, 0, or -1 when the search has hashed enough. */
static int whole_at(struct weft_segment *seg, uint64_t offset, uint64_t *budget)
{
	struct weft__block block;
	uint64_t cost;

	if (!weft__segment_block_head(seg, offset, &block))
		return 0;
	cost = BLOCK_HEADER_BYTES + (uint64_t)block.bytes;
	if (cost > *budget)
		return -1;
	*budget -= cost;
	return weft__segment_whole(seg, &block) != NULL;
}

/* Past the hole of a sparse file, which can be larger than anybody can read; `window` is what is at `from`. */
static uint64_t past_hole(const struct weft_segment *seg, uint64_t from, const uint8_t *window, size_t n)
{
	off_t data;

	if (seg->memory || window[0] || memcmp(window, window + 1, n - 1) != 0)
		return from;
	data = lseek(seg->fd, (off_t)from, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		return seg->n_bytes;
	return data > (off_t)from ? (uint64_t)data : from;
}

/* The next offset from `from` on at which a whole block begins, or the end of the file. The window is a copy,
 * because looking at a candidate reads over what was read last: without it a file of many candidates would be read
 * once for each. */
static uint64_t next_whole(struct weft_segment *seg, uint64_t from, uint64_t *budget)
{
	uint8_t window[SCAN_BYTES] = {0};

	while (from + BLOCK_HEADER_BYTES <= seg->n_bytes) {
		size_t n = seg->n_bytes - from < SCAN_BYTES ? (size_t)(seg->n_bytes - from) : SCAN_BYTES;
		const uint8_t *hit = weft__segment_at(seg, from, n);
		uint64_t data;
		size_t at = 0;

		if (!hit)
			break;
		memcpy(window, hit, n);
		data = past_hole(seg, from, window, n);
		if (data > from) {
			from = data;
			continue;
		}
		while ((hit = memmem(window + at, n - at, SEG_BLOCK_MAGIC, 4))) {
			uint64_t offset = from + (uint64_t)(hit - window);
			int whole = whole_at(seg, offset, budget);

			if (whole)
				return whole > 0 ? offset : seg->n_bytes;
			at = (size_t)(hit - window) + 1;
		}
		from += n - 3; /* the magic may lie across the border */
	}
	return seg->n_bytes;
}

/* A whole block that the walk came to. */
static int take_block(struct weft_segment *seg, struct weft__block *block, const uint8_t *payload)
{
	uint64_t end = block->offset + BLOCK_HEADER_BYTES + block->bytes, listed;
	int err;

	if (block->type == BLOCK_INDEX) {
		if (weft__segment_index(seg, block, payload, 0, &listed))
			weft__segment_block_bad(seg, block, "the index does not parse");
		else
			seg->info.recovered |= !!(block->flags & BLOCK_FLAG_RECOVERED);
		return 0;
	}
	err = weft__segment_add_block(seg, block);
	if (err == -WEFT_E_LIMIT) {
		weft__segment_block_bad(seg, block, "more blocks than this reader takes");
		return 0;
	}
	seg->good_end = end;
	return err;
}

/* Blocks by walking from header to header, each checked; damage is noted and passed. */
static int blocks_by_walk(struct weft_segment *seg)
{
	uint64_t budget = seg->n_bytes * 4;
	uint64_t at = seg->blocks_at, end, index_at;

	end = weft__segment_trailer(seg, &index_at) ? seg->n_bytes - TRAILER_BYTES : seg->n_bytes;
	seg->good_end = at;
	while (at < end && !seg->oom) {
		struct weft__block block;
		const uint8_t *payload = NULL;
		uint64_t next;

		if (weft__segment_block_head(seg, at, &block))
			payload = weft__segment_whole(seg, &block);
		if (payload) {
			int err = take_block(seg, &block, payload);

			if (err)
				return err;
			at += BLOCK_HEADER_BYTES + block.bytes;
			continue;
		}
		next = next_whole(seg, at + 1, &budget);
		next = next < end ? next : end;
		weft__segment_damaged(seg, at, next - at,
				      next == end ? "the file ends inside a block or is damaged from here"
						  : "a block is damaged");
		at = next;
	}
	return seg->oom ? -ENOMEM : 0;
}

static int read_head(struct weft_segment *seg, const char *name, struct weft_error *err)
{
	const uint8_t *head = weft__segment_at(seg, 0, SEG_HEADER_BYTES);
	struct weft_segment_info *info = &seg->info;

	if (!head && seg->scratch.oom)
		return weft__fail(err, -ENOMEM, "%s: out of memory", name);
	if (!head || memcmp(head, SEG_MAGIC, 8))
		return weft__fail(err, -WEFT_E_FORMAT,
				  "%s: not a weft segment (it does not begin with %s); give a .weft file", name,
				  SEG_MAGIC);
	info->version = get_u16(head + SEG_VERSION_AT);
	if (info->version > SEG_VERSION)
		return weft__fail(err, -WEFT_E_VERSION,
				  "%s: segment version %u, this reader knows version %d; use a newer weft", name,
				  info->version, SEG_VERSION);
	if (get_u64(head + SEG_HASH_AT) != weft__hash(head, SEG_HASH_AT) || info->version < 1 ||
	    get_u16(head + SEG_HEADER_BYTES_AT) < SEG_HEADER_BYTES ||
	    get_u16(head + SEG_HEADER_BYTES_AT) > seg->n_bytes)
		return weft__fail(err, -WEFT_E_FORMAT, "%s: the segment's header is damaged", name);
	seg->blocks_at = get_u16(head + SEG_HEADER_BYTES_AT);
	info->recovered = get_u32(head + SEG_FLAGS_AT) & SEG_FLAG_RECOVERED;
	memcpy(info->recording, head + SEG_RECORDING_AT, sizeof(info->recording));
	info->sequence = get_u64(head + SEG_SEQUENCE_AT);
	info->start_mono_ns = get_u64(head + SEG_MONO_AT);
	info->start_real_ns = get_u64(head + SEG_REAL_AT);
	info->n_bytes = seg->n_bytes;
	return 0;
}

static int read_definitions(struct weft_segment *seg)
{
	size_t i;

	for (i = 0; i < seg->n_blocks; i++) {
		struct weft__block *block = &seg->blocks[i];
		const uint8_t *payload;
		size_t n = block->bytes;
		int oom, err;

		if (block->type != BLOCK_DEFS)
			continue;
		payload = weft__segment_payload(seg, block, &oom);
		if (oom)
			return -ENOMEM;
		if (!payload)
			continue;
		block->flags = get_u16(payload - BLOCK_HEADER_BYTES + BLOCK_FLAGS_AT);
		err = 0;
		if (block->flags & BLOCK_FLAG_ZSTD) {
			err = weft__decoder_expand(seg->decoder, payload, n, DEFS_MAX, &seg->expanded);
			payload = seg->expanded.bytes;
			n = seg->expanded.n;
		}
		if (!err)
			err = weft__segment_read_defs(seg, payload, n);
		if (err == -ENOMEM)
			return err;
		if (err)
			weft__segment_block_bad(seg, block, "definitions do not parse");
	}
	return weft__segment_sort_defs(seg);
}

static void sum_blocks(struct weft_segment *seg)
{
	struct weft_segment_info *info = &seg->info;
	size_t i;

	info->n_blocks = (uint32_t)seg->n_blocks;
	info->first_ns = UINT64_MAX;
	for (i = 0; i < seg->n_blocks; i++) {
		const struct weft__block *block = &seg->blocks[i];

		if (block->type != BLOCK_EVENTS) {
			info->n_unknown_blocks += block->type != BLOCK_DEFS;
			continue;
		}
		info->n_events += block->count;
		info->n_event_bytes += BLOCK_HEADER_BYTES + block->bytes;
		if (block->first_ns < info->first_ns)
			info->first_ns = block->first_ns;
		if (block->last_ns > info->last_ns)
			info->last_ns = block->last_ns;
	}
	if (info->first_ns == UINT64_MAX)
		info->first_ns = 0;
}

/* The quantum stands at the beginning of each events block. */
static void find_quantum(struct weft_segment *seg)
{
	size_t i;

	for (i = 0; i < seg->n_blocks && !seg->info.quantum_ns; i++) {
		const uint8_t *payload;
		struct weft__in in;
		uint64_t quantum;
		size_t n = seg->blocks[i].bytes < VARINT_MAX ? seg->blocks[i].bytes : VARINT_MAX;

		if (seg->blocks[i].type != BLOCK_EVENTS)
			continue;
		payload = weft__segment_at(seg, seg->blocks[i].offset + BLOCK_HEADER_BYTES, n);
		if (!payload)
			continue;
		in = weft__in(payload, n);
		quantum = in_varint(&in);
		if (quantum <= QUANTUM_MAX)
			seg->info.quantum_ns = (uint32_t)quantum;
	}
}

static int open_any(struct weft_segment *seg, const char *name, struct weft_error *err)
{
	int r = weft__decoder_open(&seg->decoder);

	seg->open_bytes_max = OPEN_BYTES_MAX;
	if (r)
		return weft__fail(err, r, "%s: %s", name, weft_strerror(r));
	r = read_head(seg, name, err);
	if (r)
		return r;
	r = weft__segment_by_index(seg);
	if (r == 0 && !seg->oom)
		r = blocks_by_walk(seg);
	if (r >= 0 && !seg->oom)
		r = read_definitions(seg);
	if (r >= 0) {
		sum_blocks(seg);
		find_quantum(seg);
	}
	if (seg->oom)
		r = -ENOMEM;
	return r < 0 ? weft__fail(err, r, "%s: %s", name, weft_strerror(r)) : 0;
}

/* Takes the descriptor. */
static int open_descriptor(struct weft_segment **ret, int fd, const char *name, struct weft_error *err)
{
	struct weft_segment *seg = weft__calloc(1, sizeof(*seg));
	struct stat st;
	int r;

	if (!seg) {
		close(fd);
		return weft__fail(err, -ENOMEM, "%s: out of memory", name);
	}
	seg->fd = fd;
	if (fstat(seg->fd, &st) < 0)
		r = weft__fail(err, -errno, "%s: %s", name, weft_strerror(-errno));
	else if (!S_ISREG(st.st_mode))
		r = weft__fail(err, -WEFT_E_FORMAT, "%s: not a regular file; give a .weft file", name);
	else {
		seg->n_bytes = (uint64_t)st.st_size;
		r = open_any(seg, name, err);
	}
	if (r)
		weft_segment_close(seg);
	else
		*ret = seg;
	return r;
}

/* What the error of a file that cannot be opened says: segments are for the eyes of the user who recorded them. */
static int open_refused(const char *path, int code, struct weft_error *err)
{
	if (code == -EACCES)
		return weft__fail(
			err, code,
			"%s: %s; segments are readable by the user who recorded them only (and root): read it as "
			"that user, or record with WEFT_FILE_MODE=0640 for a group",
			path, weft_strerror(code));
	return weft__fail(err, code, "%s: %s", path, weft_strerror(code));
}

int weft_segment_open(struct weft_segment **ret, const char *path, struct weft_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a FIFO is not waited for */

	return fd < 0 ? open_refused(path, -errno, err) : open_descriptor(ret, fd, path, err);
}

int weft__segment_open_at(struct weft_segment **ret, int dir, const char *name, const char *path,
			  struct weft_error *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);

	if (fd < 0 && errno == ELOOP)
		return weft__fail(err, -ELOOP, "%s: a link, which is not followed; name the file itself", path);
	return fd < 0 ? open_refused(path, -errno, err) : open_descriptor(ret, fd, path, err);
}

int weft__segment_open_fd(struct weft_segment **ret, int fd, const char *name, struct weft_error *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return own < 0 ? weft__fail(err, -errno, "%s: %s", name, weft_strerror(-errno))
		       : open_descriptor(ret, own, name, err);
}

int weft_segment_open_memory(struct weft_segment **ret, const void *bytes, size_t n_bytes, struct weft_error *err)
{
	struct weft_segment *seg = weft__calloc(1, sizeof(*seg));
	int r;

	if (!seg)
		return weft__fail(err, -ENOMEM, "out of memory");
	seg->fd = -1;
	seg->memory = bytes ? bytes : (const uint8_t *)"";
	seg->n_bytes = n_bytes;
	r = open_any(seg, "(memory)", err);
	if (r) {
		weft_segment_close(seg);
		return r;
	}
	*ret = seg;
	return 0;
}

void weft_segment_close(struct weft_segment *seg)
{
	if (!seg)
		return;
	if (seg->fd >= 0)
		close(seg->fd);
	weft__decoder_close(seg->decoder);
	weft__buf_free(&seg->scratch);
	weft__buf_free(&seg->expanded);
	weft__free(seg->blocks);
	weft__segment_free_defs(seg);
	weft__free(seg);
}

const struct weft_segment_info *weft_segment_info(const struct weft_segment *seg)
{
	return &seg->info;
}

struct weft_damage weft_segment_damage(const struct weft_segment *seg)
{
	struct weft_damage damage = seg->damage;

	damage.text = seg->damage_text;
	return damage;
}
