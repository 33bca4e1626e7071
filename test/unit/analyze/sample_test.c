/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and the polls that they fall into. */
#include "feed.h"
#include "weft/recorder.h"

#define MS 1000000u
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER

static void feed_start_sampled(struct feed *feed)
{
	static const struct weft_fact hz = {"sample.hz", "100"};

	feed_init(feed);
	CHECK_EQ(weft__names_add_fact(&feed->names, &hz), 0);
}

static const struct weft__sampled_thread *thread(const struct feed *feed, uint32_t thread_id)
{
	static const struct weft__sampled_thread none;
	size_t i;

	for (i = 0; i < feed->result->samples.n_threads; i++)
		if (feed->result->samples.threads[i].thread_id == thread_id)
			return &feed->result->samples.threads[i];
	CHECK(!"the thread is there");
	return &none;
}

#define CHECK_WEIGHT(weight, count, ms)                                                                                \
	do {                                                                                                           \
		CHECK_EQ((weight).n, count);                                                                           \
		CHECK_EQ((weight).ns, (uint64_t)(ms)*MS);                                                              \
	} while (0)

TEST(a_sample_belongs_to_the_polls_that_are_open)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 0 * MS, 3, SPAWN, 2, 2);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 25 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 30 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 35 * MS, 2, SAMPLE, SAMPLE_OF(13, 10)); /* another thread */
	FEED(&feed, 40 * MS, 1, SAMPLE, SAMPLE_OF(12, 20));
	FEED(&feed, 45 * MS, 1, POLL_END);
	FEED(&feed, 50 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 60 * MS, 1, POLL_END);
	FEED(&feed, 70 * MS, 1, SAMPLE, SAMPLE_OF(14, 10)); /* behind it */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[0].task, 1);
	CHECK_WEIGHT(r->poll.longest[0].sampled, 4, 50);
	REQUIRE(r->poll.longest[0].n_stacks == 2);
	CHECK_EQ(r->poll.longest[0].stacks[0].stack, 12);
	CHECK_WEIGHT(r->poll.longest[0].stacks[0].weight, 2, 30);
	CHECK_EQ(r->poll.longest[0].stacks[1].stack, 11);
	CHECK_WEIGHT(r->poll.longest[0].stacks[1].weight, 2, 20);
	CHECK_EQ(r->poll.longest[1].task, 2);
	CHECK_WEIGHT(r->poll.longest[1].sampled, 2, 30);
	REQUIRE(r->poll.longest[1].n_stacks == 1);
	CHECK_EQ(r->poll.longest[1].stacks[0].stack, 12);
	/* by place: the innermost poll */
	CHECK_WEIGHT(feed_location(&feed, 1)->sampled, 2, 20);
	CHECK_WEIGHT(feed_location(&feed, 2)->sampled, 2, 30);
	CHECK_WEIGHT(r->samples.all, 6, 70);
	CHECK_WEIGHT(r->samples.where[WEFT__IN_POLL], 4, 50);
	CHECK_WEIGHT(r->samples.where[WEFT__BETWEEN_POLLS], 1, 10);
	CHECK_WEIGHT(r->samples.where[WEFT__NEVER_POLLS], 1, 10);
	CHECK_WEIGHT(r->samples.engines[WEFT_ENGINE_TIMER], 6, 70);
	CHECK_EQ(r->samples.period_ns, 10 * MS);
	feed_close(&feed);
}

/* Equal times: the order in the thread's thread decides. */
TEST(a_sample_at_the_moment_of_a_begin_or_an_end_is_placed_by_order)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(1, 1)); /* before its begin */
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(2, 2));
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(3, 4));
	FEED(&feed, 20 * MS, 1, POLL_END);
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(4, 8)); /* behind its end */
	FEED(&feed, 20 * MS, 1, POLL_BEGIN, 8, 0);
	FEED(&feed, 20 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_WEIGHT(r->poll.longest[0].sampled, 2, 6);
	CHECK_WEIGHT(r->poll.longest[1].sampled, 0, 0);
	CHECK_EQ(r->poll.longest[1].n_stacks, 0);
	/* the first may be in a poll that began before: nothing was known of the thread yet */
	CHECK_WEIGHT(r->samples.where[WEFT__WHERE_UNKNOWN], 1, 1);
	CHECK_WEIGHT(r->samples.where[WEFT__BETWEEN_POLLS], 1, 8);
	feed_close(&feed);
}

