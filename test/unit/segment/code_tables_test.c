/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, stacks, names and symbols, written and read back. */
#include "make.h"

#include "base/alloc.h"
#include "segment/format.h"
#include "segment/reader.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static struct weft_segment *read_records(const struct weft__defs *defs, int expect)
{
	struct weft_segment *seg = weft__calloc(1, sizeof(*seg));

	CHECK(!weft__defs_oom(defs));
	CHECK_EQ(weft__segment_read_defs(seg, defs->out.bytes, defs->out.n), expect);
	CHECK_EQ(weft__segment_sort_defs(seg), 0);
	return seg;
}

static void forget(struct weft_segment *seg)
{
	weft__segment_free_defs(seg);
	weft__free(seg);
}

static void put_record(struct weft__defs *defs, uint32_t tag, const char *body, size_t n)
{
	weft__buf_varint(&defs->out, tag);
	weft__buf_varint(&defs->out, n);
	weft__buf_put(&defs->out, body, n);
	defs->n++;
}

static void put_stack(struct weft__defs *defs, uint32_t id, uint32_t flags, uint32_t n, uint64_t first)
{
	struct weft_frame *frames = calloc(n + 1, sizeof(*frames));
	uint32_t i;

	for (i = 0; i < n; i++) {
		frames[i].module = i % 3;
		frames[i].offset = first + i;
	}
	weft__defs_stack(defs, &(struct weft_stack){id, flags, n, frames});
	free(frames);
}

static int is_stack(const struct weft_stack *stack, uint32_t n, uint64_t first)
{
	uint32_t i;

	if (!stack || stack->n_frames != n)
		return 0;
	for (i = 0; i < n; i++)
		if (stack->frames[i].module != i % 3 || stack->frames[i].offset != first + i)
			return 0;
	return 1;
}

static size_t n_stacks(const struct weft_segment *seg)
{
	size_t n;

	weft_segment_stacks(seg, &n);
	return n;
}

TEST(modules_are_read_as_they_were_written)
{
	struct weft_module module = {.id = 3,
				     .kind = WEFT_MODULE_FILE,
				     .path = "/usr/lib/libc.so.6",
				     .start = 0x7f0000001000,
				     .end = 0x7f0000150000,
				     .offset = 0x1000,
				     .build_id_n = WEFT_BUILD_ID_MAX};
	struct weft_module kernel = {.id = UINT32_MAX, .kind = 99, .path = "", .end = UINT64_MAX};
	const struct weft_module *all, *got;
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	size_t n;

	memset(module.build_id, 0xa5, sizeof(module.build_id));
	weft__defs_module(&defs, &kernel);
	weft__defs_module(&defs, &module);
	seg = read_records(&defs, 0);
	all = weft_segment_modules(seg, &n);
	REQUIRE(n == 2);
	CHECK_EQ(all[0].id, 3);
	got = weft_segment_module(seg, 3);
	REQUIRE(got == &all[0]);
	CHECK_EQ(got->kind, WEFT_MODULE_FILE);
	CHECK_STR(got->path, "/usr/lib/libc.so.6");
	CHECK_EQ(got->start, module.start);
	CHECK_EQ(got->end, module.end);
	CHECK_EQ(got->offset, 0x1000);
	CHECK_EQ(got->build_id_n, WEFT_BUILD_ID_MAX);
	CHECK(!memcmp(got->build_id, module.build_id, sizeof(module.build_id)));
	got = weft_segment_module(seg, UINT32_MAX);
	REQUIRE(got == &all[1]);
	CHECK_EQ(got->kind, 99); /* of a later version: shown as it is */
	CHECK_EQ(got->end, UINT64_MAX);
	CHECK_EQ(got->build_id_n, 0);
	CHECK(weft_segment_module(seg, 0) == NULL);
	CHECK(weft_segment_module(seg, 4) == NULL);
	forget(seg);
	weft__defs_fini(&defs);
}

