/* SPDX-License-Identifier: Apache-2.0 */
/* Places in code and their names. */
#include "analyze/frames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "code.h"

static const struct weft__naming from_segments = {.no_symbols = true};

/* The name of frame `i` of a stack, "" when it has fewer. */
static const char *name_at(const struct weft__frames *frames, uint32_t stack, uint32_t kernel, size_t i)
{
	struct weft__line_list lines = {0};
	const char *name = "";

	CHECK_EQ(weft__frames_lines(frames, stack, kernel, &lines), 0);
	if (i < lines.n)
		name = frames->functions[lines.at[i].function].name;
	weft__free(lines.at);
	return name;
}

TEST(places_and_stacks_are_kept_once)
{
	struct weft__frames frames = {0};

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 5, WEFT_STACK_COMPLETE, code_app(F_LOOP), code_app(F_MAIN));
	CODE_STACK(&frames, 6, WEFT_STACK_CUT, code_app(F_UPLOAD), code_app(F_LOOP), code_app(F_MAIN));
	CHECK_EQ(frames.n_sites, 3);
	CHECK_EQ(frames.n_refs, 5);
	/* the next segment says it all again */
	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 5, WEFT_STACK_COMPLETE, code_app(F_LOOP), code_app(F_MAIN));
	CHECK_EQ(frames.n_sites, 3);
	CHECK_EQ(frames.n_refs, 5);
	CHECK_EQ(frames.n_stacks, 2);
	CHECK_EQ(frames.n_modules, 1 + 3);
	CHECK_EQ(weft__frames_stack(&frames, 5)->n, 2);
	CHECK_EQ(weft__frames_stack(&frames, 6)->flags, WEFT_STACK_CUT);
	CHECK(weft__frames_stack(&frames, 7) == NULL);
	/* and one is said to be another */
	CODE_STACK(&frames, 5, WEFT_STACK_COMPLETE, code_app(F_CRC));
	CHECK_EQ(weft__frames_stack(&frames, 5)->n, 1);
	CHECK_EQ(frames.n_stacks, 2);
	weft__frames_fini(&frames);
}

TEST(names_of_inlined_calls_come_from_segments)
{
	struct weft__frames frames = {0};
	struct weft__line_list lines = {0};

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 1, WEFT_STACK_COMPLETE, code_app(F_OUTER), code_app(F_MAIN));
	CODE_STACK(&frames, 2, WEFT_STACK_KERNEL, {CODE_KERNEL, 0xffffffff81000010});
	CHECK_EQ(code_add_symbols(&frames), 0);
	CHECK_EQ(code_add_symbols(&frames), 0); /* of the next segment */
	weft__frames_want(&frames, 1);
	weft__frames_want(&frames, 2);
	CHECK_EQ(weft__frames_name(&frames, &from_segments), 0);
	CHECK_EQ(frames.unnamed, 0);
	CHECK_EQ(weft__frames_lines(&frames, 1, 2, &lines), 0);
	REQUIRE(lines.n == 4);
	CHECK_STR(frames.functions[lines.at[0].function].name, "do_syscall_64");
	CHECK(frames.functions[lines.at[0].function].kernel);
	CHECK_STR(frames.functions[lines.at[1].function].name, "inner");
	CHECK(lines.at[1].inlined);
	CHECK_STR(lines.at[1].file, "inline.h");
	CHECK_EQ(lines.at[1].line, 7);
	CHECK_STR(frames.functions[lines.at[2].function].name, "outer");
	CHECK(!lines.at[2].inlined);
	CHECK_STR(frames.functions[lines.at[3].function].name, "main");
	CHECK_STR(frames.functions[lines.at[3].function].module, "/opt/demo/bin/app");
	CHECK(frames.functions[lines.at[3].function].known);
	weft__free(lines.at);
	weft__frames_fini(&frames);
}

TEST(what_has_no_name_is_shown_as_a_place)
{
	struct weft__frames frames = {0};

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 1, 0, code_lib(0x4f20), {0, 0x7fdeadbeef}, {77, 0x10}, {CODE_KERNEL, 0xffffffff81000020});
	weft__frames_want(&frames, 1);
	CHECK_EQ(weft__frames_name(&frames, &from_segments), 0);
	CHECK_STR(name_at(&frames, 1, 0, 0), "libnone.so.1+0x6f20"); /* in the file, where its code begins at 0x2000 */
	CHECK_STR(name_at(&frames, 1, 0, 1), "[unknown] 0x7fdeadbeef");
	CHECK_STR(name_at(&frames, 1, 0, 2), "[module 77]+0x10");
	CHECK_STR(name_at(&frames, 1, 0, 3), "[kernel] 0xffffffff81000020");
	CHECK_STR(name_at(&frames, 1, 0, 4), "");
	CHECK_EQ(frames.unnamed, 4);
	CHECK(!frames.functions[0].known);
	weft__frames_fini(&frames);
}