TEST(samples_outside_polls_are_summed_by_what_the_thread_did)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 20 * MS, 1, POLL_END);
	FEED(&feed, 21 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(&feed, 22 * MS, 1, PARK, 0);
	FEED(&feed, 23 * MS, 1, SAMPLE, SAMPLE_OF(1, 2));
	FEED(&feed, 24 * MS, 1, UNPARK, 0);
	FEED(&feed, 25 * MS, 1, SAMPLE, SAMPLE_OF(1, 4));
	FEED(&feed, 26 * MS, 3, SAMPLE, SAMPLE_OF(1, 8));
	FEED(&feed, 27 * MS, 3, WAKE, 7, 0); /* says that it runs, but it still never polls */
	FEED(&feed, 28 * MS, 3, SAMPLE, SAMPLE_OF(1, 16));
	r = feed_end(&feed, 0);
	CHECK_WEIGHT(r->samples.where[WEFT__IN_POLL], 0, 0);
	CHECK_WEIGHT(r->samples.where[WEFT__BETWEEN_POLLS], 2, 5);
	CHECK_WEIGHT(r->samples.where[WEFT__PARKED], 1, 2);
	CHECK_WEIGHT(r->samples.where[WEFT__NEVER_POLLS], 2, 24);
	CHECK_EQ(r->samples.n_threads, 2);
	CHECK_EQ(r->samples.threads[0].thread_id, 3); /* the heaviest */
	CHECK_EQ(r->samples.threads[0].worker, WEFT_WORKER_NONE);
	CHECK(!r->samples.threads[0].polls);
	CHECK_WEIGHT(r->samples.threads[0].where[WEFT__NEVER_POLLS], 2, 24);
	CHECK(thread(&feed, 1)->polls);
	CHECK_WEIGHT(thread(&feed, 1)->all, 3, 7);
	/* one row for what is alike: of thread 3, of thread 1 between, of thread 1 parked */
	CHECK_EQ(r->samples.n_rows, 3);
	CHECK_WEIGHT(r->samples.rows[0].weight, 2, 24);
	CHECK_EQ(r->samples.threads[r->samples.rows[0].thread].thread_id, 3);
	CHECK_EQ(r->lane.n_lanes, 1); /* a thread that never polls is no row among those that do */
	feed_close(&feed);
}

TEST(a_gap_cuts_polls_and_their_samples)
{
	static const struct weft_loss gap = {WEFT_LOSS_RING_FULL, 1, 5, 30 * MS, 40 * MS};
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &gap), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(&feed, 35 * MS, 1, SAMPLE, SAMPLE_OF(1, 2)); /* in the gap */
	FEED(&feed, 50 * MS, 1, SAMPLE, SAMPLE_OF(1, 4)); /* in which poll, if any, is lost */
	FEED(&feed, 60 * MS, 1, POLL_BEGIN, 8, 0);
	FEED(&feed, 61 * MS, 1, SAMPLE, SAMPLE_OF(1, 8));
	FEED(&feed, 70 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.cut, 1);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_WEIGHT(r->poll.longest[0].sampled, 1, 8);
	CHECK_EQ(r->poll.longest[0].n_stacks, 1);
	CHECK_WEIGHT(r->samples.where[WEFT__IN_POLL], 2, 9);
	CHECK_WEIGHT(r->samples.where[WEFT__WHERE_UNKNOWN], 2, 6);
	feed_close(&feed);
}

