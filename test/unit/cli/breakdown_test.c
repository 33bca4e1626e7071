/* SPDX-License-Identifier: Apache-2.0 */
/* What weft report says about the time of polls: golden text and JSON of a recording whose figures are worked out by
 * hand. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../analyze/code.h"
#include "../analyze/segfile.h"
#include "command.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define US 1000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define OFF(tid, ms, us, reason, stack) tid, AT(ms), (us)*US, WEFT_OFFCPU_##reason, 1, stack, 0

enum { S_READ = 11, S_LOCK, S_UPLOAD, S_LABELS, S_DB };

/* Worker demo/1 polls `echo` from 10 to 62 ms: 41 ms on the CPU, 8 blocked in read, 2.6 waiting for cache_lock,
 * which demo/0 holds in a poll of `accept`, 0.4 preempted. Thread io waits, and is looked at. Thread 4 is the
 * collector. */
static const struct segfile_event events[] = {
	EV(AT(1), 1, SPAWN, 1, 1),
	EV(AT(1), 1, SPAWN, 2, 2),
	EV(AT(5), 1, POLL_BEGIN, 1, 0),
	EV(AT(37), 1, SAMPLE, SAMPLE_OF(2, 10)),
	EV(AT(38), 1, SAMPLE, SAMPLE_OF(2, 10)),
	EV(AT(45), 1, POLL_END),
	EV(AT(10), 2, POLL_BEGIN, 2, 3),
	EV(AT(11), 2, CONTEXT, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0xf067aa0ba902b7, 0xf067aa0ba902b7, S_UPLOAD,
	   S_LABELS),
	EV(AT(20), 2, SAMPLE, SAMPLE_OF(1, 20)),
	EV(AT(30), 2, WAIT, WEFT_WAIT_CALL, S_READ, 7, 8 * MS, 0, 7),
	EV(AT(39), 2, WAIT, WEFT_WAIT_LOCK, S_LOCK, 0xbeef0, 2600 * US, 101, 8),
	EV(AT(40), 2, SAMPLE, SAMPLE_OF(3, 20)),
	EV(AT(61), 2, CONTEXT, 0, 0, 0, 0, 0, 0),
	EV(AT(62), 2, POLL_END),
	EV(AT(64), 2, WAIT_SUM, WEFT_WAIT_LOCK, S_LOCK, 100, 900 * US, 50 * US),
	EV(AT(40), 4, OFFCPU, OFF(102, 22, 7990, BLOCKED, 0)),
	EV(AT(40), 4, OFFCPU, OFF(101, 34, 100, PREEMPTED, 0)),
	EV(AT(63), 4, OFFCPU, OFF(102, 50, 400, PREEMPTED, 0)),
	EV(AT(64), 4, WALL, 103, 100 * MS, 2, 1 + 0, 7),
	EV(AT(65), 4, STUCK, 103, 5, 1500 * MS, 1),
	EV(AT(66), 4, COST, WEFT_COST_COLLECTOR, 400 * US, 100 * MS, 0),
	EV(AT(66), 4, COST, WEFT_COST_SAMPLES, 100 * US, 100 * MS, 99),
};
static const struct weft_loss losses[] = {{WEFT_LOSS_SWITCH, 0, 17, AT(70), AT(71)}};
static const struct segfile file = {5, 0, "4242", events, sizeof(events) / sizeof(events[0]), losses, 1, 0};
static const char *const names[] = {"0.weft", NULL};

static void define(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "sample.engine", "timer");
	weft__defs_fact(defs, "switch.mode", "intervals");
	weft__defs_fact(defs, "budget.ppm", "10000");
	weft__defs_string(defs, S_READ, "read");
	weft__defs_string(defs, S_LOCK, "cache_lock");
	weft__defs_string(defs, S_UPLOAD, "POST /upload");
	weft__defs_string(defs, S_LABELS, "tier=gold,user=7");
	code_define(defs);
	CODE_DEFINE_STACK(defs, 1, WEFT_STACK_COMPLETE, code_app(F_MATCH), code_app(F_DEFLATE), code_app(F_UPLOAD),
			  code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 2, WEFT_STACK_COMPLETE, code_app(F_DEFLATE), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 3, WEFT_STACK_COMPLETE, code_app(F_CRC), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 7, WEFT_STACK_COMPLETE, code_app(F_OUTER), code_app(F_LOOP), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 8, WEFT_STACK_COMPLETE, code_app(F_UPLOAD), code_app(F_LOOP), code_app(F_MAIN));
}

