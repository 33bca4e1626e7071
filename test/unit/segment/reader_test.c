/* SPDX-License-Identifier: Apache-2.0 */
/* Segments written and read back, whole, cut and damaged. */
#include "make.h"

#include <fcntl.h>

#include "base/bytes.h"
#include "segment/format.h"
#include "segment/hash.h"
#include "segment/reader.h"

static struct weft_segment *open_bytes(const uint8_t *bytes, size_t n)
{
	struct weft_segment *seg = NULL;
	struct weft_error err = {0};

	if (!CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, &err), 0))
		printf("\t%s\n", err.msg);
	return seg;
}

/* Reads all events in stored order; answers how many, and whether they are those from `from` on in the list. */
static size_t count_same(struct weft_segment *seg, const struct make_list *list, size_t from, int *same)
{
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	size_t n = 0;

	*same = 1;
	CHECK_EQ(weft_cursor_open(&cursor, seg, WEFT_ORDER_STORED, 0, UINT64_MAX, NULL), 0);
	while (weft_cursor_next(cursor, &ev) > 0) {
		*same &= from + n < list->n && make_equal(&ev, &list->all[from + n]);
		n++;
	}
	weft_cursor_close(cursor);
	return n;
}

TEST(sealed_and_unsealed_hold_the_same)
{
	struct make_file file;
	struct weft_segment *seg;
	const struct weft_segment_info *info;
	uint8_t *bytes;
	size_t n;
	int sealed, same;

	make_file_three(&file, 100);
	for (sealed = 0; sealed < 2; sealed++) {
		if (sealed)
			CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
		bytes = make_file_bytes(&file, &n);
		seg = open_bytes(bytes, n);
		info = weft_segment_info(seg);
		CHECK_EQ(info->sealed, sealed);
		CHECK_EQ(info->recovered, 0);
		CHECK_EQ(info->n_blocks, 7);
		CHECK_EQ(info->n_events, 900);
		CHECK_EQ(info->n_bytes, n);
		CHECK_EQ(info->sequence, 7);
		CHECK_EQ(info->start_mono_ns, 100);
		CHECK_EQ(info->start_real_ns, 200);
		CHECK_EQ(info->recording[15], 0xab);
		CHECK_EQ(info->quantum_ns, 1);
		CHECK_EQ(count_same(seg, &file.list, 0, &same), 900);
		CHECK(same);
		CHECK_STR(weft_segment_fact(seg, "key"), "value");
		CHECK_EQ(weft_segment_damage(seg).places, 0);
		CHECK_STR(weft_segment_damage(seg).text, "");
		weft_segment_close(seg);
		free(bytes);
	}
	make_file_close(&file);
}

TEST(recovered_is_said_by_header_or_index)
{
	struct weft__segment_head head = {.flags = SEG_FLAG_RECOVERED};
	struct make_file file;
	struct weft_segment *seg;
	uint8_t *bytes;
	size_t n;

	make_file_open(&file);
	CHECK_EQ(weft__writer_seal(&file.writer, BLOCK_FLAG_RECOVERED), 0);
	bytes = make_file_bytes(&file, &n);
	seg = open_bytes(bytes, n);
	CHECK_EQ(weft_segment_info(seg)->recovered, 1);
	CHECK_EQ(weft_segment_info(seg)->sealed, 1);
	weft_segment_close(seg);
	free(bytes);
	CHECK_EQ(ftruncate(file.fd, 0), 0);
	CHECK_EQ(weft__writer_begin(&file.writer, file.fd, &head), 0);
	bytes = make_file_bytes(&file, &n);
	seg = open_bytes(bytes, n);
	CHECK_EQ(weft_segment_info(seg)->recovered, 1);
	weft_segment_close(seg);
	free(bytes);
	make_file_close(&file);
}