TEST(lost_samples_and_threads_are_no_gap)
{
	static const struct weft_loss losses[] = {{WEFT_LOSS_SAMPLE, 1, 3, 10 * MS, 40 * MS},
						  {WEFT_LOSS_UNCOVERED, 0, 2, 10 * MS, 40 * MS},
						  {WEFT_LOSS_SIGNAL, 0, 5, 10 * MS, 40 * MS}};
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft__names_add_loss(&feed.names, &losses[i]), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 50 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 1);
	CHECK_EQ(r->poll.cut, 0);
	CHECK_EQ(r->loss.events, 0);
	CHECK_EQ(r->loss.samples, 3);
	CHECK_EQ(r->loss.uncovered, 2);
	CHECK_EQ(r->loss.missed_samples, 5);
	CHECK_EQ(r->loss.n_rows, 3);
	feed_close(&feed);
}

TEST(polls_that_still_run_have_their_samples)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(&feed, 30 * MS, 1, POLL_BEGIN, 8, 0);
	FEED(&feed, 40 * MS, 1, POLL_BEGIN, 9, 0);
	FEED(&feed, 50 * MS, 1, SAMPLE, SAMPLE_OF(2, 2));
	r = feed_end(&feed, 100 * MS);
	REQUIRE(r->poll.n_running == 3);
	CHECK_EQ(r->poll.running[0].task, 7);
	CHECK_WEIGHT(r->poll.running[0].sampled, 2, 3);
	CHECK_EQ(r->poll.running[0].n_stacks, 2);
	CHECK_WEIGHT(r->poll.running[1].sampled, 1, 2);
	CHECK_WEIGHT(r->poll.running[2].sampled, 1, 2);
	CHECK_EQ(r->poll.running[2].n_stacks, 1);
	feed_close(&feed);
}

static void two_workers(struct feed *feed)
{
	FEED(feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(feed, 0 * MS, 3, SPAWN, 2, 2);
	FEED(feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(feed, 21 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(feed, 22 * MS, 1, SAMPLE, SAMPLE_OF(2, 2));
	FEED(feed, 23 * MS, 1, POLL_END);
	FEED(feed, 24 * MS, 1, POLL_END);
	FEED(feed, 25 * MS, 1, SAMPLE, SAMPLE_OF(3, 4));
	FEED(feed, 30 * MS, 2, POLL_BEGIN, 2, 0);
	FEED(feed, 40 * MS, 2, SAMPLE, SAMPLE_OF(4, 8));
	FEED(feed, 50 * MS, 2, POLL_END);
	FEED(feed, 60 * MS, 3, SAMPLE, SAMPLE_OF(5, 16));
}

/* Every sample has a weight of its own, so the sum says which ones passed. */
static uint64_t passed(const char *worker, const char *pattern, const char *location, uint64_t from_ns, uint64_t to_ns)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t ns;

	feed_start_sampled(&feed);
	feed.opts.worker = worker;
	feed.opts.thread = pattern;
	feed.opts.location = location;
	feed.opts.from_ns = from_ns;
	feed.opts.to_ns = to_ns;
	feed_begin(&feed);
	two_workers(&feed);
	r = feed_end(&feed, 0);
	ns = r->samples.all.ns;
	if (!from_ns && !to_ns)
		CHECK_EQ(ns + r->samples.left_out.ns, 31 * MS);
	feed_close(&feed);
	return ns / MS;
}

TEST(filters_choose_samples_by_worker_location_and_thread)
{
	CHECK_EQ(passed(NULL, NULL, NULL, 0, 0), 31);
	CHECK_EQ(passed("demo/0", NULL, NULL, 0, 0), 1 + 2 + 4);
	CHECK_EQ(passed("demo/*", NULL, NULL, 0, 0), 1 + 2 + 4 + 8);
	CHECK_EQ(passed("io(103)", NULL, NULL, 0, 0), 16);
	CHECK_EQ(passed(NULL, "w1", NULL, 0, 0), 8);
	CHECK_EQ(passed(NULL, "w?", NULL, 0, 0), 1 + 2 + 4 + 8);
	CHECK_EQ(passed(NULL, "103", NULL, 0, 0), 16);
	CHECK_EQ(passed(NULL, "w0(101)", NULL, 0, 0), 1 + 2 + 4);
	CHECK_EQ(passed(NULL, "nobody", NULL, 0, 0), 0);
	CHECK_EQ(passed(NULL, NULL, "echo", 0, 0), 2 + 8);
	CHECK_EQ(passed(NULL, NULL, "accept", 0, 0), 1 + 2); /* in a poll that is nested in one of those */
	CHECK_EQ(passed("demo/1", NULL, "echo", 0, 0), 8);
	CHECK_EQ(passed("demo/1", "w0", NULL, 0, 0), 0);
	CHECK_EQ(passed(NULL, NULL, NULL, 22 * MS, 40 * MS), 2 + 4);
	CHECK_EQ(passed(NULL, NULL, NULL, 40 * MS, 0), 8 + 16);
}

TEST(the_filter_by_thread_is_for_polls_too)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed.opts.thread = "w0";
	feed_begin(&feed);
	two_workers(&feed);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 2);
	REQUIRE(r->lane.n_lanes == 1);
	CHECK_EQ(r->lane.lanes[0].worker, 0);
	REQUIRE(r->samples.n_threads == 1);
	CHECK_EQ(r->samples.threads[0].thread_id, 1);
	feed_close(&feed);
}