static void define_slow(struct weft__defs *defs, const struct segfile *of)
{
	define(defs, of);
	weft__defs_fact(defs, "poll.mode", "slow");
	weft__defs_fact(defs, "poll.slow_ns", "10000000");
}

static void define_caught(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_fact(defs, "poll.mode", "caught");
}

static const char *reported_wait_ns;

static void define_quiet(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_fact(defs, "wait.ns", reported_wait_ns);
	weft__defs_string(defs, S_LOCK, "cache_lock");
}

static void define_chain(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_string(defs, S_READ, "read");
	weft__defs_string(defs, S_LOCK, "cache_lock");
	weft__defs_string(defs, S_DB, "db_lock");
}

static bool begin(void)
{
	if (!command_there())
		return false;
	segfile_more = define;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	return true;
}

#define BEGIN                                                                                                          \
	if (!begin())                                                                                                  \
	SKIP("there is no weft command in $WEFT_BUILD")

TEST(the_worst_poll_is_shown_with_its_breakdown)
{
	BEGIN;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("worst poll: 52.0 ms on worker demo/1 at +0.010000 s, task 2 `echo` (server.c:120),\n"
		   "            41.0 ms on CPU in longest_match (2 samples), 8.00 ms blocked (read fd 7),\n"
		   "            2.60 ms waiting for cache_lock held by thread 101 \"w0\" (in accept > deflate),\n"
		   "            wake not measured\n"));
	CHECK(says(
		"                endpoint POST /upload, span 00f067aa0ba902b7, trace "
		"4bf92f3577b34da6a3ce929d0e0e4736, tier=gold,user=7\n"
		"                52.0 ms = 41.0 on CPU (longest_match 50 %, 2 samples), 8.0 blocked (read fd 7),\n"
		"                          2.6 waiting for cache_lock held by thread 101 \"w0\" (in accept > deflate), "
		"0.4 preempted,\n"
		"                          0.0 not measured\n"
		"         76.9 %   40.0 ms     2  main > handle_upload\n"
		"         38.5 %   20.0 ms     1    deflate > longest_match\n"
		"         38.5 %   20.0 ms     1    crc32\n"
		"        off the CPU:\n"
		"         20.4 %   10.6 ms     2  main > run_loop\n"
		"         15.4 %   8.00 ms     1    outer > inner\n"
		"          5.0 %   2.60 ms     1    handle_upload\n"));
	CHECK(says("40.0 ms = 39.9 on CPU (deflate 100 %, 2 samples), 0.1 preempted, 0.0 not measured\n"));
	segfile_remove(dir, names);
}

static void define_dump(struct weft__defs *defs, const struct segfile *of)
{
	define(defs, of);
	weft__defs_fact(defs, "dump.why", "poll of task 2 in thread 102 took 52.000 ms");
	weft__defs_fact(defs, "dump.unheard", of->sequence ? "3" : "0");
}