/* A file cut at any byte opens, and gives the events of every whole block, and says how much is missing. */
TEST(a_segment_cut_at_any_byte_gives_its_whole_blocks)
{
	struct make_file file;
	uint8_t *bytes;
	size_t n, cut, got;
	int same;

	make_file_three(&file, 5);
	CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
	bytes = make_file_bytes(&file, &n);
	for (cut = 0; cut < n; cut++) {
		uint8_t *copy = malloc(cut + 1);
		struct weft_segment *seg = NULL;
		uint64_t covered = SEG_HEADER_BYTES;
		size_t i;

		memcpy(copy, bytes, cut);
		if (cut < SEG_HEADER_BYTES) {
			CHECK_EQ(weft_segment_open_memory(&seg, copy, cut, NULL), -WEFT_E_FORMAT);
			free(copy);
			continue;
		}
		seg = open_bytes(copy, cut);
		got = count_same(seg, &file.list, 0, &same);
		CHECK(same && got % 15 == 0);
		CHECK_EQ(got, weft_segment_info(seg)->n_events);
		for (i = 0; i < seg->n_blocks; i++)
			covered += BLOCK_HEADER_BYTES + seg->blocks[i].bytes;
		if (cut < file.writer.offset - TRAILER_BYTES - 200) /* before the index, which is not listed */
			CHECK_EQ(covered + weft_segment_damage(seg).missing_bytes, cut);
		weft_segment_close(seg);
		free(copy);
	}
	free(bytes);
	make_file_close(&file);
}

/* Any one byte changed costs at most the block that it is in. */
TEST(a_segment_changed_at_any_byte_is_damage_and_no_crash)
{
	struct make_file file;
	uint8_t *bytes;
	size_t n, at, got;
	int same;

	make_file_three(&file, 5);
	CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
	bytes = make_file_bytes(&file, &n);
	for (at = SEG_HEADER_BYTES; at < n; at++) {
		struct weft_segment *seg;

		bytes[at] ^= 0x10;
		seg = open_bytes(bytes, n);
		got = count_same(seg, &file.list, 0, &same);
		CHECK(got >= 30);
		CHECK(weft_segment_damage(seg).places > 0);
		CHECK(weft_segment_damage(seg).text[0] != 0);
		CHECK(weft_segment_damage(seg).first_offset <= at);
		weft_segment_close(seg);
		bytes[at] ^= 0x10;
	}
	free(bytes);
	make_file_close(&file);
}

/* The same over a file, where blocks are read as they are needed. */
TEST(a_segment_is_read_from_a_file_as_from_memory)
{
	char path[] = "/tmp/weft-reader-test-XXXXXX";
	struct weft_segment *seg = NULL;
	struct weft_error err = {0};
	struct make_file file;
	uint8_t *bytes;
	size_t n;
	int fd = mkstemp(path), same, sealed;

	REQUIRE(fd >= 0);
	make_file_three(&file, 100);
	for (sealed = 0; sealed < 2; sealed++) {
		if (sealed)
			CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
		bytes = make_file_bytes(&file, &n);
		CHECK_EQ(pwrite(fd, bytes, n, 0), n);
		CHECK_EQ(weft_segment_open(&seg, path, &err), 0);
		CHECK_EQ(count_same(seg, &file.list, 0, &same), 900);
		CHECK(same);
		weft_segment_close(seg);
		free(bytes);
	}
	CHECK_EQ(ftruncate(fd, 70), 0);
	CHECK_EQ(weft_segment_open(&seg, path, &err), 0);
	CHECK_EQ(weft_segment_damage(seg).missing_bytes, 6);
	weft_segment_close(seg);
	unlink(path);
	close(fd);
	CHECK_EQ(weft_segment_open(&seg, path, &err), -ENOENT);
	CHECK(strstr(err.msg, path) != NULL);
	CHECK_EQ(weft_segment_open(&seg, "/dev/zero", &err), -WEFT_E_FORMAT);
	CHECK_EQ(weft_segment_open(&seg, "/", &err), -WEFT_E_FORMAT);
	make_file_close(&file);
}

