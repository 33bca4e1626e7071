/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: what polls, samples and waits belong to a request. */
#include "feed.h"
#include "weft/recorder.h"
#include "weft/wait.h"

#define MS 1000000u
#define SAMPLE_OF(stack, ms) stack, 0, (ms)*MS, 0, WEFT_ENGINE_TIMER
#define CONTEXT_OF(span) 7, 8, span, 100, 1, 2
#define NO_CONTEXT 0, 0, 0, 0, 0, 0

static void start(struct feed *feed)
{
	static const struct weft_string_def strings[] = {{1, "GET /users"}, {2, "a=b,tier=gold=x,z="}};

	feed_init(feed);
	CHECK_EQ(weft__names_add_string(&feed->names, &strings[0]), 0);
	CHECK_EQ(weft__names_add_string(&feed->names, &strings[1]), 0);
}

/* Three polls: the context is there before the first, comes and goes in the second, and is of another span in the
 * third. */
static void feed_polls(struct feed *feed)
{
	FEED(feed, 1 * MS, 1, CONTEXT, CONTEXT_OF(55));
	FEED(feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(feed, 15 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(feed, 20 * MS, 1, POLL_END);
	FEED(feed, 21 * MS, 1, CONTEXT, NO_CONTEXT);
	FEED(feed, 28 * MS, 2, WAKE, 2, 0);
	FEED(feed, 30 * MS, 1, POLL_BEGIN, 2, 0);
	FEED(feed, 31 * MS, 1, CONTEXT, CONTEXT_OF(55));
	FEED(feed, 35 * MS, 1, WAIT, WEFT_WAIT_LOCK, 0, 9, 2 * MS, 0, 0);
	FEED(feed, 36 * MS, 1, CONTEXT, NO_CONTEXT);
	FEED(feed, 38 * MS, 1, SAMPLE, SAMPLE_OF(12, 10)); /* in the poll, not in the context */
	FEED(feed, 41 * MS, 1, POLL_END);
	FEED(feed, 50 * MS, 1, POLL_BEGIN, 3, 0);
	FEED(feed, 51 * MS, 1, CONTEXT, CONTEXT_OF(56));
	FEED(feed, 53 * MS, 1, SAMPLE, SAMPLE_OF(13, 10));
	FEED(feed, 55 * MS, 1, WAIT, WEFT_WAIT_LOCK, 0, 9, 1 * MS, 0, 0);
	FEED(feed, 62 * MS, 1, POLL_END);
	FEED(feed, 70 * MS, 2, POLL_BEGIN, 4, 0);
	FEED(feed, 90 * MS, 2, POLL_END);
}

TEST(without_a_filter_all_contexts_count)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed_begin(&feed);
	feed_polls(&feed);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 4);
	CHECK_EQ(r->poll.longest[0].context.span, 0);
	CHECK_EQ(r->poll.longest[1].context.span, 56);
	CHECK_EQ(r->poll.longest[2].context.span, 55);
	CHECK_EQ(r->poll.longest[2].task, 2);
	CHECK_EQ(r->poll.longest[3].context.trace_lo, 8);
	CHECK_EQ(r->samples.all.n, 3);
	feed_close(&feed);
}

TEST(a_span_filters_polls_samples_and_waits)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed.opts.span = 55;
	feed_begin(&feed);
	feed_polls(&feed);
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[0].task, 2);
	CHECK_EQ(r->poll.longest[1].task, 1);
	CHECK_EQ(r->polls.n, 2);
	CHECK_EQ(r->delays.n, 1);
	CHECK_EQ(r->poll.delayed[0].rank_ns, 2 * MS);
	CHECK_EQ(r->poll.delayed[0].behind.held_ns, 0); /* not behind itself */
	CHECK_EQ(r->samples.all.n, 1);
	CHECK_EQ(r->samples.left_out.n, 2);
	REQUIRE(r->wait.n_rows == 1);
	CHECK_EQ(r->wait.rows[0].n, 1);
	CHECK_EQ(r->split.n, 2);
	feed_close(&feed);
}

TEST(polls_are_filtered_by_root_trace_label_and_endpoint)
{
	static const struct {
		uint64_t span, trace_hi, trace_lo;
		const char *label, *endpoint;
		uint64_t polls;
	} cases[] = {
		{100, 0, 0, NULL, NULL, 3},      {0, 7, 8, NULL, NULL, 3},           {0, 7, 9, NULL, NULL, 0},
		{0, 0, 0, "a=b", NULL, 3},       {0, 0, 0, "tier=gold=x", NULL, 3},  {0, 0, 0, "z=", NULL, 3},
		{0, 0, 0, "tier=gold", NULL, 0}, {0, 0, 0, "b,tier", NULL, 0},       {0, 0, 0, NULL, "GET *", 3},
		{0, 0, 0, NULL, "POST *", 0},    {56, 0, 0, "a=b", "GET /users", 1},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct feed feed;

		start(&feed);
		feed.opts.span = cases[i].span;
		feed.opts.trace_hi = cases[i].trace_hi;
		feed.opts.trace_lo = cases[i].trace_lo;
		feed.opts.label = cases[i].label;
		feed.opts.endpoint = cases[i].endpoint;
		feed_begin(&feed);
		feed_polls(&feed);
		CHECK_EQ(feed_end(&feed, 0)->polls.n, cases[i].polls);
		feed_close(&feed);
	}
}

