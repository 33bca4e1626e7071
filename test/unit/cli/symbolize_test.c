/* SPDX-License-Identifier: Apache-2.0 */
/* weft symbolize as a user has it: output, messages and exit status. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "../analyze/codefile.h"
#include "command.h"

static struct weft_module module;
static struct weft_frame frames[2];
static struct weft_stack stack = {1, WEFT_STACK_COMPLETE, 2, frames};

__attribute__((noinline)) static int busy_function(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

static const char *in_dir(const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void write_segment(const char *name, uint64_t sequence, int unsealed)
{
	struct codefile file = {.sequence = sequence,
				.pid = "4200004242",
				.modules = &module,
				.n_modules = 1,
				.stacks = &stack,
				.n_stacks = 1,
				.n_blocks = 2,
				.unsealed = unsealed};

	close(codefile_write(&file, in_dir(name)));
}

static bool begin(void)
{
	if (!command_there())
		return false;
	unsetenv("DEBUGINFOD_URLS");
	segfile_dir(dir, sizeof(dir));
	CHECK_EQ(busy_function(1), 1);
	CHECK(codefile_module(&module, 1, (void *)(uintptr_t)busy_function));
	frames[0] = (struct weft_frame){1, (uint64_t)(uintptr_t)busy_function - module.start};
	frames[1] = (struct weft_frame){0, 0x4711};
	write_segment("one.weft", 0, 0);
	return true;
}

#define BEGIN                                                                                                          \
	if (!begin())                                                                                                  \
	SKIP("there is no weft command in $WEFT_BUILD")

static void finish(void)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK_EQ(system(command), 0);
}

static bool named(const char *name)
{
	struct weft_segment *seg = NULL;
	const struct weft_symbol_def *symbol;
	bool is;

	if (weft_segment_open(&seg, in_dir(name), NULL) < 0)
		return false;
	symbol = weft_segment_symbol(seg, 1, frames[0].offset);
	is = symbol && symbol->n_frames && !strcmp(symbol->frames[0].function, "busy_function");
	weft_segment_close(seg);
	return is;
}

TEST(symbolize_in_place_prints_a_summary)
{
	BEGIN;
	CHECK_EQ(run("symbolize one.weft"), 0);
	CHECK(says("one.weft: 2 frames, 1 named, 1 with lines, 1 unknown; 1 new\n"));
	CHECK(says("0 of 1 named, 0 with lines: code in no module: no perf-4200004242.map and no jit-4200004242.dump "
		   "in /tmp"));
	CHECK(named("one.weft"));
	CHECK_EQ(run("symbolize one.weft"), 0);
	CHECK(says("nothing new"));
	finish();
}

TEST(symbolize_with_o_writes_another_file)
{
	BEGIN;
	CHECK_EQ(run("symbolize -o named.weft one.weft"), 0);
	CHECK(says("written to named.weft"));
	CHECK(named("named.weft"));
	CHECK(!named("one.weft"));
	CHECK_EQ(run("symbolize -o named.weft one.weft"), 1);
	CHECK(says("named.weft is there already; give another -o, or --force"));
	CHECK_EQ(run("symbolize -o named.weft --force one.weft"), 0);
	finish();
}

TEST(symbolize_takes_all_segments_of_a_directory)
{
	BEGIN;
	write_segment("two.weft", 1, 0);
	write_segment("three.weft.active", 2, 1);
	CHECK_EQ(mkdir(in_dir("to"), 0700), 0);
	CHECK_EQ(run("symbolize -o to ."), 0);
	CHECK(named("to/one.weft"));
	CHECK(named("to/two.weft"));
	CHECK(says("1 segment is still being written, or left by a killed process (weft recover): left alone"));
	CHECK_EQ(run("symbolize -o one-file.weft ."), 2);
	CHECK(says("has to be a directory"));
	CHECK_EQ(run("symbolize three.weft.active"), 1);
	CHECK(says("run weft recover"));
	CHECK_EQ(run("symbolize ."), 0);
	CHECK(named("two.weft"));
	finish();
}

/* As on another machine, where the same path holds another build. */
TEST(another_build_gives_no_names_and_says_so)
{
	BEGIN;
	if (!module.build_id_n) {
		finish();
		SKIP("the linker gives no build-ids");
	}
	module.build_id[3] ^= 1;
	write_segment("one.weft", 0, 0);
	CHECK_EQ(run("symbolize one.weft"), 0);
	CHECK(says("2 frames, 0 named"));
	CHECK(says("has build-id"));
	CHECK(!named("one.weft"));
	finish();
}

