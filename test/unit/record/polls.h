/* SPDX-License-Identifier: Apache-2.0 */
/* What the segments of a directory say of polls in the modes slow and caught. Polls of a known length are made with
 * ticks of the past, so that nothing has to wait. */
#ifndef WEFT_TEST_POLLS_H
#define WEFT_TEST_POLLS_H

#include "record/event/poll.h"
#include "session.h"

#define POLLS_SEEN 4096
#define POLLS_THREADS 512

struct polls_seen {
	struct poll_seen {
		uint64_t begin_ns, end_ns, task, depth, ns, level, why;
		uint32_t thread;
	} polls[POLLS_SEEN];
	uint32_t n;
	uint64_t counted;                  /* sum of all counts */
	uint64_t unknown;                  /* of these, of no known length */
	uint64_t by_bucket[POLLS_COUNTS];  /* as they were cut when they were recorded */
	uint64_t by_thread[POLLS_THREADS]; /* stream */
	uint64_t wrong;                    /* ranges that are none, threads that the segment does not define */
	uint64_t segments;                 /* with a count in them */
	uint64_t sums[64];                 /* of each segment, by sequence */
	uint64_t samples;
	uint64_t sample_ns[POLLS_SEEN];
	struct tally tally;
};

static inline uint32_t polls_bucket_of(uint64_t from, uint64_t below)
{
	for (uint32_t i = 0; i < POLLS_COUNTS; i++)
		if (weft__polls_from(i) == from && weft__polls_below(i) == below)
			return i;
	return POLLS_COUNTS;
}

static inline void polls_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct polls_seen *seen = data;

	if (ev->kind == WEFT_KIND_POLL && seen->n < POLLS_SEEN)
		seen->polls[seen->n++] = (struct poll_seen){
			.begin_ns = ev->time_ns - ev->fields[2],
			.end_ns = ev->time_ns,
			.task = ev->fields[0],
			.depth = ev->fields[1],
			.ns = ev->fields[2],
			.level = ev->fields[3],
			.why = ev->fields[4],
			.thread = ev->thread,
		};
	if (ev->kind == WEFT_KIND_SAMPLE && seen->samples < POLLS_SEEN)
		seen->sample_ns[seen->samples++] = ev->time_ns;
	if (ev->kind == WEFT_KIND_POLL_COUNT) {
		uint32_t bucket = polls_bucket_of(ev->fields[1], ev->fields[2]);

		seen->counted += ev->fields[3];
		seen->wrong += bucket == POLLS_COUNTS || !ev->fields[3] ||
			       !weft_segment_thread(seg, (uint32_t)ev->fields[0]) || ev->fields[0] >= POLLS_THREADS;
		if (bucket < POLLS_COUNTS)
			seen->by_bucket[bucket] += ev->fields[3];
		if (bucket == POLLS_UNTIMED)
			seen->unknown += ev->fields[3];
		if (ev->fields[0] < POLLS_THREADS)
			seen->by_thread[ev->fields[0]] += ev->fields[3];
		seen->sums[weft_segment_info(seg)->sequence % 64] += ev->fields[3];
	}
}

/* Reads what is in session_dir. */
static inline struct polls_seen *polls_read(void)
{
	struct polls_seen *seen = calloc(1, sizeof(*seen));

	if (!seen)
		return NULL;
	tally_init(&seen->tally, 1);
	seen->tally.each = polls_event;
	seen->tally.data = seen;
	tally_dir(&seen->tally, session_dir);
	CHECK_EQ(seen->tally.damaged, 0);
	CHECK_EQ(seen->tally.undefined, 0);
	CHECK_EQ(seen->tally.backwards, 0);
	CHECK_EQ(seen->wrong, 0);
	tally_fini(&seen->tally);
	return seen;
}

static inline struct polls_seen *polls_close(struct weft_recorder *rec)
{
	struct polls_seen *seen;

	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	seen = polls_read();
	session_remove_dir();
	return seen;
}

/* Ticks that are `ns` or up to two of them more. */
static inline uint64_t polls_ticks(uint64_t ns)
{
	return (uint64_t)((double)ns / (double)load_relaxed(&weft_gate.ns_scale) * 4294967296.0) + 2;
}

/* Whole polls of the past, one after the other. */
static inline void polls_make(uint64_t task, uint64_t ns, uint32_t n)
{
	uint64_t took = polls_ticks(ns);

	while (n--) {
		uint64_t end = weft_now_ticks();

		weft_poll_begin_at(task, 3, end - took);
		weft_poll_end_at(end);
	}
}

#endif
