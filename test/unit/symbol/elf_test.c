/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/symbol/fixture.h"
#include "weft_test.h"

/* leaf, inlined into middle, inlined into outer: names and lines of fixture/inline.c. */
static void check_chain(struct fixture *f, const char *unstripped)
{
	static const struct {
		const char *function;
		uint32_t line;
		bool inlined;
	} want[] = {{"leaf", 102, true}, {"middle", 203, true}, {"outer", 304, false}};
	uint64_t mark = fixture_symbol(unstripped, "mark_leaf");

	REQUIRE(mark);
	REQUIRE(CHECK_EQ(fixture_resolve(f, mark), 3));
	CHECK_STR(f->frames.source, "elf");
	for (int i = 0; i < 3; i++) {
		CHECK_STR(f->frames.at[i].function, want[i].function);
		CHECK(fixture_ends(f->frames.at[i].file, "/inline.c"));
		CHECK_EQ(f->frames.at[i].line, want[i].line);
		CHECK_EQ(f->frames.at[i].inlined, want[i].inlined);
	}
	CHECK_EQ(f->frames.at[2].offset, mark - fixture_symbol(unstripped, "outer"));
	CHECK_STR(f->frames.at[2].raw, "outer");
}

static void check_fixture(const char *name)
{
	struct fixture f;

	if (!fixture_there(name))
		SKIP("the compiler for it is not here");
	if (CHECK(fixture_open(&f, name, NULL, NULL)))
		check_chain(&f, name);
	CHECK_STR(weft__symbolizer_why(f.sym, f.id), "");
	fixture_close(&f);
}

TEST(inlined_functions_come_innermost_first_with_their_lines)
{
	check_fixture("inline");
}

TEST(dwarf_4_is_read)
{
	check_fixture("inline4");
}

TEST(compressed_dwarf_is_read)
{
	check_fixture("packed");
}

TEST(split_dwarf_is_read)
{
	check_fixture("split");
}

TEST(dwarf_of_clang_is_read)
{
	check_fixture("inline_clang");
}

TEST(a_program_at_a_fixed_address_is_read)
{
	check_fixture("nopie");
}

TEST(a_debug_file_is_found_by_build_id)
{
	struct weft__symbolizer_opts opts = {.debug_dirs = fixture_path("debug"), .no_debuginfod = true};
	struct fixture f;

	REQUIRE(fixture_open(&f, "stripped", &opts, FIXTURE_BUILD_ID));
	check_chain(&f, "inline");
	CHECK_STR(weft__symbolizer_why(f.sym, f.id), "");
	fixture_close(&f);
}

TEST(a_debug_file_serves_alone_when_the_program_is_gone)
{
	struct weft__symbolizer_opts opts = {
		.root = "/nonexistent", .debug_dirs = fixture_path("debug"), .no_debuginfod = true};
	struct fixture f;

	REQUIRE(fixture_open(&f, "stripped", &opts, FIXTURE_BUILD_ID));
	check_chain(&f, "inline");
	CHECK(strstr(weft__symbolizer_why(f.sym, f.id), "No such file"));
	fixture_close(&f);
}

TEST(a_debug_file_is_found_by_debuglink_beside_the_program)
{
	struct fixture f;

	REQUIRE(fixture_open(&f, "linked", NULL, NULL));
	check_chain(&f, "anonymous");
	fixture_close(&f);
}

TEST(a_debug_file_is_found_by_debuglink_in_dot_debug)
{
	struct fixture f;

	REQUIRE(fixture_open(&f, "dot/linked", NULL, NULL));
	check_chain(&f, "anonymous");
	fixture_close(&f);
}

TEST(a_debug_file_with_another_checksum_is_not_used)
{
	struct fixture f;

	REQUIRE(fixture_open(&f, "wrong/linked", NULL, NULL));
	CHECK_EQ(fixture_resolve(&f, fixture_symbol("anonymous", "mark_leaf")), 1);
	CHECK_STR(f.frames.source, "unknown");
	CHECK(strstr(weft__symbolizer_why(f.sym, f.id), "no debug information"));
	fixture_close(&f);
}

TEST(minidebuginfo_has_the_functions)
{
	struct fixture f;

	REQUIRE(fixture_open(&f, "mini", NULL, FIXTURE_BUILD_ID));
	REQUIRE(CHECK_EQ(fixture_resolve(&f, fixture_symbol("inline", "mark_leaf")), 1));
	CHECK_STR(f.frames.at[0].function, "outer");
	CHECK(!f.frames.at[0].file);
	fixture_close(&f);
}

TEST(a_file_of_another_build_is_not_used_and_the_reason_is_given)
{
	struct fixture f;

	REQUIRE(fixture_open(&f, "inline", NULL, "12345678901234567890"));
	CHECK_EQ(fixture_resolve(&f, fixture_symbol("inline", "mark_leaf")), 1);
	CHECK_STR(f.frames.source, "unknown");
	CHECK(strstr(weft__symbolizer_why(f.sym, f.id),
		     "has build-id 0123456789abcdef, but 3132333435363738 was recorded"));
	fixture_close(&f);
}

TEST(unknown_is_module_and_offset)
{
	struct fixture f;
	char want[64];
	uint64_t mark = fixture_symbol("inline", "mark_plain");

	REQUIRE(fixture_open(&f, "stripped", NULL, NULL));
	REQUIRE(CHECK_EQ(fixture_resolve(&f, mark), 1));
	snprintf(want, sizeof(want), "stripped+0x%llx", (unsigned long long)(mark - f.address + f.module.offset));
	CHECK_STR(f.frames.at[0].function, want);
	CHECK(!f.frames.at[0].raw);
	fixture_close(&f);
}

