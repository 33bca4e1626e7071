/* SPDX-License-Identifier: Apache-2.0 */
/* Mode auto: less detail when events cost more than the budget, more when there is room, and nothing that goes
 * uncounted. */
#include "polls.h"

#include "record/collect/coarse.h"
#include "record/setup.h"

#define S UINT64_C(1000000000)
#define ALLOWED 0.005 /* of one CPU: 1 % of half of it */
#define STEP (S / 4)

static struct weft__coarse fresh(uint32_t mode, uint64_t budget_ppm)
{
	struct weft_recorder_opts opts = {.poll_mode = mode, .budget_ppm = budget_ppm, .poll_slow_ns = MS};
	struct weft__coarse coarse;

	weft__coarse_init(&coarse, &opts);
	weft__coarse_decide(&coarse, S, 0, 0, ALLOWED);
	return coarse;
}

/* Steps from `*now` for so long with events that cost `share` of a CPU, 40 ns each; of them `counted` a second are
 * counted only. How often the level changed. */
static uint32_t run_for(struct weft__coarse *coarse, uint64_t *now, uint64_t span, double share, uint64_t counted)
{
	uint32_t changes = 0;

	for (uint64_t end = *now + span; *now < end;) {
		*now += STEP;
		for (uint32_t i = 0; i < COARSE_UNTIMED; i++)
			coarse->passed[i] += counted / 4;
		changes += (uint32_t)weft__coarse_decide(coarse, *now, share * (double)STEP,
							 (uint64_t)(share * (double)STEP / 40), ALLOWED);
	}
	return changes;
}

TEST(events_within_the_budget_keep_all_polls)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	CHECK_EQ(run_for(&coarse, &now, 600 * S, 0.5 * ALLOWED, 0), 0);
	CHECK_EQ(coarse.level, COARSE_ALL);
}

TEST(a_burst_is_recorded_whole)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	run_for(&coarse, &now, 60 * S, 0.1 * ALLOWED, 0);
	CHECK_EQ(run_for(&coarse, &now, S / 2, 5 * ALLOWED, 0), 0);
	run_for(&coarse, &now, 60 * S, 0.1 * ALLOWED, 0);
	CHECK_EQ(coarse.level, COARSE_ALL);
}

TEST(ten_times_the_budget_is_held_within_a_second)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	CHECK_EQ(run_for(&coarse, &now, S, 10 * ALLOWED, 0), 3);
	CHECK_EQ(coarse.level, COARSE_COUNTED);
	CHECK(coarse.share > 9 * ALLOWED);
}

TEST(less_detail_stays_while_counts_say_that_more_would_cost_too_much)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	run_for(&coarse, &now, S, 10 * ALLOWED, 0);
	CHECK_EQ(run_for(&coarse, &now, 300 * S, 0.01 * ALLOWED, 1000000), 0);
	CHECK_EQ(coarse.level, COARSE_COUNTED);
}

TEST(detail_comes_back_step_by_step_when_there_is_room)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	run_for(&coarse, &now, S, 10 * ALLOWED, 0);
	CHECK_EQ(run_for(&coarse, &now, 9 * S, 0.01 * ALLOWED, 1000), 0);
	CHECK_EQ(run_for(&coarse, &now, 4 * S, 0.01 * ALLOWED, 1000), 1);
	CHECK_EQ(coarse.level, COARSE_PARKS);
	CHECK_EQ(run_for(&coarse, &now, 12 * S, 0.01 * ALLOWED, 1000), 1);
	CHECK_EQ(coarse.level, COARSE_SLOW);
	CHECK_EQ(run_for(&coarse, &now, 20 * S, 0.01 * ALLOWED, 1000), 1);
	CHECK_EQ(coarse.level, COARSE_ALL);
}

