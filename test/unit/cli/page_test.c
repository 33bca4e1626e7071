/* SPDX-License-Identifier: Apache-2.0 */
/* The first page of weft report: findings of recordings whose figures are worked out by hand. */
#include <stdio.h>

#include "../analyze/code.h"
#include "../analyze/segfile.h"
#include "command.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define AT(ms) (SEGFILE_MONO + (ms)*MS)
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define FILE_OF(id, pid, events)                                                                                       \
	{                                                                                                              \
		id, 0, pid, events, sizeof(events) / sizeof(events[0]), NULL, 0, 0                                     \
	}

enum { S_READ = 11, S_LOCK };
enum { POOL_THREAD = 4, POOL_WORKER = 2 };

/* Tasks 2 and 3 are `echo`: each computes for 20 ms on demo/1, and task 1, `accept`, is woken meanwhile and waits
 * behind task 3. Task 2 is then blocked in read for 30 ms. */
static const struct segfile_event loop_events[] = {
	EV(AT(1), 1, SPAWN, 1, 1),
	EV(AT(1), 1, SPAWN, 2, 2),
	EV(AT(1), 1, SPAWN, 3, 2),
	EV(AT(10), 2, POLL_BEGIN, 2, 0),
	EV(AT(20), 2, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(30), 2, POLL_END),
	EV(AT(40), 2, POLL_BEGIN, 3, 0),
	EV(AT(45), 1, WAKE, 1, 1),
	EV(AT(50), 2, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(60), 2, POLL_END),
	EV(AT(60), 2, POLL_BEGIN, 1, 0),
	EV(AT(61), 2, POLL_END),
	EV(AT(70), 2, POLL_BEGIN, 2, 0),
	EV(AT(100), 2, WAIT, WEFT_WAIT_CALL, S_READ, 7, 30 * MS, 0, 0),
	EV(AT(100), 2, POLL_END),
};
/* No loop: one thread computes, and waits for a lock. */
static const struct segfile_event plain_events[] = {
	EV(AT(20), 3, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(40), 3, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(60), 3, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(70), 3, WAIT, WEFT_WAIT_LOCK, S_LOCK, 0xbeef0, 5 * MS, 0, 0),
	EV(AT(90), 3, WAIT, WEFT_WAIT_LOCK, S_LOCK, 0xbeef0, 8 * MS, 0, 0),
};
static const struct segfile loop = FILE_OF(1, "100", loop_events), plain = FILE_OF(2, "200", plain_events);
/* 400 threads that ran for 2 ms each and ended without a sample, and one that has three. */
static const struct segfile_event many_events[] = {
	EV(AT(20), 3, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(40), 3, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(60), 3, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(500), 3, CPU, 500 * MS, 860 * MS, 60 * MS, 400, 800 * MS),
	EV(AT(500), 3, COST, WEFT_COST_COLLECTOR, 43 * MS, 500 * MS, 0),
};
/* A thread that ended without a sample, where there is no sample at all. */
static const struct segfile_event none_events[] = {
	EV(AT(500), 3, CPU, 500 * MS, 12 * MS, 0, 1, 2 * MS),
};
/* Code that was made at run time, at two places. */
static const struct segfile_event made_events[] = {
	EV(AT(20), 3, SAMPLE, SAMPLE_OF(3, 20)),
	EV(AT(40), 3, SAMPLE, SAMPLE_OF(4, 20)),
	EV(AT(60), 3, SAMPLE, SAMPLE_OF(3, 20)),
};
/* Work that begins with a tick of the kernel: after 16 times that is known, so half of the CPU time is in step. */
#define BEGINS(n) EV(AT(20 * (n)), 2, PARK, 0), EV(AT(20 * (n) + 1), 2, UNPARK, 0)
#define BEGINS_4(n) BEGINS(n), BEGINS((n) + 1), BEGINS((n) + 2), BEGINS((n) + 3)
static const struct segfile_event step_events[] = {
	BEGINS_4(1),
	EV(AT(82), 2, SAMPLE, SAMPLE_OF(2, 20)),
	BEGINS_4(5),
	BEGINS_4(9),
	BEGINS_4(13),
	BEGINS_4(17),
	EV(AT(402), 2, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(401), 4, OFFCPU, 102, AT(90), 5 * MS, WEFT_OFFCPU_BLOCKED, 1, 0, 0),
};
static const struct weft_loss step_losses[] = {{WEFT_LOSS_SWITCH, 0, 0, AT(100), AT(301)}};
/* A loop, and a thread beside it that waits. */
static const struct segfile_event beside_events[] = {
	EV(AT(10), 2, POLL_BEGIN, 2, 0),
	EV(AT(30), 2, POLL_END),
	EV(AT(90), 3, WAIT, WEFT_WAIT_CALL, S_READ, 7, 30 * MS, 0, 0),
};
/* Nothing but a call that blocks, outside of polls. */
static const struct segfile_event call_events[] = {
	EV(AT(90), 3, WAIT, WEFT_WAIT_CALL, S_READ, 7, 30 * MS, 0, 0),
};
static const struct segfile many = FILE_OF(3, "300", many_events), call = FILE_OF(4, "400", call_events),
			    made = FILE_OF(5, "500", made_events),
			    step = {6,           0, "600", step_events, sizeof(step_events) / sizeof(step_events[0]),
				    step_losses, 1, 0};
