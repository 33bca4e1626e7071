/* SPDX-License-Identifier: Apache-2.0 */
/* A poll_next says what a poll_end and a poll_begin at the same time say. */
#include "feed.h"

#define STREAMS 3
#define GAP_BEGIN 40000
#define GAP_END 41000

/* What one thread does, reported in one of the two ways. */
struct teller {
	struct feed feed;
	bool one_event;
};

static void teller_start(struct teller *teller, bool one_event, const struct weft__analysis_opts *opts)
{
	static const struct weft_loss loss = {WEFT_LOSS_RING_FULL, 1, 20, GAP_BEGIN, GAP_END};

	teller->one_event = one_event;
	feed_init(&teller->feed);
	CHECK_EQ(weft__names_add_loss(&teller->feed.names, &loss), 0);
	teller->feed.opts = *opts;
	teller->feed.opts.names = &teller->feed.names;
	feed_begin(&teller->feed);
}

static void next_poll(struct teller *teller, uint64_t now, uint32_t thread_id, bool open, uint64_t task, uint64_t depth)
{
	if (teller->one_event) {
		FEED(&teller->feed, now, thread_id, POLL_NEXT, task, depth);
		return;
	}
	if (open)
		FEED(&teller->feed, now, thread_id, POLL_END);
	FEED(&teller->feed, now, thread_id, POLL_BEGIN, task, depth);
}

/* 3,000 steps of three threads, from a fixed seed: polls in polls, wakes, parks, samples, and a gap in the first
 * thread. */
static void tell(struct teller *teller)
{
	uint32_t open[STREAMS + 1] = {0};
	uint64_t seed = 7, now = 1000;
	int i;

	for (i = 0; i < 3000; i++) {
		uint64_t random = seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		uint32_t thread_id = (uint32_t)(random >> 20) % STREAMS + 1;
		uint64_t task = (random >> 24) % 20 + 1;

		now += (random >> 40) % 50;
		switch ((random >> 32) % 12) {
		case 0:
		case 1:
			if (open[thread_id] >= 4 || (thread_id == 1 && now < GAP_END && open[thread_id]))
				break;
			FEED(&teller->feed, now, thread_id, POLL_BEGIN, task, i % 5);
			open[thread_id]++;
			break;
		case 2:
		case 3:
			if (!open[thread_id])
				break;
			FEED(&teller->feed, now, thread_id, POLL_END);
			open[thread_id]--;
			break;
		case 4:
			if (open[thread_id])
				break;
			FEED(&teller->feed, now, thread_id, PARK, 0);
			FEED(&teller->feed, now += 10, thread_id, UNPARK, 0);
			break;
		case 5:
			FEED(&teller->feed, now, thread_id, WAKE, task, 0);
			break;
		case 6:
			FEED(&teller->feed, now, thread_id, SAMPLE, task, 0, 1000, 0, 1);
			break;
		case 7:
			FEED(&teller->feed, now, thread_id, SPAWN, task, task % 3);
			break;
		default:
			next_poll(teller, now, thread_id, open[thread_id] > 0, task,
				  task % 4 ? (uint64_t)i % 5 : NO_DEPTH);
			open[thread_id] += !open[thread_id];
			break;
		}
	}
	feed_end(&teller->feed, now + 500);
}

static void same_hist(const struct weft__hist *a, const struct weft__hist *b)
{
	uint32_t i;

	CHECK_EQ(a->n, b->n);
	CHECK_EQ(a->sum, b->sum);
	for (i = 0; i <= 10000; i += 250)
		CHECK_EQ(weft__hist_at(a, i), weft__hist_at(b, i));
}

static void same_polls(const struct weft__poll *a, size_t n_a, const struct weft__poll *b, size_t n_b)
{
	size_t i;

	CHECK_EQ(n_a, n_b);
	for (i = 0; i < n_a && i < n_b; i++) {
		CHECK_EQ(a[i].rank_ns, b[i].rank_ns);
		CHECK_EQ(a[i].task, b[i].task);
		CHECK_EQ(a[i].begin_ns, b[i].begin_ns);
		CHECK_EQ(a[i].end_ns, b[i].end_ns);
		CHECK_EQ(a[i].thread_id, b[i].thread_id);
		CHECK_EQ(a[i].worker, b[i].worker);
		CHECK_EQ(a[i].location, b[i].location);
		CHECK_EQ(a[i].depth, b[i].depth);
		CHECK_EQ(a[i].level, b[i].level);
		CHECK_EQ(a[i].n_wakes, b[i].n_wakes);
		CHECK_EQ(a[i].wake.time_ns, b[i].wake.time_ns);
		CHECK_EQ(a[i].wake.task, b[i].wake.task);
		CHECK_EQ(a[i].behind.held_ns, b[i].behind.held_ns);
		CHECK_EQ(a[i].behind.task, b[i].behind.task);
		CHECK_EQ(a[i].sampled.n, b[i].sampled.n);
		CHECK_EQ(a[i].sampled.ns, b[i].sampled.ns);
		CHECK_EQ(a[i].n_stacks, b[i].n_stacks);
	}
}

