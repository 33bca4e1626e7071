/* SPDX-License-Identifier: Apache-2.0 */
/* Samples beside the CPU clock of the process, and work in step with the kernel's tick. */
#include "feed.h"
#include "weft/recorder.h"

#define MS UINT64_C(1000000)
#define US UINT64_C(1000)
#define COLLECTOR 9

static void start(struct feed *feed, const char *tick_hz)
{
	const struct weft_fact tick = {"kernel.tick_hz", tick_hz};

	feed_init(feed);
	if (tick_hz)
		CHECK_EQ(weft__names_add_fact(&feed->names, &tick), 0);
	feed_begin(feed);
}

/* Wakes every `every` us, and has a sample of 10 ms at each fourth. */
static uint64_t in_step_ns(const char *tick_hz, uint64_t every, uint64_t sample_ns, uint64_t engine)
{
	const struct weft__result *r;
	struct feed feed;
	uint64_t i, ns;

	start(&feed, tick_hz);
	for (i = 1; i <= 80; i++) {
		FEED(&feed, i * every * US, 1, PARK, 0);
		FEED(&feed, i * every * US + 100 * US, 1, UNPARK, 0);
		if (i % 4 == 0)
			FEED(&feed, i * every * US + 200 * US, 1, SAMPLE, 0, 0, sample_ns, 0, engine);
	}
	r = feed_end(&feed, 0);
	CHECK_EQ(r->samples.all.n, 20);
	ns = r->samples.in_step.ns;
	feed_close(&feed);
	return ns;
}

TEST(work_that_begins_at_the_same_place_of_each_tick_is_in_step)
{
	/* The first 15 wakes say nothing. */
	CHECK_EQ(in_step_ns("250", 20000, 10 * MS, WEFT_ENGINE_TIMER), 17 * 10 * MS);
	/* 300 times a second is in step with nothing but itself; 7.3 ms is not 4. */
	CHECK_EQ(in_step_ns("300", 20000, 10 * MS, WEFT_ENGINE_TIMER), 17 * 10 * MS);
	CHECK_EQ(in_step_ns("250", 7300, 10 * MS, WEFT_ENGINE_TIMER), 0);
}

TEST(work_is_not_in_step_where_samples_are_not_or_it_is_long_or_the_tick_unknown)
{
	CHECK_EQ(in_step_ns("250", 20000, 10 * MS, WEFT_ENGINE_PERF), 0);
	CHECK_EQ(in_step_ns("250", 400000, 200 * MS, WEFT_ENGINE_TIMER), 0);
	CHECK_EQ(in_step_ns(NULL, 20000, 10 * MS, WEFT_ENGINE_TIMER), 0);
	CHECK_EQ(in_step_ns("0", 20000, 10 * MS, WEFT_ENGINE_TIMER), 0);
	CHECK_EQ(in_step_ns("99999999999", 20000, 10 * MS, WEFT_ENGINE_TIMER), 0);
}

TEST(readings_of_the_cpu_clock_are_added_up)
{
	const struct weft__result *r;
	struct feed feed;

	start(&feed, "250");
	FEED(&feed, 1000 * MS, COLLECTOR, CPU, 1000 * MS, 700 * MS, 690 * MS, 3, 2 * MS);
	FEED(&feed, 2000 * MS, COLLECTOR, CPU, 1000 * MS, 300 * MS, 100 * MS, 4, 1 * MS);
	r = feed_end(&feed, 0);
	CHECK_EQ(r->cpu_clock.n, 2);
	CHECK_EQ(r->cpu_clock.span_ns, 2000 * MS);
	CHECK_EQ(r->cpu_clock.process_ns, 1000 * MS);
	CHECK_EQ(r->cpu_clock.sampled_ns, 790 * MS);
	CHECK_EQ(r->cpu_clock.threads, 7);
	CHECK_EQ(r->cpu_clock.threads_ns, 3 * MS);
	feed_close(&feed);
}
