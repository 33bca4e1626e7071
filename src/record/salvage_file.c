/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery into the segment file: what is in it already is learnt, the rest is appended, and it is sealed. CALLER. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/error.h"
#include "record/collect/unpack.h"
#include "record/found.h"
#include "record/recover.h"
#include "segment/format.h"

static int salvage_open(struct weft__salvage *s, struct weft_error *err)
{
	int r;

	s->progress = weft__calloc((s->region.head ? s->region.head->n_rings : 0) + FOUND_LANES, sizeof(*s->progress));
	s->known = weft__calloc(1, sizeof(*s->known));
	r = s->progress && s->known ? weft__encoder_open(&s->encoder, 1) : -ENOMEM;
	if (r)
		return weft__fail(err, r, "out of memory");
	weft__batch_init(&s->batch, s->region.head ? s->region.head->quantum_ns : 8);
	if (s->region.head)
		weft__salvage_clock(s);
	return 0;
}

void weft__salvage_close(struct weft__salvage *s)
{
	weft_segment_close(s->active);
	if (s->known)
		weft__segment_free_defs(s->known);
	weft__free(s->known);
	weft__free(s->progress);
	weft__encoder_close(s->encoder);
	weft__batch_fini(&s->batch);
	weft__buf_free(&s->payload);
	weft__defs_fini(&s->defs);
	weft__code_fini(&s->code);
	weft__writer_fini(&s->writer);
	if (s->fd >= 0)
		close(s->fd);
	weft__region_close(&s->region);
}

/* How far each ring had come, from the blocks that are in the file. */
static int learn_progress(struct weft__salvage *s)
{
	struct weft_segment *seg = s->active;
	struct weft__decoded block = {0};
	size_t i;
	int err = 0;

	for (i = 0; i < seg->n_blocks && !err; i++) {
		struct weft__block *b = &seg->blocks[i];
		const uint8_t *payload;
		const char *why;
		uint32_t c, at = 0;
		int oom;

		if (b->type != BLOCK_EVENTS)
			continue;
		payload = weft__segment_payload(seg, b, &oom);
		if (oom)
			err = -ENOMEM;
		if (!payload)
			continue;
		err = weft__decoder_events(seg->decoder, payload, b->bytes, b->count, &block, &why);
		if (err == -WEFT_E_DAMAGED) {
			err = 0;
			continue;
		}
		for (c = 0; !err && c < block.n_chunks; c++) {
			const struct weft__chunk *chunk = &block.chunks[c];

			at += chunk->n_events;
			if (!chunk->n_slots && s->region.head && chunk->ring < s->region.head->n_rings)
				s->progress[chunk->ring].counted = 1;
			weft__salvage_passed(s, chunk->ring, chunk->first_slot + chunk->n_slots, chunk->stream,
					     block.time[at - 1]);
		}
	}
	weft__decoded_fini(&block);
	return err;
}

struct weft__progress *weft__salvage_progress(const struct weft__salvage *s, uint32_t ring)
{
	const struct rings_head *head = s->region.head;

	if (!head)
		return NULL;
	if (ring < head->n_rings)
		return &s->progress[ring];
	if (ring >= FOUND_RING(head, 0) && ring < FOUND_RING(head, FOUND_LANES))
		return &s->progress[head->n_rings + (ring - FOUND_RING(head, 0))];
	return NULL;
}

void weft__salvage_passed(struct weft__salvage *s, uint32_t ring, uint64_t upto, uint32_t stream, uint64_t last_ns)
{
	struct weft__progress *p = weft__salvage_progress(s, ring);

	if (!p || upto <= p->next)
		return;
	if (p->stream != stream)
		p->last_ns = 0;
	p->next = upto;
	p->stream = stream;
	if (last_ns > p->last_ns)
		p->last_ns = last_ns;
}