TEST(a_poll_that_ends_in_the_window_has_its_earlier_samples)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed.opts.from_ns = 50 * MS;
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(&feed, 60 * MS, 1, SAMPLE, SAMPLE_OF(1, 2));
	FEED(&feed, 70 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 1);
	CHECK_EQ(r->poll.longest[0].rank_ns, 60 * MS);
	CHECK_WEIGHT(r->poll.longest[0].sampled, 2, 3);
	CHECK_WEIGHT(r->samples.all, 1, 2);
	CHECK_WEIGHT(feed_location(&feed, WEFT__LOCATION_UNSEEN)->sampled, 1, 2);
	feed_close(&feed);
}

TEST(short_polls_are_summed_by_location)
{
	struct feed feed;

	feed_start_sampled(&feed); /* the period is 10 ms */
	feed_begin(&feed);
	FEED(&feed, 0 * MS, 3, SPAWN, 1, 1);
	FEED(&feed, 0 * MS, 3, SPAWN, 2, 2);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 12 * MS, 1, POLL_END);
	FEED(&feed, 20 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 21 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 23 * MS, 1, POLL_END);
	FEED(&feed, 30 * MS, 1, POLL_BEGIN, 1, 0); /* just not short */
	FEED(&feed, 35 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 40 * MS, 1, POLL_END);
	FEED(&feed, 50 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 59 * MS, 1, POLL_END);
	feed_end(&feed, 0);
	CHECK_EQ(feed_location(&feed, 1)->n_short, 2);
	CHECK_EQ(feed_location(&feed, 1)->short_ns, 5 * MS);
	CHECK_WEIGHT(feed_location(&feed, 1)->short_sampled, 1, 10);
	CHECK_EQ(feed_location(&feed, 2)->n_short, 1);
	CHECK_EQ(feed_location(&feed, 2)->short_ns, 9 * MS);
	CHECK_WEIGHT(feed_location(&feed, 2)->short_sampled, 0, 0);
	feed_close(&feed);
}

