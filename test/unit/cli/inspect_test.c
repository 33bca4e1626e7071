/* SPDX-License-Identifier: Apache-2.0 */
/* weft inspect on a segment with samples: what it says of modules, stacks, symbols and samples. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "segment/batch.h"
#include "segment/format.h"
#include "segment/writer.h"
#include "weft/recorder.h"
#include "weft_test.h"

#define KERNEL_ADDRESS UINT64_C(0xffffffff81000010)

static void put_code(struct weft__defs *defs)
{
	static const struct weft_frame user[] = {{1, 0x10}, {1, 0x400}, {2, 0x1234}, {0, 0x7fff10}};
	static const struct weft_frame kernel[] = {{9, KERNEL_ADDRESS}};
	static const struct weft_frame lost[] = {{7, 0x20}};
	struct weft_module module = {.id = 1,
				     .kind = WEFT_MODULE_FILE,
				     .path = "/usr/bin/program",
				     .start = 0x401000,
				     .end = 0x402000,
				     .offset = 0x1000,
				     .build_id_n = 3,
				     .build_id = {0xab, 0xcd, 0x01}};

	weft__defs_module(defs, &module);
	weft__defs_module(defs, &(struct weft_module){.id = 2,
						      .kind = WEFT_MODULE_FILE,
						      .path = "/lib/li\x1b"
							      "bc.so"});
	weft__defs_module(defs, &(struct weft_module){
					.id = 9, .kind = WEFT_MODULE_KERNEL, .path = "[kernel]", .end = UINT64_MAX});
	weft__defs_stack(defs, &(struct weft_stack){1, WEFT_STACK_COMPLETE, 4, user});
	weft__defs_stack(defs, &(struct weft_stack){2, WEFT_STACK_COMPLETE | WEFT_STACK_KERNEL, 1, kernel});
	weft__defs_stack(defs, &(struct weft_stack){3, WEFT_STACK_LOST | WEFT_STACK_FP, 1, lost});
	weft__defs_stack(defs, &(struct weft_stack){4, WEFT_STACK_CUT, 0, NULL});
}

static void put_names(struct weft__defs *defs)
{
	static const struct weft__symbol_names inner[] = {{1, 2, 42, 1}, {3, 0, 0, 0}}, outer[] = {{3, 2, 7, 0}};

	weft__defs_name(defs, 1, "inner<int>");
	weft__defs_name(defs, 2, "src/inner.h");
	weft__defs_name(defs, 3, "outer\x1b[31m");
	weft__defs_symbol(defs, 1, 0x10, inner, 2);
	weft__defs_symbol(defs, 1, 0x400, outer, 1);
	weft__defs_symbol(defs, 2, 0x1234, NULL, 0);
}

/* Four samples, among a poll, of one thread. */
static void put_samples(struct weft__batch *batch)
{
	static const uint64_t samples[][5] = {{1, 0, 10000000, 3, WEFT_ENGINE_TIMER},
					      {1, 2, 20000000, 0, WEFT_ENGINE_PERF},
					      {3, 0, 10000000, UINT32_MAX, WEFT_ENGINE_TIMER},
					      {77, 0, 10000000, 3, 55}};
	static const uint64_t task[] = {5, 0};
	size_t i;

	CHECK_EQ(weft__batch_begin(batch, 1, 0, 0, 0), 0);
	CHECK_EQ(weft__batch_add(batch, 1000, WEFT_KIND_POLL_BEGIN, task, 2), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(weft__batch_add(batch, 2000 + i, WEFT_KIND_SAMPLE, samples[i], 5), 0);
	CHECK_EQ(weft__batch_add(batch, 3000, WEFT_KIND_POLL_END, NULL, 0), 0);
	weft__batch_end(batch, 0);
}

static void write_segment(const char *path, bool names)
{
	struct weft__segment_head head = {0};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct weft__encoder *enc = NULL;
	struct weft__writer writer = {0};
	struct weft__defs defs = {0};
	struct weft__buf payload = {0};
	struct weft__batch batch;
	uint64_t first, last;

	CHECK(fd >= 0);
	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__writer_begin(&writer, fd, &head), 0);
	weft__defs_builtin_kinds(&defs);
	weft__defs_thread(&defs, &(struct weft_thread){1, 101, 0xffff, "w0", 0});
	weft__defs_loss(&defs, &(struct weft_loss){WEFT_LOSS_UNCOVERED, 0, 3, 5, 6});
	put_code(&defs);
	CHECK_EQ(weft__writer_defs(&writer, enc, &defs), 0);
	weft__batch_init(&batch, 1);
	put_samples(&batch);
	CHECK_EQ(weft__encoder_events(enc, &batch, &payload, &first, &last), 0);
	CHECK_EQ(weft__writer_block(&writer, BLOCK_EVENTS, 0, (uint32_t)batch.n, first, last, &payload), 0);
	weft__defs_clear(&defs);
	if (names)
		put_names(&defs);
	CHECK_EQ(weft__writer_defs(&writer, enc, &defs), 0);
	CHECK_EQ(weft__writer_seal(&writer, 0), 0);
	weft__batch_fini(&batch);
	weft__buf_free(&payload);
	weft__defs_fini(&defs);
	weft__writer_fini(&writer);
	weft__encoder_close(enc);
	close(fd);
}