/* From none to more frames than a chunk of the arena holds. */
TEST(stacks_of_every_depth_are_read_as_they_were_written)
{
	static const uint32_t depths[] = {0, 1, 2, 30, 0, 1024, 4096, 5000, 20000, 7};
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	const struct weft_stack *all;
	size_t n, i;

	for (i = 0; i < N(depths); i++)
		put_stack(&defs, (uint32_t)(i + 1), (uint32_t)i, depths[i], UINT64_MAX - 100000 * i);
	seg = read_records(&defs, 0);
	all = weft_segment_stacks(seg, &n);
	CHECK_EQ(n, N(depths));
	for (i = 0; i < n; i++) {
		CHECK(weft_segment_stack(seg, (uint32_t)(i + 1)) == &all[i]);
		CHECK_EQ(all[i].flags, i);
		CHECK(is_stack(&all[i], depths[i], UINT64_MAX - 100000 * i));
	}
	CHECK(weft_segment_stack(seg, 0) == NULL);
	CHECK(weft_segment_stack(seg, (uint32_t)n + 1) == NULL);
	CHECK(weft_segment_stack(seg, UINT32_MAX) == NULL);
	forget(seg);
	weft__defs_fini(&defs);
}

/* Ids that follow each other are found at once and others by search; all of them are found. */
TEST(lookup_with_gaps_between_ids)
{
	static const uint32_t steps[] = {1, 2, 7, 1000};
	size_t s;

	for (s = 0; s < N(steps); s++) {
		struct weft__defs defs = {0};
		struct weft_segment *seg;
		uint32_t i, id, wrong = 0;

		for (i = 0; i < 2000; i++)
			put_stack(&defs, 5 + (i * 7919 % 2000) * steps[s], 0, 2, i * 7919 % 2000);
		seg = read_records(&defs, 0);
		CHECK_EQ(n_stacks(seg), 2000);
		for (i = 0; i < 2000; i++)
			wrong += !is_stack(weft_segment_stack(seg, 5 + i * steps[s]), 2, i);
		for (id = 0; id < 2100 && steps[s] > 1; id++)
			wrong += (id < 5 || (id - 5) % steps[s]) && weft_segment_stack(seg, id);
		CHECK_EQ(wrong, 0);
		CHECK(weft_segment_stack(seg, 4) == NULL);
		CHECK(weft_segment_stack(seg, 5 + 2000 * steps[s]) == NULL);
		forget(seg);
		weft__defs_fini(&defs);
	}
}

TEST(symbols_with_inlined_frames_are_read_as_they_were_written)
{
	static const struct weft__symbol_names one[] = {{1, 2, 77, 0}};
	static const struct weft__symbol_names three[] = {{3, 2, 5, 1}, {4, 0, 0, 1}, {1, 2, 80, 0}};
	static const struct weft__symbol_names later[] = {{9, UINT32_MAX, 1, 0}};
	const struct weft_symbol_def *symbol, *all;
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	size_t n, i;

	weft__defs_name(&defs, 1, "main");
	weft__defs_symbol(&defs, 7, 0x40, three, 3);
	weft__defs_symbol(&defs, 7, 0x10, one, 1);
	weft__defs_symbol(&defs, 2, UINT64_MAX, one, 1);
	weft__defs_symbol(&defs, 0, 0x40, one, 0);
	weft__defs_symbol(&defs, 2, 0, later, 1);
	weft__defs_name(&defs, 2, "main.c");
	weft__defs_name(&defs, 3, "std::vector<int>::push_back");
	weft__defs_name(&defs, 9, "after its symbol");
	seg = read_records(&defs, 0);
	all = weft_segment_symbols(seg, &n);
	CHECK_EQ(n, 5);
	for (i = 0; i < n; i++)
		CHECK(weft_segment_symbol(seg, all[i].module, all[i].offset) == &all[i]);
	CHECK(weft_segment_symbol(seg, 7, 0x41) == NULL);
	CHECK(weft_segment_symbol(seg, 1, 0x40) == NULL);
	CHECK(weft_segment_symbol(seg, 8, 0) == NULL);
	CHECK_EQ(weft_segment_symbol(seg, 0, 0x40)->n_frames, 0);
	CHECK_STR(weft_segment_symbol(seg, 2, UINT64_MAX)->frames[0].function, "main");
	symbol = weft_segment_symbol(seg, 7, 0x40);
	REQUIRE(symbol && symbol->n_frames == 3);
	CHECK_STR(symbol->frames[0].function, "std::vector<int>::push_back");
	CHECK_STR(symbol->frames[0].file, "main.c");
	CHECK_EQ(symbol->frames[0].line, 5);
	CHECK_EQ(symbol->frames[0].inlined, 1);
	CHECK_STR(symbol->frames[1].function, ""); /* defined nowhere */
	CHECK_STR(symbol->frames[1].file, "");
	CHECK_STR(symbol->frames[2].function, "main");
	CHECK_EQ(symbol->frames[2].inlined, 0);
	symbol = weft_segment_symbol(seg, 2, 0);
	CHECK_STR(symbol->frames[0].function, "after its symbol");
	CHECK_STR(symbol->frames[0].file, "");
	forget(seg);
	weft__defs_fini(&defs);
}