/* Two libraries may have a function of the same name: these are two functions. */
TEST(calls_of_libc_have_the_names_that_programs_use)
{
	static const char *const names[][2] = {{"__libc_send", "send"},
					       {"__GI___libc_write", "write"},
					       {"__GI___clock_nanosleep", "__clock_nanosleep"},
					       {"__libc_start_main", "__libc_start_main"}};
	struct weft__frames frames = {0};
	size_t i;

	for (i = 0; i < 2 * 4; i++) {
		struct weft_module module = {.id = 40 + (uint32_t)i % 2,
					     .kind = WEFT_MODULE_FILE,
					     .path = i % 2 ? "/opt/demo/bin/app" : "/usr/lib/libc.so.6"};
		struct weft_symbol_frame frame = {.function = names[i / 2][0], .file = ""};
		struct weft_symbol_def def = {
			.module = module.id, .offset = 16 * (i + 1), .frames = &frame, .n_frames = 1};

		CHECK_EQ(weft__frames_add_module(&frames, &module), 0);
		CODE_STACK(&frames, (uint32_t)i + 1, 0, {module.id, 16 * (i + 1)});
		CHECK_EQ(weft__frames_add_symbol(&frames, &def), 0);
		CHECK_STR(name_at(&frames, (uint32_t)i + 1, 0, 0), names[i / 2][i % 2 ? 0 : 1]);
	}
	weft__frames_fini(&frames);
}

TEST(functions_of_one_name_are_separate_in_each_module)
{
	static const struct weft_symbol_frame init = {"init", "", 0, 0};
	static const struct weft_symbol_def defs[] = {
		{CODE_APP, 1, 1, &init}, {CODE_LIB, 1, 1, &init}, {CODE_APP, 1, 2, &init}};
	struct weft__frames frames = {0};
	size_t i;

	CHECK_EQ(code_add_modules(&frames), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(weft__frames_add_symbol(&frames, &defs[i]), 0);
	CHECK_EQ(frames.n_functions, 2);
	weft__frames_fini(&frames);
}

/* Where this program's code is mapped. */
static bool map_of(uintptr_t address, struct weft_module *module, char *path, size_t bytes)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;
		int at = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &start, &end, &offset, &at) < 3)
			continue;
		found = address >= start && address < end;
		module->start = start;
		module->end = end;
		module->offset = offset;
		snprintf(path, bytes, "%s", line + at);
		path[strcspn(path, "\n")] = 0;
	}
	if (maps)
		fclose(maps);
	return found;
}