/* Keeps the whole blocks of the file, and makes ready to append. */
static int adopt_file(struct weft__salvage *s)
{
	struct weft_segment *seg = s->active;
	size_t i;
	int err = 0;

	weft__writer_adopt(&s->writer, s->fd, seg->good_end);
	for (i = 0; i < seg->n_blocks && !err; i++) {
		const struct weft__block *b = &seg->blocks[i];

		if (!b->bad)
			err = weft__writer_adopted(&s->writer, b->type, b->offset,
						   BLOCK_HEADER_BYTES + (uint64_t)b->bytes, b->count, b->first_ns,
						   b->last_ns);
	}
	s->cut_bytes = seg->info.sealed ? 0 : seg->n_bytes - seg->good_end;
	if (err)
		return err;
	s->undo_to = (int64_t)seg->good_end;
	return ftruncate(s->fd, (off_t)seg->good_end) < 0 ? -errno : 0;
}

static int begin_missing(struct weft__salvage *s)
{
	const struct rings_head *head = s->region.head;
	struct weft__segment_head seg = {.flags = SEG_FLAG_RECOVERED, .sequence = head->sequence};

	memcpy(seg.recording, head->recording, sizeof(seg.recording));
	seg.mono_ns = s->timeline.last.mono_ns;
	seg.real_ns = s->timeline.last.real_ns;
	s->undo_to = 0;
	if (ftruncate(s->fd, 0) < 0)
		return -errno;
	return weft__writer_begin(&s->writer, s->fd, &seg);
}

int weft__salvage_flush(struct weft__salvage *s)
{
	uint64_t first, last;
	int err;

	if (weft__defs_oom(&s->defs))
		return -ENOMEM;
	err = weft__writer_defs(&s->writer, s->encoder, &s->defs);
	weft__defs_clear(&s->defs);
	if (err || !s->batch.n)
		return err;
	err = weft__encoder_events(s->encoder, &s->batch, &s->payload, &first, &last);
	if (!err)
		err = weft__writer_block(&s->writer, BLOCK_EVENTS, 0, (uint32_t)s->batch.n, first, last, &s->payload);
	s->from_rings += s->batch.n;
	weft__batch_clear(&s->batch);
	return err;
}

/* After this everything is in the file, and on the disk: the rings may go. */
static int seal(struct weft__salvage *s)
{
	int err = weft__writer_seal(&s->writer, BLOCK_FLAG_RECOVERED);

	if (!err && fdatasync(s->fd) < 0 && errno != EINVAL)
		err = -errno;
	return err;
}

/* Opens the file to append to. A missing or unreadable one is begun anew when there are rings to fill it from. */
static int open_active(struct weft__salvage *s, const struct weft__salvage_at *at, const char *name,
		       struct weft_error *err)
{
	int r;

	s->fd = weft__dir_file(at->dir, name, O_RDWR);
	if (s->fd == -ENOENT && s->region.head)
		s->fd = weft__dir_create(at->dir, name, FILE_MODE);
	if (s->fd < 0) {
		r = s->fd;
		s->fd = -1;
		return weft__fail(err, r, "%s/%s: %s", at->path, name, weft_strerror(r));
	}
	r = weft__file_lock(s->fd);
	if (r)
		return weft__fail(err, r, "%s/%s: its process is alive", at->path, name);
	if (!weft__file_marked(s->fd, SEG_MAGIC) && (!s->region.head || lseek(s->fd, 0, SEEK_END) > 0))
		return weft__fail(err, -EBADF, "%s/%s: does not carry weft's mark: left alone", at->path, name);
	r = weft__segment_open_fd(&s->active, s->fd, name, err);
	if (!r) {
		r = learn_progress(s);
		return r ? r : adopt_file(s);
	}
	if (r != -WEFT_E_FORMAT || !s->region.head)
		return r;
	return begin_missing(s);
}

int weft__salvage_file(struct weft__salvage *s, const struct weft__salvage_at *at, const char *name,
		       struct weft_recovered *out, struct weft_error *err)
{
	int r = salvage_open(s, err);

	if (!r)
		r = open_active(s, at, name, err);
	if (!r && s->region.head)
		r = weft__salvage_memory(s);
	if (!r)
		r = weft__salvage_flush(s);
	if (!r)
		r = seal(s);
	if (r && s->undo_to >= 0)
		(void)!ftruncate(s->fd, (off_t)s->undo_to); /* the rings have it all still */
	out->events = s->writer.n_events;
	out->from_rings = s->from_rings;
	out->cut_bytes = s->cut_bytes;
	return r;
}