TEST(wakes_are_counted_last_and_as_soon_as_events_need_it)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	while (coarse.level < COARSE_PARKS)
		run_for(&coarse, &now, STEP, 1.1 * ALLOWED, 0);
	CHECK_EQ(run_for(&coarse, &now, 60 * S, 0.5 * ALLOWED, 1000000), 0);
	CHECK_EQ(coarse.level, COARSE_PARKS);
	CHECK_EQ(run_for(&coarse, &now, 60 * S, 0.7 * ALLOWED, 0), 1);
	CHECK_EQ(coarse.level, COARSE_COUNTED);
}

/* Counts say that there is room, and then there is none: as of events that cost more than was thought. */
TEST(levels_do_not_flap)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;
	uint32_t changes = run_for(&coarse, &now, 2 * S, 10 * ALLOWED, 0);

	for (uint64_t end = now + 600 * S; now < end;)
		changes +=
			run_for(&coarse, &now, STEP, coarse.level == COARSE_COUNTED ? 0.01 * ALLOWED : 10 * ALLOWED, 0);
	CHECK(changes < 20);
}

TEST(a_mode_that_was_asked_for_stays_and_the_excess_is_known)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_ALL, 10000), free = fresh(WEFT_POLLS_AUTO, WEFT_OFF);
	uint64_t now = S;

	CHECK_EQ(run_for(&coarse, &now, 30 * S, 10 * ALLOWED, 0), 0);
	CHECK_EQ(coarse.over, 1);
	now = S;
	CHECK_EQ(run_for(&free, &now, 30 * S, 10 * ALLOWED, 0), 0);
	CHECK_EQ(free.over, 0);
}

/* A second of polls of which each costs its thread so much; at COARSE_UNTIMED all but a few are without a clock. */
static int second_of(struct weft__coarse *coarse, uint64_t *now, uint64_t polls, double poll_ns)
{
	uint64_t untimed = coarse->level == COARSE_UNTIMED ? polls - polls / 20 : 0;

	*now += S;
	return weft__coarse_timing(coarse, *now, S, (double)(polls - untimed) * poll_ns, polls - untimed, untimed,
				   ALLOWED);
}

TEST(polls_are_not_timed_when_that_costs_twice_what_is_allowed_and_are_again_when_it_costs_less)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S, left = 0;

	CHECK_EQ(second_of(&coarse, &now, 1000000, 60), 0); /* all are recorded: others decide */
	coarse.level = COARSE_SLOW;
	CHECK_EQ(second_of(&coarse, &now, 150000, 60), 0); /* 0.9 % of a CPU where 0.5 are allowed */
	CHECK_EQ(coarse.window_ns, 0);
	CHECK_EQ(second_of(&coarse, &now, 400000, 60), 0); /* 2.4 %, but only once */
	CHECK_EQ(second_of(&coarse, &now, 150000, 60), 0);
	CHECK_EQ(second_of(&coarse, &now, 400000, 60), 0);
	CHECK_EQ(second_of(&coarse, &now, 400000, 60), 1);
	CHECK_EQ(coarse.level, COARSE_UNTIMED);
	CHECK(coarse.window_ns > 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(second_of(&coarse, &now, 100000, 60), 0); /* 0.6 % would be too much */
	while (left < 100 && !second_of(&coarse, &now, 50000, 60))
		left++;
	CHECK(left >= 9 && left < 100);
	CHECK_EQ(coarse.level, COARSE_COUNTED);
	CHECK_EQ(coarse.window_ns, 0);
}

TEST(windows_in_which_polls_are_timed_cost_a_part_of_what_is_allowed)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_AUTO, 10000);
	uint64_t now = S;

	coarse.level = COARSE_COUNTED;
	CHECK_EQ(second_of(&coarse, &now, 400000, 60), 0);
	CHECK_EQ(second_of(&coarse, &now, 400000, 60), 1);
	second_of(&coarse, &now, 400000, 60);
	CHECK(coarse.windows * 400000 * 60e-9 < 0.25 * ALLOWED);
	CHECK(coarse.windows * 400000 * 60e-9 > 0.15 * ALLOWED);
}