__attribute__((noinline)) static int named_in_the_file(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

TEST(names_come_from_the_file_when_the_segment_has_none)
{
	uintptr_t address = (uintptr_t)named_in_the_file;
	struct weft_module module = {.id = 9, .kind = WEFT_MODULE_FILE};
	struct weft__naming naming = {.symbolizer = &(struct weft__symbolizer_opts){.no_debuginfod = true}};
	struct weft__frames frames = {0};
	char path[512], place[600];

	CHECK_EQ(named_in_the_file(1), 2);
	if (!map_of(address, &module, path, sizeof(path)))
		SKIP("this program is not in /proc/self/maps");
	module.path = path;
	CHECK_EQ(weft__frames_add_module(&frames, &module), 0);
	CODE_STACK(&frames, 1, WEFT_STACK_COMPLETE, {9, address - module.start + 1});
	CODE_STACK(&frames, 2, WEFT_STACK_COMPLETE, {9, address - module.start});
	weft__frames_want(&frames, 1);
	CHECK_EQ(weft__frames_name(&frames, &naming), 0);
	CHECK_STR(name_at(&frames, 1, 0, 0), "named_in_the_file");
	CHECK_STR(name_at(&frames, 2, 0, 0), ""); /* nobody asked */
	weft__frames_want(&frames, 2);
	CHECK_EQ(weft__frames_name(&frames, &from_segments), 0);
	snprintf(place, sizeof(place), "%s+0x%" PRIx64, strrchr(path, '/') + 1,
		 (uint64_t)(address - module.start + module.offset));
	CHECK_STR(name_at(&frames, 2, 0, 0), place);
	weft__frames_fini(&frames);
}

TEST(a_file_that_is_gone_has_a_reason)
{
	struct weft__naming naming = {.symbolizer = &(struct weft__symbolizer_opts){.no_debuginfod = true}};
	struct weft__frames frames = {0};

	CHECK_EQ(code_add_modules(&frames), 0);
	CODE_STACK(&frames, 1, 0, code_lib(0x4f20));
	weft__frames_want(&frames, 1);
	CHECK_EQ(weft__frames_name(&frames, &naming), 0);
	CHECK_STR(name_at(&frames, 1, 0, 0), "libnone.so.1+0x6f20");
	CHECK_EQ(frames.modules[2].unnamed, 1);
	CHECK(frames.modules[2].why != NULL && frames.modules[2].why[0]);
	weft__frames_fini(&frames);
}

TEST(code_made_at_run_time_is_named_by_who_made_it)
{
	struct weft__symbolizer_opts symbols = {.no_debuginfod = true};
	char dir[] = "/tmp/weft-frames-XXXXXX", path[64];
	FILE *map;

	REQUIRE(mkdtemp(dir) != NULL);
	symbols.jit_dir = dir;
	snprintf(path, sizeof(path), "%s/perf-4242.map", dir);
	map = fopen(path, "w");
	REQUIRE(map != NULL);
	fputs("123400 100 JS:*hot\n", map);
	fclose(map);
	for (int i = 0; i < 3; i++) {
		struct weft__naming naming = {.symbolizer = &symbols, .pid = i == 1 ? 0 : 4242, .elsewhere = i == 2};
		struct weft__frames frames = {0};

		CHECK_EQ(code_add_modules(&frames), 0);
		CODE_STACK(&frames, 1, 0, {0, 0x123410}, {0, 0x999999});
		CODE_STACK(&frames, 2, 0, {CODE_KERNEL, 0xffffffff81000010});
		weft__frames_want(&frames, 1);
		weft__frames_want(&frames, 2);
		CHECK_EQ(weft__frames_name(&frames, &naming), 0);
		CHECK_STR(name_at(&frames, 1, 0, 0), i == 0 ? "JS:*hot" : "[unknown] 0x123410");
		CHECK_STR(name_at(&frames, 1, 0, 1), "[unknown] 0x999999");
		if (i == 2) /* the kernel that runs here is another one */
			CHECK_STR(name_at(&frames, 2, 0, 0), "[kernel] 0xffffffff81000010");
		weft__frames_fini(&frames);
	}
	unlink(path);
	rmdir(dir);
}

/* Of a file without names it is still known where its functions begin; the places of one are one. */
TEST(places_of_a_function_without_a_name_are_one)
{
	struct weft__naming naming = {.symbolizer = &(struct weft__symbolizer_opts){.no_debuginfod = true}};
	const char *build = getenv("WEFT_BUILD");
	struct weft_module module = {.id = 9, .kind = WEFT_MODULE_FILE, .start = 0x7f0000001000, .offset = 0x1000};
	char path[512], command[600], want[64];
	struct weft__frames frames = {0};
	unsigned long long plain = 0;
	FILE *nm;

	snprintf(path, sizeof(path), "%s/test/unit/symbol/fixture/stripped", build ? build : "");
	if (access(path, R_OK) != 0)
		SKIP("no program without names");
	snprintf(command, sizeof(command), "nm %s/test/unit/symbol/fixture/inline | grep ' plain$'", build);
	nm = popen(command, "r");
	REQUIRE(nm && fscanf(nm, "%llx", &plain) == 1);
	pclose(nm);
	module.path = path;
	module.end = module.start + 0x1000;
	CHECK_EQ(weft__frames_add_module(&frames, &module), 0);
	CODE_STACK(&frames, 1, 0, {9, plain - 0x1000}, {9, plain - 0x1000 + 3});
	weft__frames_want(&frames, 1);
	CHECK_EQ(weft__frames_name(&frames, &naming), 0);
	snprintf(want, sizeof(want), "stripped+0x%llx", plain);
	CHECK_STR(name_at(&frames, 1, 0, 0), want);
	CHECK_STR(name_at(&frames, 1, 0, 1), want);
	CHECK_EQ(frames.unnamed, 2);
	weft__frames_fini(&frames);
}