static bool begin(bool names)
{
	const char *tmp = getenv("TMPDIR");
	char path[1024];

	if (!command_there())
		return false;
	snprintf(dir, sizeof(dir), "%s/weft-test-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/one.weft", dir);
	write_segment(path, names);
	return true;
}

static void finish(void)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/one.weft", dir);
	unlink(path);
	CHECK_EQ(rmdir(dir), 0);
}

#define BEGIN(names)                                                                                                   \
	if (!begin(names))                                                                                             \
	SKIP("there is no weft command in $WEFT_BUILD")

TEST(inspect_shows_what_a_segment_holds)
{
	BEGIN(true);
	CHECK_EQ(run("inspect one.weft"), 0);
	CHECK(says("module  kind       start      size  build id  path\n"));
	CHECK(says("     1  file    0x401000  4.00 KiB  abcd01    /usr/bin/program\n"));
	CHECK(says("     2  file         0x0       0 B  none      /lib/li?bc.so\n"));
	CHECK(says("     9  kernel       0x0         -  none      [kernel]\n"));
	CHECK(says("  samples  4, 1 by ?, 2 by timer, 1 by perf, together 50.0 ms of CPU time, 1 with a stack of the "
		   "kernel, "
		   "1 with a stack that is not defined\n"));
	CHECK(says("  stacks   4, 1.5 frames on average, at most 4 (--stacks lists them)\n"));
	CHECK(says("           2 complete, 1 cut, 1 lost, 1 frame pointers, 1 kernel\n"));
	CHECK(says("  symbols  3, with inlined frames 3\n"));
	CHECK(says("3 threads"));
	CHECK(!strstr(out, "\x1b"));
	finish();
}

TEST(inspect_shows_stacks_without_names_by_module_and_offset)
{
	BEGIN(false);
	CHECK_EQ(run("inspect one.weft"), 0);
	CHECK(says("  symbols  0: weft symbolize puts them in\n"));
	CHECK_EQ(run("inspect --stacks one.weft"), 0);
	CHECK(says("stack 1, 2 samples, 30.0 ms, complete\n"
		   "    program+0x10\n    program+0x400\n    li?bc.so+0x1234\n    [unknown] 0x7fff10\n"));
	finish();
}