TEST(symbolize_finds_files_of_another_machine_below_a_root)
{
	char command[2 * PATH_MAX];

	BEGIN;
	CHECK_EQ(mkdir(in_dir("root"), 0700), 0);
	CHECK_EQ(mkdir(in_dir("root/opt"), 0700), 0);
	CHECK_EQ(mkdir(in_dir("root/tmp"), 0700), 0);
	snprintf(command, sizeof(command), "cp '%s' '%s'; echo '4700 100 jitted' >'%s'", module.path,
		 in_dir("root/opt/program"), in_dir("root/tmp/perf-4200004242.map"));
	CHECK_EQ(system(command), 0);
	module.path = "/opt/program";
	write_segment("one.weft", 0, 0);
	CHECK_EQ(run("symbolize one.weft"), 0);
	CHECK(says("/opt/program: No such file or directory"));
	CHECK_EQ(run("symbolize --root root one.weft"), 0);
	CHECK(says("2 frames, 2 named"));
	CHECK(named("one.weft"));
	finish();
}

TEST(symbolize_says_what_it_did_as_json)
{
	BEGIN;
	CHECK_EQ(run("symbolize --json one.weft nowhere.weft 2>/dev/null"), 1);
	CHECK(says("\"frames\": 2") || says("\"frames\":2"));
	CHECK(says("nowhere.weft"));
	CHECK_EQ(run("symbolize --json one.weft | /usr/bin/python3 -c 'import json, sys; s = "
		     "json.load(sys.stdin)[\"segments\"][0]; "
		     "assert s[\"named\"] == 1 and s[\"new\"] == 0 and len(s[\"modules\"]) == 2, s'"),
		 0);
	finish();
}

TEST(what_is_wrong_is_reported_with_the_way_out)
{
	FILE *junk;

	BEGIN;
	CHECK_EQ(run("symbolize %s", ""), 2);
	CHECK(says("no PATH given"));
	CHECK_EQ(run("symbolize --frob one.weft"), 2);
	CHECK(says("Try 'weft symbolize --help'"));
	CHECK_EQ(run("symbolize --root nowhere one.weft"), 1);
	CHECK(says("there is no such directory"));
	CHECK_EQ(run("symbolize nowhere.weft"), 1);
	CHECK(says("No such file"));
	junk = fopen(in_dir("junk.weft"), "w");
	REQUIRE(junk != NULL);
	fputs("this is no segment", junk);
	fclose(junk);
	CHECK_EQ(run("symbolize junk.weft one.weft"), 1);
	CHECK(says("not a weft segment"));
	CHECK(named("one.weft"));
	CHECK_EQ(run("symbolize --help"), 0);
	CHECK(says("examples:"));
	CHECK_EQ(mkdir(in_dir("empty"), 0700), 0);
	CHECK_EQ(run("symbolize empty"), 1);
	CHECK(says("no segments in empty"));
	finish();
}

TEST(damage_is_reported_by_the_exit_status)
{
	struct stat st;

	BEGIN;
	REQUIRE(stat(in_dir("one.weft"), &st) == 0);
	CHECK_EQ(truncate(in_dir("one.weft"), st.st_size - 40), 0); /* its end is gone, and the index with it */
	CHECK_EQ(run("symbolize one.weft"), 3);
	CHECK(says("damaged:"));
	finish();
}