TEST(sampled_and_measured_cpu_time_are_of_the_same_spans)
{
	static const struct weft_loss gap = {WEFT_LOSS_RING_FULL, 1, 5, 90 * MS, 95 * MS};
	struct feed feed;
	const struct weft__sampled_thread *t;

	feed_start_sampled(&feed);
	CHECK_EQ(weft__names_add_loss(&feed.names, &gap), 0);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(1, 100)); /* before the first reading */
	FEED(&feed, 20 * MS, 1, SCHED, 500 * MS, 0);
	FEED(&feed, 30 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 40 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 50 * MS, 1, SCHED, 521 * MS, 0);
	FEED(&feed, 60 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 70 * MS, 1, SCHED, 530 * MS, 0);
	FEED(&feed, 100 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 110 * MS, 1, SCHED, 560 * MS, 0); /* samples are missing in this one */
	FEED(&feed, 120 * MS, 1, SAMPLE, SAMPLE_OF(1, 10));
	FEED(&feed, 130 * MS, 1, SCHED, 570 * MS, 0);
	FEED(&feed, 140 * MS, 1, SAMPLE, SAMPLE_OF(1, 100));
	feed_end(&feed, 0);
	t = thread(&feed, 1);
	CHECK_EQ(t->measured_span_ns, (30 + 20 + 20) * MS);
	CHECK_EQ(t->measured_ns, (21 + 9 + 10) * MS);
	CHECK_EQ(t->measured_sampled_ns, 40 * MS);
	feed_close(&feed);
}

TEST(a_thread_that_becomes_another_worker_has_two_rows)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start_sampled(&feed);
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(&feed, 20 * MS, 1, WORKER, 1);
	FEED(&feed, 30 * MS, 1, SAMPLE, SAMPLE_OF(1, 2));
	r = feed_end(&feed, 0);
	REQUIRE(r->samples.n_threads == 2);
	CHECK_EQ(r->samples.threads[0].worker, 1);
	CHECK_EQ(r->samples.threads[1].worker, 0);
	CHECK_EQ(r->samples.threads[1].thread_id, 1);
	feed_close(&feed);
}

struct heard {
	uint64_t n, in_polls, depth;
	uint64_t inner_task;
	int rc;
};

static int hear(void *data, const struct weft__sample_view *sample)
{
	struct heard *heard = data;

	heard->n++;
	heard->in_polls += sample->where == WEFT__IN_POLL;
	if (sample->n_polls > heard->depth) {
		heard->depth = sample->n_polls;
		heard->inner_task = sample->polls[sample->n_polls - 1].task;
		CHECK_EQ(sample->stack, 2);
		CHECK_EQ(sample->weight_ns, 2 * MS);
		CHECK_EQ(sample->thread_id, 1);
		CHECK_EQ(sample->worker, 0);
		CHECK_EQ(sample->time_ns, 22 * MS);
	}
	return heard->rc;
}

TEST(each_sample_is_reported_with_its_polls)
{
	struct weft__event ev;
	struct heard heard = {.depth = 1};
	struct feed feed;

	feed_start_sampled(&feed);
	feed.opts.sample = hear;
	feed.opts.sample_data = &heard;
	feed.opts.worker = "demo/0";
	feed_begin(&feed);
	two_workers(&feed);
	CHECK_EQ(heard.n, 3);
	CHECK_EQ(heard.in_polls, 2);
	CHECK_EQ(heard.depth, 2);
	CHECK_EQ(heard.inner_task, 2);
	heard.rc = -EINTR;
	ev = feed_one(80 * MS, 1, WEFT_KIND_SAMPLE, 5, (uint64_t[]){SAMPLE_OF(1, 1)});
	CHECK_EQ(weft__analysis_push(feed.analysis, &ev), -EINTR);
	feed_end(&feed, 0);
	feed_close(&feed);
}

TEST(only_polls_of_the_list_keep_stacks)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i, now = 0;

	feed_start_sampled(&feed);
	feed.opts.top = 2;
	feed_begin(&feed);
	for (i = 1; i <= 50; i++) {
		uint64_t ms = 10 + i * 7 % 53;

		FEED(&feed, now += 100 * MS, 1, POLL_BEGIN, ms, 0);
		FEED(&feed, now + 1, 1, SAMPLE, SAMPLE_OF(ms, 1));
		FEED(&feed, now + ms * MS, 1, POLL_END);
	}
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	for (i = 0; i < 2; i++) {
		REQUIRE(r->poll.longest[i].n_stacks == 1);
		CHECK_EQ(r->poll.longest[i].stacks[0].stack, r->poll.longest[i].task);
	}
	feed_close(&feed);
}