TEST(inspect_lists_stacks)
{
	BEGIN(true);
	CHECK_EQ(run("inspect --stacks one.weft"), 0);
	CHECK_STR(out, "one.weft, 4 stacks\n"
		       "\n"
		       "stack 1, 2 samples, 30.0 ms, complete\n"
		       "    inner<int> (src/inner.h:42) [inlined]\n"
		       "    outer?[31m (program+0x10)\n"
		       "    outer?[31m (src/inner.h:7)\n"
		       "    li?bc.so+0x1234\n"
		       "    [unknown] 0x7fff10\n"
		       "\n"
		       "stack 2, 1 sample, 20.0 ms, complete, kernel\n"
		       "    [kernel]+0xffffffff81000010\n"
		       "\n"
		       "stack 3, 1 sample, 10.0 ms, lost, frame pointers\n"
		       "    module-7+0x20\n"
		       "\n"
		       "stack 4, 0 samples, cut\n");
	finish();
}

TEST(inspect_lists_events_by_name)
{
	BEGIN(true);
	CHECK_EQ(run("inspect --events one.weft"), 0);
	CHECK(says("sample  stack=1(inner<int>)  kernel=none  weight=10000000 ns  cpu=3  engine=timer\n"));
	CHECK(says("sample  stack=1(inner<int>)  kernel=2([kernel]+0xffffffff81000010)  weight=20000000 ns  cpu=0  "
		   "engine=perf  wall=1 ns\n"));
	CHECK(says("sample  stack=3(module-7+0x20)  kernel=none  weight=10000000 ns  cpu=not-known  engine=timer  "
		   "wall=1 ns\n"));
	CHECK(says("sample  stack=77(not defined)  kernel=none  weight=10000000 ns  cpu=3  engine=?  wall=1 ns\n"));
	CHECK_EQ(run("inspect --dump one.weft"), 0);
	CHECK(says("2001 1 13 1 2 20000000 0 2\n"));
	finish();
}

TEST(the_json_of_inspect_is_json)
{
	static const char check[] = "--json one.weft | /usr/bin/python3 -c '\n"
				    "import json, sys\n"
				    "s = json.load(sys.stdin)[\"segments\"][0]\n"
				    "print(s[\"samples\"])\n"
				    "print(s[\"modules\"][0])\n"
				    "print(s[\"modules\"][1][\"build_id\"], s[\"stacks\"][0], s[\"stacks\"][3])\n"
				    "print(s[\"symbols\"][0], len(s[\"symbols\"]))\n"
				    "print(s[\"losses\"])\n"
				    "'";

	BEGIN(true);
	CHECK_EQ(run("inspect %s", check), 0);
	CHECK(says("{'count': 4, 'weight_ns': 50000000, 'with_kernel_stack': 1, 'undefined_stacks': 1, "
		   "'engines': {'?': 1, 'timer': 2, 'perf': 1}}\n"));
	CHECK(says("{'id': 1, 'kind': 'file', 'path': '/usr/bin/program', 'start': '0x401000', 'end': '0x402000', "
		   "'offset': '0x1000', 'build_id': 'abcd01'}\n"));
	CHECK(says("None {'id': 1, 'flags': ['complete'], 'frames': ['1+0x10', '1+0x400', '2+0x1234', '0+0x7fff10']} "
		   "{'id': 4, 'flags': ['cut'], 'frames': []}\n"));
	CHECK(says("{'module': 1, 'offset': '0x10', 'frames': [{'function': 'inner<int>', 'file': 'src/inner.h', "
		   "'line': 42, 'inlined': True}, {'function': 'outer\\x1b[31m', 'file': '', 'line': 0, 'inlined': "
		   "False}]} 3\n"));
	CHECK(says("'threads': 3"));
	finish();
}

TEST(inspect_refuses_two_ways_to_show_at_a_time)
{
	BEGIN(true);
	CHECK_EQ(run("inspect --stacks --json one.weft"), 2);
	CHECK(says("choose one of"));
	CHECK_EQ(run("inspect --help"), 0);
	CHECK(says("--stacks"));
	finish();
}
