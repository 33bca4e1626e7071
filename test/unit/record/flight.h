/* SPDX-License-Identifier: Apache-2.0 */
/* A flight recorder, and what its dumps say. */
#ifndef WEFT_TEST_FLIGHT_H
#define WEFT_TEST_FLIGHT_H

#include "polls.h"

#include <signal.h>
#include <sys/stat.h>

#include "record/setup.h"

#define SECOND (1000 * MS)

static inline struct weft_recorder *fly(const struct weft_recorder_opts *given)
{
	struct weft_recorder_opts opts = *given;

	opts.flight_ns = opts.flight_ns ? opts.flight_ns : 10 * SECOND;
	return session_start(&opts);
}

struct window {
	uint64_t tasks[16];         /* wakes, by task */
	uint64_t first_ns, last_ns; /* of these */
	uint64_t from_ns, to_ns;    /* as the facts say */
	char why[128];
	uint64_t unheard;
	struct tally tally;
};

static inline void wake_event(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct window *w = data;

	(void)seg;
	if (ev->kind != WEFT_KIND_WAKE)
		return;
	w->tasks[ev->fields[0] % 16]++;
	w->first_ns = !w->first_ns || ev->time_ns < w->first_ns ? ev->time_ns : w->first_ns;
	w->last_ns = ev->time_ns > w->last_ns ? ev->time_ns : w->last_ns;
}

static inline uint64_t fact_number(const struct weft_segment *seg, const char *key)
{
	const char *text = weft_segment_fact(seg, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

static inline struct window look_at(const char *path)
{
	struct window w = {0};
	struct weft_segment *seg;

	tally_init(&w.tally, 1);
	w.tally.each = wake_event;
	w.tally.data = &w;
	tally_file(&w.tally, path);
	tally_fini(&w.tally);
	CHECK_EQ(w.tally.damaged, 0);
	CHECK_EQ(w.tally.undefined, 0);
	CHECK_EQ(w.tally.backwards, 0);
	if (!CHECK_EQ(weft_segment_open(&seg, path, NULL), 0))
		return w;
	snprintf(w.why, sizeof(w.why), "%s",
		 weft_segment_fact(seg, "dump.why") ? weft_segment_fact(seg, "dump.why") : "");
	w.from_ns = fact_number(seg, "dump.from_ns");
	w.to_ns = fact_number(seg, "dump.to_ns");
	w.unheard = fact_number(seg, "dump.unheard");
	weft_segment_close(seg);
	return w;
}

/* The last dump in session_dir, by name. */
static inline struct window look_at_last(void)
{
	struct dirent **entries;
	int n = scandir(session_dir, &entries, tally_is_segment, alphasort);
	struct window w = {0};
	char path[4096];

	if (CHECK(n > 0)) {
		snprintf(path, sizeof(path), "%s/%s", session_dir, entries[n - 1]->d_name);
		w = look_at(path);
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	if (n >= 0)
		free(entries);
	return w;
}

static inline void wakes(uint64_t task, uint64_t ago_ns, uint32_t n)
{
	uint64_t tick = weft_now_ticks() - polls_ticks(ago_ns);

	while (n--)
		weft_wake_at(task, 0xffff, tick++);
}

#endif