static const struct segfile beside = FILE_OF(7, "700", beside_events), none = FILE_OF(8, "800", none_events);
/* Task 2, `echo`, computes for 20 ms on a worker, and task 1, `accept`, is blocked for 30 ms on a thread of a pool. */
static const struct segfile_event pool_events[] = {
	EV(AT(1), 1, SPAWN, 1, 1),
	EV(AT(1), 1, SPAWN, 2, 2),
	EV(AT(10), 2, POLL_BEGIN, 2, 0),
	EV(AT(20), 2, SAMPLE, SAMPLE_OF(2, 20)),
	EV(AT(30), 2, POLL_END),
	EV(AT(70), POOL_THREAD, POLL_BEGIN, 1, 0),
	EV(AT(100), POOL_THREAD, WAIT, WEFT_WAIT_CALL, S_READ, 7, 30 * MS, 0, 0),
	EV(AT(100), POOL_THREAD, POLL_END),
};
static const struct segfile pool = FILE_OF(9, "900", pool_events);
static const char *pool_name;
static const char *const names[] = {"0.weft", "1.weft", NULL};
static const char *more_fact, *more_value;

static void define(struct weft__defs *defs, const struct segfile *of)
{
	if (of == &step) {
		weft__defs_fact(defs, "kernel.tick_hz", "250");
		weft__defs_fact(defs, "budget.ppm", "10000");
		weft__defs_fact(defs, "degraded.budget", "rates were lowered");
	}
	if (of == &pool) {
		weft__defs_runtime(defs, 1, pool_name);
		weft__defs_worker(defs, POOL_WORKER, 1, 0);
		weft__defs_thread(defs, &(struct weft_thread){POOL_THREAD, 104, POOL_WORKER, "p0", SEGFILE_MONO});
	}
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "sample.engine", "timer");
	if (more_fact)
		weft__defs_fact(defs, more_fact, more_value);
	weft__defs_string(defs, S_READ, "read");
	weft__defs_string(defs, S_LOCK, "cache_lock");
	code_define(defs);
	CODE_DEFINE_STACK(defs, 2, WEFT_STACK_COMPLETE, code_app(F_DEFLATE), code_app(F_UPLOAD), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 3, WEFT_STACK_COMPLETE, ((struct weft_frame){0, 0x1000}), code_app(F_MAIN));
	CODE_DEFINE_STACK(defs, 4, WEFT_STACK_COMPLETE, ((struct weft_frame){0, 0x2000}), code_app(F_MAIN));
}

static void write_file(const struct segfile *file, const char *name)
{
	segfile_more = define;
	segfile_write(file, segfile_path(dir, name));
	segfile_more = NULL;
}

#define BEGIN                                                                                                          \
	if (!command_there())                                                                                          \
		SKIP("there is no weft command in $WEFT_BUILD");                                                       \
	segfile_dir(dir, sizeof(dir))

