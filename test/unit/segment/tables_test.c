/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions written and read back. */
#include "make.h"

#include "base/alloc.h"
#include "segment/format.h"
#include "segment/reader.h"

static struct weft_segment *read_records(const struct weft__defs *defs, int expect)
{
	struct weft_segment *seg = weft__calloc(1, sizeof(*seg));

	CHECK_EQ(weft__segment_read_defs(seg, defs->out.bytes, defs->out.n), expect);
	CHECK_EQ(weft__segment_sort_defs(seg), 0);
	return seg;
}

static void forget(struct weft_segment *seg, struct weft__defs *defs)
{
	weft__segment_free_defs(seg);
	weft__free(seg);
	weft__defs_fini(defs);
}

static void put_record(struct weft__defs *defs, uint32_t tag, const char *body, size_t n)
{
	weft__buf_varint(&defs->out, tag);
	weft__buf_varint(&defs->out, n);
	weft__buf_put(&defs->out, body, n);
}

/* What is copied behind it would be taken for its length. */
TEST(a_tag_without_a_length_is_damage)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;

	weft__defs_fact(&defs, "key", "value");
	weft__buf_varint(&defs.out, 48);
	seg = read_records(&defs, -WEFT_E_DAMAGED);
	CHECK(weft_segment_fact(seg, "key") == NULL);
	forget(seg, &defs);
}

TEST(of_two_facts_of_one_key_the_last_counts)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	size_t n;

	weft__defs_fact(&defs, "key", "first");
	weft__defs_fact(&defs, "other", "value");
	weft__defs_fact(&defs, "key", "last");
	seg = read_records(&defs, 0);
	CHECK_STR(weft_segment_fact(seg, "key"), "last");
	CHECK_STR(weft_segment_fact(seg, "other"), "value");
	weft_segment_facts(seg, &n);
	CHECK_EQ(n, 2);
	forget(seg, &defs);
}

TEST(every_kind_of_definition_is_read_as_it_was_written)
{
	static const struct weft_field fields[] = {{"a", WEFT_TYPE_F64, "ms"}, {"b", WEFT_TYPE_STRING, NULL}};
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	const struct weft_loss *losses;
	const struct weft_clock *clocks;
	size_t n;

	weft__defs_string(&defs, UINT32_MAX, "text");
	weft__defs_location(&defs, 5, 42, "name", "file.c");
	weft__defs_runtime(&defs, 1, "runtime");
	weft__defs_worker(&defs, 2, 1, 3);
	weft__defs_thread(&defs, &(struct weft_thread){7, 4711, 2, "thread", 99});
	weft__defs_thread(&defs, &(struct weft_thread){8, 4712, 0xffff, "", 0});
	weft__defs_kind(&defs, 64, "kind", fields, 2);
	weft__defs_clock(&defs, &(struct weft_clock){1, 2, UINT64_MAX});
	weft__defs_loss(&defs, &(struct weft_loss){WEFT_LOSS_NO_RING, 7, 8, 9, 10});
	weft__defs_fact(&defs, "key", "value");
	CHECK_EQ(defs.n, 10);
	CHECK_EQ(weft__defs_count(defs.out.bytes, defs.out.n), 10);
	CHECK_EQ(weft__defs_count(defs.out.bytes, defs.out.n - 1), 9);
	seg = read_records(&defs, 0);
	CHECK_STR(weft_segment_string(seg, UINT32_MAX), "text");
	CHECK(weft_segment_string(seg, 1) == NULL);
	CHECK_STR(weft_segment_location(seg, 5)->name, "name");
	CHECK_STR(weft_segment_location(seg, 5)->file, "file.c");
	CHECK_EQ(weft_segment_location(seg, 5)->line, 42);
	CHECK_STR(weft_segment_runtime(seg, 1)->name, "runtime");
	CHECK_EQ(weft_segment_worker(seg, 2)->index, 3);
	CHECK_EQ(weft_segment_thread(seg, 7)->tid, 4711);
	CHECK_EQ(weft_segment_thread(seg, 7)->worker, 2);
	CHECK_EQ(weft_segment_thread(seg, 7)->first_ns, 99);
	CHECK_EQ(weft_segment_thread(seg, 8)->worker, 0xffff);
	CHECK_EQ(weft_segment_kind(seg, 64)->n_fields, 2);
	CHECK_STR(weft_segment_kind(seg, 64)->fields[0].unit, "ms");
	CHECK_STR(weft_segment_kind(seg, 64)->fields[1].unit, "");
	clocks = weft_segment_clocks(seg, &n);
	CHECK_EQ(n, 1);
	CHECK_EQ(clocks[0].real_ns, UINT64_MAX);
	losses = weft_segment_losses(seg, &n);
	CHECK_EQ(n, 1);
	CHECK_EQ(losses[0].count, 8);
	CHECK_STR(weft_segment_fact(seg, "key"), "value");
	CHECK(weft_segment_fact(seg, "other") == NULL);
	forget(seg, &defs);
}

