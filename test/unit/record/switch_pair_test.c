/* SPDX-License-Identifier: Apache-2.0 */
/* Switches in and out to intervals, from made-up records. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "record/switch/state.h"
#include "weft/kind.h"
#include "weft_test.h"

static struct weft__switch_pairs pairs;
static struct weft__switch_interval got;

static int in(uint32_t tid, uint64_t t)
{
	return weft__pairs_in(&pairs, tid, t, &got);
}

static int out(uint32_t tid, uint64_t t, int preempted)
{
	return weft__pairs_out(&pairs, tid, t, preempted, &got);
}

static bool is(uint32_t tid, uint64_t begin, uint64_t end, uint32_t reason)
{
	return CHECK_EQ(got.tid, tid) & CHECK_EQ(got.begin_ns, begin) & CHECK_EQ(got.end_ns, end) &
	       CHECK_EQ(got.reason, reason);
}

TEST(out_and_in_make_an_interval_with_its_reason)
{
	CHECK_EQ(out(7, 100, 0), 0);
	CHECK_EQ(in(7, 150), 1);
	is(7, 100, 150, WEFT_OFFCPU_BLOCKED);
	CHECK_EQ(out(7, 200, 1), 0);
	CHECK_EQ(in(7, 260), 1);
	is(7, 200, 260, WEFT_OFFCPU_PREEMPTED);
	weft__pairs_fini(&pairs);
}

TEST(the_first_that_is_heard_of_a_new_thread_makes_none)
{
	CHECK_EQ(in(7, 150), 0);
	CHECK_EQ(out(8, 150, 0), 0);
	weft__pairs_fini(&pairs);
}

TEST(a_thread_that_slept_when_recording_began_was_off_from_there_on)
{
	CHECK_EQ(weft__pairs_add(&pairs, 7, 100), 0);
	CHECK_EQ(in(7, 150), 1);
	is(7, 100, 150, WEFT_OFFCPU_BLOCKED);
	CHECK_EQ(weft__pairs_add(&pairs, 8, 100), 0); /* and one that ran was not */
	CHECK_EQ(out(8, 150, 1), 0);
	CHECK_EQ(in(8, 151), 1);
	is(8, 150, 151, WEFT_OFFCPU_PREEMPTED);
	weft__pairs_fini(&pairs);
}

TEST(who_leaves_twice_left_the_first_time)
{
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(out(7, 100 + 1000 * (uint64_t)i, 0), 0);
		CHECK_EQ(out(7, 101 + 1000 * (uint64_t)i, 1), 0);
		CHECK_EQ(in(7, 150 + 1000 * (uint64_t)i), 1);
		is(7, 100 + 1000 * (uint64_t)i, 150 + 1000 * (uint64_t)i, WEFT_OFFCPU_BLOCKED);
		CHECK_EQ(in(7, 151 + 1000 * (uint64_t)i), 0);
	}
	CHECK_EQ(out(7, 6000, 0), 0);
	CHECK_EQ(out(7, 6001, 0), 0);
	CHECK_EQ(weft__pairs_get(&pairs, 7, 0)->twice, 6); /* by which it is known that it has two events */
	weft__pairs_fini(&pairs);
}

TEST(an_out_that_is_heard_of_after_its_in_makes_the_same_interval)
{
	CHECK_EQ(in(7, 50), 0);
	CHECK_EQ(in(7, 150), 0);
	CHECK_EQ(out(7, 100, 1), 1);
	is(7, 100, 150, WEFT_OFFCPU_PREEMPTED);
	CHECK_EQ(out(7, 200, 0), 0); /* and after that all is as usual */
	CHECK_EQ(in(7, 250), 1);
	is(7, 200, 250, WEFT_OFFCPU_BLOCKED);
	weft__pairs_fini(&pairs);
}

static uint64_t cut_all(uint64_t from, uint64_t to, int *n)
{
	uint64_t sum = 0;
	size_t cursor = 0;

	*n = 0;
	while (weft__pairs_cut(&pairs, &cursor, from, to, &got)) {
		sum += got.end_ns - got.begin_ns;
		(*n)++;
	}
	return sum;
}

TEST(where_records_are_missing_only_what_is_sure_is_recorded)
{
	int n;

	out(1, 100, 0);  /* off before and after */
	out(2, 100, 0);  /* off before, and on after */
	in(3, 100);      /* on before, and off after */
	in(4, 100);      /* on before and after */
	out(5, 1010, 0); /* off since the loss began, by another CPU's ring */
	CHECK_EQ(cut_all(1000, 1100, &n), 1800);
	CHECK_EQ(n, 2);
	CHECK_EQ(in(1, 1200), 1);
	is(1, 1100, 1200, WEFT_OFFCPU_BLOCKED);
	CHECK_EQ(out(2, 1200, 0), 0);
	CHECK_EQ(in(2, 1250), 1);
	is(2, 1200, 1250, WEFT_OFFCPU_BLOCKED);
	CHECK_EQ(in(3, 1200), 1);
	is(3, 1100, 1200, WEFT_OFFCPU_BLOCKED);
	CHECK_EQ(out(4, 1200, 1), 0);
	CHECK_EQ(in(5, 1200), 1);
	is(5, 1100, 1200, WEFT_OFFCPU_BLOCKED);
	weft__pairs_fini(&pairs);
}

TEST(many_threads_come_and_go)
{
	uint64_t sum = 0, truth = 0;
	uint32_t seed = 1;

	for (uint64_t t = 1; t < 200000; t += 2) {
		uint32_t tid;

		seed = seed * 1664525u + 1013904223u;
		tid = (seed >> 8) % 1000 + 1;
		CHECK_EQ(out(tid, 10 * t, 0), 0);
		CHECK_EQ(in(tid, 10 * t + seed % 10 + 1), 1);
		sum += got.end_ns - got.begin_ns;
		truth += seed % 10 + 1;
		if (seed >> 28 == 0)
			weft__pairs_del(&pairs, tid);
	}
	CHECK_EQ(sum, truth);
	CHECK(pairs.n <= 1000);
	CHECK(pairs.cap <= 4096);
	for (uint32_t tid = 1; tid <= 1000; tid++)
		weft__pairs_del(&pairs, tid);
	CHECK_EQ(pairs.n, 0);
	weft__pairs_del(&pairs, 5);
	CHECK(weft__pairs_get(&pairs, 5, 0) == NULL);
	weft__pairs_fini(&pairs);
}

/* Whatever comes: intervals have a length, and none of a thread overlaps the one before. */
TEST(nonsense_makes_no_interval_twice)
{
	uint64_t last_end[8] = {0};
	uint32_t seed = 7;

	for (uint64_t t = 100; t < 100000; t++) {
		uint32_t tid;
		int made;

		seed = seed * 1664525u + 1013904223u;
		tid = (seed >> 10) % 7 + 1;
		made = seed >> 31 ? in(tid, t) : out(tid, t, (int)(seed >> 20 & 1));
		if (!made)
			continue;
		if (!CHECK(got.end_ns > got.begin_ns) || !CHECK(got.begin_ns >= last_end[tid]))
			break;
		last_end[tid] = got.end_ns;
	}
	weft__pairs_fini(&pairs);
}