TEST(events_leave_what_accounts_and_counts_cost)
{
	struct weft__coarse alone = fresh(WEFT_POLLS_AUTO, 10000), beside = alone;
	uint64_t now = S;

	for (int i = 0; i < 40; i++)
		weft__coarse_others(&beside, 250 * MS, 0.6 * ALLOWED * 0.25 * S);
	CHECK(beside.others > 0.55 * ALLOWED && beside.others < 0.65 * ALLOWED);
	CHECK_EQ(run_for(&alone, &now, 30 * S, 0.4 * ALLOWED, 1000), 0);
	now = S;
	CHECK(run_for(&beside, &now, 30 * S, 0.4 * ALLOWED, 1000) > 0);
}

TEST(polls_of_very_many_threads_that_wake_now_and_then_cost_what_their_caches_miss)
{
	CHECK(weft__costs_of_cold(1500, 30000, S) > 0.01 * S);
	CHECK(weft__costs_of_cold(4, 30000, S) == 0);      /* few threads */
	CHECK(weft__costs_of_cold(1500, 3000000, S) == 0); /* in a row */
	CHECK(weft__costs_of_cold(1500, 0, 0) == 0);
}

TEST(a_mode_that_was_asked_for_times_all_polls)
{
	struct weft__coarse coarse = fresh(WEFT_POLLS_SLOW, 10000);
	uint64_t now = S;

	coarse.level = COARSE_SLOW;
	CHECK_EQ(second_of(&coarse, &now, 4000000, 60), 0);
}

static struct weft_recorder *start_auto(void)
{
	/* By itself it would change nothing: samples and switches are off, and events few. No poll is slow, however
	 * long the machine stands still. */
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_AUTO,
					  .sample_hz = WEFT_OFF,
					  .switches = WEFT_SWITCH_OFF,
					  .poll_slow_ns = UINT64_C(60000000000)};

	return session_start(&opts);
}

TEST(a_poll_that_is_open_when_the_level_changes_ends_as_it_began)
{
	struct weft_recorder *rec = start_auto();
	struct polls_seen *seen;

	REQUIRE(rec);
	weft_poll_begin(1, 0);
	weft_poll_begin(2, 0);
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_poll_begin(3, 0); /* counted: 1 */
	weft_poll_end();
	weft_poll_end(); /* an event, and the next is counted */
	weft_poll_begin(4, 0);
	weft_poll_end();
	weft_poll_end();
	weft_poll_end();       /* of none */
	weft_poll_begin(5, 0); /* counted: 3 */
	weft__collector_coarse(&rec->collector, COARSE_ALL);
	weft_poll_begin(6, 0); /* events: 3 */
	weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	weft_poll_end();
	weft_poll_end();
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_BEGIN], 3);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_END], 3);
	CHECK_EQ(seen->counted, 3);
	CHECK_EQ(seen->n, 0);
	free(seen);
}

TEST(the_next_poll_is_of_the_new_level)
{
	struct weft_recorder *rec = start_auto();
	struct polls_seen *seen;

	REQUIRE(rec);
	weft_poll_next(1, 0); /* an event */
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_poll_next(2, 0); /* an end; counted: 1 */
	weft_poll_next(3, 0); /* counted: 2 */
	weft__collector_coarse(&rec->collector, COARSE_ALL);
	weft_poll_next(4, 0); /* a begin */
	weft_poll_next(5, 0); /* an event */
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_poll_end();
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_NEXT], 2);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_BEGIN], 1);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_END], 2);
	CHECK_EQ(seen->counted, 2);
	free(seen);
}