TEST(built_in_kinds_have_their_names_and_fields)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	size_t n;

	weft__defs_builtin_kinds(&defs);
	seg = read_records(&defs, 0);
	weft_segment_kinds(seg, &n);
	CHECK_EQ(n, WEFT_KIND_BUILTIN_END - 1);
	CHECK_STR(weft_segment_kind(seg, WEFT_KIND_WAKE)->name, "wake");
	CHECK_STR(weft_segment_kind(seg, WEFT_KIND_WAKE)->fields[1].name, "worker");
	forget(seg, &defs);
}

TEST(a_later_definition_of_an_id_replaces_the_earlier)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	char text[16];
	size_t n, i;

	for (i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		weft__defs_string(&defs, (uint32_t)(i * 7919 % 100), text);
		weft__defs_fact(&defs, i % 2 ? "odd" : "even", text);
		weft__defs_clock(&defs, &(struct weft_clock){i, i, i});
	}
	seg = read_records(&defs, 0);
	weft_segment_strings(seg, &n);
	CHECK_EQ(n, 100);
	for (i = 900; i < 1000; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		CHECK_STR(weft_segment_string(seg, (uint32_t)(i * 7919 % 100)), text);
	}
	weft_segment_facts(seg, &n);
	CHECK_EQ(n, 2);
	CHECK_STR(weft_segment_fact(seg, "odd"), "999");
	CHECK_STR(weft_segment_fact(seg, "even"), "998");
	weft_segment_clocks(seg, &n);
	CHECK_EQ(n, 1000);
	forget(seg, &defs);
}

TEST(unknown_tags_and_longer_records_are_skipped)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;

	put_record(&defs, 200, "whatever", 8);
	put_record(&defs, 0, "", 0);
	put_record(&defs, DEF_STRING, "\x05\x02hi and more", 13);
	put_record(&defs, DEF_FACT, "\x01k\x01v\x07", 5);
	seg = read_records(&defs, 0);
	CHECK_STR(weft_segment_string(seg, 5), "hi");
	CHECK_STR(weft_segment_fact(seg, "k"), "v");
	forget(seg, &defs);
}

