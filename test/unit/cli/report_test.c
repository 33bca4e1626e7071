/* SPDX-License-Identifier: Apache-2.0 */
/* What weft report says about CPU samples: golden text and JSON of a recording of two segments whose figures are
 * worked out by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../analyze/code.h"
#include "../analyze/segfile.h"
#include "command.h"
#include "weft/recorder.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER

/* Worker demo/1 polls `echo` from 10 to 62 ms, across the border of the segments: 41 ms of CPU in three samples.
 * Worker demo/0 polls `accept` twice, shortly, with one sample of 10 ms in a poll of 4, and is sampled in between
 * and parked. Thread io never polls. */
static const struct segfile_event before[] = {
	EV(AT(1), 1, SPAWN, 1, 1),
	EV(AT(1), 1, SPAWN, 2, 2),
	EV(AT(5), 1, POLL_BEGIN, 1, 0),
	EV(AT(8), 1, SAMPLE, SAMPLE_OF(4, 10)),
	EV(AT(9), 1, POLL_END),
	EV(AT(12), 1, SAMPLE, SAMPLE_OF(5, 10)),
	EV(AT(14), 1, PARK, 0),
	EV(AT(16), 1, SAMPLE, SAMPLE_OF(5, 9)),
	EV(AT(10), 2, POLL_BEGIN, 2, 3),
	EV(AT(20), 2, SAMPLE, SAMPLE_OF(1, 20)),
	EV(AT(30), 2, SAMPLE, SAMPLE_OF(2, 10)),
};
static const struct segfile_event after[] = {
	EV(AT(50), 1, UNPARK, 0), EV(AT(52), 1, POLL_BEGIN, 1, 0),
	EV(AT(54), 1, POLL_END),  EV(AT(40), 2, SAMPLE, SAMPLE_OF(3, 11)),
	EV(AT(62), 2, POLL_END),  EV(AT(70), 3, SAMPLE, SAMPLE_OF(6, 30)),
};
static const struct segfile first = {5, 0, "4242", before, 11, NULL, 0, 0};
static const struct weft_loss losses[] = {{WEFT_LOSS_SAMPLE, 2, 3, AT(63), AT(64)},
					  {WEFT_LOSS_UNCOVERED, 0, 2, AT(63), AT(64)},
					  {WEFT_LOSS_SIGNAL, 0, 4, AT(63), AT(64)}};
static const struct segfile second = {5, 1, "4242", after, 6, losses, 3, 0};
static const char *const names[] = {"0.weft", "1.weft", NULL};

static void define_code(struct weft__defs *defs, const struct segfile *file)
{
	(void)file;
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "sample.engine", "timer");
	weft__defs_fact(defs, "sample.why", "auto: 100 Hz is below the tick rate");
	code_define(defs);
	CODE_DEFINE_STACK(defs, 1, WEFT_STACK_COMPLETE, code_app(F_MATCH), code_app(F_DEFLATE), code_app(F_UPLOAD),
			  code_app(F_LOOP), code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 2, WEFT_STACK_COMPLETE, code_app(F_DEFLATE), code_app(F_UPLOAD), code_app(F_LOOP),
			  code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 3, WEFT_STACK_COMPLETE, code_app(F_CRC), code_app(F_UPLOAD), code_app(F_LOOP),
			  code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 4, WEFT_STACK_CUT, code_app(F_OUTER), code_app(F_LOOP));
	CODE_DEFINE_STACK(defs, 5, WEFT_STACK_COMPLETE | WEFT_STACK_FP, code_app(F_LOOP), code_app(F_MAIN),
			  code_app(F_START));
	CODE_DEFINE_STACK(defs, 6, WEFT_STACK_LOST, code_lib(0x4f20));
}

static bool begin(void)
{
	if (!command_there())
		return false;
	segfile_more = define_code;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&first, segfile_path(dir, "0.weft"));
	segfile_write(&second, segfile_path(dir, "1.weft"));
	segfile_more = NULL;
	return true;
}

#define BEGIN                                                                                                          \
	if (!begin())                                                                                                  \
	SKIP("there is no weft command in $WEFT_BUILD")

