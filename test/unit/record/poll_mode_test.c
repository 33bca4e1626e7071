/* SPDX-License-Identifier: Apache-2.0 */
/* The poll modes slow and caught: which polls are reported one by one, and that every one is counted. */
#include "polls.h"

#include "record/event/wide.h"

static struct weft_recorder *start(uint32_t mode)
{
	struct weft_recorder_opts opts = {.poll_mode = mode};

	return session_start(&opts);
}

/* Something was recorded at that tick on the calling thread. */
static void sample_at(uint64_t tick)
{
	weft__poll_sampled(weft_ring_self, tick);
}

TEST(the_counts_cover_every_length_once)
{
	uint64_t before = 0, octave;
	uint32_t i;

	for (i = 0; i < POLLS_LONGER; i++) {
		uint64_t from = weft__polls_from(i), below = weft__polls_below(i);

		if (i < POLLS_REGULAR && weft__polls_bucket(from) != i)
			continue; /* not in use */
		CHECK_EQ(from, before);
		CHECK_EQ(weft__polls_bucket(from), i);
		CHECK_EQ(weft__polls_bucket(below - 1), i);
		before = below;
	}
	CHECK_EQ(before, weft__polls_from(POLLS_LONGER));
	CHECK_EQ(before, UINT64_C(1) << POLLS_OCTAVES);
	for (octave = 8; octave < before; octave *= 2)
		CHECK_EQ(weft__polls_bucket(octave * 2) - weft__polls_bucket(octave), 4);
}

TEST(all_writes_events_and_no_counts)
{
	struct weft_recorder *rec = start(WEFT_POLLS_ALL);
	struct tally t;

	REQUIRE(rec);
	polls_make(1, 20 * MS, 3);
	session_end(rec, &t, 1);
	CHECK_EQ(t.by_kind[WEFT_KIND_POLL_BEGIN], 3);
	CHECK_EQ(t.by_kind[WEFT_KIND_POLL_END], 3);
	CHECK_EQ(t.by_kind[WEFT_KIND_POLL], 0);
	CHECK_EQ(t.by_kind[WEFT_KIND_POLL_COUNT], 0);
	tally_fini(&t);
}

TEST(slow_mode_records_slow_polls_and_counts_all)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	struct polls_seen *seen;
	uint32_t i;

	REQUIRE(rec);
	polls_make(7, MS, 1000);
	polls_make(8, 20 * MS, 5);
	polls_make(9, 9 * MS, 2);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->n, 5);
	for (i = 0; i < seen->n; i++) {
		const struct poll_seen *poll = &seen->polls[i];

		CHECK_EQ(poll->task, 8);
		CHECK_EQ(poll->depth, 3);
		CHECK_EQ(poll->level, 0);
		CHECK_EQ(poll->why, WEFT_POLL_SLOW);
		CHECK(poll->ns >= 20 * MS && poll->ns < 20 * MS + MS / 10);
	}
	CHECK_EQ(seen->counted, 1007);
	CHECK_EQ(seen->by_bucket[weft__polls_bucket(MS)], 1000);
	CHECK_EQ(seen->by_bucket[weft__polls_bucket(20 * MS)], 5);
	CHECK_EQ(seen->by_bucket[weft__polls_bucket(9 * MS)], 2);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_BEGIN] + seen->tally.by_kind[WEFT_KIND_POLL_END], 0);
	free(seen);
}

TEST(the_threshold_is_exact)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_SLOW, .poll_slow_ns = MS};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;

	REQUIRE(rec);
	polls_make(1, MS * 998 / 1000, 10); /* looked at, and found short */
	polls_make(2, MS, 10);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->n, 10);
	CHECK_EQ(seen->n ? seen->polls[0].task : 0, 2);
	CHECK_EQ(seen->counted, 20);
	free(seen);
}

