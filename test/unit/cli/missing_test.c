/* SPDX-License-Identifier: Apache-2.0 */
/* What is missing is in the first lines of the report, each in a sentence that says what it means. */
#include "../analyze/segfile.h"
#include "command.h"

#define MS UINT64_C(1000000)
#define AT(ms) (SEGFILE_MONO + (ms)*MS)

static const struct segfile_event events[] = {
	{AT(10), 1, WEFT_KIND_POLL_BEGIN, {1, 0}, 2},
	{AT(60), 1, WEFT_KIND_POLL_END, {0}, 0},
	{AT(1000), 1, WEFT_KIND_PARK, {0}, 1},
	{AT(70), 2, WEFT_KIND_OFFCPU, {101, AT(20), 30 * MS, WEFT_OFFCPU_PREEMPTED, 1, 0, 0}, 7},
	{AT(100), 2, WEFT_KIND_THROTTLED, {100 * MS, 25 * MS, 1, 1, 0}, 5},
	{AT(900), 2, WEFT_KIND_COST, {WEFT_COST_SAMPLES, 1, 1, 10}, 4},
};

static const struct weft_loss losses[] = {
	{WEFT_LOSS_SWITCH, 0, 0, AT(100), AT(850)},
	{WEFT_LOSS_PAUSED, 0, 0, AT(700), AT(800)},
	{WEFT_LOSS_RING_FULL, 3, 1234, AT(200), AT(210)},
};

static void define(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_fact(defs, "cgroup.cpu.max", "50000 100000");
	weft__defs_fact(defs, "host.cpus", "2");
	weft__defs_fact(defs, "sample.hz", "100");
	weft__defs_fact(defs, "degraded.budget", "rates were lowered");
	weft__defs_fact(defs, "degraded.wall", "the kernel does not say where threads wait");
	weft__defs_fact(defs, "degraded.other", "something of a later version");
}

/* Whether the lines in front of the first empty one have it. */
static bool first_lines(const char *text)
{
	char *end = strstr(out, "\n\n"), *at = strstr(out, text);

	if (at && end && at < end)
		return true;
	printf("\tnot in the first lines: %s\n\tof: %.2000s\n", text, out);
	return false;
}

TEST(what_is_missing_is_said_first_and_what_it_means)
{
	static const char *const names[] = {"0.weft", NULL};
	struct segfile file = {
		5, 0, "4242", events, sizeof(events) / sizeof(events[0]), losses, sizeof(losses) / sizeof(losses[0]),
		0};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_more = define;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report --full ."), 0);
	CHECK(first_lines(
		"\nNOTE: the cgroup's CPU quota of 0.5 CPUs stopped the process for 25.0 ms of 1.00 s (added up over "
		"CPUs), 1 time: threads that were ready did not run, whatever their code does; time preempted says "
		"how much of it was throttled\n"));
	CHECK(first_lines("\nNOTE: 1,234 events were not recorded: times that span their gap are left out"));
	CHECK(first_lines("\nNOTE: recording was paused 1 time, 100 ms in all: nothing of that time is here"));
	CHECK(first_lines(
		"\nNOTE: switches were recorded in 25.0 % of the time, to stay within the budget, so the table of time "
		"off the CPU shows a part of it"));
	CHECK(first_lines(
		"\nNOTE: CPU samples were taken every 100 ms of CPU time at times, not every 10.0 ms, to stay within "
		"the budget"));
	CHECK(first_lines(
		"\nNOTE: what threads that wait do is not, or not fully, seen: the kernel does not say where threads "
		"wait\n"));
	CHECK(first_lines("\nNOTE: other: something of a later version\n"));
	CHECK(strstr(out, "30.0 preempted (25.0 throttled: by the CPU quota)") != NULL);
	CHECK(strstr(out, "\nOff the CPU\nswitches were recorded in 25.0 % of the time: what follows is a part") !=
	      NULL);
	CHECK_EQ(run("report --json ."), 0);
	CHECK(strstr(out, "\"what\": \"cpu_quota\"") && strstr(out, "\"what\": \"events_lost\"") &&
	      strstr(out, "\"what\": \"paused\"") && strstr(out, "\"what\": \"switches\"") &&
	      strstr(out, "\"what\": \"sample_rate\"") && strstr(out, "\"what\": \"degraded.wall\""));
	CHECK(strstr(out, "\"recorded_share\": 0.25") != NULL);
	segfile_remove(dir, names);
}

static const struct segfile_event coarser[] = {
	{AT(10), 1, WEFT_KIND_POLL_BEGIN, {1, 0}, 2},
	{AT(60), 1, WEFT_KIND_POLL_END, {0}, 0},
	{AT(1000), 1, WEFT_KIND_SPAWN, {1, 1}, 2},
	{AT(100), 2, WEFT_KIND_MODE, {WEFT_DETAIL_SLOW, MS, 200000, 15000, 5000}, 5},
	{AT(200), 2, WEFT_KIND_MODE, {WEFT_DETAIL_PARKS, MS, 100000, 9000, 5000}, 5},
	{AT(300), 2, WEFT_KIND_MODE, {WEFT_DETAIL_COUNTED, MS, 90000, 8000, 5000}, 5},
	{AT(400), 2, WEFT_KIND_COUNTED, {WEFT_KIND_WAKE, 7000, 100 * MS}, 3},
	{AT(400), 2, WEFT_KIND_COUNTED, {WEFT_KIND_QUEUE, 20, 100 * MS}, 3},
	{AT(1000), 2, WEFT_KIND_PARK_COUNT, {1, 3000, 480 * MS, 800 * MS}, 4},
};

static void define_recovered(struct weft__defs *defs, const struct segfile *of)
{
	(void)of;
	weft__defs_fact(defs, "weft.recovered", "1");
}

TEST(a_killed_process_is_named_on_the_page_in_all_tables_and_in_json)
{
	static const char *const names[] = {"0.weft", NULL};
	struct segfile file = {5, 0, "4242", coarser, 3, NULL, 0, 0};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_more = define_recovered;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "0.weft"));
	segfile_more = NULL;
	CHECK_EQ(run("report ."), 0);
	CHECK(says("Limits: the process was killed, crashed or called _exit"));
	CHECK_EQ(run("report --full ."), 0);
	CHECK(first_lines("\nNOTE: the process was killed, crashed or called _exit, and the end of its recording was "
			  "recovered\n"));
	CHECK_EQ(run("report --json ."), 0);
	CHECK(says("\"what\": \"process_end\""));
	segfile_remove(dir, names);
}

TEST(what_was_only_counted_is_said_step_by_step)
{
	static const char *const names[] = {"0.weft", NULL};
	struct segfile file = {5, 0, "4242", coarser, sizeof(coarser) / sizeof(coarser[0]), NULL, 0, 0};

	if (!command_there())
		SKIP("there is no weft command in $WEFT_BUILD");
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "0.weft"));
	CHECK_EQ(run("report --full ."), 0);
	CHECK(first_lines(
		"NOTE: polls shorter than 1.00 ms were counted, not listed, from +0.100000 s on: 200,000 events/s"));
	CHECK(first_lines(
		"NOTE: parks and queue depths were only counted, too, from +0.200000 s on (3,000 and 20): the time "
		"parked is exact"));
	CHECK(first_lines("NOTE: wakes were only counted, too, from +0.300000 s on (7,000): "));
	CHECK(says(" 48.5 %\n"));
	CHECK_EQ(run("report --json ."), 0);
	CHECK(says("\"parks_not_listed\""));
	segfile_remove(dir, names);
}