static void same_rows(const struct weft__result *a, const struct weft__result *b)
{
	size_t i;

	CHECK_EQ(a->lane.n_lanes, b->lane.n_lanes);
	for (i = 0; i < a->lane.n_lanes && i < b->lane.n_lanes; i++) {
		same_hist(&a->lane.lanes[i].polls, &b->lane.lanes[i].polls);
		same_hist(&a->lane.lanes[i].delays, &b->lane.lanes[i].delays);
		same_hist(&a->lane.lanes[i].depths, &b->lane.lanes[i].depths);
		CHECK_EQ(a->lane.lanes[i].observed_ns, b->lane.lanes[i].observed_ns);
		CHECK_EQ(a->lane.lanes[i].busy_ns, b->lane.lanes[i].busy_ns);
		CHECK_EQ(a->lane.lanes[i].parked_ns, b->lane.lanes[i].parked_ns);
		CHECK_EQ(a->lane.lanes[i].n_poll_events, b->lane.lanes[i].n_poll_events);
	}
	CHECK_EQ(a->lane.n_locations, b->lane.n_locations);
	for (i = 0; i < a->lane.n_locations && i < b->lane.n_locations; i++) {
		CHECK_EQ(a->lane.locations[i].id, b->lane.locations[i].id);
		same_hist(&a->lane.locations[i].polls, &b->lane.locations[i].polls);
		same_hist(&a->lane.locations[i].delays, &b->lane.locations[i].delays);
		CHECK_EQ(a->lane.locations[i].sampled.ns, b->lane.locations[i].sampled.ns);
		CHECK_EQ(a->lane.locations[i].n_short, b->lane.locations[i].n_short);
	}
}

static void same_whichever_way(const struct weft__analysis_opts *opts)
{
	struct teller two, one;
	const struct weft__result *a, *b;

	teller_start(&two, false, opts);
	teller_start(&one, true, opts);
	tell(&two);
	tell(&one);
	a = two.feed.result;
	b = one.feed.result;
	CHECK(a->polls.n > 300);
	CHECK(a->poll.cut > 0 && a->poll.n_running > 0);
	CHECK(b->n_kind[WEFT_KIND_POLL_NEXT] > 300 && !a->n_kind[WEFT_KIND_POLL_NEXT]);
	CHECK(b->n_events < a->n_events);
	CHECK_EQ(a->last_ns, b->last_ns);
	same_hist(&a->polls, &b->polls);
	same_hist(&a->delays, &b->delays);
	same_rows(a, b);
	same_polls(a->poll.longest, a->poll.n_longest, b->poll.longest, b->poll.n_longest);
	same_polls(a->poll.running, a->poll.n_running, b->poll.running, b->poll.n_running);
	same_polls(a->poll.delayed, a->poll.n_delayed, b->poll.delayed, b->poll.n_delayed);
	CHECK_EQ(a->poll.open, b->poll.open);
	CHECK_EQ(a->poll.began_before, b->poll.began_before);
	CHECK_EQ(a->poll.cut, b->poll.cut);
	CHECK_EQ(a->poll.too_deep, b->poll.too_deep);
	CHECK_EQ(a->poll.delays_cut, b->poll.delays_cut);
	feed_close(&two.feed);
	feed_close(&one.feed);
}

TEST(one_event_or_two_make_the_same_result)
{
	struct weft__analysis_opts opts = {.top = 40, .period_ns = 60};

	same_whichever_way(&opts);
}

TEST(one_event_or_two_make_the_same_result_in_a_window)
{
	struct weft__analysis_opts opts = {.top = 40, .period_ns = 60, .from_ns = 20000, .to_ns = 62000};

	same_whichever_way(&opts);
}

TEST(poll_next_without_an_open_poll_is_a_begin)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_NEXT, 7, 2);
	FEED(&feed, 1030, 1, POLL_NEXT, 8, NO_DEPTH);
	FEED(&feed, 1050, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 2);
	CHECK_EQ(r->polls.sum, 50);
	CHECK_EQ(r->poll.began_before, 0);
	CHECK_EQ(r->poll.longest[0].task, 7);
	CHECK_EQ(r->poll.longest[1].depth, WEFT_DEPTH_UNKNOWN);
	CHECK_EQ(feed_lane(&feed, 0, 0)->busy_ns, 50);
	CHECK_EQ(feed_lane(&feed, 0, 0)->depths.n, 1);
	feed_close(&feed);
}

TEST(poll_next_in_a_nested_poll_replaces_the_inner_one)
{
	struct feed feed;
	const struct weft__result *r;

	feed_start(&feed);
	FEED(&feed, 1000, 1, POLL_BEGIN, 1, 0);
	FEED(&feed, 1010, 1, POLL_BEGIN, 2, 0);
	FEED(&feed, 1030, 1, POLL_NEXT, 3, 0);
	FEED(&feed, 1035, 1, POLL_END);
	FEED(&feed, 1100, 1, POLL_END);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->polls.n, 3);
	CHECK_EQ(r->poll.longest[0].task, 1);
	CHECK_EQ(r->poll.longest[0].rank_ns, 100);
	CHECK_EQ(r->poll.longest[1].rank_ns, 20);
	CHECK_EQ(r->poll.longest[1].level, 1);
	CHECK_EQ(r->poll.longest[2].task, 3);
	CHECK_EQ(r->poll.longest[2].level, 1);
	CHECK_EQ(feed_lane(&feed, 0, 0)->busy_ns, 100);
	feed_close(&feed);
}
