/* SPDX-License-Identifier: Apache-2.0 */
/* weft_poll_next, from the call to the segment. */
#include <sys/resource.h>

#include "session.h"
#include "stall.h"

static const struct weft_recorder_opts small = {.ring_bytes = 8192, .drain_ns = MS, .sample_hz = WEFT_OFF};

struct seen {
	struct weft_event_view polls[8];
	uint32_t n;
};

static void keep_polls(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct seen *seen = data;

	(void)seg;
	if (ev->kind == WEFT_KIND_POLL_BEGIN || ev->kind == WEFT_KIND_POLL_END || ev->kind == WEFT_KIND_POLL_NEXT)
		if (seen->n < 8)
			seen->polls[seen->n++] = *ev;
}

TEST(a_poll_next_has_the_fields_of_a_begin_and_the_time_it_was_given)
{
	struct weft_recorder *rec = session_start(&small);
	struct seen seen = {0};
	uint64_t now;
	struct tally t;

	REQUIRE(rec);
	weft_poll_next(7, 3);
	now = weft_now_ticks();
	weft_poll_next_at(WEFT_TASK_MASK, 70000, now);
	weft_poll_next_at(UINT64_MAX, WEFT_DEPTH_UNKNOWN, now);
	weft_poll_end_at(now);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = keep_polls;
	t.data = &seen;
	tally_dir(&t, session_dir);
	CHECK_EQ(seen.n, 4);
	CHECK_EQ(seen.polls[0].kind, WEFT_KIND_POLL_NEXT);
	CHECK_EQ(seen.polls[0].n_fields, 2);
	CHECK_EQ(seen.polls[0].fields[0], 7);
	CHECK_EQ(seen.polls[0].fields[1], 3);
	CHECK_EQ(seen.polls[1].fields[0], WEFT_TASK_MASK);
	CHECK_EQ(seen.polls[1].fields[1], 0xfffe);
	CHECK_EQ(seen.polls[2].fields[0], WEFT_TASK_MASK);
	CHECK_EQ(seen.polls[2].fields[1], WEFT_DEPTH_UNKNOWN);
	CHECK_EQ(seen.polls[1].time_ns, seen.polls[2].time_ns);
	CHECK_EQ(seen.polls[2].time_ns, seen.polls[3].time_ns);
	CHECK(seen.polls[0].time_ns <= seen.polls[1].time_ns);
	CHECK_EQ(t.damaged + t.undefined + t.lost, 0);
	session_remove_dir();
	tally_fini(&t);
}

TEST(where_the_ring_is_full_each_is_one_lost_event)
{
	struct weft_recorder *rec = session_start(&small);
	struct rusage before, after;
	uint64_t i, switches;
	struct tally t;

	REQUIRE(rec);
	weft_poll_begin(1, 0);
	stall_begin();
	getrusage(RUSAGE_THREAD, &before);
	for (i = 0; i < 1000; i++)
		weft_poll_next(i, 0);
	getrusage(RUSAGE_THREAD, &after);
	stall_end();
	session_end(rec, &t, 0);
	CHECK(t.lost > 0);
	/* A poll that left the CPU has one more event, poll_cpu, which may be lost, too. */
	switches = (uint64_t)(after.ru_nivcsw - before.ru_nivcsw + after.ru_nvcsw - before.ru_nvcsw);
	CHECK(t.by_kind[WEFT_KIND_POLL_NEXT] + t.lost >= 1000);
	CHECK(t.by_kind[WEFT_KIND_POLL_NEXT] + t.lost <= 1000 + switches + 1);
	tally_fini(&t);
}

TEST(nothing_records_nothing_happens)
{
	weft_poll_next(1, 0);
	weft_poll_next_at(1, 0, weft_now_ticks());
	CHECK_EQ(weft_recording(), 0);
}