TEST(caught_mode_records_the_innermost_poll_of_each_sample)
{
	struct weft_recorder *rec = start(WEFT_POLLS_CAUGHT);
	uint64_t t0, us;
	struct polls_seen *seen;

	REQUIRE(rec);
	us = polls_ticks(1000);
	polls_make(1, 50 * MS, 10); /* nobody looked */
	t0 = weft_now_ticks() - 10000 * us;
	weft_poll_begin_at(100, 1, t0);
	weft_poll_begin_at(200, 2, t0 + 10 * us);
	sample_at(t0 + 20 * us);
	sample_at(t0 + 21 * us); /* in the same poll: it is reported once */
	weft_poll_end_at(t0 + 30 * us);
	weft_poll_end_at(t0 + 40 * us); /* the outer one had none of its own */
	weft_poll_begin_at(101, 1, t0 + 50 * us);
	weft_poll_begin_at(201, 2, t0 + 60 * us);
	weft_poll_end_at(t0 + 70 * us);
	sample_at(t0 + 75 * us);
	weft_poll_end_at(t0 + 20080 * us);
	weft_poll_begin_at(102, 1, t0 + 20100 * us);
	weft_poll_end_at(t0 + 20200 * us);
	sample_at(t0 + 20250 * us); /* between polls */
	weft_poll_begin_at(103, 1, t0 + 20300 * us);
	weft_poll_end_at(t0 + 20400 * us);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 10 + 6);
	REQUIRE(CHECK_EQ(seen->n, 2));
	CHECK_EQ(seen->polls[0].task, 200);
	CHECK_EQ(seen->polls[0].level, 1);
	CHECK_EQ(seen->polls[0].why, WEFT_POLL_CAUGHT);
	CHECK_EQ(seen->polls[0].ns / 1000, 20);
	CHECK_EQ(seen->polls[1].task, 101);
	CHECK_EQ(seen->polls[1].level, 0);
	CHECK_EQ(seen->polls[1].why, WEFT_POLL_CAUGHT | WEFT_POLL_SLOW);
	CHECK_EQ(seen->polls[1].ns / MS, 20);
	free(seen);
}

TEST(a_sample_at_the_border_belongs_to_one_poll)
{
	struct weft_recorder *rec = start(WEFT_POLLS_CAUGHT);
	uint64_t t0, us;
	struct polls_seen *seen;

	REQUIRE(rec);
	us = polls_ticks(1000);
	weft_park(0);
	t0 = weft_now_ticks() - 1000 * us;
	weft_poll_begin_at(1, 0, t0);
	sample_at(t0 + 10 * us);
	weft_poll_next_at(2, 0, t0 + 10 * us);
	weft_poll_next_at(3, 0, t0 + 20 * us);
	sample_at(t0 + 25 * us);
	weft_poll_next_at(4, 0, t0 + 30 * us);
	weft_poll_end_at(t0 + 40 * us);
	weft_poll_next_at(5, 0, t0 + 50 * us); /* begins */
	weft_poll_end_at(t0 + 60 * us);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 5);
	REQUIRE(CHECK_EQ(seen->n, 2));
	CHECK_EQ(seen->polls[0].task, 1);
	CHECK_EQ(seen->polls[1].task, 3);
	CHECK_EQ(seen->polls[1].level, 0);
	free(seen);
}

TEST(a_wait_that_is_recorded_catches_its_poll)
{
	struct weft_recorder *rec = start(WEFT_POLLS_CAUGHT);
	uint64_t fields[8] = {1, 0, 0, 5 * MS, 0, 0, 0, 0};
	struct polls_seen *seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_poll_begin_at(5, 0, now - polls_ticks(6 * MS));
	weft__wide_emit(WEFT_KIND_WAIT, now - polls_ticks(MS), fields);
	weft_poll_end_at(now);
	polls_make(6, MS / 10, 3);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 4);
	REQUIRE(CHECK_EQ(seen->n, 1));
	CHECK_EQ(seen->polls[0].task, 5);
	free(seen);
}

TEST(no_more_than_the_cap_are_recorded_in_a_second)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_SLOW, .poll_cap = 10};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;
	uint64_t t0, second;
	uint32_t i;

	REQUIRE(rec);
	second = polls_ticks(1000 * MS);
	weft_park(0);
	t0 = weft_now_ticks() - 10 * second;
	for (i = 0; i < 50; i++) { /* each 20 ms, all within a second */
		weft_poll_begin_at(i, 0, t0 + i * (second / 100));
		weft_poll_end_at(t0 + i * (second / 100) + second / 50);
	}
	for (i = 0; i < 5; i++) { /* and some later */
		weft_poll_begin_at(i, 0, t0 + 5 * second + i);
		weft_poll_end_at(t0 + 5 * second + i + second / 50);
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->n, 15);
	CHECK_EQ(seen->counted, 55);
	CHECK_EQ(seen->tally.lost, 40);
	REQUIRE(CHECK(seen->tally.n_losses >= 1)); /* one for each time that the collector came by */
	for (i = 0; i < seen->tally.n_losses; i++) {
		CHECK_EQ(seen->tally.losses[i].reason, WEFT_LOSS_POLL_CAP);
		CHECK(seen->tally.losses[i].thread > 0);
		CHECK(seen->tally.losses[i].from_ns <= seen->tally.losses[i].to_ns);
	}
	free(seen);
}