TEST(dumps_of_a_flight_recorder_are_reported_one_by_one)
{
	static const char *const both[] = {"0.weft", "1.weft", NULL};
	struct segfile next = file;

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	next.sequence = 1;
	segfile_more = define_dump;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_write(&next, segfile_path(dir, "1.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("\ndump 0 of a flight recorder: poll of task 2 in thread 102 took 52.000 ms\n"));
	CHECK(says("\ndump 1 of a flight recorder: poll of task 2 in thread 102 took 52.000 ms; 3 more asked for one "
		   "before it was "
		   "written, or too soon after the last\n"));
	segfile_remove(dir, both);
}

static void define_callers(struct weft__defs *defs, const struct segfile *of)
{
	static const struct weft_module libc = {
		4, WEFT_MODULE_FILE, "/lib/libc.so.6", 0x7f1000000000, 0x7f1000100000, 0, 0, {0}};
	static const struct weft__symbol_names lock = {80, 0, 0, 0};

	(void)of;
	weft__defs_fact(defs, "process.exe", "/opt/demo/bin/app");
	weft__defs_string(defs, S_READ, "read");
	code_define(defs);
	weft__defs_module(defs, &libc);
	CODE_DEFINE_STACK(defs, 1, WEFT_STACK_COMPLETE, {4, 0x10}, code_lib(0), code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 2, WEFT_STACK_COMPLETE, {4, 0x20}, code_lib(0), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 3, WEFT_STACK_COMPLETE, {4, 0x30}, {4, 0x40}, code_app(F_MAIN), code_app(F_START));
	CODE_DEFINE_STACK(defs, 4, WEFT_STACK_COMPLETE, {4, 0x50}, {4, 0x60}, code_app(F_START));
	weft__defs_name(defs, 80, "<std::sys::sync::mutex::Mutex>::lock");
	weft__defs_symbol(defs, CODE_APP, 0x9000, &lock, 1);
	CODE_DEFINE_STACK(defs, 5, WEFT_STACK_COMPLETE, {4, 0x70}, {CODE_APP, 0x9000}, code_app(F_UPLOAD));
}

/* The nearest function of the program that is not its language's; where that only began it, the library that works
 * for it. */
TEST(the_report_says_who_called_what_blocks)
{
	static const struct segfile_event calls[] = {
		EV(AT(11), 1, WAIT, WEFT_WAIT_CALL, S_READ, 7, 10 * MS, 0, 1),
		EV(AT(22), 1, WAIT, WEFT_WAIT_CALL, S_READ, 7, 9 * MS, 0, 2),
		EV(AT(33), 1, WAIT, WEFT_WAIT_CALL, S_READ, 7, 8 * MS, 0, 3),
		EV(AT(44), 1, WAIT, WEFT_WAIT_CALL, S_READ, 7, 7 * MS, 0, 4),
		EV(AT(55), 1, WAIT, WEFT_WAIT_CALL, S_READ, 7, 6 * MS, 0, 5),
	};
	static const struct segfile of = {5, 0, "4242", calls, sizeof(calls) / sizeof(calls[0]), NULL, 0, 0};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_more = define_callers;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&of, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("in libc.so.6+0x10, called from libnone.so.1+0x2000\n"));
	CHECK(says("in libc.so.6+0x20, called from handle_upload\n"));
	CHECK(says("in libc.so.6+0x30, called from main\n"));
	CHECK(says("in libc.so.6+0x50\n"));
	CHECK(says("in libc.so.6+0x70, called from handle_upload\n"));
	segfile_remove(dir, names);
}

TEST(inspect_shows_contexts_and_leaves_out_those_that_are_none)
{
	BEGIN;
	CHECK_EQ(run("inspect --events ."), 0);
	CHECK(says("  endpoint=\"POST /upload\"  labels=\"tier=gold,user=7\"\n"));
	CHECK(says("  span=0  root=0  endpoint=none  labels=none\n"));
	segfile_remove(dir, names);
}

TEST(the_report_says_where_the_time_of_polls_went)
{
	BEGIN;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("worker  polls    total   on CPU  blocked  waiting  preempted  not measured\n"
		   "demo/0      1  40.0 ms  39.9 ms     0 ns     0 ns     100 us          0 ns\n"
		   "demo/1      1  52.0 ms  41.0 ms  8.00 ms  2.60 ms     400 us          0 ns\n"));
	CHECK(says("waited for  kind  times    total     mean  longest  one by one\n"
		   "read fd 7   call      1  8.00 ms  8.00 ms  8.00 ms           1\n"
		   "cache_lock  lock    101  3.50 ms  34.7 us  2.60 ms           1\n"));
	CHECK(says("object   waited for  kind  times    total  longest  held by, in the longest\n"
		   "0xbeef0  cache_lock  lock      1  2.60 ms  2.60 ms  thread 101 \"w0\" (in accept > deflate)\n"));
	CHECK(says("  2    2.60 ms  for cache_lock (0xbeef0) on demo/1, task 2 `echo`, at +0.036400 s\n"
		   "                held by thread 101 \"w0\" (in accept > deflate)\n"
		   "                in handle_upload\n"));
	CHECK(says("thread   blocked  times  preempted  times  longest  off-CPU samples\n"
		   "w1(102)  7.99 ms      1     400 us      1  7.99 ms                0\n"
		   "w0(101)     0 ns      0     100 us      1   100 us                0\n"
		   "in what: not measured where no wait says so"));
	CHECK(says("100 ms  100.0 %             2  read  io(103)  inner\n"));
	CHECK(says("1.50 s  +0.065000 s      1  io(103)     5  (spawned before recording)  longest_match\n"
		   "ended after: not measured: its end was not seen\n"));
	CHECK(says("weft itself used 500 us of CPU in 100 ms: 0.5 % of one CPU, 0.8 % of the program's 60.0 ms; "
		   "budget 1 %\n"
		   "      collector 0.4 %, samples 0.1 %\n"));
	CHECK(says("NOTE: 17 records of context switches were lost in a moment: polls of then have parts that are not "
		   "measured\n"));
	CHECK(!strstr(out, "events were not recorded"));
	segfile_remove(dir, names);
}