/* Polls of the level in which no clock is read, nested ones among them, and what is open when levels change. */
TEST(polls_without_a_clock_are_counted_exactly_whatever_is_open)
{
	struct weft_recorder *rec = start_auto();
	struct polls_seen *seen;

	REQUIRE(rec);
	weft_poll_begin(1, 0); /* an event */
	weft__collector_coarse(&rec->collector, COARSE_UNTIMED);
	weft_poll_begin(2, 0); /* inside of one with a clock: timed, counted: 1 */
	weft_poll_end();
	weft_poll_end(); /* the event's */
	for (int i = 0; i < 100; i++) {
		weft_poll_begin(3, 0); /* 100 */
		weft_poll_begin(4, 0); /* 100 */
		weft_poll_next(5, 0);  /* 100 */
		weft_poll_end();
		weft_poll_end();
		weft_poll_end(); /* of none */
	}
	weft_poll_begin(6, 0); /* 1 */
	weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	weft_poll_begin(7, 0); /* timed: 1 */
	weft_poll_end();
	weft_poll_end();       /* of the one without */
	weft_poll_begin(8, 0); /* timed: 1 */
	weft__collector_coarse(&rec->collector, COARSE_UNTIMED);
	weft_poll_end();
	weft_poll_next(9, 0); /* 1 */
	weft_poll_end();
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_BEGIN], 1);
	CHECK_EQ(seen->tally.by_kind[WEFT_KIND_POLL_END], 1);
	CHECK_EQ(seen->counted, 305);
	CHECK_EQ(seen->unknown, 302);
	CHECK_EQ(seen->n, 0);
	free(seen);
}

static void *untimed_polls(void *data)
{
	for (int i = 0; i < 1000; i++) {
		weft_poll_begin(1, 0);
		if (i < 999 || !data)
			weft_poll_end();
	}
	return NULL;
}

TEST(polls_without_a_clock_of_threads_that_end_are_counted_also_with_one_open)
{
	struct weft_recorder *rec = start_auto();
	struct polls_seen *seen;
	pthread_t thread;

	REQUIRE(rec);
	weft__collector_coarse(&rec->collector, COARSE_UNTIMED);
	for (int i = 0; i < 8; i++) {
		REQUIRE(pthread_create(&thread, NULL, untimed_polls, i % 2 ? "open" : NULL) == 0);
		pthread_join(thread, NULL);
	}
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK(seen->counted <= 8000); /* what was open is counted when its ring has the next owner, or not at all */
	CHECK(seen->counted >= 8000 - 4);
	CHECK_EQ(seen->unknown, seen->counted);
	free(seen);
}

/* As it is found: by the collector's steps. */
TEST(a_long_poll_without_a_clock_is_listed_and_never_longer_than_it_was)
{
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_AUTO, .sample_hz = WEFT_OFF, .switches = WEFT_SWITCH_OFF, .poll_slow_ns = MS};
	struct weft_recorder *rec;
	uint64_t begin, took;
	struct polls_seen *seen;
	uint32_t found = 0;

	if (UNDER_TSAN)
		SKIP("the level is the collector's, and set here while it runs");
	rec = session_start(&opts);
	REQUIRE(rec);
	rec->collector.coarse.level = COARSE_UNTIMED;
	weft__collector_coarse(&rec->collector, COARSE_UNTIMED);
	for (int i = 0; i < 100; i++) {
		weft_poll_begin(5, 0);
		weft_poll_end();
	}
	begin = session_now_ns();
	weft_poll_begin(77, 3);
	session_sleep_ns(200 * MS);
	weft_poll_end();
	took = session_now_ns() - begin;
	seen = polls_close(rec);
	REQUIRE(seen);
	CHECK_EQ(seen->counted, 101);
	for (uint32_t i = 0; i < seen->n; i++)
		if (seen->polls[i].task == 77) {
			found++;
			CHECK_EQ(seen->polls[i].depth, 3);
			CHECK_EQ(seen->polls[i].why, WEFT_POLL_SLOW);
			CHECK(seen->polls[i].ns <= took);
			CHECK(seen->polls[i].ns >= 100 * MS); /* steps are 20 ms at most, with time for them */
		}
	CHECK_EQ(found, 1);
	free(seen);
}