TEST(deep_nesting_is_counted_and_the_outer_polls_are_timed)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	struct polls_seen *seen;
	uint64_t now;
	uint32_t i;

	REQUIRE(rec);
	now = weft_now_ticks();
	for (i = 0; i < POLLS_NEST + 4; i++)
		weft_poll_begin_at(i, 0, now - polls_ticks((POLLS_NEST + 4 - i) * 20 * MS));
	weft_poll_next_at(99, 0, now);
	for (i = 0; i < POLLS_NEST + 4; i++)
		weft_poll_end_at(now);
	weft_poll_end_at(now); /* of nothing */
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, POLLS_NEST + 5);
	CHECK_EQ(seen->unknown, 5);
	REQUIRE(CHECK_EQ(seen->n, POLLS_NEST));
	for (i = 0; i < POLLS_NEST; i++) {
		CHECK_EQ(seen->polls[i].level, POLLS_NEST - 1 - i);
		CHECK_EQ(seen->polls[i].task, POLLS_NEST - 1 - i);
	}
	free(seen);
}

TEST(odd_ticks_do_no_harm)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	struct polls_seen *seen;
	uint64_t now;

	REQUIRE(rec);
	now = weft_now_ticks();
	weft_poll_begin_at(1, 0, 0); /* from before recording: its length is not known, nobody counts it */
	weft_poll_end_at(now);
	weft_poll_begin_at(2, 0, now + 1000);
	weft_poll_end_at(now); /* ends before it begins: as short as can be */
	weft_poll_begin_at(3, 0, now - polls_ticks(UINT64_C(3000000) * MS));
	weft_poll_end_at(now); /* 50 minutes: longer than any count is for */
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 2);
	CHECK_EQ(seen->by_bucket[0], 1);
	CHECK_EQ(seen->by_bucket[POLLS_LONGER], 1);
	REQUIRE(CHECK_EQ(seen->n, 1));
	CHECK_EQ(seen->polls[0].task, 3);
	free(seen);
}

TEST(each_segment_has_its_own_counts_and_a_poll_across_two_is_kept)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	struct polls_seen *seen;
	uint64_t begin;

	REQUIRE(rec);
	begin = weft_now_ticks();
	polls_make(1, MS, 100);
	weft_poll_begin_at(2, 0, begin - polls_ticks(30 * MS));
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	weft_poll_end();
	polls_make(1, MS, 10);
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	polls_make(1, MS, 1);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->sums[0], 100);
	CHECK_EQ(seen->sums[1], 11);
	CHECK_EQ(seen->sums[2], 1);
	REQUIRE(CHECK_EQ(seen->n, 1));
	CHECK_EQ(seen->polls[0].task, 2);
	CHECK(seen->polls[0].ns >= 30 * MS);
	free(seen);
}

TEST(a_pause_ends_what_was_open)
{
	struct weft_recorder *rec = start(WEFT_POLLS_SLOW);
	struct polls_seen *seen;
	uint32_t i;

	REQUIRE(rec);
	for (i = 0; i < 100; i++) {
		weft_poll_begin(1, 0);
		weft_poll_begin(1, 0);
		CHECK_EQ(weft_recorder_pause(rec), 0);
		weft_poll_end();
		if (i % 2)
			weft_poll_end();
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		weft_poll_end(); /* of a poll that is forgotten */
		polls_make(2, 20 * MS, 1);
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 100);
	CHECK_EQ(seen->n, 100);
	CHECK_EQ(seen->n ? seen->polls[99].level : 9, 0);
	free(seen);
}

TEST(counts_go_on_after_stop_and_start)
{
	struct weft_recorder *rec = start(WEFT_POLLS_CAUGHT);
	struct polls_seen *seen;

	REQUIRE(rec);
	polls_make(1, MS, 3);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	polls_make(1, MS, 50);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	polls_make(1, MS, 4);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->sums[0], 3);
	CHECK_EQ(seen->sums[1], 4);
	free(seen);
}