/* All records of a block or none. */
TEST(a_block_with_a_fault_gives_nothing)
{
	static const struct {
		uint32_t tag;
		const char *body;
		size_t n;
	} bad[] = {
		{DEF_STRING, "", 0},
		{DEF_STRING, "\x01\x05hi", 4},
		{DEF_STRING, "\x80\x80\x80\x80\x10\x01x", 7}, /* an id of 2^32 */
		{DEF_LOCATION, "\x01\x01\x01n", 4},
		{DEF_RUNTIME, "\x01", 1},
		{DEF_WORKER, "\x01\x01", 2},
		{DEF_THREAD, "\x01\x01\x01\x01", 4},
		{DEF_KIND, "\x01\x01k\x0f", 4},
		{DEF_KIND, "\x01\x01k\x01\x01", 5},
		{DEF_CLOCK, "\x01\x01", 2},
		{DEF_LOSS, "\x01\x01\x01\x01", 4},
		{DEF_FACT, "\x01k", 2},
		{DEF_CLOCK, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01\x01", 12},
	};
	size_t i, n;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct weft__defs defs = {0};
		struct weft_segment *seg;

		weft__defs_string(&defs, 1, "good");
		weft__defs_fact(&defs, "good", "too");
		weft__defs_clock(&defs, &(struct weft_clock){1, 1, 1});
		put_record(&defs, bad[i].tag, bad[i].body, bad[i].n);
		seg = read_records(&defs, -WEFT_E_DAMAGED);
		CHECK(weft_segment_string(seg, 1) == NULL);
		CHECK(weft_segment_fact(seg, "good") == NULL);
		weft_segment_clocks(seg, &n);
		CHECK_EQ(n, 0);
		forget(seg, &defs);
	}
}

/* A small file can stand for very many definitions. */
TEST(limits_are_damage_and_not_out_of_memory)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	uint32_t i;

	for (i = 0; i < 4096; i++)
		weft__defs_fact(&defs, "key", "");
	seg = read_records(&defs, 0);
	weft__segment_free_defs(seg);
	weft__free(seg);
	weft__defs_fact(&defs, "key", "");
	seg = read_records(&defs, -WEFT_E_DAMAGED);
	forget(seg, &defs);

	memset(&defs, 0, sizeof(defs));
	for (i = 0; i < (1u << 20) + 1; i++)
		weft__defs_clock(&defs, &(struct weft_clock){1, 1, 1});
	seg = read_records(&defs, -WEFT_E_DAMAGED);
	forget(seg, &defs);
}

TEST(a_bad_block_among_good_ones_is_reported)
{
	struct weft_segment *seg = NULL;
	struct make_file file;
	uint8_t *bytes;
	size_t n, at;

	make_file_open(&file);
	weft__defs_fact(&file.defs, "first", "1");
	make_file_defs(&file);
	at = (size_t)file.writer.offset;
	put_record(&file.defs, DEF_FACT, "\x09", 1);
	file.defs.n = 1;
	make_file_defs(&file);
	n = (size_t)file.writer.offset - at;
	weft__defs_fact(&file.defs, "second", "2");
	make_file_defs(&file);
	CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
	{
		size_t n_bytes;

		bytes = make_file_bytes(&file, &n_bytes);
		REQUIRE(weft_segment_open_memory(&seg, bytes, n_bytes, NULL) == 0);
	}
	CHECK_STR(weft_segment_fact(seg, "first"), "1");
	CHECK_STR(weft_segment_fact(seg, "second"), "2");
	CHECK_EQ(weft_segment_damage(seg).places, 1);
	CHECK_EQ(weft_segment_damage(seg).first_offset, at);
	CHECK_EQ(weft_segment_damage(seg).missing_bytes, n);
	weft_segment_close(seg);
	free(bytes);
	make_file_close(&file);
}

TEST(large_definitions_are_compressed)
{
	struct weft_segment *seg = NULL;
	struct make_file file;
	uint8_t *bytes;
	uint32_t i;
	size_t n;

	make_file_open(&file);
	for (i = 1; i <= 2000; i++)
		weft__defs_string(&file.defs, i, "the same text again and again");
	n = file.defs.out.n;
	make_file_defs(&file);
	CHECK(file.writer.offset < n / 3);
	bytes = make_file_bytes(&file, &n);
	REQUIRE(weft_segment_open_memory(&seg, bytes, n, NULL) == 0);
	CHECK_STR(weft_segment_string(seg, 2000), "the same text again and again");
	CHECK_EQ(seg->blocks[0].count, 2000);
	weft_segment_close(seg);
	free(bytes);
	make_file_close(&file);
}
