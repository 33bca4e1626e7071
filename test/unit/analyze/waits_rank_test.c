/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"
#include "weft/wait.h"

#define MS 1000000u

enum { NAME_READ = 1, NAME_LOCK = 2 };

/* Waits of a thread that does not poll are summed by thread, and are among the longest where nobody polls. */
static const struct weft__result *waits_of_others(struct feed *feed, bool polls)
{
	feed_init(feed);
	feed_begin(feed);
	if (polls) {
		FEED(feed, 10 * MS, 1, POLL_BEGIN, 1, 0);
		FEED(feed, 14 * MS, 1, WAIT, WEFT_WAIT_CALL, NAME_READ, 7, 4 * MS, 0, 21);
		FEED(feed, 15 * MS, 1, POLL_END);
	}
	FEED(feed, 50 * MS, 3, WAIT, WEFT_WAIT_CALL, NAME_READ, 8, 40 * MS, 0, 22);
	FEED(feed, 60 * MS, 3, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xabc0, 5 * MS, 0, 23);
	FEED(feed, 80 * MS, 3, WAIT, WEFT_WAIT_CALL, NAME_READ, 8, 10 * MS, 0, 24);
	FEED(feed, 81 * MS, 3, WAIT_SUM, WEFT_WAIT_CALL, NAME_READ, 5, 2 * MS, MS);
	return feed_end(feed, 0);
}

TEST(waits_of_threads_that_do_not_poll_are_listed_by_thread)
{
	struct feed feed;
	const struct weft__result *r = waits_of_others(&feed, true);

	REQUIRE(r->wait.n_longest == 2);
	CHECK_EQ(r->wait.longest[0].stack, 23); /* a lock matters whoever waits for it */
	CHECK_EQ(r->wait.longest[1].stack, 21);
	REQUIRE(r->wait.n_rows == 2);
	CHECK_EQ(r->wait.rows[0].name, NAME_READ);
	CHECK_EQ(r->wait.rows[0].ns, 56 * MS);
	CHECK_EQ(r->wait.rows[0].worker_ns, 4 * MS);
	CHECK_EQ(r->wait.rows[1].worker_ns, 0);
	REQUIRE(r->wait.n_threads == 2);
	CHECK_EQ(r->wait.threads[0].thread_id, 3);
	CHECK_EQ(r->wait.threads[0].name, NAME_READ);
	CHECK_EQ(r->wait.threads[0].n, 7);
	CHECK_EQ(r->wait.threads[0].ns, 52 * MS);
	CHECK_EQ(r->wait.threads[0].longest_ns, 40 * MS);
	CHECK_EQ(r->wait.threads[0].stack, 22);
	CHECK_EQ(r->wait.threads[1].name, NAME_LOCK);
	feed_close(&feed);
}

TEST(where_nobody_polls_all_waits_are_among_the_longest)
{
	struct feed feed;
	const struct weft__result *r = waits_of_others(&feed, false);

	REQUIRE(r->wait.n_longest == 3);
	CHECK_EQ(r->wait.longest[0].stack, 22);
	CHECK_EQ(r->wait.longest[1].stack, 24);
	CHECK_EQ(r->wait.longest[2].stack, 23);
	REQUIRE(r->wait.n_threads == 2);
	feed_close(&feed);
}

/* A read that took 50 ms, 10 of them on the CPU and 35 ready without one, was blocked for 5. A lock is waited for
 * all that time. */
TEST(time_ready_without_a_cpu_is_not_waited_in_a_call)
{
	const struct weft__result *r;
	struct feed feed;

	feed_init(&feed);
	feed_begin(&feed);
	FEED(&feed, 100 * MS, 3, WAIT, WEFT_WAIT_CALL, NAME_READ, 8, 50 * MS, 0, 22, 10 * MS, 35 * MS);
	FEED(&feed, 200 * MS, 3, WAIT, WEFT_WAIT_CALL, NAME_READ, 8, 20 * MS, 0, 23, 10 * MS, WEFT_NOT_MEASURED);
	FEED(&feed, 300 * MS, 3, WAIT, WEFT_WAIT_LOCK, NAME_LOCK, 0xabc0, 30 * MS, 0, 24, 0, 25 * MS);
	r = feed_end(&feed, 0);
	REQUIRE(r->wait.n_longest == 3);
	CHECK_EQ(r->wait.longest[0].stack, 24);
	CHECK_EQ(r->wait.longest[0].rank_ns, 30 * MS);
	CHECK_EQ(r->wait.longest[1].stack, 23);
	CHECK_EQ(r->wait.longest[1].rank_ns, 10 * MS);
	CHECK_EQ(r->wait.longest[2].stack, 22);
	CHECK_EQ(r->wait.longest[2].rank_ns, 5 * MS);
	feed_close(&feed);
}