TEST(a_later_stack_or_symbol_of_an_id_replaces_the_earlier)
{
	static const struct weft__symbol_names old[] = {{1, 1, 1, 1}, {1, 1, 1, 0}}, new[] = {{1, 0, 2, 0}};
	struct weft_module module = {.id = 1, .path = "old", .end = 5};
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	size_t n;

	weft__defs_module(&defs, &module);
	weft__defs_name(&defs, 1, "old name");
	weft__defs_symbol(&defs, 1, 9, old, 2);
	put_stack(&defs, 4, 1, 50, 0);
	module.path = "new";
	weft__defs_module(&defs, &module);
	weft__defs_name(&defs, 1, "new name");
	weft__defs_symbol(&defs, 1, 9, new, 1);
	put_stack(&defs, 4, 2, 3, 100);
	seg = read_records(&defs, 0);
	weft_segment_modules(seg, &n);
	CHECK_EQ(n, 1);
	CHECK_STR(weft_segment_module(seg, 1)->path, "new");
	weft_segment_symbols(seg, &n);
	CHECK_EQ(n, 1);
	CHECK_EQ(weft_segment_symbol(seg, 1, 9)->n_frames, 1);
	CHECK_STR(weft_segment_symbol(seg, 1, 9)->frames[0].function, "new name");
	CHECK_EQ(weft_segment_symbol(seg, 1, 9)->frames[0].line, 2);
	CHECK_EQ(n_stacks(seg), 1);
	CHECK_EQ(weft_segment_stack(seg, 4)->flags, 2);
	CHECK(is_stack(weft_segment_stack(seg, 4), 3, 100));
	forget(seg);
	weft__defs_fini(&defs);
}

TEST(longer_records_are_read)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;

	put_record(&defs, DEF_MODULE, "\x01\x01\x00\x05\x00\x02\xab\xcd\x01p and more", 18);
	put_record(&defs, DEF_STACK, "\x02\x01\x01\x01\x05 more", 10);
	put_record(&defs, DEF_NAME, "\x03\x01n more", 8);
	put_record(&defs, DEF_SYMBOL, "\x01\x05\x01\x03\x00\x07\x00 more", 12);
	seg = read_records(&defs, 0);
	CHECK_STR(weft_segment_module(seg, 1)->path, "p");
	CHECK_EQ(weft_segment_module(seg, 1)->build_id[1], 0xcd);
	CHECK_EQ(weft_segment_stack(seg, 2)->frames[0].offset, 5);
	CHECK_STR(weft_segment_symbol(seg, 1, 5)->frames[0].function, "n");
	forget(seg);
	weft__defs_fini(&defs);
}