/* A poll that is reported at its end had the contexts of its time, and that which was there when it began. */
TEST(a_span_filters_polls_recorded_at_their_end)
{
	static const struct weft_fact mode = {"poll.mode", "slow"};
	struct feed feed;
	const struct weft__result *r;
	uint64_t i;

	start(&feed);
	CHECK_EQ(weft__names_add_fact(&feed.names, &mode), 0);
	feed.opts.span = 55;
	feed_begin(&feed);
	for (i = 0; i < 100; i++)
		FEED(&feed, i, 1, CONTEXT, CONTEXT_OF(i % 2 ? 57 : 58));
	FEED(&feed, 1 * MS, 1, CONTEXT, CONTEXT_OF(55));
	FEED(&feed, 20 * MS, 1, CONTEXT, NO_CONTEXT);
	FEED(&feed, 30 * MS, 1, POLL, 1, 0, 20 * MS, 0, WEFT_POLL_SLOW); /* from 10 on: it was there */
	FEED(&feed, 50 * MS, 1, POLL, 2, 0, 15 * MS, 0, WEFT_POLL_SLOW); /* from 35 on: gone */
	FEED(&feed, 60 * MS, 1, CONTEXT, CONTEXT_OF(55));
	FEED(&feed, 70 * MS, 1, POLL, 3, 0, 15 * MS, 0, WEFT_POLL_SLOW); /* in it */
	r = feed_end(&feed, 0);
	REQUIRE(r->poll.n_longest == 2);
	CHECK_EQ(r->poll.longest[0].task, 1);
	CHECK_EQ(r->poll.longest[1].task, 3);
	feed_close(&feed);
}

/* Another tracer's context is known for its sample only. */
TEST(a_sample_has_the_context_around_it)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed.opts.span = 77;
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 20 * MS, 1, CONTEXT, CONTEXT_OF(77));
	FEED(&feed, 20 * MS, 1, SAMPLE, SAMPLE_OF(11, 10));
	FEED(&feed, 20 * MS, 1, CONTEXT, NO_CONTEXT);
	FEED(&feed, 30 * MS, 1, SAMPLE, SAMPLE_OF(12, 10));
	FEED(&feed, 40 * MS, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->poll.n_longest, 1);
	CHECK_EQ(r->samples.all.n, 1);
	CHECK_EQ(r->samples.rows[0].stack, 11);
	feed_close(&feed);
}

/* Short waits are reported together, at most every 100 ms: in the context of one request, but of all that the thread
 * was with meanwhile. */
TEST(sums_of_waits_of_several_requests_are_of_none)
{
	struct feed feed;
	const struct weft__result *r;

	start(&feed);
	feed.opts.span = 55;
	feed_begin(&feed);
	FEED(&feed, 10 * MS, 1, CONTEXT, CONTEXT_OF(56));
	FEED(&feed, 100 * MS, 1, CONTEXT, CONTEXT_OF(55));
	FEED(&feed, 150 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 10, 3 * MS, 1 * MS);
	FEED(&feed, 150 * MS, 1, WAIT_SUM, WEFT_WAIT_CALL, 2, 10, 3 * MS, 1 * MS);
	FEED(&feed, 260 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 5, 2 * MS, 1 * MS); /* all of it while it was with 55 */
	FEED(&feed, 300 * MS, 1, CONTEXT, CONTEXT_OF(56));
	FEED(&feed, 310 * MS, 1, CONTEXT, CONTEXT_OF(55));
	FEED(&feed, 370 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 7, 2 * MS, 1 * MS);
	r = feed_end(&feed, 0);
	REQUIRE(r->wait.n_rows == 1);
	CHECK_EQ(r->wait.rows[0].what, WEFT_WAIT_LOCK);
	CHECK_EQ(r->wait.rows[0].n, 5);
	CHECK_EQ(r->wait.rows[0].ns, 2 * MS);
	CHECK_EQ(r->wait.n_mixed, 10 + 10 + 7);
	CHECK_EQ(r->wait.mixed_ns, 8 * MS);
	feed_close(&feed);
}

TEST(sums_of_waits_of_several_locations_are_of_none)
{
	struct feed feed;
	const struct weft__result *r;

	feed_init(&feed);
	feed.opts.location = "echo";
	feed_begin(&feed);
	FEED(&feed, 1 * MS, 3, SPAWN, 7, 1);
	FEED(&feed, 1 * MS, 3, SPAWN, 8, 2);
	FEED(&feed, 10 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 20 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 1, MS, MS); /* of another */
	FEED(&feed, 30 * MS, 1, POLL_END);
	FEED(&feed, 40 * MS, 1, POLL_BEGIN, 8, 0);
	FEED(&feed, 140 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 2, 2 * MS, MS); /* of both */
	FEED(&feed, 200 * MS, 1, POLL_BEGIN, 7, 0);
	FEED(&feed, 250 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 4, 3 * MS, MS); /* all of it in the outer one */
	FEED(&feed, 260 * MS, 1, POLL_END);
	FEED(&feed, 270 * MS, 1, POLL_END);
	FEED(&feed, 380 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 8, 4 * MS, MS);  /* and of what came behind it */
	FEED(&feed, 500 * MS, 1, WAIT_SUM, WEFT_WAIT_LOCK, 1, 16, 5 * MS, MS); /* of none */
	r = feed_end(&feed, 0);
	REQUIRE(r->wait.n_rows == 1);
	CHECK_EQ(r->wait.rows[0].n, 4);
	CHECK_EQ(r->wait.rows[0].ns, 3 * MS);
	CHECK_EQ(r->wait.n_mixed, 2 + 8);
	CHECK_EQ(r->wait.mixed_ns, 6 * MS);
	feed_close(&feed);
}