TEST(the_worst_poll_is_shown_with_what_the_cpu_did_in_it)
{
	BEGIN;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("samples: 7 for 100 ms of CPU, 100 Hz, timer engine (auto: 100 Hz is below the tick rate)\n"
		   "stacks: 60.0 % complete, 10.0 % cut at the depth limit, 30.0 % lost on the way; 19.0 % have frames "
		   "from frame pointers\n"));
	CHECK(says("B an event)\n"
		   "NOTE: 3 CPU samples were lost, for want of memory for their stacks: CPU time is too small by what "
		   "they "
		   "stand for\n"
		   "NOTE: about 4 CPU samples are missing, because another handler took their signal: CPU time of then "
		   "is too "
		   "small\n"
		   "NOTE: 2 threads could not be sampled: what they did on the CPU is in no table\n"
		   "samples: "));
	CHECK(says("worst poll: 52.0 ms on worker demo/1 at +0.010000 s, task 2 `echo` (server.c:120),\n"
		   "            41.0 ms on CPU in deflate (3 samples), 11.0 ms not measured (the thread's switches "
		   "were not recorded),\n"));
	CHECK(says("                52.0 ms = 41.0 on CPU (deflate 73 %, 3 samples),\n"
		   "                          11.0 not measured (the thread's switches were not recorded)\n"
		   "         78.8 %   41.0 ms     3  _start > main > run_loop > handle_upload\n"
		   "         57.7 %   30.0 ms     2    deflate\n"
		   "         38.5 %   20.0 ms     1      longest_match\n"
		   "         21.2 %   11.0 ms     1    crc32\n"));
	CHECK(says("                sampled on CPU in inner (1 sample; the poll is shorter than the sampling period)\n"
		   "        100.0 %   10.0 ms     1  (cut) > run_loop > outer > inner\n"));
	CHECK(says("                no sample fell into it: it was shorter than the sampling period\n"));
	CHECK(!strstr(out, "events were not recorded"));
	segfile_remove(dir, names);
}

TEST(the_report_says_where_cpu_time_went)
{
	BEGIN;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("CPU time: 100 ms in 7 samples\n"
		   "    CPU   share  samples  where\n"
		   "51.0 ms  51.0 %        4  in polls\n"
		   "10.0 ms  10.0 %        1  outside polls: in the runtime, between them\n"
		   "9.00 ms   9.0 %        1  outside polls: while parked\n"
		   "30.0 ms  30.0 %        1  outside polls: on threads that never poll\n"));
	CHECK(says("worker  thread       CPU   share  samples  in polls  outside\n"
		   "demo/1  w1(102)  41.0 ms  41.0 %        3   41.0 ms     0 ns\n"
		   "-       io(103)  30.0 ms  30.0 %        1      0 ns  30.0 ms\n"
		   "demo/0  w0(101)  29.0 ms  29.0 %        3   10.0 ms  19.0 ms\n"
		   "CPU clock, sampled of it: not measured: fewer than two readings of the thread's CPU time\n"));
	CHECK(says("   self   share  samples    total   share  samples  function             module\n"
		   "30.0 ms  30.0 %        1  30.0 ms  30.0 %        1  libnone.so.1+0x6f20  libnone.so.1\n"
		   "20.0 ms  20.0 %        1  20.0 ms  20.0 %        1  longest_match        app\n"
		   "19.0 ms  19.0 %        2  70.0 ms  70.0 %        6  run_loop             app\n"
		   "11.0 ms  11.0 %        1  11.0 ms  11.0 %        1  crc32                app\n"
		   "10.0 ms  10.0 %        1  30.0 ms  30.0 %        2  deflate              app\n"
		   "10.0 ms  10.0 %        1  10.0 ms  10.0 %        1  inner                app\n"));
	CHECK(says("\n19.0 ms  19.0 %        2  70.0 ms  70.0 %        6  run_loop             app\n"
		   "   0 ns   0.0 %        0  60.0 ms  60.0 %        5  _start               app\n"
		   "   0 ns   0.0 %        0  60.0 ms  60.0 %        5  main                 app\n"));
	CHECK(says("no name for 1 address in /opt/demo/lib/libnone.so.1: No such file or directory\n"));
	CHECK(says("accept  server.c:80            2   6.00 ms      10.0 ms  166.7 %        1\n"));
	CHECK_EQ(run("report --full --no-symbols ."), 0);
	CHECK(says("no name for 1 address in /opt/demo/lib/libnone.so.1: --no-symbols\n"));
	CHECK(says("longest_match")); /* the segment itself names it */
	segfile_remove(dir, names);
}

TEST(a_filter_by_thread_leaves_its_part_of_the_cpu_time)
{
	BEGIN;
	CHECK_EQ(run("report --full --thread w0 ."), 0);
	CHECK(says("CPU time: 29.0 ms in 3 samples\n"));
	CHECK(says("71.0 ms more was not asked for\n"));
	CHECK(!strstr(out, "deflate"));
	CHECK_EQ(run("report --full --thread 103 ."), 0);
	CHECK(says("CPU time: 30.0 ms in 1 samples\n"));
	CHECK(says("worst poll: not measured: no poll that was asked for ended here"));
	CHECK_EQ(run("report --full --worker demo/1 ."), 0);
	CHECK(says("CPU time: 41.0 ms in 3 samples\n"));
	CHECK_EQ(run("report --full --location accept ."), 0);
	CHECK(says("CPU time: 10.0 ms in 1 samples\n"));
	CHECK_EQ(run("report --full --from 15ms --to 35ms ."), 0);
	CHECK(says("CPU time: 39.0 ms in 3 samples\n")); /* 9 + 20 + 10 */
	CHECK(says("still running: 25.0 ms so far on worker demo/1"));
	CHECK(says("10.0 ms on CPU in longest_match (2 samples),\n")); /* 30 ms of weight: the first began before */
	CHECK_EQ(run("report --full --thread nobody ."), 0);
	CHECK(says("samples: not measured: no sample that was asked for\n"));
	CHECK_EQ(run("report --full --top 1 ."), 0);
	CHECK(says("and 2 more threads with 59.0 ms\n"));
	segfile_remove(dir, names);
}