/* What is there for unwinding outlives the names. */
TEST(where_an_unknown_function_begins_is_known)
{
	struct fixture f;
	uint64_t begin = fixture_symbol("inline", "plain");

	REQUIRE(fixture_open(&f, "stripped", NULL, NULL));
	for (uint64_t i = 0; i < 4; i++) {
		REQUIRE(CHECK_EQ(fixture_resolve(&f, begin + i), 1));
		CHECK(!f.frames.at[0].raw);
		CHECK_EQ(f.frames.at[0].offset, i);
	}
	/* Between functions there is none: what fills up to the next one. */
	REQUIRE(CHECK_EQ(fixture_resolve(&f, begin - 1), 1));
	CHECK_EQ(f.frames.at[0].offset, 0);
	fixture_close(&f);
}

TEST(answers_are_the_same_when_asked_again)
{
	struct fixture f;

	REQUIRE(fixture_open(&f, "inline", NULL, NULL));
	check_chain(&f, "inline");
	check_chain(&f, "inline");
	fixture_close(&f);
}

TEST(names_of_cxx_are_demangled)
{
	struct fixture f;

	if (!fixture_there("mangled"))
		SKIP("no C++ compiler");
	REQUIRE(fixture_open(&f, "mangled", NULL, NULL));
	REQUIRE(fixture_resolve(&f, fixture_symbol("mangled", "mark_constructor")) > 0);
	CHECK_STR(f.frames.at[f.frames.n - 1].function, "loom::Shuttle::Shuttle(int)");
	REQUIRE(fixture_resolve(&f, fixture_symbol("mangled", "mark_template")) > 0);
	CHECK_STR(f.frames.at[f.frames.n - 1].function,
		  "loom::Shuttle::pass<long>(long, std::vector<long, std::allocator<long> > const&) const");
	fixture_close(&f);
}

static void check_rust(const char *name)
{
	struct fixture f;
	bool seen = false;
	uint64_t address;

	if (!fixture_there(name))
		SKIP("no Rust compiler");
	REQUIRE(fixture_open(&f, name, NULL, NULL));
	for (address = f.address; address < f.address + (f.module.end - f.module.start) && !seen; address += 16)
		if (fixture_resolve(&f, address) > 0)
			seen = strstr(f.frames.at[f.frames.n - 1].function, "hashed") &&
			       fixture_ends(f.frames.at[f.frames.n - 1].function, "Loom>::weave");
	CHECK(seen);
	fixture_close(&f);
}

TEST(names_of_rust_are_demangled)
{
	check_rust("hashed");
}

struct counted {
	size_t n;
	uint32_t last;
	const struct weft__symbol_place *places;
	bool together;
};

static void count(size_t index, const struct weft__symbol_frames *frames, void *data)
{
	struct counted *counted = data;

	counted->n += frames->n > 0;
	counted->together &= counted->places[index].module >= counted->last;
	counted->last = counted->places[index].module;
}

TEST(a_batch_is_resolved_file_by_file)
{
	struct weft__symbol_place places[100];
	struct counted counted = {.places = places, .together = true};
	struct fixture f;
	uint32_t other = 0;

	REQUIRE(fixture_open(&f, "inline", NULL, NULL));
	CHECK_EQ(weft__symbolizer_add(f.sym, &f.module, &other), 0);
	for (int i = 0; i < 100; i++)
		places[i] = (struct weft__symbol_place){i % 2 ? f.id : other, FIXTURE_START + (uint64_t)i, 0};
	CHECK_EQ(weft__symbolizer_resolve_all(f.sym, places, 100, count, &counted), 0);
	CHECK_EQ(counted.n, 100);
	CHECK(counted.together);
	fixture_close(&f);
}

/* A copy of the program, cut after each of many lengths. */
TEST(a_cut_file_gives_fewer_names)
{
	char path[] = "/tmp/weft-symbol-XXXXXX";
	struct fixture f;
	FILE *in = fopen(fixture_path("inline"), "r");
	static char bytes[65536];
	size_t n = in ? fread(bytes, 1, sizeof(bytes), in) : 0;
	uint64_t mark = fixture_symbol("inline", "mark_leaf");
	int fd = mkstemp(path);

	REQUIRE(n > 1000 && fd >= 0);
	fclose(in);
	REQUIRE(fixture_open(&f, "inline", NULL, NULL));
	f.module.path = path;
	for (size_t cut = 0; cut < n; cut += 101) {
		uint32_t id = 0;
		struct weft__symbolizer *sym;
		struct weft__symbolizer_opts opts = {.debug_dirs = "/nonexistent", .no_debuginfod = true};
		struct weft__symbol_place place = {.ip = mark - f.address + FIXTURE_START};
		struct weft__symbol_frames frames;

		if (ftruncate(fd, 0) < 0 || pwrite(fd, bytes, cut, 0) != (ssize_t)cut)
			break;
		REQUIRE(weft__symbolizer_open(&sym, &opts, NULL) == 0);
		CHECK_EQ(weft__symbolizer_add(sym, &f.module, &id), 0);
		CHECK(weft__symbolizer_resolve(sym, &place, &frames) > 0);
		weft__symbolizer_close(sym);
	}
	close(fd);
	unlink(path);
	fixture_close(&f);
}
