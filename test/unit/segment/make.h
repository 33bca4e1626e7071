/* SPDX-License-Identifier: Apache-2.0 */
/* Events made from a seed, and segments in memory, for the tests of this folder. */
#ifndef WEFT_SEGMENT_MAKE_H
#define WEFT_SEGMENT_MAKE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "segment/batch.h"
#include "segment/decode.h"
#include "segment/writer.h"
#include "weft/hooks.h"
#include "weft_test.h"

static inline uint64_t make_random(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* What went into a batch, in order. */
struct make_list {
	struct weft_event_view *all;
	size_t n;
	size_t cap;
};

static inline void make_add(struct make_list *list, struct weft__batch *batch, uint32_t stream, uint64_t time_ns,
			    uint32_t kind, const uint64_t *fields, uint32_t n_fields)
{
	struct weft_event_view *ev;

	if (list->n == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 1024;
		list->all = realloc(list->all, list->cap * sizeof(*list->all));
	}
	ev = &list->all[list->n++];
	memset(ev, 0, sizeof(*ev));
	CHECK_EQ(weft__batch_add(batch, time_ns, kind, fields, n_fields), 0);
	ev->time_ns = time_ns >> batch->shift << batch->shift;
	ev->thread = stream;
	ev->kind = (uint16_t)kind;
	ev->n_fields = (uint16_t)n_fields;
	if (n_fields)
		memcpy(ev->fields, fields, n_fields * sizeof(*fields));
}

static inline int make_equal(const struct weft_event_view *a, const struct weft_event_view *b)
{
	return a->time_ns == b->time_ns && a->thread == b->thread && a->kind == b->kind && a->n_fields == b->n_fields &&
	       !memcmp(a->fields, b->fields, a->n_fields * sizeof(a->fields[0]));
}

/* Encodes the batch, decodes it and compares with the list. */
static inline void make_check_block(const struct weft__batch *batch, const struct make_list *list)
{
	struct weft__encoder *enc = NULL;
	struct weft__decoder *dec = NULL;
	struct weft__decoded block = {0};
	struct weft__buf out = {0};
	uint64_t first = 1, last = 1;
	struct weft_event_view ev;
	const char *why = "";
	uint32_t i = 0, bad = 0;

	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__decoder_open(&dec), 0);
	CHECK_EQ(weft__encoder_events(enc, batch, &out, &first, &last), 0);
	if (!CHECK_EQ(weft__decoder_events(dec, out.bytes, out.n, (uint32_t)list->n, &block, &why), 0))
		printf("\t%s\n", why);
	CHECK_EQ(block.first_ns, first);
	CHECK_EQ(block.last_ns, last);
	for (; weft__decoded_event(&block, &ev) && i < list->n; i++)
		bad += !make_equal(&ev, &list->all[i]);
	CHECK_EQ(i, list->n);
	CHECK_EQ(bad, 0);
	weft__decoded_fini(&block);
	weft__decoder_close(dec);
	weft__encoder_close(enc);
	weft__buf_free(&out);
}

/* A segment being written to memory. */
struct make_file {
	int fd;
	struct weft__writer writer;
	struct weft__encoder *enc;
	struct weft__buf payload;
	struct weft__defs defs;
	struct make_list list; /* every event, in stored order */
};

static inline void make_file_open(struct make_file *file)
{
	struct weft__segment_head head = {.sequence = 7, .mono_ns = 100, .real_ns = 200};

	memset(file, 0, sizeof(*file));
	memset(head.recording, 0xab, sizeof(head.recording));
	file->fd = memfd_create("segment", MFD_CLOEXEC);
	CHECK(file->fd >= 0);
	CHECK_EQ(weft__encoder_open(&file->enc, 1), 0);
	CHECK_EQ(weft__writer_begin(&file->writer, file->fd, &head), 0);
}

static inline void make_file_defs(struct make_file *file)
{
	CHECK_EQ(weft__writer_defs(&file->writer, file->enc, &file->defs), 0);
	weft__defs_clear(&file->defs);
}