struct counts {
	uint64_t of[256], polls;
	uint64_t modes, level, slow_ns, rate, cost_ppm, allowed_ppm;
};

static void count_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct counts *counts = data;

	(void)seg;
	if (ev->kind == WEFT_KIND_COUNTED)
		counts->of[ev->fields[0] & 255] += ev->fields[1];
	if (ev->kind == WEFT_KIND_POLL_COUNT)
		counts->polls += ev->fields[3];
	if (ev->kind != WEFT_KIND_MODE)
		return;
	counts->modes++;
	counts->level = ev->fields[0];
	counts->slow_ns = ev->fields[1];
	counts->rate = ev->fields[2];
	counts->cost_ppm = ev->fields[3];
	counts->allowed_ppm = ev->fields[4];
}

static void close_counted(struct weft_recorder *rec, struct tally *t, struct counts *counts)
{
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	memset(counts, 0, sizeof(*counts));
	tally_init(t, 1);
	t->each = count_event;
	t->data = counts;
	tally_dir(t, session_dir);
	CHECK_EQ(t->damaged, 0);
	CHECK_EQ(t->undefined, 0);
	CHECK_EQ(t->backwards, 0);
	session_remove_dir();
}

static void *count_some(void *data)
{
	(void)data;
	for (int i = 0; i < 1000; i++)
		weft_wake(1, WEFT_WORKER_NONE); /* the first thing that this thread says */
	return NULL;
}