/* Room for 10 samples of open polls. Those of few different stacks are put together; beyond that they are counted. */
TEST(samples_of_open_polls_are_limited)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_start_sampled(&feed);
	feed.opts.max_samples = 10;
	feed_begin(&feed);
	FEED(&feed, 1 * MS, 1, POLL_BEGIN, 1, 0);
	for (i = 0; i < 100; i++)
		FEED(&feed, (2 + i) * MS, 1, SAMPLE, SAMPLE_OF(1 + i % 3, 1));
	FEED(&feed, 110 * MS, 1, POLL_BEGIN, 2, 0);
	for (i = 0; i < 100; i++)
		FEED(&feed, (111 + i) * MS, 1, SAMPLE, SAMPLE_OF(1 + i, 1));
	FEED(&feed, 300 * MS, 1, POLL_END);
	FEED(&feed, 400 * MS, 1, POLL_END);
	FEED(&feed, 500 * MS, 1, POLL_BEGIN, 3, 0); /* there is room again */
	FEED(&feed, 501 * MS, 1, SAMPLE, SAMPLE_OF(1, 1));
	FEED(&feed, 510 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 3);
	CHECK_WEIGHT(r->poll.longest[0].sampled, 200, 200);
	CHECK_WEIGHT(r->poll.longest[1].sampled, 100, 100);
	CHECK_EQ(r->poll.longest[1].n_stacks + r->poll.longest[1].stacks_beyond.n, 100);
	CHECK(r->poll.longest[1].n_stacks >= 5);
	CHECK_EQ(r->poll.longest[0].stacks_beyond.n, r->poll.longest[1].stacks_beyond.n);
	CHECK_EQ(r->samples.beyond_polls, r->poll.longest[1].stacks_beyond.n);
	CHECK_EQ(r->poll.longest[2].n_stacks, 1);
	CHECK_WEIGHT(r->samples.all, 201, 201);
	feed_close(&feed);
}

TEST(rows_and_threads_of_samples_are_limited)
{
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	feed_start_sampled(&feed);
	feed.opts.max_sample_rows = 5;
	feed.opts.max_rows = 2;
	feed_begin(&feed);
	for (i = 0; i < 20; i++)
		FEED(&feed, (1 + i) * MS, (uint32_t)(10 + i), SAMPLE, SAMPLE_OF(1 + i, 1));
	r = feed_end(&feed, 0);
	CHECK_WEIGHT(r->samples.all, 20, 20);
	CHECK_EQ(r->samples.n_rows, 5);
	CHECK_WEIGHT(r->samples.beyond_rows, 15, 15);
	REQUIRE(r->samples.n_threads == 3);
	CHECK_EQ(r->samples.threads[0].worker, WEFT__LANE_OTHER);
	CHECK_WEIGHT(r->samples.threads[0].all, 18, 18);
	feed_close(&feed);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void check_sums(const struct weft__samples *r)
{
	struct weft__weight rows = r->beyond_rows, threads = {0, 0}, where = {0, 0}, engines = {0, 0};
	size_t i;

	for (i = 0; i < r->n_rows; i++) {
		weft__weight_add(&rows, r->rows[i].weight.n, r->rows[i].weight.ns);
		CHECK(r->rows[i].thread < r->n_threads);
		CHECK(i == 0 || r->rows[i].weight.ns <= r->rows[i - 1].weight.ns);
	}
	for (i = 0; i < r->n_threads; i++)
		weft__weight_add(&threads, r->threads[i].all.n, r->threads[i].all.ns);
	for (i = 0; i < WEFT__N_WHERE; i++)
		weft__weight_add(&where, r->where[i].n, r->where[i].ns);
	for (i = 0; i < WEFT__ENGINES; i++)
		weft__weight_add(&engines, r->engines[i].n, r->engines[i].ns);
	CHECK_EQ(rows.n, r->all.n);
	CHECK_EQ(rows.ns, r->all.ns);
	CHECK_EQ(threads.n, r->all.n);
	CHECK_EQ(threads.ns, r->all.ns);
	CHECK_EQ(where.n, r->all.n);
	CHECK_EQ(where.ns, r->all.ns);
	CHECK_EQ(engines.n, r->all.n);
	CHECK_EQ(engines.ns, r->all.ns);
}

static void check_polls(const struct weft__poll *polls, size_t n)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		struct weft__weight stacks = polls[i].stacks_beyond;

		for (j = 0; j < polls[i].n_stacks; j++)
			weft__weight_add(&stacks, polls[i].stacks[j].weight.n, polls[i].stacks[j].weight.ns);
		CHECK_EQ(stacks.n, polls[i].sampled.n);
		CHECK_EQ(stacks.ns, polls[i].sampled.ns);
	}
}