/* All records of a block or none. */
TEST(a_block_with_a_fault_gives_nothing)
{
	static const struct {
		uint32_t tag;
		const char *body;
		size_t n;
	} bad[] = {
		{DEF_MODULE, "", 0},
		{DEF_MODULE, "\x00\x01\x00\x05\x00\x00\x00", 7}, /* id 0 */
		{DEF_MODULE, "\x01\x01\x06\x05\x00\x00\x00", 7}, /* ends before it starts */
		{DEF_MODULE, "\x01\x01\x00\x05\x00\x00", 6},     /* no path */
		{DEF_MODULE,
		 "\x01\x01\x00\x05\x00\x05"
		 "abcd",
		 10}, /* a build id that passes the end */
		{DEF_MODULE,
		 "\x01\x01\x00\x05\x00\x21"
		 "012345678901234567890123456789012\x00",
		 40}, /* a build id of 33 bytes */
		{DEF_STACK, "", 0},
		{DEF_STACK, "\x00\x00\x00", 3},                                      /* id 0 */
		{DEF_STACK, "\x02\x00\x02\x01\x01\x01", 6},                          /* one frame and a half */
		{DEF_STACK, "\x02\x00\x01\x80\x80\x80\x80\x10\x01", 9},              /* a module of 2^32 */
		{DEF_STACK, "\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* 2^64 - 1 frames */
		{DEF_STACK, "\x02\x00\x80\x80\x80\x80\x10\x01\x01", 9},              /* 2^32 frames */
		{DEF_NAME, "\x01", 1},
		{DEF_NAME, "\x00\x01x", 3}, /* id 0 */
		{DEF_SYMBOL, "\x01\x01", 2},
		{DEF_SYMBOL, "\x01\x01\x01\x01\x01\x01", 6},
		{DEF_SYMBOL, "\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\x3f\x01\x01\x01\x01", 15},
		{DEF_SYMBOL, "\x80\x80\x80\x80\x10\x01\x00", 7}, /* a module of 2^32 */
	};
	static const struct weft__symbol_names names[] = {{1, 1, 1, 0}};
	size_t i, n;

	for (i = 0; i < N(bad); i++) {
		struct weft__defs defs = {0};
		struct weft_segment *seg;

		weft__defs_module(&defs, &(struct weft_module){.id = 1, .path = "good"});
		put_stack(&defs, 1, 0, 5, 0);
		weft__defs_name(&defs, 1, "good");
		weft__defs_symbol(&defs, 1, 1, names, 1);
		put_record(&defs, bad[i].tag, bad[i].body, bad[i].n);
		seg = read_records(&defs, -WEFT_E_DAMAGED);
		weft_segment_modules(seg, &n);
		CHECK_EQ(n, 0);
		CHECK_EQ(n_stacks(seg), 0);
		weft_segment_symbols(seg, &n);
		CHECK_EQ(n, 0);
		CHECK_EQ(seg->names.n, 0);
		forget(seg);
		weft__defs_fini(&defs);
	}
}

/* Names and symbols in a block of their own behind the events, as weft symbolize leaves them; the one before it is
 * damaged. */
TEST(symbols_of_an_appended_block)
{
	static const struct weft__symbol_names names[] = {{5, 6, 7, 0}};
	struct weft_segment *seg = NULL;
	struct make_file file;
	size_t n_bytes;
	uint8_t *bytes;

	make_file_open(&file);
	weft__defs_module(&file.defs, &(struct weft_module){.id = 1, .path = "program", .end = 100});
	put_stack(&file.defs, 9, 0, 3, 50);
	make_file_defs(&file);
	put_record(&file.defs, DEF_NAME, "\x05\x09short", 7);
	make_file_defs(&file);
	weft__defs_symbol(&file.defs, 1, 51, names, 1);
	weft__defs_name(&file.defs, 6, "file.c");
	make_file_defs(&file);
	CHECK_EQ(weft__writer_seal(&file.writer, 0), 0);
	bytes = make_file_bytes(&file, &n_bytes);
	REQUIRE(weft_segment_open_memory(&seg, bytes, n_bytes, NULL) == 0);
	CHECK_EQ(weft_segment_damage(seg).places, 1);
	CHECK(is_stack(weft_segment_stack(seg, 9), 3, 50));
	CHECK_STR(weft_segment_symbol(seg, 1, 51)->frames[0].function, "");
	CHECK_STR(weft_segment_symbol(seg, 1, 51)->frames[0].file, "file.c");
	weft_segment_close(seg);
	free(bytes);
	make_file_close(&file);
}

/* Reads `n` records of one body twice: as many as are allowed, and one more. */
static void check_limit(uint32_t tag, const char *body, size_t bytes, uint32_t most)
{
	struct weft__defs defs = {0};
	struct weft_segment *seg;
	uint32_t i;

	for (i = 0; i < most; i++)
		put_record(&defs, tag, body, bytes);
	seg = read_records(&defs, 0);
	forget(seg);
	put_record(&defs, tag, body, bytes);
	seg = read_records(&defs, -WEFT_E_DAMAGED);
	forget(seg);
	weft__defs_fini(&defs);
}

TEST(more_records_than_a_reader_takes_are_refused)
{
	check_limit(DEF_MODULE, "\x01\x01\x00\x05\x00\x00\x00", 7, 1u << 16);
	check_limit(DEF_STACK, "\x01\x00\x00", 3, 1u << 20);
	check_limit(DEF_NAME, "\x01\x00", 2, 1u << 20);
	check_limit(DEF_SYMBOL, "\x01\x01\x00", 3, 1u << 20);
}

/* A record of 2^20 frames, as short as they can be. */
static void put_many(struct weft__defs *defs, uint32_t tag, size_t frame_bytes)
{
	size_t n = 2 + 3 + (frame_bytes << 20);
	char *body = calloc(1, n);

	memcpy(body, "\x01\x00\x80\x80\x40", 5);
	put_record(defs, tag, body, n);
	free(body);
}

/* Blocks that follow each other add up, and the one that passes the limit is left out; what it took is not taken
 * twice. */
TEST(more_frames_than_a_reader_takes_are_refused)
{
	static const struct {
		uint32_t tag, frame_bytes, most;
	} limits[] = {{DEF_STACK, 2, 16}, {DEF_SYMBOL, 4, 4}};
	size_t i, k;

	for (i = 0; i < N(limits); i++) {
		struct weft_segment *seg = weft__calloc(1, sizeof(*seg));
		struct weft__defs defs = {0};

		put_many(&defs, limits[i].tag, limits[i].frame_bytes);
		for (k = 0; k < limits[i].most; k++)
			CHECK_EQ(weft__segment_read_defs(seg, defs.out.bytes, defs.out.n), 0);
		CHECK_EQ(weft__segment_read_defs(seg, defs.out.bytes, defs.out.n), -WEFT_E_DAMAGED);
		weft__defs_clear(&defs);
		weft__defs_fact(&defs, "others", "go on");
		CHECK_EQ(weft__segment_read_defs(seg, defs.out.bytes, defs.out.n), 0);
		CHECK_EQ(weft__segment_sort_defs(seg), 0);
		CHECK_STR(weft_segment_fact(seg, "others"), "go on");
		forget(seg);
		weft__defs_fini(&defs);
	}
}

/* How much memory a count costs before its frames are there: none. */
TEST(a_count_alone_takes_no_memory)
{
	struct make_memory memory = {1000, 0};
	struct weft_allocator allocator = {make_resize, make_release, &memory};
	struct weft__defs defs = {0};
	struct weft_segment seg = {0};

	put_record(&defs, DEF_STACK, "\x01\x00\xff\xff\xff\x07\x01", 7); /* 2^24 - 1 */
	weft_set_allocator(&allocator);
	CHECK_EQ(weft__segment_read_defs(&seg, defs.out.bytes, defs.out.n), -WEFT_E_DAMAGED);
	CHECK_EQ(memory.left, 1000);
	weft_set_allocator(NULL);
	weft__segment_free_defs(&seg);
	weft__defs_fini(&defs);
}

static void put_all(struct weft__defs *defs)
{
	static const struct weft__symbol_names names[] = {{1, 2, 3, 1}, {2, 1, 4, 0}};
	uint32_t i;

	for (i = 40; i > 0; i--) {
		weft__defs_module(defs, &(struct weft_module){.id = i, .path = "module", .end = i});
		put_stack(defs, i, 0, i * 100, i);
		weft__defs_name(defs, i, "name");
		weft__defs_symbol(defs, i % 3, i, names, 2);
	}
	weft__defs_string(defs, 2, "b");
	weft__defs_string(defs, 1, "a");
}

TEST(out_of_memory_at_every_allocation)
{
	struct make_memory memory = {0, 0};
	struct weft_allocator allocator = {make_resize, make_release, &memory};
	struct weft__defs defs = {0};
	int err = -ENOMEM;
	long left;

	put_all(&defs);
	weft_set_allocator(&allocator);
	for (left = 0; err && left < 1000; left++) {
		struct weft_segment seg = {0};

		memory.left = left;
		err = weft__segment_read_defs(&seg, defs.out.bytes, defs.out.n);
		if (!err)
			err = weft__segment_sort_defs(&seg);
		CHECK(err == 0 || err == -ENOMEM);
		if (!err) {
			CHECK_EQ(n_stacks(&seg), 40);
			CHECK(is_stack(weft_segment_stack(&seg, 40), 4000, 40));
			CHECK_STR(weft_segment_symbol(&seg, 1, 1)->frames[1].function, "name");
		}
		weft__segment_free_defs(&seg);
		CHECK_EQ(memory.live, 0);
	}
	weft_set_allocator(NULL);
	CHECK_EQ(err, 0);
	CHECK(left > 15);
	weft__defs_fini(&defs);
}