static void rehash(uint8_t *header)
{
	put_u64(header + SEG_HASH_AT, weft__hash(header, SEG_HASH_AT));
}

TEST(headers_that_are_wrong_are_refused)
{
	struct weft_segment *seg = NULL;
	struct weft_error err = {0};
	struct make_file file;
	uint8_t *bytes;
	size_t n;

	make_file_open(&file);
	bytes = make_file_bytes(&file, &n);
	CHECK_EQ(n, SEG_HEADER_BYTES);
	CHECK_EQ(weft_segment_open_memory(&seg, NULL, 0, &err), -WEFT_E_FORMAT);
	put_u16(bytes + SEG_VERSION_AT, 2);
	CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, &err), -WEFT_E_VERSION);
	put_u16(bytes + SEG_VERSION_AT, 0);
	rehash(bytes);
	CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, &err), -WEFT_E_FORMAT);
	put_u16(bytes + SEG_VERSION_AT, 1);
	CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, &err), -WEFT_E_FORMAT);
	put_u16(bytes + SEG_HEADER_BYTES_AT, 63);
	rehash(bytes);
	CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, &err), -WEFT_E_FORMAT);
	put_u16(bytes + SEG_HEADER_BYTES_AT, 65);
	rehash(bytes);
	CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, &err), -WEFT_E_FORMAT);
	put_u16(bytes + SEG_HEADER_BYTES_AT, 64);
	rehash(bytes);
	CHECK_EQ(weft_segment_open_memory(&seg, bytes, n, NULL), 0);
	weft_segment_close(seg);
	weft_segment_close(NULL);
	weft_cursor_close(NULL);
	free(bytes);
	make_file_close(&file);
}

TEST(unknown_blocks_are_skipped)
{
	struct weft__buf payload = {0};
	struct make_file file;
	struct weft_segment *seg;
	uint8_t *bytes;
	size_t n;
	int same, sealed;

	make_file_three(&file, 10);
	weft__buf_text(&payload, SEG_BLOCK_MAGIC " from a later version");
	CHECK_EQ(weft__writer_block(&file.writer, 99, 0xfff0, 5, 6, 7, &payload), 0);
	weft__defs_fact(&file.defs, "behind", "it");
	make_file_defs(&file);
	for (sealed = 0; sealed < 2; sealed++) {
		if (sealed)
			CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
		bytes = make_file_bytes(&file, &n);
		seg = open_bytes(bytes, n);
		CHECK_EQ(weft_segment_info(seg)->n_unknown_blocks, 1);
		CHECK_EQ(count_same(seg, &file.list, 0, &same), 90);
		CHECK_STR(weft_segment_fact(seg, "behind"), "it");
		CHECK_EQ(weft_segment_damage(seg).places, 0);
		weft_segment_close(seg);
		free(bytes);
	}
	weft__buf_free(&payload);
	make_file_close(&file);
}

/* Kinds that the segment does not describe have their fields all the same. */
TEST(unknown_kinds_keep_their_fields)
{
	uint64_t fields[3] = {1, 2, 3};
	struct weft__batch batch;
	struct make_file file;
	struct weft_segment *seg;
	uint8_t *bytes;
	size_t n;
	int same;

	make_file_open(&file);
	weft__batch_init(&batch, 1);
	CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
	make_add(&file.list, &batch, 1, 5, 3000, fields, 3);
	make_add(&file.list, &batch, 1, 6, 3001, fields, 0);
	weft__batch_end(&batch, 1);
	make_file_events(&file, &batch);
	bytes = make_file_bytes(&file, &n);
	seg = open_bytes(bytes, n);
	CHECK_EQ(count_same(seg, &file.list, 0, &same), 2);
	CHECK(same);
	CHECK(weft_segment_kind(seg, 3000) == NULL);
	weft_segment_close(seg);
	free(bytes);
	weft__batch_fini(&batch);
	make_file_close(&file);
}