static inline void make_file_events(struct make_file *file, const struct weft__batch *batch)
{
	uint64_t first, last;

	CHECK_EQ(weft__encoder_events(file->enc, batch, &file->payload, &first, &last), 0);
	CHECK_EQ(weft__writer_block(&file->writer, 2, 0, (uint32_t)batch->n, first, last, &file->payload), 0);
}

/* The bytes so far, the caller's. */
static inline uint8_t *make_file_bytes(struct make_file *file, size_t *ret_n)
{
	size_t n = (size_t)file->writer.offset;
	uint8_t *bytes = malloc(n);

	CHECK_EQ(pread(file->fd, bytes, n, 0), n);
	CHECK_EQ(lseek(file->fd, 0, SEEK_END), n);
	*ret_n = n;
	return bytes;
}

static inline void make_file_close(struct make_file *file)
{
	weft__writer_fini(&file->writer);
	weft__encoder_close(file->enc);
	weft__buf_free(&file->payload);
	weft__defs_fini(&file->defs);
	free(file->list.all);
	close(file->fd);
}

/* A chunk of events of a few kinds; answers the time of its last one. */
static inline uint64_t make_chunk(struct make_file *file, struct weft__batch *batch, uint32_t stream, uint64_t from_ns,
				  uint32_t n, uint64_t *seed)
{
	CHECK_EQ(weft__batch_begin(batch, stream, stream, 0, 0), 0);
	while (n--) {
		uint64_t fields[3] = {make_random(seed) % 50, make_random(seed), n};

		from_ns += make_random(seed) % (make_random(seed) % 4 ? 3 : 5000);
		make_add(&file->list, batch, stream, from_ns, 3 + (uint32_t)(make_random(seed) % 4), fields, 2);
	}
	weft__batch_end(batch, 1);
	return from_ns;
}

/* Definitions about code, not in the order of their ids. */
static inline void make_code(struct weft__defs *defs)
{
	static const struct weft__symbol_names names[] = {{2, 1, 3, 1}, {1, 1, 4, 0}};
	static const struct weft_frame frames[] = {{2, 5}, {1, 9}, {0, 77}};
	uint32_t i;

	for (i = 2; i > 0; i--) {
		weft__defs_module(defs, &(struct weft_module){.id = i, .path = "module", .end = 100, .build_id_n = 20});
		weft__defs_stack(defs, &(struct weft_stack){i, WEFT_STACK_COMPLETE, 3, frames});
		weft__defs_name(defs, i, "name");
		weft__defs_symbol(defs, i, 5, names, 2);
	}
}

/* Three blocks of three streams, with definitions before them. Times of neighbouring blocks overlap. */
static inline void make_file_three(struct make_file *file, uint32_t events_a_chunk)
{
	struct weft__batch batch;
	uint64_t seed = 3, at[4] = {0, 1000, 1500, 900};
	uint32_t block, stream;

	make_file_open(file);
	weft__defs_builtin_kinds(&file->defs);
	weft__defs_fact(&file->defs, "key", "value");
	make_code(&file->defs);
	make_file_defs(file);
	weft__batch_init(&batch, 1);
	for (block = 0; block < 3; block++) {
		weft__batch_clear(&batch);
		for (stream = 3; stream > 0; stream--)
			at[stream] = make_chunk(file, &batch, stream, at[stream], events_a_chunk, &seed);
		make_file_events(file, &batch);
		weft__defs_thread(&file->defs, &(struct weft_thread){block + 1, 10, 0xffff, "thread", 0});
		make_file_defs(file);
	}
	weft__batch_fini(&batch);
}

/* An allocator that fails from its nth allocation on, and counts what is not freed. */
struct make_memory {
	long left;
	long live;
};

static inline void *make_resize(void *ptr, size_t bytes, void *data)
{
	struct make_memory *memory = data;
	void *moved;

	if (memory->left <= 0)
		return NULL;
	memory->left--;
	moved = realloc(ptr, bytes);
	memory->live += !ptr && moved;
	return moved;
}

static inline void make_release(void *ptr, void *data)
{
	struct make_memory *memory = data;

	memory->live -= !!ptr;
	free(ptr);
}

#endif