TEST(wakes_and_queue_depths_are_counted_exactly)
{
	struct weft_recorder *rec = start_auto();
	pthread_t threads[4];
	struct counts counts;
	struct tally t;

	REQUIRE(rec);
	weft_wake(1, WEFT_WORKER_NONE);
	weft__collector_coarse(&rec->collector, COARSE_COUNTED);
	for (int round = 0; round < 3; round++) { /* rings go from one thread to the next */
		for (int i = 0; i < 4; i++)
			REQUIRE(pthread_create(&threads[i], NULL, count_some, NULL) == 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	weft_queue_depth(0, 1);
	weft__collector_coarse(&rec->collector, COARSE_SLOW);
	weft_wake(1, WEFT_WORKER_NONE);
	close_counted(rec, &t, &counts);
	CHECK_EQ(counts.of[WEFT_KIND_WAKE], 12000);
	CHECK_EQ(counts.of[WEFT_KIND_QUEUE], 1);
	CHECK_EQ(t.by_kind[WEFT_KIND_WAKE], 2);
	tally_fini(&t);
}

/* Recorded and counted is all that there was. What a full ring lost may be of other kinds, too. */
static void check_all(uint64_t known, uint64_t lost, uint64_t all)
{
	CHECK(known <= all);
	CHECK(known + lost >= all);
	if (!lost)
		CHECK_EQ(known, all);
}

/* Millions of short polls, and one of 50 ms: the short ones are counted to the last, and the long one is recorded
 * whole. */
TEST(a_program_that_emits_too_much_is_counted_and_its_long_poll_recorded)
{
	struct weft_recorder_opts opts = {.budget_ppm = 10000, .switches = WEFT_SWITCH_OFF};
	struct weft_recorder *rec = session_start(&opts);
	uint64_t polls = 0, until = session_now_ns() + 60 * S;
	struct polls_seen *seen;
	struct counts counts;
	struct tally t;

	REQUIRE(rec);
	while (!(weft_gate_on() & WEFT_GATE_COUNTED) && session_now_ns() < until) {
		for (int i = 0; i < 500; i++, polls++) {
			weft_wake((uint64_t)i, WEFT_WORKER_NONE);
			weft_poll_begin(i, 0);
			weft_poll_end();
		}
		session_sleep_ns(MS / 4);
	}
	CHECK(weft_gate_on() & WEFT_GATE_COUNTED);
	CHECK(weft_gate_on() & WEFT_GATE_SLOW);
	polls_make(77, 50 * MS, 1);
	for (int i = 0; i < 100000; i++, polls++) {
		weft_wake((uint64_t)i, WEFT_WORKER_NONE);
		weft_poll_begin(i, 0);
		weft_poll_end();
	}
	weft_recorder_stop(rec, NULL);
	seen = polls_read();
	close_counted(rec, &t, &counts);
	REQUIRE(seen);
	/* Some of them may have been preempted for longer than the threshold, and are recorded, too. */
	check_all(t.by_kind[WEFT_KIND_POLL_BEGIN] + t.by_kind[WEFT_KIND_POLL_END] + t.by_kind[WEFT_KIND_WAKE] +
			  2 * counts.polls + counts.of[WEFT_KIND_WAKE],
		  t.lost, 3 * polls + 2);
	CHECK(counts.polls >= 100001);
	CHECK(counts.of[WEFT_KIND_WAKE] >= 100000);
	CHECK_EQ(counts.modes, 3);
	CHECK_EQ(counts.level, WEFT_DETAIL_COUNTED);
	CHECK_EQ(counts.slow_ns, MS);
	CHECK(counts.cost_ppm > counts.allowed_ppm / 2);
	CHECK(counts.rate > 0);
	for (uint32_t i = 0, found = 0; i <= seen->n; i++) {
		if (i == seen->n)
			CHECK_EQ(found, 1);
		else if (seen->polls[i].task == 77) {
			found++;
			CHECK_EQ(seen->polls[i].why & WEFT_POLL_SLOW, WEFT_POLL_SLOW);
			CHECK(seen->polls[i].ns >= 50 * MS && seen->polls[i].ns < 51 * MS);
		}
	}
	free(seen);
	tally_fini(&t);
}

TEST(all_polls_that_were_asked_for_are_recorded_whatever_they_cost)
{
	struct weft_recorder_opts opts = {.budget_ppm = 100, .switches = WEFT_SWITCH_OFF, .poll_mode = WEFT_POLLS_ALL};
	struct weft_recorder *rec = session_start(&opts);
	struct counts counts;
	struct tally t;

	REQUIRE(rec);
	for (int round = 0; round < 400; round++) {
		for (int i = 0; i < 500; i++) {
			weft_poll_begin(1, 0);
			weft_poll_end();
		}
		session_sleep_ns(MS);
	}
	CHECK_EQ(weft_gate_on() & WEFT_GATE_MODES, 0);
	close_counted(rec, &t, &counts);
	check_all(t.by_kind[WEFT_KIND_POLL_BEGIN] + t.by_kind[WEFT_KIND_POLL_END], t.lost, 400000);
	CHECK_EQ(counts.modes, 0);
	tally_fini(&t);
}

TEST(steps_of_the_gate_are_rarer_where_less_is_allowed)
{
	struct weft_recorder_opts opts = {.poll_mode = WEFT_POLLS_AUTO, .budget_ppm = 10000};
	struct weft__coarse coarse;

	weft__coarse_init(&coarse, &opts);
	CHECK_EQ(coarse.pace_ns, COARSE_STEP_NS);
	coarse.level = COARSE_COUNTED;
	weft__coarse_timing(&coarse, 1000 * MS, 1000 * MS, 0, 0, 0, 0.05);
	CHECK_EQ(coarse.pace_ns, COARSE_STEP_NS);
	weft__coarse_timing(&coarse, 2000 * MS, 1000 * MS, 0, 0, 0, 0.005);
	CHECK(coarse.pace_ns > COARSE_STEP_NS && coarse.pace_ns < COARSE_STEP_MOST_NS);
	weft__coarse_timing(&coarse, 3000 * MS, 1000 * MS, 0, 0, 0, 0.0001);
	CHECK_EQ(coarse.pace_ns, COARSE_STEP_MOST_NS);
}