/* Events in an order that makes no sense, with limits that are soon reached: whatever comes, the parts add up. */
TEST(the_sums_of_samples_add_up)
{
	static const struct weft_loss losses[] = {{WEFT_LOSS_RING_FULL, 2, 1, 40000, 41000},
						  {WEFT_LOSS_PAUSED, 0, 0, 60000, 60500}};
	static const uint16_t kinds[] = {WEFT_KIND_POLL_BEGIN, WEFT_KIND_POLL_END,  WEFT_KIND_SAMPLE,
					 WEFT_KIND_SAMPLE,     WEFT_KIND_PARK,      WEFT_KIND_UNPARK,
					 WEFT_KIND_WORKER,     WEFT_KIND_SCHED,     WEFT_KIND_SPAWN,
					 WEFT_KIND_TASK_END,   WEFT_KIND_POLL_BEGIN};
	uint64_t seed, state, now, i, passed_n = 0, beyond_n = 0, n_kinds = sizeof(kinds) / sizeof(kinds[0]);

	for (seed = 1; seed <= 20; seed++) {
		struct feed feed;

		feed_start_sampled(&feed);
		CHECK_EQ(weft__names_add_loss(&feed.names, &losses[0]), 0);
		CHECK_EQ(weft__names_add_loss(&feed.names, &losses[1]), 0);
		feed.opts.max_samples = seed % 2 ? 40 : 0;
		feed.opts.max_sample_rows = seed % 3 ? 30 : 0;
		feed.opts.max_rows = seed % 5 ? 4 : 0;
		feed.opts.worker = seed % 7 ? NULL : "demo/*";
		feed.opts.location = seed % 4 ? NULL : "e*";
		feed.opts.from_ns = seed % 6 ? 0 : 30000;
		feed_begin(&feed);
		state = seed;
		now = 1000;
		for (i = 0; i < 5000; i++) {
			uint16_t kind = kinds[next_random(&state) % n_kinds];
			uint32_t thread_id = 1 + (uint32_t)(next_random(&state) % 6);
			uint64_t fields[5] = {next_random(&state) % 20, next_random(&state) % 3,
					      next_random(&state) % 100, 0, next_random(&state) % 12};

			now += next_random(&state) % 40;
			if (next_random(&state) % 500 == 0)
				FEED(&feed, now, thread_id, THREAD_END);
			else
				feed_event(&feed, now, thread_id, kind, 5, fields);
		}
		feed_end(&feed, 0);
		check_sums(&feed.result->samples);
		check_polls(feed.result->poll.longest, feed.result->poll.n_longest);
		check_polls(feed.result->poll.running, feed.result->poll.n_running);
		passed_n += feed.result->samples.all.n;
		beyond_n += feed.result->samples.beyond_rows.n + feed.result->samples.beyond_polls;
		feed_close(&feed);
	}
	CHECK(passed_n > 5000);
	CHECK(beyond_n > 100);
}
