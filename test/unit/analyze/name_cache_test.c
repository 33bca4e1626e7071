/* SPDX-License-Identifier: Apache-2.0 */
/* Names that were found out are there for the next recording of the same files, and only for these. */
#include "analyze/name_cache.h"

#include "analyze/frames.h"
#include "base/alloc.h"
#include "weft_test.h"

static const struct weft_module file = {.id = 1,
					.kind = WEFT_MODULE_FILE,
					.path = "/nowhere/libcart.so",
					.start = 0x1000,
					.end = 0x9000,
					.offset = 0x100,
					.build_id = {1, 2},
					.build_id_n = 2};

static void put(struct weft__name_cache *cache, const struct weft_module *module, uint64_t offset, const char *name)
{
	const struct weft__symbol lines[] = {{.function = "inlined", .file = "cart.h", .line = 3, .inlined = true},
					     {.function = name, .raw = name, .file = "cart.c", .line = 7}};
	const struct weft__symbol_frames found = {.at = lines, .n = 2};

	weft__name_cache_put(cache, module, offset, &found);
}

TEST(a_place_is_known_by_its_file_and_offset)
{
	struct weft__name_cache *cache = weft__name_cache_open(100);
	struct weft_module other = file, elsewhere = file;
	const struct weft__cached_line *line;
	uint32_t n = 0;

	put(cache, &file, 0x40, "cart_add");
	line = weft__name_cache_get(cache, &file, 0x40, &n);
	REQUIRE(line != NULL && n == 2);
	CHECK_STR(line[0].function, "inlined");
	CHECK(line[0].inlined && !line[1].inlined);
	CHECK_STR(line[1].function, "cart_add");
	CHECK_STR(line[1].file, "cart.c");
	CHECK_EQ(line[1].line, 7);
	CHECK(weft__name_cache_get(cache, &file, 0x41, &n) == NULL);
	other.build_id[1] = 3; /* another build */
	CHECK(weft__name_cache_get(cache, &other, 0x40, &n) == NULL);
	elsewhere.start = 0x70001000; /* another part of it is mapped, at another address */
	elsewhere.offset = 0x120;
	line = weft__name_cache_get(cache, &elsewhere, 0x20, &n);
	REQUIRE(line != NULL);
	CHECK_STR(line[1].function, "cart_add");
	weft__name_cache_close(cache);
}

TEST(code_that_is_made_at_run_time_is_not_kept)
{
	struct weft_module code = {.kind = WEFT_MODULE_CODE, .path = ""}, named = file;
	struct weft__name_cache *cache = weft__name_cache_open(100);
	uint32_t n;

	named.kind = WEFT_MODULE_NAMED;
	put(cache, &code, 0x40, "jitted");
	put(cache, &named, 0x40, "interpreted");
	CHECK(weft__name_cache_get(cache, &code, 0x40, &n) == NULL);
	CHECK(weft__name_cache_get(cache, &named, 0x40, &n) == NULL);
	weft__name_cache_close(cache);
}

TEST(a_full_cache_forgets_all)
{
	struct weft__name_cache *cache = weft__name_cache_open(10);
	uint64_t i;
	uint32_t n;

	for (i = 0; i < 11; i++)
		put(cache, &file, i, "f");
	CHECK(weft__name_cache_get(cache, &file, 9, &n) == NULL);
	CHECK(weft__name_cache_get(cache, &file, 10, &n) != NULL);
	weft__name_cache_close(cache);
}

static const char *name_of(struct weft__name_cache *cache, uint64_t offset)
{
	const struct weft_frame frame = {file.id, offset};
	const struct weft_stack stack = {.id = 5, .flags = WEFT_STACK_COMPLETE, .n_frames = 1, .frames = &frame};
	const struct weft__naming naming = {.cache = cache};
	struct weft__line_list lines = {0};
	struct weft__frames frames = {0};
	static char name[200];

	CHECK_EQ(weft__frames_add_module(&frames, &file), 0);
	CHECK_EQ(weft__frames_add_stack(&frames, &stack), 0);
	weft__frames_want(&frames, 5);
	CHECK_EQ(weft__frames_name(&frames, &naming), 0);
	CHECK_EQ(weft__frames_lines(&frames, 5, 0, &lines), 0);
	snprintf(name, sizeof(name), "%u %s", (unsigned)lines.n, frames.functions[lines.at[lines.n - 1].function].name);
	weft__free(lines.at);
	weft__frames_fini(&frames);
	return name;
}

/* The file is not there, so nothing but the cache can have said it. */
TEST(frames_are_named_by_it)
{
	struct weft__name_cache *cache = weft__name_cache_open(100);
	const struct weft__symbol nameless = {.function = "libcart.so+0x190", .offset = 0x10};
	const struct weft__symbol_frames unknown = {.at = &nameless, .n = 1};

	put(cache, &file, 0x40, "cart_add");
	CHECK_STR(name_of(cache, 0x40), "2 cart_add");
	weft__name_cache_put(cache, &file, 0x90, &unknown); /* its function began 16 bytes before */
	CHECK_STR(name_of(cache, 0x90), "1 libcart.so+0x180");
	CHECK_STR(name_of(NULL, 0x40), "1 libcart.so+0x140");
	weft__name_cache_close(cache);
}