/* A block that says other times than its events have would be passed by when seeking: it is damaged. */
TEST(times_of_a_block_must_be_its_events)
{
	struct weft__batch batch;
	struct make_file file;
	struct weft_segment *seg;
	uint64_t first, last;
	uint8_t *bytes;
	size_t n;
	int same, wrong;

	for (wrong = 0; wrong < 3; wrong++) {
		make_file_open(&file);
		weft__batch_init(&batch, 1);
		CHECK_EQ(weft__batch_begin(&batch, 1, 0, 0, 0), 0);
		make_add(&file.list, &batch, 1, 50, 4, NULL, 0);
		make_add(&file.list, &batch, 1, 60, 4, NULL, 0);
		weft__batch_end(&batch, 1);
		CHECK_EQ(weft__encoder_events(file.enc, &batch, &file.payload, &first, &last), 0);
		CHECK_EQ(weft__writer_block(&file.writer, BLOCK_EVENTS, 0, 2, first + (wrong == 1), last - (wrong == 2),
					    &file.payload),
			 0);
		bytes = make_file_bytes(&file, &n);
		seg = open_bytes(bytes, n);
		CHECK_EQ(count_same(seg, &file.list, 0, &same), wrong ? 0 : 2);
		CHECK_EQ(weft_segment_damage(seg).missing_bytes, wrong ? n - SEG_HEADER_BYTES : 0);
		CHECK_EQ(count_same(seg, &file.list, 0, &same), wrong ? 0 : 2);
		CHECK_EQ(weft_segment_damage(seg).places, wrong > 0); /* counted once, however often it is read */
		weft_segment_close(seg);
		free(bytes);
		weft__batch_fini(&batch);
		make_file_close(&file);
	}
}

/* The index leaves out what was damaged when the file was sealed; it is missing all the same. */
TEST(damage_before_sealing_is_still_reported)
{
	struct make_file file;
	struct weft_segment *seg;
	struct weft__block bad;
	uint8_t *bytes;
	size_t n, i;
	int same;

	make_file_three(&file, 10);
	bytes = make_file_bytes(&file, &n);
	seg = open_bytes(bytes, n);
	bad = seg->blocks[3]; /* the second of events */
	CHECK_EQ(bad.type, BLOCK_EVENTS);
	weft__writer_adopt(&file.writer, file.fd, n);
	for (i = 0; i < seg->n_blocks; i++)
		if (i != 3)
			CHECK_EQ(weft__writer_adopted(&file.writer, seg->blocks[i].type, seg->blocks[i].offset,
						      BLOCK_HEADER_BYTES + seg->blocks[i].bytes, seg->blocks[i].count,
						      seg->blocks[i].first_ns, seg->blocks[i].last_ns),
				 0);
	CHECK_EQ(pwrite(file.fd, "damage", 6, (off_t)bad.offset + 50), 6);
	CHECK_EQ(weft__writer_seal(&file.writer, BLOCK_FLAG_RECOVERED), 0);
	weft_segment_close(seg);
	free(bytes);
	bytes = make_file_bytes(&file, &n);
	seg = open_bytes(bytes, n);
	CHECK_EQ(count_same(seg, &file.list, 0, &same), 60);
	CHECK_EQ(weft_segment_info(seg)->sealed, 1);
	CHECK_EQ(weft_segment_info(seg)->recovered, 1);
	CHECK_EQ(weft_segment_damage(seg).missing_bytes, BLOCK_HEADER_BYTES + bad.bytes);
	CHECK_EQ(weft_segment_damage(seg).first_offset, bad.offset);
	weft_segment_close(seg);
	free(bytes);
	make_file_close(&file);
}

