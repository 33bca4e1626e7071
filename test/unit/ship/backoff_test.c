/* SPDX-License-Identifier: Apache-2.0 */
/* When a target is tried again, by a clock that the test moves. */
#include "ship/backoff.h"
#include "weft_test.h"

#define SECOND UINT64_C(1000000000)

TEST(waits_double_up_to_five_minutes)
{
	struct weft__backoff b = {.random = 7};
	uint64_t now = 1000 * SECOND, most = SECOND;

	for (int i = 0; i < 100; i++) {
		uint64_t wait = weft__backoff_fail(&b, now, 0) - now;

		CHECK(wait >= most / 2 && wait <= most);
		now += wait;
		most = most * 2 > 300 * SECOND ? 300 * SECOND : most * 2;
	}
}

TEST(two_processes_do_not_come_together)
{
	struct weft__backoff a = {.random = 1}, b = {.random = 2};
	int same = 0;

	for (int i = 0; i < 20; i++)
		same += weft__backoff_fail(&a, 0, 0) == weft__backoff_fail(&b, 0, 0);
	CHECK_EQ(same, 0);
}

TEST(what_the_target_asks_for_is_obeyed)
{
	struct weft__backoff b = {0};

	CHECK_EQ(weft__backoff_fail(&b, 5 * SECOND, 90 * SECOND), 95 * SECOND);
	CHECK_EQ(weft__backoff_fail(&b, 5 * SECOND, 90000 * SECOND), 3605 * SECOND);
}

TEST(the_circuit_opens_and_one_success_closes_it)
{
	struct weft__backoff b = {0};

	for (int i = 0; i < BACKOFF_BREAKS; i++) {
		CHECK(!weft__backoff_open(&b));
		weft__backoff_fail(&b, 0, 0);
	}
	CHECK(weft__backoff_open(&b));
	weft__backoff_good(&b);
	CHECK(!weft__backoff_open(&b) && !b.until_ns);
	CHECK(weft__backoff_fail(&b, 0, 0) <= SECOND);
}