static const char *first_finding(const char *runtime)
{
	static const char blocks[] = " 1  long polls of accept (server.c:80): blocked in read fd 7\n",
			  computes[] = " 1  long polls of echo (server.c:120): on CPU in deflate\n";

	pool_name = runtime;
	write_file(&pool, names[0]);
	run("report .");
	return says(blocks) ? "accept" : says(computes) ? "echo" : "none";
}

TEST(a_blocking_pool_comes_behind_what_harms_more)
{
	BEGIN;
	CHECK_STR(first_finding("jobs"), "accept");
	CHECK_STR(first_finding("jobs-blocking"), "echo");
	CHECK(says(" 2  long polls of accept (server.c:80): blocked in read fd 7\n"
		   "    once, 30.0 ms at +0.070 s; on jobs-blocking/0\n"));
	CHECK_STR(first_finding("jobs-pool"), "echo");
}

TEST(polls_of_one_location_and_cause_are_one_finding)
{
	BEGIN;
	write_file(&loop, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says(" 1  long polls of echo (server.c:120): on CPU in deflate\n"
		   "    2 times, 40.0 ms in all, the longest 20.0 ms at +0.010 s; on demo/1\n"
		   "    behind them waited 1 poll (1 of accept), 15.0 ms in all, up to 15.0 ms each\n"));
	CHECK(says(" 2  long polls of echo (server.c:120): blocked in read fd 7\n"
		   "    once, 30.0 ms at +0.070 s; on demo/1\n"));
	CHECK(says("More: weft report --full .\n      weft query --run behind-polls .\n"));
	CHECK(strstr(out, "Polls by worker") == NULL);
	segfile_remove(dir, names);
}

TEST(top_says_how_many_findings_are_shown)
{
	BEGIN;
	write_file(&loop, names[0]);
	CHECK_EQ(run("report --top 1 ."), 0);
	CHECK(says(" 1  long polls"));
	CHECK(strstr(out, " 2  long polls") == NULL);
	CHECK(says("lesser one"));
	segfile_remove(dir, names);
}

TEST(the_page_of_a_program_without_a_loop_has_no_word_of_polls)
{
	BEGIN;
	write_file(&plain, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says(" 1  on CPU in deflate\n    60.0 ms, 100.0 % of the CPU time sampled, in 3 samples of "));
	CHECK(says(" 2  waits for cache_lock\n    2 times, 13.0 ms in all, the longest 8.00 ms at +0.082 s"));
	CHECK(strstr(out, "poll") == NULL && strstr(out, "not measured") == NULL);
	segfile_remove(dir, names);
}

TEST(threads_that_ended_without_a_sample_are_counted)
{
	BEGIN;
	write_file(&many, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says("at least 401 threads, 860 ms of CPU, 3 CPU samples; weft itself used\n"
		   "    43.0 ms, 5.0 % of the program's\n"));
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("weft itself used 43.0 ms of CPU in 500 ms: 8.6 % of one CPU, 5.0 % of the program's 860 ms"));
	write_file(&none, names[0]);
	CHECK_EQ(run("report --full ."), 0);
	CHECK(says("1 thread ended without a sample, with 2.00 ms of CPU\n"));
	segfile_remove(dir, names);
}

