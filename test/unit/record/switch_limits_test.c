/* SPDX-License-Identifier: Apache-2.0 */
/* the switch source where less is allowed: filters, other users, few files. */
#include "child.h"
#include "sleepers.h"

#include <grp.h>
#include <sys/resource.h>

static void record_some(uint32_t switches, uint64_t hz)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){
		.dir = session_dir, .switches = switches, .sample_hz = hz, .budget_ppm = WEFT_OFF});

	REQUIRE(rec);
	weft_task_end(1); /* something to write a segment for */
	for (int i = 0; i < 10; i++)
		session_sleep_ns(2 * MS);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	offcpu_read(&result, session_dir, NULL, 0);
	CHECK_EQ(result.tally.damaged, 0);
}

static void refused_main(const void *unused)
{
	(void)unused;
	CHECK_EQ(child_refuse(SYS_perf_event_open, EPERM), 0);
	record_some(WEFT_SWITCH_INTERVALS, 0);
	CHECK_STR(result.mode, "off");
	CHECK(strstr(result.degraded, "seccomp") != NULL);
	CHECK_EQ(result.n, 0);
}

TEST(a_filter_that_refuses_perf_events_is_recorded)
{
	if (UNDER_TSAN)
		SKIP("ThreadSanitizer has no threads in a child");
	CHECK_EQ(child_run(refused_main, NULL), 0);
}

static void nobody_main(const void *unused)
{
	uid_t uid = 100000 + (uid_t)getpid(); /* whose limits nobody else uses up */
	struct rlimit little = {64 << 10, 64 << 10};

	(void)unused;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &little), 0);
	CHECK_EQ(child_become(uid), 0);
	record_some(WEFT_SWITCH_INTERVALS, 0);
	if (!strcmp(result.mode, "off") && strstr(result.degraded, "not allowed"))
		SKIP("kernel.perf_event_paranoid is above 2");
	CHECK_STR(result.mode, "intervals");
	CHECK(offcpu_thread(&result, samples_tid())->n >= 10);
	CHECK(offcpu_thread(&result, samples_tid())->ns >= 18 * MS);
}

/* Stacks are more than is allowed, and intervals are there all the same. */
static void nobody_stacks_main(const void *unused)
{
	uid_t uid = 100000 + (uid_t)getpid();

	(void)unused;
	CHECK_EQ(child_become(uid), 0);
	record_some(WEFT_SWITCH_STACKS, 99);
	CHECK(!strcmp(result.mode, "stacks") || strstr(result.degraded, "no stacks of context switches") != NULL);
	CHECK(offcpu_thread(&result, samples_tid())->n >= 10);
}

TEST(no_privilege_is_needed)
{
	int r;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer has no threads in a child");
	if (geteuid() != 0)
		SKIP("becoming another user needs root");
	r = child_run(nobody_main, NULL);
	if (r == 77)
		SKIP("kernel.perf_event_paranoid is above 2");
	CHECK_EQ(r, 0);
	CHECK_EQ(child_run(nobody_stacks_main, NULL), 0);
}

/* More threads than there are files for on each CPU: each has its own ring then, also those that come later. */
static void few_files_main(const void *unused)
{
	struct rlimit files = {64, 64};
	struct thread sleepers[20], later[3];
	struct weft_recorder *rec;
	int fds, perf;

	(void)unused;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
	for (int i = 0; i < 20; i++)
		sleeper_start(&sleepers[i], 3 * MS);
	rec = session_start(&(struct weft_recorder_opts){
		.dir = session_dir, .switches = WEFT_SWITCH_INTERVALS, .budget_ppm = WEFT_OFF});
	REQUIRE(rec);
	fds = session_fds();
	perf = perf_fds();
	CHECK(weft__switch.running && weft__switch.running->by_thread);
	for (int i = 0; i < 3; i++)
		sleeper_start(&later[i], 3 * MS);
	CHECK(WAIT_FOR(perf_fds() >= perf + 3));
	CHECK(sleep_more(later, 3, 10) && sleep_more(sleepers, 20, 10));
	for (int i = 0; i < 3; i++)
		sleeper_end(&later[i]);
	for (int i = 0; i < 20; i++)
		sleeper_end(&sleepers[i]);
	CHECK(WAIT_FOR(session_fds() <= fds - 15)); /* those of threads that ended are closed */
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	offcpu_read(&result, session_dir, NULL, 0);
	for (int i = 0; i < 20; i++)
		CHECK(offcpu_thread(&result, sleepers[i].tid)->ns >= 20 * MS);
	for (int i = 0; i < 3; i++)
		CHECK(offcpu_thread(&result, later[i].tid)->ns >= 20 * MS);
}

TEST(with_few_files_each_thread_has_its_ring)
{
	struct weft_recorder *rec;

	if (UNDER_TSAN)
		SKIP("ThreadSanitizer has no threads in a child");
	rec = life_start();
	REQUIRE(rec);
	OFFCPU_OR_SKIP(rec);
	weft_recorder_close(rec, NULL);
	session_remove_dir();
	CHECK_EQ(child_run(few_files_main, NULL), 0);
}