TEST(samples_are_in_the_json)
{
	static const char *const script =
		"import json, sys\n"
		"r = json.load(sys.stdin)['recordings'][0]\n"
		"c, p = r['cpu'], r['longest_polls'][0]['cpu']\n"
		"assert c['cpu_ns'] == 100000000 and c['samples'] == 7 and c['hz'] == 100, c\n"
		"assert sum(w['cpu_ns'] for w in c['where'].values()) == 100000000\n"
		"assert sum(t['cpu_ns'] for t in c['threads']) == 100000000\n"
		"assert sum(f['self_ns'] for f in c['functions']) == 100000000\n"
		"f = {f['function']: f for f in c['functions']}\n"
		"assert f['run_loop']['total_ns'] == 70000000 and not f['libnone.so.1+0x6f20']['known']\n"
		"assert p['cpu_ns'] == 41000000 and p['not_sampled_ns'] == 11000000 and p['mostly_in'] == 'deflate'\n"
		"assert [s['cpu_ns'] for s in p['stacks']] == [20000000, 11000000, 10000000]\n"
		"s = p['stacks'][0]\n"
		"assert s['stack'] == 'complete' and abs(s['share'] - 20 / 52) < 1e-6\n"
		"assert [x['function'] for x in s['frames']] == "
		"['longest_match', 'deflate', 'handle_upload', 'run_loop', 'main', '_start']\n"
		"assert s['frames'][0]['file'] == 'deflate.c' and s['frames'][0]['line'] == 50\n"
		"s = r['longest_polls'][1]['cpu']['stacks'][0]['frames']\n"
		"assert s[0]['function'] == 'inner' and s[0]['inlined'] and not s[1]['inlined'], s\n"
		"assert r['longest_polls'][2]['cpu'] is None and 'period' in r['longest_polls'][2]['cpu_why']\n"
		"a = [l for l in r['locations'] if l['location'] == 'accept'][0]\n"
		"assert abs(a['short_polls'].pop('share') - 10 / 6) < 1e-6, a\n"
		"assert a['short_polls'] == {'count': 2, 'total_ns': 6000000, 'samples': 1, 'cpu_ns': 10000000}, a\n"
		"assert r['lost_samples'] == 3 and r['threads_not_sampled'] == 2 and r['missed_samples'] == 4\n";
	FILE *file;

	BEGIN;
	file = fopen(segfile_path(dir, "check.py"), "w");
	REQUIRE(file != NULL);
	fputs(script, file);
	fclose(file);
	CHECK_EQ(run("report --json . | /usr/bin/python3 check.py"), 0);
	CHECK_STR(out, "");
	unlink(segfile_path(dir, "check.py"));
	segfile_remove(dir, names);
}

static void define_off(struct weft__defs *defs, const struct segfile *file)
{
	(void)file;
	weft__defs_fact(defs, "degraded.sampling", "timer_create: Operation not permitted");
}