/* Very many false beginnings of blocks: the search gives up before it has read the file too often. */
TEST(the_search_for_whole_blocks_ends_in_a_hostile_file)
{
	size_t n = 8u << 20, at;
	struct weft_segment *seg;
	struct make_file file;
	uint8_t *head, *bytes = calloc(1, n);
	size_t n_head;

	make_file_open(&file);
	head = make_file_bytes(&file, &n_head);
	memcpy(bytes, head, n_head);
	for (at = n_head; at + BLOCK_HEADER_BYTES < n / 2; at += BLOCK_HEADER_BYTES) {
		memcpy(bytes + at, SEG_BLOCK_MAGIC, 4);
		put_u32(bytes + at + BLOCK_LENGTH_AT, (uint32_t)(n / 4));
	}
	seg = open_bytes(bytes, n);
	CHECK_EQ(weft_segment_info(seg)->n_blocks, 0);
	CHECK_EQ(weft_segment_damage(seg).missing_bytes, n - n_head);
	weft_segment_close(seg);
	free(bytes);
	free(head);
	make_file_close(&file);
}

/* Candidates close to each other, in a file: each is looked at without reading the file anew. */
TEST(hostile_resync_in_a_file_ends)
{
	char path[] = "/tmp/weft-reader-test-XXXXXX";
	size_t n = 4u << 20, n_head, at;
	struct weft_segment *seg = NULL;
	struct make_file file;
	uint8_t *head, *bytes = calloc(1, n);
	int fd = mkstemp(path);

	REQUIRE(fd >= 0);
	make_file_open(&file);
	head = make_file_bytes(&file, &n_head);
	memcpy(bytes, head, n_head);
	for (at = n_head; at + 12 < n; at += 12)
		memcpy(bytes + at, SEG_BLOCK_MAGIC, 4);
	CHECK_EQ(pwrite(fd, bytes, n, 0), n);
	CHECK_EQ(weft_segment_open(&seg, path, NULL), 0);
	CHECK_EQ(weft_segment_damage(seg).missing_bytes, n - n_head);
	weft_segment_close(seg);
	unlink(path);
	close(fd);
	free(bytes);
	free(head);
	make_file_close(&file);
}

static int read_all(const char *path, enum weft_order order, size_t *n)
{
	struct weft_cursor *cursor = NULL;
	struct weft_segment *seg = NULL;
	struct weft_event_view ev;
	struct weft_error err = {0};
	int r = weft_segment_open(&seg, path, &err);

	*n = 0;
	if (r) {
		CHECK(err.msg[0] != 0);
		return r;
	}
	r = weft_cursor_open(&cursor, seg, order, 0, UINT64_MAX, NULL);
	while (r >= 0 && (r = weft_cursor_next(cursor, &ev)) > 0)
		++*n;
	if (r == 0)
		CHECK_EQ(weft_segment_damage(seg).places, 0);
	weft_cursor_close(cursor);
	weft_segment_close(seg);
	return r;
}

/* An error, never a crash, a leak, or a segment that seems to hold less than it does. */
TEST(out_of_memory_at_every_allocation)
{
	struct make_memory memory = {0, 0};
	struct weft_allocator allocator = {make_resize, make_release, &memory};
	char path[] = "/tmp/weft-reader-test-XXXXXX";
	struct make_file file;
	uint8_t *bytes;
	size_t n, got;
	int fd = mkstemp(path), sealed, order;

	REQUIRE(fd >= 0);
	make_file_three(&file, 50);
	for (sealed = 0; sealed < 2; sealed++) {
		if (sealed)
			CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
		bytes = make_file_bytes(&file, &n);
		CHECK_EQ(pwrite(fd, bytes, n, 0), n);
		free(bytes);
		weft_set_allocator(&allocator);
		for (order = 0; order < 2; order++) {
			int err = -ENOMEM;
			long left;

			for (left = 0; err && left < 10000; left++) {
				memory.left = left;
				err = read_all(path, (enum weft_order)order, &got);
				CHECK_EQ(memory.live, 0);
				if (err && !CHECK_EQ(err, -ENOMEM))
					break;
			}
			CHECK_EQ(err, 0);
			CHECK_EQ(got, 450);
			CHECK(left > 20);
		}
		weft_set_allocator(NULL);
	}
	unlink(path);
	close(fd);
	make_file_close(&file);
}