/* demo/1 waits for cache_lock, which demo/0 has, who waits for db_lock, which io has, who is blocked. */
TEST(a_chain_of_holders_is_reported_to_its_end)
{
	static const struct segfile_event chain[] = {
		EV(AT(45), 1, WAIT, WEFT_WAIT_LOCK, S_DB, 0xdb, 35 * MS, 103, 0),      EV(AT(5), 2, POLL_BEGIN, 1, 0),
		EV(AT(46), 2, WAIT, WEFT_WAIT_LOCK, S_LOCK, 0xbeef0, 34 * MS, 101, 0), EV(AT(50), 2, POLL_END),
		EV(AT(44), 3, WAIT, WEFT_WAIT_CALL, S_READ, 7, 40 * MS, 0, 0),
	};
	static const struct segfile_event ring[] = {
		EV(AT(45), 1, WAIT, WEFT_WAIT_LOCK, S_DB, 0xdb, 35 * MS, 102, 0),
		EV(AT(5), 2, POLL_BEGIN, 1, 0),
		EV(AT(46), 2, WAIT, WEFT_WAIT_LOCK, S_LOCK, 0xbeef0, 34 * MS, 101, 0),
		EV(AT(50), 2, POLL_END),
	};
	struct segfile one = {5, 0, "4242", chain, sizeof(chain) / sizeof(chain[0]), NULL, 0, 0};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_more = define_chain;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&one, segfile_path(dir, "0.weft"));
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("34.0 ms waiting for cache_lock held by thread 101 \"w0\" (itself waiting for db_lock, held by "
		   "thread 103 \"io\" (blocked in read fd 7))"));
	CHECK_EQ(run("report --json . | python3 -c \"import json, sys; h = json.load(sys.stdin)['recordings'][0]"
		     "['longest_polls'][0]['breakdown']['causes'][0]['holder']; print(h['tid'], h['holder']['tid'])\""),
		 0);
	CHECK(says("101 103\n"));
	one.events = ring;
	one.n_events = sizeof(ring) / sizeof(ring[0]);
	segfile_write(&one, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full ."), 0); /* comes to an end */
	CHECK(says("itself waiting for db_lock, held by thread 102 \"w1\" (itself waiting for cache_lock in"));
	segfile_remove(dir, names);
}

/* Nobody says when threads were off the CPU. Those who wait for locks say so all the same. */
TEST(waits_are_known_without_switches)
{
	static const struct segfile_event few[] = {
		EV(AT(5), 1, POLL_BEGIN, 1, 0),
		EV(AT(45), 1, POLL_END),
		EV(AT(50), 1, WAIT, WEFT_WAIT_LOCK, S_LOCK, 0xbeef0, 2600 * US, 0, 0),
	};
	static const char *const wait_ns[] = {"1000000", "off"};
	struct segfile quiet = {5, 0, "4242", few, sizeof(few) / sizeof(few[0]), NULL, 0, 0};
	int i;

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	for (i = 0; i < 2; i++) {
		reported_wait_ns = wait_ns[i];
		segfile_more = define_quiet;
		segfile_dir(dir, sizeof(dir));
		segfile_write(&quiet, segfile_path(dir, "0.weft"));
		segfile_more = NULL;
		CHECK_EQ(run("report --full ."), 0);
		CHECK(says(i ? "worker  polls    total  not measured\n"
			       "demo/0      1  40.0 ms       40.0 ms\n"
			       "on CPU, blocked, preempted: not measured: the threads' switches were not recorded\n"
			       "waiting: not measured: waits were not recorded\n"
			     : "worker  polls    total  waiting  not measured\n"
			       "demo/0      1  40.0 ms     0 ns       40.0 ms\n"
			       "on CPU, blocked, preempted: not measured: the threads' switches were not recorded\n"));
		CHECK_EQ(run("report --json ."), 0);
		CHECK(says(i ? "\"waiting_ns\": null,\n" : "\"waiting_ns\": 0,\n"));
		CHECK(says("\"on_cpu_ns\": null,\n") && says("\"blocked_ns\": null,\n"));
		segfile_remove(dir, names);
	}
}