TEST(a_recording_without_samples_says_why)
{
	static const struct segfile_event events[] = {EV(AT(10), 2, POLL_BEGIN, 2, 3), EV(AT(62), 2, POLL_END)};
	static const struct segfile none = {5, 0, "4242", events, 2, NULL, 0, 0};

	BEGIN;
	segfile_write(&none, segfile_path(dir, "0.weft"));
	CHECK_EQ(run("report --full 0.weft"), 0);
	CHECK(says("samples: not measured: sampling was off\n"));
	CHECK(!strstr(out, "CPU time: "));
	CHECK_EQ(run("report --json 0.weft"), 0);
	CHECK(says("\"cpu\": null,\n      \"cpu_why\": \"sampling was off\""));
	segfile_more = define_off;
	segfile_write(&none, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full 0.weft"), 0);
	CHECK(says("samples: not measured: timer_create: Operation not permitted\n"));
	segfile_remove(dir, names);
}

/* Names that are longer than a screen is wide; each as it is in the file and as it is shown. */
static const char *const long_names[][2] = {
	{"std::vector<std::pair<std::string, int>, std::allocator<std::pair<std::string, int> > >::push_back(int&&)",
	 "std::vector<>::push_back"},
	{"<alloc::vec::Vec<T> as core::iter::Extend<some::very::long::module::path::Thing>>::extend_desugared",
	 "..::vec::Vec<> as core::iter::Extend<>>::extend_desugared"},
	{"a_function_of_c_whose_name_goes_on_and_on_and_on_until_it_is_far_beyond_any_line_that_one_may_read",
	 "a_function_of_c_whose_name_goes_on_and_on_and_on_until_i.."},
	{"(anonymous namespace)::server::connection::handler_of_things::reader_of_bodies::on_bytes(char const*) const",
	 "..::handler_of_things::reader_of_bodies::on_bytes"},
	{"bool operator< <char, std::char_traits<char>, std::allocator<char> >(std::string const&, std::string const&)",
	 "bool operator< <>"},
};

static void define_long_names(struct weft__defs *defs, const struct segfile *file)
{
	uint32_t i;

	define_code(defs, file);
	for (i = 0; i < 5; i++) {
		struct weft__symbol_names frame = {200 + i, 0, 0, 0};

		weft__defs_name(defs, 200 + i, long_names[i][0]);
		weft__defs_symbol(defs, CODE_APP, 0x8000 + i, &frame, 1);
		CODE_DEFINE_STACK(defs, 20 + i, WEFT_STACK_COMPLETE, {CODE_APP, 0x8000 + i});
	}
}

TEST(long_names_are_shortened_in_text_only)
{
	static const struct segfile_event events[] = {
		EV(AT(1), 1, SAMPLE, SAMPLE_OF(20, 1)), EV(AT(2), 1, SAMPLE, SAMPLE_OF(21, 1)),
		EV(AT(3), 1, SAMPLE, SAMPLE_OF(22, 1)), EV(AT(4), 1, SAMPLE, SAMPLE_OF(23, 1)),
		EV(AT(5), 1, SAMPLE, SAMPLE_OF(24, 1)),
	};
	static const struct segfile file = {5, 0, "4242", events, 5, NULL, 0, 0};
	size_t i;

	BEGIN;
	segfile_more = define_long_names;
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full 0.weft"), 0);
	for (i = 0; i < 5; i++)
		CHECK(says(long_names[i][1]));
	CHECK_EQ(run("report --json 0.weft"), 0);
	for (i = 0; i < 5; i++)
		CHECK(says(long_names[i][0]));
	segfile_remove(dir, names);
}

/* 30 ms in the kernel, called by way of a library, and thirty different places in that library of 1 ms each. */
static void define_wide(struct weft__defs *defs, const struct segfile *file)
{
	struct weft__symbol_names syscall = {95, 0, 0, 0};
	uint32_t i;

	define_code(defs, file);
	weft__defs_fact(defs, "process.exe", "/opt/demo/bin/app");
	weft__defs_name(defs, 95, "do_syscall_64");
	weft__defs_symbol(defs, CODE_KERNEL, 0xffffffff81000010, &syscall, 1);
	CODE_DEFINE_STACK(defs, 9, WEFT_STACK_KERNEL, {CODE_KERNEL, 0xffffffff81000010});
	for (i = 0; i <= 30; i++)
		CODE_DEFINE_STACK(defs, 30 + i, WEFT_STACK_COMPLETE, code_lib(16 * i), code_app(F_UPLOAD));
}

TEST(a_tree_is_pruned_and_the_kernel_is_marked)
{
	struct segfile_event events[34] = {EV(AT(1), 1, POLL_BEGIN, 1, 0),
					   EV(AT(40), 1, SAMPLE, 30, 9, 30 * MS, 0, WEFT_ENGINE_PERF)};
	struct segfile file = {5, 0, "4242", events, 33, NULL, 0, 0};
	uint32_t i;

	BEGIN;
	for (i = 1; i <= 30; i++)
		events[1 + i] = (struct segfile_event)EV(AT(40 + i), 1, SAMPLE, SAMPLE_OF(30 + i, 1));
	events[32] = (struct segfile_event)EV(AT(101), 1, POLL_END);
	segfile_more = define_wide;
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full 0.weft"), 0);
	CHECK(says("            60.0 ms on CPU in do_syscall_64 [k], called from handle_upload (31 samples),\n"
		   "            40.0 ms not measured (the thread's switches were not recorded),\n"));
	CHECK(says("         60.0 %   60.0 ms    31  handle_upload\n"
		   "         30.0 %   30.0 ms     1    libnone.so.1+0x2000 > do_syscall_64 [k]\n"
		   "         30.0 %   30.0 ms    30    (30 more)\n"));
	CHECK(says(", 50.0 % timer, 50.0 % perf\n"));
	CHECK(says("; 50.0 % have kernel frames\n"));
	segfile_remove(dir, names);
}
