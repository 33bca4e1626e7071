/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's records, as they lie in a ring: over its end, torn, and made of noise. */
#include <stdint.h>
#include <stdlib.h>

#include "record/switch/state.h"
#include "weft_test.h"

#define WORDS 64

static uint64_t words[WORDS], room[SWITCH_RECORD_WORDS];
static struct weft__switch_ring ring;

static void ring_begin(uint64_t at)
{
	memset(words, 0, sizeof(words));
	ring = (struct weft__switch_ring){.words = words, .mask = WORDS - 1, .at = at, .head = at};
}

static void put(uint64_t word)
{
	words[ring.head++ & ring.mask] = word;
}

static uint64_t header(uint32_t type, uint32_t misc, uint32_t n_words)
{
	struct perf_event_header h = {type, (uint16_t)misc, (uint16_t)(n_words * 8)};
	uint64_t word;

	memcpy(&word, &h, sizeof(word));
	return word;
}

static void put_id(uint32_t tid, uint64_t time)
{
	put((uint64_t)tid << 32 | 1);
	put(time);
}

static void put_switch(uint32_t misc, uint32_t tid, uint64_t time)
{
	put(header(PERF_RECORD_SWITCH, misc, 3));
	put_id(tid, time);
}

static bool next_is(enum weft__switch_type type, uint32_t tid, uint64_t time)
{
	bool ok = CHECK_EQ(weft__switch_peek(&ring), 1) && CHECK_EQ(ring.next.type, type) &&
		  CHECK_EQ(ring.next.pid, 1) && CHECK_EQ(ring.next.tid, tid) && CHECK_EQ(ring.next.time_ns, time);

	return ok;
}

TEST(records_are_read_wherever_they_lie)
{
	for (uint64_t at = 0; at < 3 * WORDS; at++) {
		ring_begin(at);
		put_switch(PERF_RECORD_MISC_SWITCH_OUT, 5, 100);
		put_switch(PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, 6, 110);
		put_switch(0, 5, 120);
		put(header(PERF_RECORD_LOST, 0, 5));
		put(99);
		put(17);
		put_id(5, 130);
		put(header(PERF_RECORD_EXIT, 0, 6));
		put(UINT64_C(2) << 32 | 1); /* process, parent's process */
		put(UINT64_C(5) << 32 | 7); /* thread, parent's thread */
		put(140);
		put_id(9, 140);
		put(header(PERF_RECORD_COMM, 0, 5));
		put(1);
		put(2);
		put_id(5, 150);
		put(header(PERF_RECORD_SAMPLE, 0, 6));
		put_id(5, 160);
		put(2);
		put(0xabc);
		put(0xdef);

		next_is(SWITCH_OUT, 5, 100);
		CHECK_EQ(ring.next.preempted, 0);
		weft__switch_skip(&ring);
		next_is(SWITCH_OUT, 6, 110);
		CHECK_EQ(ring.next.preempted, 1);
		weft__switch_skip(&ring);
		next_is(SWITCH_IN, 5, 120);
		weft__switch_skip(&ring);
		next_is(SWITCH_LOST, 5, 130);
		CHECK_EQ(ring.next.lost, 17);
		weft__switch_skip(&ring);
		next_is(SWITCH_EXIT, 7, 140);
		weft__switch_skip(&ring);
		next_is(SWITCH_OTHER, 5, 150);
		weft__switch_skip(&ring);
		next_is(SWITCH_SAMPLE, 5, 160);
		CHECK_EQ(weft__switch_words(&ring, room)[3], 2);
		CHECK_EQ(weft__switch_words(&ring, room)[5], 0xdef);
		weft__switch_skip(&ring);
		CHECK_EQ(weft__switch_peek(&ring), 0);
		CHECK_EQ(ring.last_ns, 160);
	}
}

TEST(a_record_of_an_impossible_size_ends_the_reading_of_its_ring)
{
	static const uint16_t sizes[] = {0, 1, 7, 8, 16, 23, 25, 32, 65535};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_event_header h = {PERF_RECORD_SWITCH, 0, sizes[i]};
		uint64_t word;

		ring_begin(WORDS - 1);
		memcpy(&word, &h, sizeof(word));
		put(word);
		put_id(5, 100); /* 24 bytes are there */
		CHECK_EQ(weft__switch_peek(&ring), -1);
		CHECK_EQ(ring.has_next, 0);
		CHECK_EQ(ring.at, ring.head);
		put_switch(0, 5, 200); /* and it goes on behind that */
		next_is(SWITCH_IN, 5, 200);
	}
}

TEST(noise_is_read_to_its_end)
{
	struct weft__switch_stack stack = {0};
	uint32_t seed = 3;

	for (int turn = 0; turn < 20000; turn++) {
		int steps = 0, r;

		ring_begin(seed);
		for (int i = 0; i < WORDS; i++) {
			seed = seed * 1664525u + 1013904223u;
			/* Mostly plausible: records of a few words, small types. */
			put(seed >> 30 ? header(seed >> 8 & 15, seed >> 12, 3 + (seed >> 20 & 7))
				       : (uint64_t)seed << 32 | seed);
		}
		while ((r = weft__switch_peek(&ring)) > 0 && steps++ < WORDS) {
			const uint64_t *all = weft__switch_words(&ring, room);

			if (ring.next.type == SWITCH_SAMPLE)
				CHECK_EQ(weft__switch_unwind(&stack, all, ring.next.n_words), 0);
			weft__switch_skip(&ring);
		}
		if (!CHECK(steps < WORDS) || !CHECK_EQ(ring.at, ring.head))
			break;
	}
	free(stack.frames);
}

/* A sample whose parts claim more than it has. */
TEST(samples_that_lie_about_their_parts_have_no_frames)
{
	struct weft__switch_stack stack = {0};
	uint64_t sample[64];
	uint32_t seed = 5;

	for (int turn = 0; turn < 20000; turn++) {
		uint32_t n;

		seed = seed * 1664525u + 1013904223u;
		n = seed >> 26;
		for (uint32_t i = 0; i < n; i++) {
			seed = seed * 1664525u + 1013904223u;
			sample[i] = seed >> 31 ? seed >> 24 & 63 : UINT64_MAX - (seed >> 20);
		}
		if (n > 4 && seed >> 30 == 1)
			sample[3] = 0, sample[4] = PERF_SAMPLE_REGS_ABI_64;
		CHECK_EQ(weft__switch_unwind(&stack, sample, n), 0);
		if (!CHECK(stack.n_kernel <= n))
			break;
	}
	free(stack.frames);
}