TEST(a_span_filters_the_report_to_one_request)
{
	static const char *const of_it[] = {
		"--span 00f067aa0ba902b7", "--span F067AA0BA902B7", "--span 4bf92f3577b34da6a3ce929d0e0e4736",
		"--label user=7",          "--label tier=gold",     "--endpoint 'POST *'"};
	static const char *const of_none[] = {"--span f067aa0ba902b8", "--label user=", "--label tier=gold,user=7",
					      "--endpoint GET", "--span 4bf92f3577b34da6a3ce929d0e0e4737"};
	size_t i;

	BEGIN;
	for (i = 0; i < sizeof(of_it) / sizeof(of_it[0]); i++) {
		CHECK_EQ(run("report --full %s .", of_it[i]), 0);
		CHECK(says("worst poll: 52.0 ms"));
		CHECK(says("CPU time: 40.0 ms in 2 samples\n"));
		CHECK(says("20.0 ms more was not asked for\n"));
		CHECK(says("cache_lock  lock      1  2.60 ms"));
		CHECK(!strstr(out, "40.0 ms  demo/0"));
		CHECK(!strstr(out, "nothing here was done"));
	}
	for (i = 0; i < sizeof(of_none) / sizeof(of_none[0]); i++) {
		CHECK_EQ(run("report --full %s .", of_none[i]), 0);
		CHECK(says("worst poll: not measured: no poll that was asked for ended here"));
		CHECK(says("samples: not measured: no sample that was asked for"));
		CHECK(says("nothing here was done"));
	}
	CHECK_EQ(run("report --span xyz ."), 2);
	CHECK(says("--span takes the hex digits of a span"));
	CHECK_EQ(run("report --span 0 ."), 2);
	CHECK_EQ(run("report --label user ."), 2);
	CHECK(says("--label takes KEY=VALUE"));
	segfile_remove(dir, names);
}

/* Mode slow: two polls one by one, the others as counts. */
TEST(the_report_says_which_polls_are_only_counted)
{
	static const struct segfile_event slow[] = {
		EV(AT(1), 1, SPAWN, 1, 1),
		EV(AT(1), 1, WAKE, 1, 0),
		EV(AT(20), 1, SAMPLE, SAMPLE_OF(1, 10)),
		EV(AT(40), 1, TASK_END, 1),
		EV(AT(40), 1, POLL, 1, 2, 30 * MS, 0, WEFT_POLL_SLOW),
		EV(AT(60), 1, POLL, 7, 0, 12 * MS, 0, WEFT_POLL_SLOW),
		EV(AT(61), 4, POLL_COUNT, 1, 1000, 1100, 998),
		EV(AT(61), 4, POLL_COUNT, 1, 12 * MS, 13 * MS, 1),
		EV(AT(61), 4, POLL_COUNT, 1, 28 * MS, 32 * MS, 1),
		EV(AT(61), 4, OFFCPU, OFF(101, 25, 5000, BLOCKED, 0)),
	};
	static const struct weft_loss beyond = {WEFT_LOSS_POLL_CAP, 1, 5, AT(50), AT(60)};
	struct segfile reported = {5, 0, "4242", slow, sizeof(slow) / sizeof(slow[0]), &beyond, 1, 0};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_more = define_slow;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&reported, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says(
		"polls: mode slow, those of 10.0 ms and more one by one: 2 of 1,000\n"
		"       percentiles by worker are from counts of all by duration; by location, only those one by one "
		"count\n"));
	CHECK(says("worst poll: 30.0 ms on worker demo/0 at +0.010000 s, task 1 `accept` (server.c:80),\n"
		   "            25.0 ms on CPU in longest_match (1 sample), 5.00 ms blocked (in what: not measured),\n"
		   "            woken 9.00 ms before by demo/0\n"));
	CHECK(says("worst delay: not measured: not all polls are recorded one by one"));
	CHECK(says("demo/0  1,000  1.05 us  1.05 us"));
	CHECK(!strstr(out, "events were not recorded"));
	segfile_remove(dir, names);
}