TEST(code_without_a_name_is_said_once)
{
	BEGIN;
	write_file(&made, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says(" 1  on CPU in [unknown]\n    60.0 ms, 100.0 % of the CPU time sampled, in 3 samples of "));
	CHECK(says("\n100 % of the CPU time was in [unknown]: code made at run time, without a name. "
		   "It has names where\n"
		   "    the program writes /tmp/perf-PID.map or a jitdump.\n"));
	more_fact = "process.exe";
	more_value = "/usr/bin/node";
	write_file(&made, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says("without a name. node\n    --perf-basic-prof gives it names.\n"));
	more_fact = NULL;
	write_file(&plain, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(!says("[unknown]"));
	segfile_remove(dir, names);
}

TEST(the_budget_is_the_reason_of_what_it_follows_and_shares_are_of_all_samples)
{
	static const char limits[] =
		"Limits: context switches were recorded in 50.0 % of the time (to keep weft within "
		"its budget of 1 %\n    of the CPU); 50.0 % of the CPU time was sampled in step";

	BEGIN;
	write_file(&step, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says(limits));
	CHECK_EQ(run("report --location nosuch ."), 0);
	CHECK(says(limits));
	segfile_remove(dir, names);
}

TEST(calls_of_a_thread_that_never_polls_are_there_when_it_is_asked_for)
{
	BEGIN;
	write_file(&beside, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says(" 1  long polls of ") && strstr(out, "blocked in read") == NULL);
	CHECK_EQ(run("report --thread io ."), 0);
	CHECK(says(" 1  blocked in read fd 7\n    once, 30.0 ms; on io\n"));
	segfile_remove(dir, names);
}

TEST(the_question_that_is_named_has_an_answer)
{
	BEGIN;
	write_file(&call, names[0]);
	CHECK_EQ(run("report ."), 0);
	CHECK(says(" 1  blocked in read fd 7\n") && says("      weft query --run waits .\n"));
	CHECK_EQ(run("query --csv --run waits ."), 0);
	CHECK(says("call,read,7,"));
	segfile_remove(dir, names);
}

TEST(of_several_processes_the_page_has_one_and_rows_of_the_others)
{
	BEGIN;
	write_file(&loop, names[0]);
	write_file(&plain, names[1]);
	CHECK_EQ(run("report ."), 0);
	CHECK(strstr(out, "demo (pid 200") == out);
	CHECK(says("Other processes") && says("\n100 "));
	CHECK(strstr(out, "long polls") == NULL);
	CHECK_EQ(run("report --pid 100 ."), 0);
	CHECK(strstr(out, "demo (pid 100") == out);
	CHECK(says("long polls of echo") && strstr(out, "Other processes") == NULL);
	segfile_remove(dir, names);
}

TEST(a_recovered_recording_says_so)
{
	BEGIN;
	more_fact = "weft.recovered";
	more_value = "yes";
	write_file(&plain, names[0]);
	more_fact = NULL;
	CHECK_EQ(run("report ."), 0);
	CHECK(says(
		"Limits: the process was killed, crashed or called _exit, and the end of its recording was recovered"));
	segfile_remove(dir, names);
}

TEST(the_filters_of_a_report_are_in_its_head)
{
	BEGIN;
	write_file(&loop, names[0]);
	CHECK_EQ(run("report --location accept --to 80ms ."), 0);
	CHECK(says("Only what was asked for: location accept, up to +0.080000 s\n"));
	CHECK(says("late polls of accept (server.c:80): behind long polls of echo (server.c:120)\n"));
	segfile_remove(dir, names);
}

TEST(json_has_the_findings_of_the_page)
{
	FILE *script;

	BEGIN;
	write_file(&loop, names[0]);
	script = fopen(segfile_path(dir, "check.py"), "w");
	if (!CHECK(script != NULL))
		return;
	fputs("import json, sys\n"
	      "f = json.load(sys.stdin)['recordings'][0]['findings']\n"
	      "assert [x['kind'] for x in f[:2]] == ['poll', 'poll'], f\n"
	      "assert [x['cause'] for x in f[:2]] == ['on_cpu', 'blocked'], f\n"
	      "assert f[0]['count'] == 2 and f[0]['total_ns'] == 40000000 and f[0]['longest_ns'] == 20000000, f\n"
	      "assert f[0]['behind']['polls'] == 1 and f[0]['behind']['total_ns'] == 15000000, f\n"
	      "assert f[0]['location'] == 'echo' and f[0]['query'] == 'behind-polls', f\n"
	      "assert f[1]['behind'] is None and f[1]['longest_at_ns'] == 70000000, f\n",
	      script);
	fclose(script);
	CHECK_EQ(run("report --json . | /usr/bin/python3 check.py"), 0);
	unlink(segfile_path(dir, "check.py"));
	segfile_remove(dir, names);
}
