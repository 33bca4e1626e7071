/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/offcpu.h"

#include <stdlib.h>

#include "weft_test.h"

#define NOTHING(...) CHECK(!(__VA_ARGS__))

static void is_group(bool made, const struct weft__offcpu_group *group, uint64_t begin, uint64_t end, uint64_t count,
		     uint64_t cpu)
{
	CHECK(made);
	CHECK_EQ(group->begin_ns, begin);
	CHECK_EQ(group->end_ns, end);
	CHECK_EQ(group->count, count);
	CHECK_EQ(group->cpu_ns, cpu);
}

/* Worked out by hand, event by event. */
TEST(intervals_off_the_cpu_are_those_of_the_timeline_written_by_hand)
{
	struct weft__offcpu thread = {.interval_ns = 10};
	struct weft__offcpu_group group;
	uint64_t cpu;

	NOTHING(weft__offcpu_in(&thread, 0, &group));
	weft__offcpu_out(&thread, 3);
	NOTHING(weft__offcpu_in(&thread, 5, &group));
	NOTHING(weft__offcpu_sample(&thread, 12, &group, &cpu));
	CHECK_EQ(cpu, 10);
	weft__offcpu_out(&thread, 13);
	NOTHING(weft__offcpu_in(&thread, 15, &group));
	weft__offcpu_out(&thread, 16);
	NOTHING(weft__offcpu_in(&thread, 21, &group));
	weft__offcpu_out(&thread, 23);
	is_group(weft__offcpu_in(&thread, 27, &group), &group, 24, 24, 1, 4);
	weft__offcpu_out(&thread, 30);
	is_group(weft__offcpu_in(&thread, 48, &group), &group, 37, 47, 2, 3);
	NOTHING(weft__offcpu_sample(&thread, 51, &group, &cpu));
	CHECK_EQ(cpu, 3);
	NOTHING(weft__offcpu_sample(&thread, 61, &group, &cpu));
	CHECK_EQ(cpu, 10);
}

TEST(the_first_event_of_a_thread_yields_nothing)
{
	struct weft__offcpu_group group;
	uint64_t cpu = 1;
	struct weft__offcpu in = {.interval_ns = 10}, out = in, sample = in;

	NOTHING(weft__offcpu_in(&in, 1000, &group));
	NOTHING(weft__offcpu_sample(&sample, 1000, &group, &cpu));
	CHECK_EQ(cpu, 0);
	weft__offcpu_out(&out, 1000);
	is_group(weft__offcpu_in(&out, 1010, &group), &group, 1010, 1010, 1, 0);
}

TEST(a_thread_that_leaves_the_cpu_twice_is_off_it_since_the_first_time)
{
	struct weft__offcpu thread = {.interval_ns = 10};
	struct weft__offcpu_group group;

	weft__offcpu_out(&thread, 100);
	weft__offcpu_out(&thread, 105);
	is_group(weft__offcpu_in(&thread, 112, &group), &group, 110, 110, 1, 0);
	CHECK_EQ(thread.off_ns, 2);
}

TEST(a_sample_says_that_the_thread_is_back)
{
	struct weft__offcpu thread = {.interval_ns = 10};
	struct weft__offcpu_group group;
	uint64_t cpu;

	NOTHING(weft__offcpu_in(&thread, 0, &group));
	weft__offcpu_out(&thread, 4);
	is_group(weft__offcpu_sample(&thread, 34, &group, &cpu), &group, 14, 34, 3, 4);
	CHECK_EQ(cpu, 0); /* the group has it */
}

TEST(a_clock_that_goes_back_adds_no_time)
{
	struct weft__offcpu thread = {.interval_ns = 10};
	struct weft__offcpu_group group;
	uint64_t cpu;

	NOTHING(weft__offcpu_in(&thread, 100, &group));
	weft__offcpu_out(&thread, 90);
	NOTHING(weft__offcpu_in(&thread, 80, &group));
	NOTHING(weft__offcpu_sample(&thread, 105, &group, &cpu));
	CHECK_EQ(cpu, 5);
}

/* Whatever comes: all time is in samples, or less than an interval of it is left, and samples lie in order. */
TEST(all_time_off_the_cpu_is_sampled_once)
{
	struct weft__offcpu thread = {.interval_ns = 1000};
	struct weft__offcpu_group group;
	uint64_t now = 0, on = 0, off = 0, claimed = 0, sampled = 0, last = 0, cpu;
	int running = 1;

	srand(1);
	NOTHING(weft__offcpu_in(&thread, 0, &group));
	for (int i = 0; i < 100000; i++) {
		uint64_t step = (uint64_t)rand() % (rand() % 20 ? 300 : 9000);
		bool made = false;

		now += step;
		*(running ? &on : &off) += step;
		if (running && rand() % 3 == 0) {
			made = weft__offcpu_sample(&thread, now, &group, &cpu);
			CHECK(!made);
			claimed += cpu;
		} else if (running) {
			weft__offcpu_out(&thread, now);
			running = 0;
		} else {
			made = weft__offcpu_in(&thread, now, &group);
			running = 1;
		}
		if (!made)
			continue;
		CHECK(group.begin_ns >= last && group.begin_ns <= group.end_ns && group.end_ns <= now);
		CHECK_EQ(group.end_ns - group.begin_ns, (group.count - 1) * 1000);
		last = group.end_ns;
		sampled += group.count * 1000;
		claimed += group.cpu_ns;
	}
	if (!running)
		NOTHING(weft__offcpu_in(&thread, now, &group));
	weft__offcpu_sample(&thread, now, &group, &cpu);
	CHECK_EQ(claimed + cpu, on);
	CHECK_EQ(sampled + thread.off_ns, off);
}