TEST(inspect_lists_stacks_of_all_kinds_of_events)
{
	BEGIN;
	CHECK_EQ(run("inspect --stacks 0.weft"), 0);
	CHECK(says("stack 1, 1 sample, 20.0 ms, 1 stuck, complete\n"));
	CHECK(says("stack 7, 0 samples, 1 wait, 1 wall, complete\n"));
	CHECK(says("stack 8, 0 samples, 1 wait, complete\n"));
	segfile_remove(dir, names);
}

TEST(the_breakdown_of_a_poll_is_in_the_json)
{
	static const char *const script =
		"import json, sys\n"
		"r = json.load(sys.stdin)['recordings'][0]\n"
		"p = r['longest_polls'][0]\n"
		"s = p['breakdown']\n"
		"assert s['on_cpu_ns'] == 41000000 and s['blocked_ns'] == 8000000, s\n"
		"assert s['waiting_ns'] == 2600000 and s['preempted_ns'] == 400000 and s['not_measured_ns'] == 0, s\n"
		"assert s['switches'] == 'all' and s['not_measured_why'] is None\n"
		"parts = ['on_cpu_ns', 'blocked_ns', 'waiting_ns', 'preempted_ns', 'not_measured_ns']\n"
		"assert sum(s[k] for k in parts) == p['duration_ns']\n"
		"a, b = s['causes']\n"
		"assert a['part'] == 'blocked' and a['name'] == 'read' and a['object'] == 7 and a['holder'] is None\n"
		"assert [f['function'] for f in a['frames']] == ['inner', 'outer', 'run_loop', 'main']\n"
		"h = b['holder']\n"
		"assert b['name'] == 'cache_lock' and h['tid'] == 101 and h['location'] == 'accept', b\n"
		"assert h['doing'] == 'in accept > deflate' and h['where']['worker'] == 'demo/0'\n"
		"c = p['context']\n"
		"assert c['span'] == '00f067aa0ba902b7' and c['endpoint'] == 'POST /upload'\n"
		"assert c['labels'] == 'tier=gold,user=7' and c['trace'] == '4bf92f3577b34da6a3ce929d0e0e4736'\n"
		"assert r['time_in_polls']['polls'] == 2 and r['time_in_polls']['preempted_ns'] == 500000\n"
		"w = {w['name']: w for w in r['waits']}\n"
		"assert w['cache_lock']['times'] == 101 and w['cache_lock']['total_ns'] == 3500000\n"
		"o = r['wait_objects']\n"
		"assert len(o) == 1 and o[0]['object'] == 0xbeef0 and o[0]['holder']['tid'] == 101, o\n"
		"assert r['longest_waits'][1]['holder']['doing'] == 'in accept > deflate'\n"
		"assert r['off_cpu']['threads'][0]['blocked_ns'] == 7990000\n"
		"assert r['wall'][0]['call'] == 'read' and r['wall'][0]['samples'] == 2\n"
		"assert r['stuck_polls'][0]['age_ns'] == 1500000000 and r['stuck_polls'][0]['duration_ns'] is None\n"
		"assert r['cost_of_weft']['collector']['cpu_ns'] == 400000\n"
		"assert r['lost_switches'] == 17 and r['lost_events'] == 0\n"
		"assert r['locations'][0]['time']['blocked_ns'] == 8000000\n"
		"print('fine')\n";
	FILE *check;

	BEGIN;
	check = fopen(segfile_path(dir, "check.py"), "w");
	REQUIRE(check != NULL);
	fputs(script, check);
	fclose(check);
	CHECK_EQ(run("report --json . | /usr/bin/python3 check.py"), 0);
	CHECK(says("fine\n"));
	unlink(segfile_path(dir, "check.py"));
	segfile_remove(dir, names);
}

/* Polls that were only counted have no worst one. */
TEST(no_poll_was_caught_and_the_report_says_so)
{
	static const struct segfile_event only[] = {
		{SEGFILE_MONO + 1000, 1, WEFT_KIND_POLL_COUNT, {1, 1000, 2000, 21}, 4},
	};
	struct segfile counted = {.pid = "7", .events = only, .n_events = 1};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_more = define_caught;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&counted, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("one by one: 0 of 21\n"));
	CHECK(says(
		"worst poll: not measured: no poll had a sample or a long wait in it, and the others were only counted "
		"(mode caught)\n"));
	CHECK(!strstr(out, "(null)"));
	segfile_remove(dir, names);
}
