/* SPDX-License-Identifier: Apache-2.0 */
/* Poll mode caught with real samples. How many there are is up to the machine; which polls they catch is not. */
#include "polls.h"

#define POLL_NS (2 * MS)

static void burn(uint64_t ns)
{
	uint64_t until = session_now_ns() + ns;

	while (session_now_ns() < until)
		;
}

/* Polls with polls in them, until there are samples enough. Answers how many polls. */
static uint64_t poll_until_sampled(struct weft_recorder *rec, uint64_t samples)
{
	uint64_t until = session_now_ns() + 20000 * MS, n = 0;

	while (session_stats(rec).samples < samples && session_now_ns() < until) {
		weft_poll_begin(1, 0);
		burn(POLL_NS);
		weft_poll_begin(2, 0);
		burn(POLL_NS);
		weft_poll_end();
		weft_poll_next(3, 0);
		burn(POLL_NS / 4);
		weft_poll_end();
		n += 3;
	}
	return n;
}

/* With times of a quantum of 8 ns. */
static int holds(const struct poll_seen *poll, uint64_t ns)
{
	return ns + 8 > poll->begin_ns && ns < poll->end_ns + 8;
}

static int is_inside(const struct poll_seen *inner, const struct poll_seen *outer)
{
	return inner->level > outer->level && inner->begin_ns + 8 > outer->begin_ns &&
	       inner->end_ns < outer->end_ns + 8;
}

/* A sample that makes this poll a caught one: in it, and in no caught poll inside of it. */
static int has_own_sample(const struct polls_seen *seen, const struct poll_seen *poll)
{
	for (uint64_t i = 0; i < seen->samples; i++) {
		int deeper = 0;

		for (uint32_t k = 0; k < seen->n; k++)
			deeper |= is_inside(&seen->polls[k], poll) && holds(&seen->polls[k], seen->sample_ns[i]);
		if (holds(poll, seen->sample_ns[i]) && !deeper)
			return 1;
	}
	return 0;
}

TEST(each_caught_poll_has_a_sample_of_its_own)
{
	struct weft_recorder_opts opts = {
		.poll_mode = WEFT_POLLS_CAUGHT, .sample_hz = 250, .wait_ns = WEFT_OFF, .budget_ppm = WEFT_SAMPLE_OFF};
	struct weft_recorder *rec = session_start(&opts);
	struct polls_seen *seen;
	uint64_t made;
	uint32_t i;

	REQUIRE(rec);
	made = poll_until_sampled(rec, 40);
	seen = polls_close(rec);
	REQUIRE(seen);
	if (!seen->samples) {
		free(seen);
		SKIP("this machine takes no samples");
	}
	CHECK_EQ(seen->counted, made);
	CHECK(seen->n > 0 && seen->n <= seen->samples);
	for (i = 0; i < seen->n; i++) {
		const struct poll_seen *poll = &seen->polls[i];

		CHECK(poll->why & WEFT_POLL_CAUGHT);
		CHECK_EQ(poll->level, poll->task == 2);
		CHECK(poll->ns >= POLL_NS / 4);
		CHECK(has_own_sample(seen, poll));
	}
	free(seen);
}
